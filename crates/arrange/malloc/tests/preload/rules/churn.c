/* Rule 5, for longer: objects and threads that come and go for so many seconds (argument), while about as much is in
 * use. What is resident at the end is what it was after a quarter of them, and some. Prints "ok". */
#include "rules.h"
#include <pthread.h>
#include <stdio.h>
#include <time.h>

enum { THREADS = 4, OBJECTS = 65536, TURN = 5 };

static long resident_kib(void) {
    char line[256];
    long found = 0;
    FILE *file = fopen("/proc/self/status", "r");
    while (file && fgets(line, sizeof line, file))
        if (!strncmp(line, "VmRSS:", 6)) found = atol(line + 6);
    if (file) fclose(file);
    return found;
}

static unsigned char *lasting[THREADS][SOME * 16];

/* A thread of one generation: it drops what an earlier one made, and leaves what it makes. Now and then much is taken
 * and given back at once. */
static void *generation(void *argument) {
    long number = (long)(uintptr_t)argument;
    unsigned char **own = lasting[number % THREADS];
    for (int part = 0; part < 16; part++) churn(own + part * SOME, (uint64_t)number * 16 + part, OBJECTS / 16);
    if (number / THREADS % TURN == 0) {
        unsigned char **much = calloc(SOME * 16, sizeof *much);
        if (!much) fail("no memory");
        for (int part = 0; part < 16; part++) churn(much + part * SOME, (uint64_t)number + part, 4 * SOME);
        for (int part = 0; part < 16; part++) drop_all(much + part * SOME);
        free(much);
    }
    return NULL;
}

int main(int count, char **arguments) {
    long seconds = count > 1 ? atol(arguments[1]) : 2, early = 0, turns = 0;
    time_t begin = time(NULL);
    /* What is resident is looked at after whole turns, so that the same was taken and given back. */
    for (long number = 0; time(NULL) < begin + seconds || !early || turns < 8; number++) {
        pthread_t threads[THREADS];
        for (long at = 0; at < THREADS; at++) {
            void *which = (void *)(uintptr_t)(number * THREADS + at);
            if (pthread_create(&threads[at], NULL, generation, which)) fail("no thread");
        }
        for (int at = 0; at < THREADS; at++) pthread_join(threads[at], NULL);
        turns += number % TURN == TURN - 1;
        if (number % TURN == TURN - 1 && !early && turns >= 4 && time(NULL) >= begin + seconds / 4)
            early = resident_kib();
    }
    long late = resident_kib();
    fprintf(stderr, "%ld KiB, then %ld KiB\n", early, late);
    if (late > early + early / 4 + 8192) fail("it grows");
    for (int at = 0; at < THREADS; at++)
        for (int part = 0; part < 16; part++) drop_all(lasting[at] + part * SOME);
    return puts("ok") < 0;
}
