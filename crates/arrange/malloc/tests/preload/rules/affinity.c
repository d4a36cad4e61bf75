/* Rule 6: on which cores a thread may run is the program's to say, and what is said is true. Prints what the kernel
 * and the C library answer, in the main thread, in others, and in children. Argument: "none", or "own" for threads
 * that bind themselves, to the last core that there is, while there are far more threads than cores. */
#include "rules.h"
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <sys/wait.h>

enum { THREADS = 6 };
static pthread_barrier_t bound, worked;
static int last;

static void say(const char *who) {
    cpu_set_t kernel, library, raw;
    CPU_ZERO(&kernel);
    CPU_ZERO(&library);
    CPU_ZERO(&raw);
    if (sched_getaffinity(0, sizeof kernel, &kernel)) fail("sched_getaffinity");
    if (pthread_getaffinity_np(pthread_self(), sizeof library, &library)) fail("pthread_getaffinity_np");
    if (syscall(SYS_sched_getaffinity, 0, sizeof raw, &raw) < 0) fail("the system call");
    if (!CPU_EQUAL(&kernel, &raw) || !CPU_EQUAL(&library, &raw)) fail("two answers");
    printf("%s:", who);
    for (int core = 0; core < CPU_SETSIZE; core++)
        if (CPU_ISSET(core, &raw)) printf(" %d", core);
    printf("\n");
    fflush(stdout);
}

static void bind_to_last(void) {
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(last, &one);
    if (sched_setaffinity(0, sizeof one, &one)) fail("it cannot bind itself");
}

static void work(uint64_t seed) {
    unsigned char **own = calloc(SOME, sizeof *own);
    churn(own, seed, 100000);
    drop_all(own);
    free(own);
}

static void *binds_itself(void *argument) {
    work(1);
    bind_to_last();
    pthread_barrier_wait(&bound);
    pthread_barrier_wait(&worked);
    work(2);
    say("a thread that has bound itself");
    pid_t pid = fork();
    if (pid == 0) work(6), say("its child"), _exit(0);
    waitpid(pid, NULL, 0);
    return argument;
}

static void *works(void *argument) {
    pthread_barrier_wait(&bound);
    work((uintptr_t)argument);
    pthread_barrier_wait(&worked);
    work((uintptr_t)argument);
    return argument;
}

static void *works_alone(void *argument) {
    work(3);
    say("a thread");
    return argument;
}

int main(int count, char **arguments) {
    int own = count > 1 && !strcmp(arguments[1], "own");
    pthread_t threads[THREADS];
    cpu_set_t all;
    if (sched_getaffinity(0, sizeof all, &all)) fail("sched_getaffinity");
    for (int core = 0; core < CPU_SETSIZE; core++)
        if (CPU_ISSET(core, &all)) last = core;
    if (own) {
        pthread_barrier_init(&bound, NULL, THREADS);
        pthread_barrier_init(&worked, NULL, THREADS);
        for (uintptr_t i = 0; i < THREADS; i++)
            if (pthread_create(&threads[i], NULL, i ? works : binds_itself, (void *)i)) fail("no thread");
        for (int i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
        return 0;
    }
    say("main, at first");
    work(1);
    say("main");
    for (int i = 0; i < 2; i++) {
        if (pthread_create(&threads[0], NULL, works_alone, NULL)) fail("no thread");
        pthread_join(threads[0], NULL);
    }
    for (int i = 0; i < 2; i++) {
        fflush(stdout);
        pid_t pid = fork();
        if (pid == 0) work(4), say("a child"), _exit(0);
        waitpid(pid, NULL, 0);
        bind_to_last();
        work(5);
        say("main, which has bound itself");
    }
    return 0;
}
