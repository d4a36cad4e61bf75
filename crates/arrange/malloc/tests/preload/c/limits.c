/* A process whose address space is limited, whose atlas is cut short while it runs, or that has all its memory present.
 * Arguments: "space" and bytes, "cut" and a file, or "lock" and nothing. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

enum { OBJECTS = 200000, LARGE = 1 << 20 };
static void *objects[OBJECTS];

static void fill(int from, int to) {
    for (int i = from; i < to; i++) memset(objects[i] = malloc(48), 1, 48);
}

int main(int count, char **arguments) {
    if (count < 3) return 1;
    if (!strcmp(arguments[1], "cut")) {
        fill(0, OBJECTS / 2);
        if (truncate(arguments[2], 0)) return 2;
        for (int round = 0; round < 50; round++) {
            fill(OBJECTS / 2, OBJECTS);
            for (int i = OBJECTS / 2; i < OBJECTS; i++) free(objects[i]);
        }
        return puts("ok") < 0;
    }
    if (!strcmp(arguments[1], "lock")) {
        if (mlockall(MCL_FUTURE)) return puts("refused") < 0;
        fill(0, OBJECTS);
        FILE *status = fopen("/proc/self/statm", "r");
        long all, resident;
        fscanf(status, "%ld %ld", &all, &resident);
        puts(resident * sysconf(_SC_PAGESIZE) >> 20 < 64 ? "little" : "much");
        return 0;
    }
    struct rlimit limit = {strtoul(arguments[2], 0, 10), RLIM_INFINITY};
    if (setrlimit(RLIMIT_AS, &limit)) return 3;
    fill(0, OBJECTS);
    /* What is not placed is all for large objects; a sixth is left for the program, its library and these. */
    rlim_t large = 0;
    while (large < limit.rlim_cur / 6 * 5 && malloc(LARGE)) large += LARGE;
    puts(large < limit.rlim_cur / 6 * 5 ? "short" : "enough");
    return 0;
}
