/* Threads that come and go, free each other's objects, fork, and allocate in key destructors and
 * signal handlers. Every object holds its own mark over its whole length and is checked when it is
 * freed, so that any overlap is found. Prints "ok" and the number of objects, or what was wrong.
 * Arguments: threads, operations by thread, generations. */
#define _GNU_SOURCE
#include <errno.h>
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

enum { SHARED = 4096, OWN = 512 };
static _Atomic(unsigned char *) shared[SHARED];
static atomic_long objects, signals_seen;
static pthread_key_t key;
static long operations;

static void fail(const char *what) {
    /* Not printf: it allocates. */
    if (write(1, "FAILED: ", 8) < 0 || write(1, what, strlen(what)) < 0 || write(1, "\n", 1) < 0) _exit(3);
    _exit(2);
}

/* An object: two bytes of length, one of mark, then the mark to its end. */
static unsigned char *make(uint64_t *random) {
    *random = *random * 6364136223846793005u + 1442695040888963407u;
    uint64_t draw = *random >> 33;
    size_t size = draw % 16 == 0 ? 3 + draw / 16 % 2000 : 3 + draw / 16 % 254;
    unsigned char mark = (unsigned char)(draw >> 20), *object;
    switch (draw % 8) {
    case 0:
        object = calloc(1, size);
        for (size_t at = 0; object && at < size; at++)
            if (object[at]) fail("calloc gave memory that is not zero");
        break;
    case 1: object = aligned_alloc(64, (size + 63) / 64 * 64); break;
    default: object = malloc(size);
    }
    if (!object) fail("no memory");
    if ((uintptr_t)object % (draw % 8 == 1 ? 64 : 16)) fail("misaligned");
    object[0] = (unsigned char)size, object[1] = (unsigned char)(size >> 8);
    memset(object + 2, mark, size - 2);
    atomic_fetch_add_explicit(&objects, 1, memory_order_relaxed);
    return object;
}

static size_t check(unsigned char *object) {
    size_t size = object[0] + 256u * object[1];
    for (size_t at = 3; at < size; at++)
        if (object[at] != object[2]) fail("an object was overwritten");
    return size;
}

static void drop(unsigned char *object) {
    if (!object) return;
    size_t size = check(object);
    memset(object, 0, size);
    errno = 11;
    free(object);
    if (errno != 11) fail("free changed errno");
}

static unsigned char *resize(unsigned char *object, uint64_t *random) {
    *random = *random * 6364136223846793005u + 1442695040888963407u;
    size_t old = check(object), size = 3 + (*random >> 33) % 400;
    unsigned char mark = object[2];
    object = realloc(object, size);
    if (!object) fail("no memory to resize");
    for (size_t at = 2; at < (old < size ? old : size); at++)
        if (object[at] != mark) fail("realloc lost something");
    object[0] = (unsigned char)size, object[1] = (unsigned char)(size >> 8);
    memset(object + 2, mark, size - 2);
    return object;
}

/* Allocates in every round of destructors, as libraries do. */
static void destroyed(void *value) {
    uint64_t random = (uintptr_t)value;
    uintptr_t round = (uintptr_t)value & 7;
    for (int i = 0; i < 50; i++) drop(make(&random));
    drop(atomic_exchange(&shared[random >> 40 & (SHARED - 1)], make(&random)));
    if (round < 6) pthread_setspecific(key, (void *)(((uintptr_t)value & ~(uintptr_t)7) | (round + 1)));
}

static void child(uint64_t random) {
    unsigned char *own[OWN] = {0};
    /* Objects of the parent are freed here, and new ones made. */
    for (int i = 0; i < SHARED; i += 3) drop(atomic_exchange(&shared[i], NULL));
    for (int i = 0; i < 20000; i++) {
        unsigned char **place = &own[i % OWN];
        drop(*place), *place = make(&random);
        if (i % 7 == 0) *place = resize(*place, &random);
    }
    _exit(0);
}

static void *work(void *argument) {
    uint64_t random = (uintptr_t)argument * 0x9e3779b97f4a7c15u + 1;
    unsigned char *own[OWN] = {0};
    pthread_setspecific(key, (void *)(random & ~(uint64_t)7));
    for (long i = 0; i < operations; i++) {
        unsigned char **place = &own[(random >> 50) % OWN];
        switch ((random >> 40) % 8) {
        case 0: case 1: /* Hand an object to whoever takes it, and free what lies there. */
            drop(atomic_exchange(&shared[random >> 45 & (SHARED - 1)], make(&random)));
            break;
        case 2:
            if (*place) *place = resize(*place, &random);
            else *place = make(&random);
            break;
        default:
            drop(*place);
            *place = make(&random);
        }
    }
    pid_t pid = (uintptr_t)argument % 4 == 0 ? fork() : -1;
    if (pid == 0) child(random);
    for (int i = 0; i < OWN; i++) drop(own[i]);
    int status = 0;
    if (pid > 0 && (waitpid(pid, &status, 0) != pid || status)) fail("a child of fork failed");
    return NULL;
}

/* Comes in between calls of this thread; frees in one signal what it made in another. */
static unsigned char *volatile kept;
static volatile sig_atomic_t is_wanted;
static const struct itimerval soon = {{0, 0}, {0, 200}};
static void handler(int number) {
    (void)number;
    uint64_t random = (uint64_t)atomic_fetch_add(&signals_seen, 1) + 77;
    unsigned char *old = kept;
    kept = NULL;
    if (old) free(old);
    kept = malloc(16 + random % 200);
    if (kept) memset(kept, 1, 16 + random % 200);
    /* Not by an interval: where a signal takes longer than that its thread would do nothing else. */
    if (is_wanted) setitimer(ITIMER_REAL, &soon, NULL);
}

/* Only objects that are placed: POSIX lets no handler allocate in the middle of glibc's malloc. */
static void with_signals(void) {
    struct sigaction action = {.sa_handler = handler, .sa_flags = SA_RESTART};
    struct itimerval never = {{0, 0}, {0, 0}};
    unsigned char *own[64] = {0};
    sigaction(SIGALRM, &action, NULL);
    is_wanted = 1;
    setitimer(ITIMER_REAL, &soon, NULL);
    for (long i = 0; i < 40 * operations; i++) {
        unsigned char **place = &own[i % 64];
        if (*place) {
            for (int at = 0; at < 48; at++)
                if ((*place)[at] != (unsigned char)(i - 64)) fail("a handler's object lies in another");
            free(*place);
        }
        *place = malloc(48);
        memset(*place, (int)(unsigned char)i, 48);
    }
    is_wanted = 0;
    setitimer(ITIMER_REAL, &never, NULL);
    for (int i = 0; i < 64; i++) free(own[i]);
    free(kept);
}

int main(int count, char **arguments) {
    long threads = count > 1 ? atol(arguments[1]) : 8, generations = count > 3 ? atol(arguments[3]) : 4;
    operations = count > 2 ? atol(arguments[2]) : 20000;
    pthread_key_create(&key, destroyed);
    for (long generation = 0; generation < generations; generation++) {
        pthread_t all[64];
        for (long i = 0; i < threads && i < 64; i++)
            if (pthread_create(&all[i], NULL, work, (void *)(generation * threads + i + 1))) fail("no thread");
        for (long i = 0; i < threads && i < 64; i++) pthread_join(all[i], NULL);
    }
    if (getenv("WITH_SIGNALS")) with_signals();
    for (int i = 0; i < SHARED; i++) drop(atomic_exchange(&shared[i], NULL));
    printf("ok %ld\n", (long)objects);
    return 0;
}
