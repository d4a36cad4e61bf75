/* Children of fork, of a process with threads and of one that signals interrupt: they free what
 * they inherited, make as much as a process of their own, start threads and fork in turn. Every
 * object holds its own mark over its whole length and is checked when it is freed. Prints "ok" and
 * which descriptors are open, or what was wrong.
 * Arguments: threads | signals, children, objects that each makes. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

enum { SHARED = 8192, OWN = 4096 };
static _Atomic(unsigned char *) shared[SHARED];
static atomic_int stop;
static long objects;

static void fail(const char *what) {
    /* Not printf: it allocates. */
    if (write(1, "FAILED: ", 8) < 0 || write(1, what, strlen(what)) < 0 || write(1, "\n", 1) < 0) _exit(3);
    _exit(2);
}

/* An object: one byte of length, then its mark to the end. */
static unsigned char *make(uint64_t *random) {
    *random = *random * 6364136223846793005u + 1442695040888963407u;
    size_t size = 3 + (*random >> 33) % 200;
    unsigned char *object = malloc(size);
    if (!object) fail("no memory");
    object[0] = (unsigned char)size;
    memset(object + 1, (int)(*random >> 50), size - 1);
    return object;
}

static void drop(unsigned char *object) {
    if (!object) return;
    for (size_t at = 2; at < object[0]; at++)
        if (object[at] != object[1]) fail("an object was overwritten");
    free(object);
}

/* Hands objects over, and takes those of others, until told to stop. */
static void *churn(void *argument) {
    uint64_t random = (uintptr_t)argument * 0x9e3779b97f4a7c15u + 1;
    while (!stop) drop(atomic_exchange(&shared[random >> 45 & (SHARED - 1)], make(&random)));
    return NULL;
}

static void *fill(void *argument) {
    uint64_t random = (uintptr_t)argument * 0x9e3779b97f4a7c15u + 7;
    unsigned char **own = calloc(OWN, sizeof *own);
    for (long i = 0; i < objects; i++) {
        unsigned char **place = &own[(random >> 45) % OWN];
        drop(*place), *place = make(&random);
        if (i % 16 == 0) drop(atomic_exchange(&shared[random >> 40 & (SHARED - 1)], make(&random)));
    }
    for (int i = 0; i < OWN; i++) drop(own[i]);
    free(own);
    return NULL;
}

static void wait_for(pid_t pid) {
    int status = 0;
    if (pid < 0 || waitpid(pid, &status, 0) != pid) fail("no child");
    if (status) fail("a child failed");
}

/* What a child does; `generations` of its own come after it. */
static void child(uint64_t random, int generations) {
    for (int i = 0; i < SHARED; i += 2) drop(atomic_exchange(&shared[i], NULL));
    fill((void *)random);
    pthread_t threads[3];
    for (long i = 0; i < 3; i++)
        if (pthread_create(&threads[i], NULL, fill, (void *)(random + i))) fail("no thread");
    if (generations > 0) {
        /* Its threads are at work. */
        pid_t pid = fork();
        if (pid == 0) child(random + 99, generations - 1);
        wait_for(pid);
    }
    for (int i = 0; i < 3; i++) pthread_join(threads[i], NULL);
    for (int i = 0; i < SHARED; i++) drop(atomic_exchange(&shared[i], NULL));
    exit(0);
}

static void of_threads(long children) {
    pthread_t threads[4];
    for (long i = 0; i < 4; i++)
        if (pthread_create(&threads[i], NULL, churn, (void *)(i + 1))) fail("no thread");
    fill((void *)3);
    for (long i = 0; i < children; i++) {
        pid_t pid = fork();
        if (pid == 0) child(1000 + i * 17, i % 3 == 0 ? 2 : 0);
        if (i % 2) fill((void *)(50 + i));
        wait_for(pid);
    }
    stop = 1;
    for (int i = 0; i < 4; i++) pthread_join(threads[i], NULL);
}

/* The handler forks now and then, in the middle of whatever it has interrupted, and the child goes
 * on with that. All objects are placed: POSIX lets no handler allocate in glibc's malloc. */
static volatile long forks_left, signals_seen, made;
static volatile int is_child;
static unsigned char *volatile kept;
static void come_between(void) {
    uint64_t random = (uint64_t)++signals_seen;
    unsigned char *old = kept;
    kept = NULL;
    drop(old);
    kept = make(&random);
    if (is_child || forks_left == 0 || signals_seen % 8) return;
    forks_left--;
    int error = errno;
    pid_t pid = fork();
    if (pid == 0) {
        is_child = 1, made = 0;
    } else {
        wait_for(pid);
    }
    errno = error;
}

/* Not by an interval: where a signal takes longer than that its thread would do nothing else. A child has no timer before
 * its first one here. */
static volatile int is_wanted;
static const struct itimerval soon = {{0, 0}, {0, 300}};
static void handler(int number) {
    (void)number;
    come_between();
    if (is_wanted) setitimer(ITIMER_REAL, &soon, NULL);
}

static void of_signals(long children) {
    static unsigned char *own[OWN];
    uint64_t random = 5;
    struct sigaction action = {.sa_handler = handler, .sa_flags = SA_RESTART};
    struct itimerval never = {{0, 0}, {0, 0}};
    /* Before any signal, so that placing has begun. */
    for (int i = 0; i < 4 * OWN; i++) drop(own[i % OWN]), own[i % OWN] = make(&random);
    sigaction(SIGALRM, &action, NULL);
    forks_left = children, is_wanted = 1;
    setitimer(ITIMER_REAL, &soon, NULL);
    for (made = 0; is_child ? made < objects : forks_left > 0; made++) {
        unsigned char **place = &own[(random >> 45) % OWN];
        drop(*place), *place = make(&random);
    }
    is_wanted = 0;
    setitimer(ITIMER_REAL, &never, NULL);
    for (int i = 0; i < OWN; i++) drop(own[i]), own[i] = NULL;
    drop(kept);
    if (is_child) exit(0);
}

int main(int count, char **arguments) {
    if (count < 4) return 4;
    long children = atol(arguments[2]);
    objects = atol(arguments[3]);
    if (strcmp(arguments[1], "signals") == 0) of_signals(children);
    else of_threads(children);
    for (int i = 0; i < SHARED; i++) drop(atomic_exchange(&shared[i], NULL));
    printf("ok, open:");
    for (int i = 0; i < 64; i++)
        if (fcntl(i, F_GETFD) >= 0) printf(" %d", i);
    printf("\n");
    return 0;
}
