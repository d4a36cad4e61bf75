/* Children that no handler of pthread_atfork hears of: _Fork, and the system call itself by clone and, where the
 * machine has it, fork. Parent and child go on allocating and free what was there before; children have children.
 * Prints a line for each process, children first. */
#include "../rules/rules.h"
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <sys/wait.h>

static unsigned char *own[SOME];

static pid_t child(int way) {
    switch (way) {
    case 0: return _Fork();
#ifdef SYS_fork
    case 1: return (pid_t)syscall(SYS_fork);
#endif
    default: return (pid_t)syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0);
    }
}

static void goes_on(int depth, int way) {
    churn(own, (uint64_t)(depth * 10 + way + 1), 60000);
    if (depth < 3) {
        pid_t pid = child(way);
        if (pid < 0) fail("no child");
        if (pid == 0) goes_on(depth + 1, way), _exit(depth + 1);
        churn(own, (uint64_t)(depth * 10 + way + 100), 60000);
        int status = 0;
        if (waitpid(pid, &status, 0) != pid || !WIFEXITED(status) || WEXITSTATUS(status) != depth + 1)
            fail("a child ended otherwise");
    }
    char line[64];
    int length = snprintf(line, sizeof line, "way %d, depth %d\n", way, depth);
    if (write(1, line, (size_t)length) != length) _exit(97);
}

int main(void) {
    for (int way = 0; way < 3; way++) goes_on(0, way);
    drop_all(own);
    return puts("ok") < 0;
}
