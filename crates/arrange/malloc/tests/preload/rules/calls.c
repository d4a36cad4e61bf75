/* Rule 3: a process whose filter allows what a malloc calls and ends it at any other call. The filter comes by the C
 * library's functions ("library") or by the instruction itself ("instruction"), before anything was allocated or,
 * with a second argument, after so many objects. "clock" forbids to read the clock instead. Prints "ok".
 *
 * By the instruction itself no library sees it, and a process that learns ends there: it holds its signals back while
 * it works on a stack of its own, by a call (rt_sigprocmask) that no malloc makes. So nobody asks for this case but by
 * hand, to see what would still be missing. */
#include "rules.h"
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

static unsigned char *own[SOME];

/* What glibc's malloc and mimalloc call (which looks whether there are more memory nodes), and what this program ends
 * by. */
static const int allowed[] = {SYS_brk, SYS_mmap, SYS_munmap, SYS_mremap, SYS_mprotect, SYS_madvise, SYS_futex,
    SYS_getrandom, SYS_faccessat, SYS_write, SYS_exit_group, SYS_rt_sigreturn,
#ifdef SYS_access
    SYS_access,
#endif
};

static long instruction(long number, long a, long b, long c, long d, long e) {
    long result = number;
#if defined(__x86_64__)
    register long r10 __asm__("r10") = d, r8 __asm__("r8") = e;
    __asm__ volatile("syscall" : "+a"(result) : "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8) : "rcx", "r11", "memory");
#else
    register long x8 __asm__("x8") = number, x0 __asm__("x0") = a, x1 __asm__("x1") = b, x2 __asm__("x2") = c,
                  x3 __asm__("x3") = d, x4 __asm__("x4") = e;
    __asm__ volatile("svc 0" : "+r"(x0) : "r"(x8), "r"(x1), "r"(x2), "r"(x3), "r"(x4) : "memory");
    result = x0;
#endif
    return result;
}

static void forbid(int by_instruction) {
    enum { CALLS = sizeof allowed / sizeof *allowed };
    struct sock_filter program[2 * CALLS + 2];
    unsigned short length = 0;
    program[length++] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr));
    for (int i = 0; i < CALLS; i++) {
        program[length++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (unsigned)allowed[i], 0, 1);
        program[length++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
    }
    program[length++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS);
    struct sock_fprog all = {.len = length, .filter = program};
    if (by_instruction) {
        if (instruction(SYS_prctl, PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)) fail("no privileges to give up");
        if (instruction(SYS_prctl, PR_SET_SECCOMP, SECCOMP_MODE_FILTER, (long)&all, 0, 0)) fail("no filter");
    } else {
        if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)) fail("no privileges to give up");
        if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &all)) fail("no filter");
    }
}

int main(int count, char **arguments) {
    const char *what = count > 1 ? arguments[1] : "";
    churn(own, 1, count > 2 ? atol(arguments[2]) : 0);
    if (!strcmp(what, "clock")) {
        if (prctl(PR_SET_TSC, PR_TSC_SIGSEGV, 0, 0, 0)) fail("the clock cannot be forbidden");
    } else {
        forbid(!strcmp(what, "instruction"));
    }
    churn(own, 2, 600000);
    drop_all(own);
    if (write(1, "ok\n", 3) < 0) _exit(97);
    /* exit() runs what others have registered, which may do what a filter forbids. */
    _exit(0);
}
