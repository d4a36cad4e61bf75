/* Processes that may not call the system as they like, or not read the clock: they may do what glibc's malloc
 * needs, and any other call ends them. Arguments: what is forbidden ("filter", "late", "synced", "inherited",
 * "clock", "strict"). Prints "ok". */
#define _GNU_SOURCE
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { OBJECTS = 60000, THREADS = 3 };
static void *objects[THREADS + 1][OBJECTS];
static atomic_int stop, at_work;

/* What a process with threads needs that allocates, and, from the second list on, what loading a program needs. */
static const int allowed[] = {SYS_read, SYS_write, SYS_brk, SYS_mmap, SYS_munmap, SYS_mremap, SYS_mprotect,
    SYS_madvise, SYS_futex, SYS_exit, SYS_exit_group, SYS_rt_sigreturn, SYS_fstat, SYS_newfstatat, SYS_getrandom,
    SYS_sched_yield, SYS_clone, SYS_clone3, SYS_set_robust_list, SYS_rseq, SYS_rt_sigprocmask, SYS_rt_sigaction,
    SYS_sched_getaffinity, -1, SYS_execve, SYS_openat, SYS_close, SYS_pread64, SYS_set_tid_address, SYS_prlimit64,
#ifdef SYS_access /* Newer ports of Linux, AArch64's among them, have the call that names a folder alone. */
    SYS_access,
#endif
    SYS_faccessat,
#ifdef SYS_arch_prctl /* Of x86-64: where a thread's own memory lies. Elsewhere a register says it. */
    SYS_arch_prctl,
#endif
};

/* Installs the list, by the calls that libseccomp makes. */
static void forbid(int loading, unsigned flags) {
    struct sock_filter program[80];
    unsigned short length = 0;
    program[length++] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr));
    for (size_t i = 0; i < sizeof allowed / sizeof *allowed; i++) {
        if (allowed[i] < 0) {
            if (!loading) break;
            continue;
        }
        program[length++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (unsigned)allowed[i], 0, 1);
        program[length++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
    }
    program[length++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS);
    struct sock_fprog all = {.len = length, .filter = program};
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)) _exit(20);
    if (flags || loading ? syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, flags, &all) :
                           prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &all))
        _exit(21);
}

/* More objects each round than before, so that memory is to be had. */
static void fill(void **mine, int from, int to) {
    for (int i = from; i < to; i++) {
        mine[i] = malloc(1 + (size_t)i % 300);
        if (!mine[i]) _exit(22);
        memset(mine[i], i, 1 + (size_t)i % 300);
        if (i % 7 == 0) free(mine[i]), mine[i] = NULL;
    }
}

static void drop(void **mine, int count) {
    for (int i = 0; i < count; i++) free(mine[i]), mine[i] = NULL;
}

static void *in_thread(void *argument) {
    void **mine = argument;
    fill(mine, 0, OBJECTS);
    drop(mine, OBJECTS);
    return NULL;
}

static void *until_stopped(void *argument) {
    void **mine = argument;
    while (!stop) {
        fill(mine, 0, OBJECTS);
        drop(mine, OBJECTS);
        at_work++;
    }
    return NULL;
}

static void in_threads(void *(*work)(void *)) {
    pthread_t threads[THREADS];
    for (int i = 0; i < THREADS; i++)
        if (pthread_create(&threads[i], NULL, work, objects[i + 1])) _exit(23);
    if (work == until_stopped) {
        while (at_work < 2 * THREADS) sched_yield();
        forbid(0, SECCOMP_FILTER_FLAG_TSYNC);
        int seen = at_work;
        while (at_work < seen + 2 * THREADS) sched_yield();
        stop = 1;
    }
    for (int i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
}

/* Ends without a call that a filter need not allow: exit() runs what others have registered. */
static void end(void) {
    if (write(1, "ok\n", 3) < 0) _exit(24);
    syscall(SYS_exit, 0);
}

int main(int count, char **arguments) {
    const char *what = count > 1 ? arguments[1] : "";
    void **mine = objects[0];
    if (!strcmp(what, "filter")) {
        forbid(0, 0);
        in_thread(mine);
        in_threads(in_thread);
    } else if (!strcmp(what, "late")) {
        fill(mine, 0, OBJECTS / 2);
        in_threads(in_thread);
        forbid(0, 0);
        fill(mine, OBJECTS / 2, OBJECTS);
        drop(mine, OBJECTS);
        in_threads(in_thread);
        return write(1, "ok\n", 3) < 0;
    } else if (!strcmp(what, "synced")) {
        in_threads(until_stopped);
    } else if (!strcmp(what, "inherited")) {
        forbid(1, 0);
        execl(arguments[0], arguments[0], "plain", NULL);
        return 25;
    } else if (!strcmp(what, "plain")) {
        in_thread(mine);
        in_threads(in_thread);
        return write(1, "ok\n", 3) < 0;
    } else if (!strcmp(what, "clock")) {
        fill(mine, 0, OBJECTS / 2);
        if (prctl(PR_SET_TSC, PR_TSC_SIGSEGV, 0, 0, 0)) return 26;
        fill(mine, OBJECTS / 2, OBJECTS);
        in_threads(in_thread);
        drop(mine, OBJECTS);
        return write(1, "ok\n", 3) < 0;
    } else if (!strcmp(what, "strict")) {
        fill(mine, 0, OBJECTS);
        /* The last one stays, or glibc would give memory back and ask for it again. */
        drop(mine, OBJECTS - 2);
        if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT)) return 29;
        fill(mine, 0, OBJECTS / 2);
        drop(mine, OBJECTS / 2);
    } else {
        return 30;
    }
    end();
    return 31;
}
