/* Runs a program as a debugger does: writes into every page of the library's code as soon as that is mapped, before
 * any of it runs, and looks when the program ends how many of the written pages are still there. Prints
 * "LEFT of WRITTEN". */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <signal.h>
#include <sys/ptrace.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

static const char NAME[] = "libisochrone_malloc.so";

/* KiB of the library's executable mappings that are the process's own, and pages of it that were written now. */
static long own(pid_t child, int write, long *written) {
    char path[64], line[512];
    long all = 0, some;
    int ours = 0;
    snprintf(path, sizeof path, "/proc/%d/smaps", child);
    FILE *maps = fopen(path, "r");
    while (maps && fgets(line, sizeof line, maps)) {
        unsigned long start, end;
        char may[8];
        if (sscanf(line, "%lx-%lx %7s", &start, &end, may) == 3) {
            ours = may[2] == 'x' && strstr(line, NAME);
            for (unsigned long at = start; ours && write && at < end; at += sysconf(_SC_PAGESIZE)) {
                long word = ptrace(PTRACE_PEEKTEXT, child, at, 0);
                if (ptrace(PTRACE_POKETEXT, child, at, word)) exit(3);
                ++*written;
            }
        } else if (ours && sscanf(line, "Anonymous: %ld", &some) == 1) {
            all += some;
        }
    }
    if (maps) fclose(maps);
    return all;
}

int main(int count, char **words) {
    if (count < 2) return 2;
    pid_t child = fork();
    if (child == 0) {
        ptrace(PTRACE_TRACEME, 0, 0, 0);
        execv(words[1], words + 1);
        _exit(4);
    }
    long written = 0, left = 0;
    int status;
    while (waitpid(child, &status, 0) == child && WIFSTOPPED(status)) {
        int signal = WSTOPSIG(status), event = status >> 16;
        if (signal == SIGTRAP && event == 0 && written == 0) {
            ptrace(PTRACE_SETOPTIONS, child, 0, PTRACE_O_TRACEEXIT | PTRACE_O_EXITKILL);
            own(child, 1, &written);
        }
        if (event == PTRACE_EVENT_EXIT) left = own(child, 0, &written) * 1024 / sysconf(_SC_PAGESIZE);
        /* From system call to system call, until the library is there. */
        ptrace(written ? PTRACE_CONT : PTRACE_SYSCALL, child, 0, signal == SIGTRAP ? 0 : signal);
    }
    printf("%ld of %ld\n", left, written);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 5;
}
