/* A profiler of the program's own: a handler walks the stack a thousand times a second, from wherever the program is,
 * inside of malloc and free as well, in three threads. Prints "ok". */
#include "../rules/rules.h"
#include <execinfo.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/time.h>

static atomic_long samples, frames;

static void handler(int number) {
    void *found[64];
    int depth = backtrace(found, 64);
    (void)number;
    samples++, frames += depth;
}

static void *works(void *seed) {
    static __thread unsigned char *own[SOME];
    for (int turn = 0; turn < 400 && (turn < 4 || samples < 60); turn++) churn(own, (uintptr_t)seed, 100000);
    drop_all(own);
    return NULL;
}

int main(void) {
    void *first[4];
    struct sigaction action = {.sa_handler = handler, .sa_flags = SA_RESTART};
    struct itimerval often = {{0, 1000}, {0, 1000}}, never = {{0, 0}, {0, 0}};
    pthread_t threads[3];
    /* The first call loads a library. */
    if (backtrace(first, 4) < 1 || sigaction(SIGPROF, &action, NULL)) fail("no handler");
    setitimer(ITIMER_PROF, &often, NULL);
    for (uintptr_t i = 0; i < 3; i++)
        if (pthread_create(&threads[i], NULL, works, (void *)(i + 1))) fail("no thread");
    for (int i = 0; i < 3; i++) pthread_join(threads[i], NULL);
    setitimer(ITIMER_PROF, &never, NULL);
    if (frames < 2 * samples) fail("stacks end at once");
    return puts("ok") < 0;
}
