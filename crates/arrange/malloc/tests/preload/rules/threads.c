/* Rule 2: what a process may do that has one thread, and that it has no other. Prints what the kernel answered.
 * Argument: "user" (a user namespace of its own), "enter" (that of a child), "count", "last" (main ends first, and a
 * thread goes on). */
#include "rules.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <sys/wait.h>

static unsigned char *own[SOME], *others[SOME];

static int tasks(void) {
    int count = 0;
    DIR *folder = opendir("/proc/self/task");
    for (struct dirent *entry; folder && (entry = readdir(folder));) count += entry->d_name[0] != '.';
    if (folder) closedir(folder);
    return count;
}

static void *goes_on(void *argument) {
    usleep(20000);
    churn(others, 5, 200000);
    drop_all(others);
    printf("%d tasks\n", tasks());
    fflush(stdout);
    return argument;
}

static void enter_childs(void) {
    int ready[2], done[2];
    char byte = 0, path[64];
    if (pipe(ready) || pipe(done)) fail("no pipe");
    pid_t pid = fork();
    if (pid == 0) {
        byte = unshare(CLONE_NEWUSER) ? 1 : 0;
        if (write(ready[1], &byte, 1) != 1 || read(done[0], &byte, 1) != 1) _exit(1);
        _exit(0);
    }
    if (read(ready[0], &byte, 1) != 1) fail("no child");
    snprintf(path, sizeof path, "/proc/%d/ns/user", pid);
    int space = open(path, O_RDONLY | O_CLOEXEC);
    int result = setns(space, CLONE_NEWUSER);
    printf("child %d, setns: %s\n", byte, result ? strerrorname_np(errno) : "done");
    close(space);
    if (write(done[1], &byte, 1) != 1) fail("no child");
    waitpid(pid, NULL, 0);
}

int main(int count, char **arguments) {
    const char *what = count > 1 ? arguments[1] : "";
    churn(own, 1, 300000);
    if (!strcmp(what, "user")) {
        int result = unshare(CLONE_NEWUSER);
        printf("unshare: %s\n", result ? strerrorname_np(errno) : "done");
    } else if (!strcmp(what, "enter")) {
        enter_childs();
    } else if (!strcmp(what, "last")) {
        pthread_t thread;
        if (pthread_create(&thread, NULL, goes_on, NULL)) fail("no thread");
        pthread_exit(NULL);
    }
    churn(own, 2, 300000);
    drop_all(own);
    printf("%d tasks\n", tasks());
    return 0;
}
