/* Processes whose main thread ends first. The process ends with its last thread, with status 0, unless a signal
 * comes before. Arguments: how many threads outlive main, and whether they wait for ever. Prints how many threads
 * the kernel sees while all of them are there. */
#define _GNU_SOURCE
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { OBJECTS = 20000 };
static pthread_barrier_t all_there, counted;
static int waits;

static void work(void) {
    static __thread void *objects[OBJECTS];
    for (int round = 0; round < 4; round++) {
        for (int i = 0; i < OBJECTS; i++) objects[i] = malloc(1 + (size_t)i % 256);
        for (int i = 0; i < OBJECTS; i++) free(objects[i]);
    }
}

static void *outlives(void *argument) {
    work();
    pthread_barrier_wait(&all_there);
    pthread_barrier_wait(&counted);
    work();
    while (waits) pause();
    return argument;
}

static void count_threads(void) {
    char text[256];
    FILE *status = fopen("/proc/self/status", "r");
    while (status && fgets(text, sizeof text, status))
        if (!strncmp(text, "Threads:", 8)) fputs(text, stdout);
    if (status) fclose(status);
    fflush(stdout);
}

int main(int count, char **arguments) {
    if (count != 3) return 4;
    unsigned threads = (unsigned)atoi(arguments[1]);
    waits = atoi(arguments[2]);
    /* It places before there are threads that would not wait for it to begin. */
    work();
    pthread_barrier_init(&all_there, NULL, threads + 1);
    pthread_barrier_init(&counted, NULL, threads + 1);
    for (unsigned i = 0; i < threads; i++) {
        pthread_t thread;
        if (pthread_create(&thread, NULL, outlives, NULL)) return 5;
        pthread_detach(thread);
    }
    work();
    pthread_barrier_wait(&all_there);
    count_threads();
    pthread_barrier_wait(&counted);
    pthread_exit(NULL);
}
