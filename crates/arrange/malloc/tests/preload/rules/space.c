/* Rule 5: address space and memory that are short. Argument: "objects" (so many MiB more than there are now, all for
 * small objects; what came is said in MiB to standard error), "large" (the same for large ones after small ones),
 * "locked" (all memory is locked, and what is resident is said, in MiB), "lockable" (the same as "objects", where
 * little may be locked and everything that comes is), "later" (the limit, in all, is set after small objects were
 * placed; what comes of large ones is said), "back" (small objects of so many MiB are freed, and some come and go until
 * most of the memory is the system's again). Prints "ok". */
#include "rules.h"
#include <stdio.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <time.h>

/* A figure of /proc/self/status, KiB. */
static long status(const char *name) {
    char line[256];
    long found = 0;
    FILE *file = fopen("/proc/self/status", "r");
    while (file && fgets(line, sizeof line, file))
        if (!strncmp(line, name, strlen(name))) found = atol(line + strlen(name));
    if (file) fclose(file);
    return found;
}

static void limit_to(long mib) {
    rlim_t bytes = ((rlim_t)status("VmSize:") << 10) + ((rlim_t)mib << 20);
    struct rlimit limit = {bytes, bytes};
    if (setrlimit(RLIMIT_AS, &limit)) fail("no limit");
}

/* Small objects of so many MiB are taken, used and freed: then some come and go, until less than half is resident of
 * what was. False where that is not seen in a minute. */
static int goes_back(long mib) {
    void **first = NULL;
    for (long count = (mib << 20) / 64; count > 0; count--) {
        void **object = malloc(64);
        if (!object) fail("no memory");
        *object = first, first = object;
    }
    long most = status("VmRSS:");
    for (void **next; first; first = next) next = *first, free(first);
    for (int round = 0; round < 6000; round++) {
        static void *few[1024];
        for (int at = 0; at < 1024; at++) few[at] = malloc(64);
        for (int at = 0; at < 1024; at++) free(few[at]);
        if (status("VmRSS:") < most / 2) return 1;
        nanosleep(&(struct timespec){0, 10000000}, NULL);
    }
    fprintf(stderr, "%ld of %ld KiB\n", status("VmRSS:"), most);
    return 0;
}

/* Objects in a list, until there are no more or there are so many. */
static long fill(size_t bytes, long most) {
    void **first = NULL;
    long count = 0;
    for (void **object; count < most && (object = malloc(bytes)); count++) *object = first, first = object;
    for (void **next; first; first = next) next = *first, free(first);
    return count;
}

int main(int count, char **arguments) {
    const char *what = count > 1 ? arguments[1] : "";
    long mib = count > 2 ? atol(arguments[2]) : 64;
    if (!strcmp(what, "objects")) {
        limit_to(mib);
        long first = fill(48, 1L << 40), second = fill(48, 1L << 40);
        fprintf(stderr, "%ld\n", (first < second ? first : second) * 48 >> 20);
    } else if (!strcmp(what, "large")) {
        limit_to(mib);
        fill(48, 200000);
        fprintf(stderr, "%ld\n", fill(1 << 20, 1L << 40));
    } else if (!strcmp(what, "later")) {
        fill(48, 200000);
        struct rlimit limit = {(rlim_t)mib << 20, (rlim_t)mib << 20};
        if (setrlimit(RLIMIT_AS, &limit)) fail("no limit");
        fprintf(stderr, "%ld\n", fill(1 << 20, 1L << 40));
    } else if (!strcmp(what, "back")) {
        if (!goes_back(mib)) fail("it stays");
    } else if (!strcmp(what, "locked")) {
        if (mlockall(MCL_CURRENT | MCL_FUTURE)) fail("nothing can be locked");
        if (fill(48, 200000) < 200000) fail("no memory");
        fprintf(stderr, "%ld\n", status("VmRSS:") >> 10);
    } else if (!strcmp(what, "lockable")) {
        struct rlimit limit;
        if (getrlimit(RLIMIT_MEMLOCK, &limit)) fail("no limit");
        if (limit.rlim_max > (rlim_t)mib << 20) limit.rlim_max = (rlim_t)mib << 20;
        limit.rlim_cur = limit.rlim_max;
        if (setrlimit(RLIMIT_MEMLOCK, &limit)) fail("no limit");
        /* Root may lock whatever there is. */
        if (geteuid() == 0 && (setgid(65534) || setuid(65534))) fail("still root");
        if (mlockall(MCL_FUTURE)) fail("nothing can be locked");
        fprintf(stderr, "%ld\n", fill(48, 1L << 40) * 48 >> 20);
    }
    return puts("ok") < 0;
}
