/* A process makes children inside of the functions that run at its end, which end as it does, run the rest of these
 * functions and register others. Prints a line for each process, children first. Argument: "exit", "quick", "thread"
 * (the main thread ends by pthread_exit, and another one ends the process). */
#include "../rules/rules.h"
#include <pthread.h>
#include <stdio.h>
#include <sys/wait.h>

static unsigned char *own[SOME];
static int depth, quick;

static void say(const char *what) {
    char line[64];
    int length = snprintf(line, sizeof line, "%s at depth %d\n", what, depth);
    if (write(1, line, (size_t)length) != length) _exit(97);
}

static void late(void) {
    churn(own, 11, 5000);
    drop_all(own);
    say("late");
}

static void forks(void) {
    churn(own, 7, 20000);
    if (depth == 3) return;
    pid_t pid = fork();
    if (pid < 0) fail("no child");
    if (pid == 0) {
        depth++;
        churn(own, 8, 60000);
        if (quick) at_quick_exit(forks), quick_exit(depth);
        atexit(late), atexit(forks), exit(depth);
    }
    int status = 0;
    if (waitpid(pid, &status, 0) != pid || !WIFEXITED(status) || WEXITSTATUS(status) != depth + 1)
        fail("a child ended otherwise");
    churn(own, 9, 20000);
    say("forked");
}

static void *ends(void *seed) {
    usleep(20000);
    churn(own, (uintptr_t)seed, 50000);
    exit(0);
}

int main(int count, char **arguments) {
    const char *what = count > 1 ? arguments[1] : "";
    pthread_t thread;
    churn(own, 1, 60000);
    quick = !strcmp(what, "quick");
    if (quick) at_quick_exit(forks), quick_exit(0);
    atexit(forks);
    if (!strcmp(what, "thread")) {
        if (pthread_create(&thread, NULL, ends, (void *)3)) fail("no thread");
        pthread_exit(NULL);
    }
    return 0;
}
