/* Rule 8: fork in every state. Children free what they inherited, make objects of their own and find nothing
 * overwritten; and so does their parent. Arguments: how, and how many children; some take more. Prints "ok".
 *   storm N T      N children while T threads allocate
 *   handlers N     handlers of pthread_atfork allocate, on both sides
 *   vfork N, spawn N   children that share the memory until they execute
 *   generations N  each child has a child, N deep, of a process with threads */
#include "rules.h"
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/wait.h>

enum { SHARED = 4096, CHILDS = 2000, TOGETHER = 8 };
static _Atomic(unsigned char *) shared[SHARED];
static unsigned char *own[SOME];
static atomic_int stop;
static pthread_t threads[64];
static long thread_count;
extern char **environ;

static void *hands_over(void *seed) {
    uint64_t random = (uintptr_t)seed * 0x9e3779b97f4a7c15u + 1;
    while (!stop) drop(atomic_exchange(&shared[random >> 45 & (SHARED - 1)], make(&random)));
    return NULL;
}

static void begin_threads(long count) {
    thread_count = count;
    for (long i = 0; i < count; i++)
        if (pthread_create(&threads[i], NULL, hands_over, (void *)(i + 1))) fail("no thread");
}

static void end_threads(void) {
    stop = 1;
    for (long i = 0; i < thread_count; i++) pthread_join(threads[i], NULL);
    for (int i = 0; i < SHARED; i++) drop(atomic_exchange(&shared[i], NULL));
}

/* -1 stands for any child. */
static void wait_for(pid_t pid) {
    int status = 0;
    if (waitpid(pid, &status, 0) <= 0) fail("no child");
    if (WIFSIGNALED(status)) fail(WTERMSIG(status) == SIGALRM ? "a child hangs" : "a signal ended a child");
    if (status) fail("a child failed");
}

/* What a child does, in a process that may hold any lock of a thread that there is not any more. */
static void in_child(uint64_t seed, long objects) {
    /* One that waits for such a lock is ended, and not the whole run. */
    alarm(60);
    for (int i = (int)(seed % 3); i < SHARED; i += 3) drop(atomic_exchange(&shared[i], NULL));
    churn(own, seed, objects);
}

static void storm(long children, long count) {
    begin_threads(count);
    for (long i = 0; i < children; i++) {
        pid_t pid = fork();
        if (pid == 0) in_child((uint64_t)i, CHILDS), _exit(0);
        if (pid < 0) fail("no child");
        churn(own, (uint64_t)i, 50);
        /* Some at a time. */
        if (i >= TOGETHER) wait_for(-1);
    }
    for (long i = 0; i < TOGETHER && i < children; i++) wait_for(-1);
    end_threads();
}

static unsigned char *of_handlers[64];
static uint64_t of_handlers_random = 77;
static void in_handler(void) {
    for (int i = 0; i < 64; i++) drop(of_handlers[i]), of_handlers[i] = make(&of_handlers_random);
}

static void with_handlers(long children) {
    pthread_atfork(in_handler, in_handler, in_handler);
    begin_threads(3);
    for (long i = 0; i < children; i++) {
        pid_t pid = fork();
        if (pid == 0) in_child((uint64_t)i, CHILDS), exit(0);
        if (pid < 0) fail("no child");
        wait_for(pid);
    }
    end_threads();
}

static void sharing(long children, int by_vfork) {
    char *arguments[] = {"true", NULL};
    begin_threads(3);
    for (long i = 0; i < children; i++) {
        pid_t pid = -1;
        churn(own, (uint64_t)i, 500);
        if (by_vfork) {
            pid = vfork();
            if (pid == 0) execve("/bin/true", arguments, environ), _exit(9);
            if (pid < 0) fail("no child");
        } else if (posix_spawn(&pid, "/bin/true", NULL, NULL, arguments, environ)) {
            fail("it was not spawned");
        }
        wait_for(pid);
    }
    end_threads();
}

static void generations(long deep) {
    begin_threads(3);
    pid_t pid = fork();
    if (pid == 0) {
        in_child((uint64_t)deep, 20 * CHILDS);
        if (deep > 0) generations(deep - 1);
        exit(0);
    }
    if (pid < 0) fail("no child");
    churn(own, (uint64_t)deep, 20 * CHILDS);
    wait_for(pid);
    end_threads();
}

int main(int count, char **arguments) {
    if (count < 3) return 4;
    const char *how = arguments[1];
    long children = atol(arguments[2]);
    churn(own, 3, 100000);
    if (!strcmp(how, "storm")) storm(children, count > 3 ? atol(arguments[3]) : 16);
    if (!strcmp(how, "handlers")) with_handlers(children);
    if (!strcmp(how, "vfork")) sharing(children, 1);
    if (!strcmp(how, "spawn")) sharing(children, 0);
    if (!strcmp(how, "generations")) generations(children);
    churn(own, 4, 100000);
    drop_all(own);
    return puts("ok") < 0;
}
