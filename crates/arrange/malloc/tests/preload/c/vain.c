/* Allocates and frees until its input is closed, or the time in seconds is over; then it says whether what it is
 * given comes from glibc, which its statistics show. Objects from before must keep their bytes and be freed in
 * the end. With "child" a child does so, and its parent waits. */
#include <dirent.h>
#include <malloc.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { OLD = 60000, SOME = 2000, SIZE = 48 };
static char *old[OLD];
static volatile int stop;

static void *works(void *nothing) {
    static __thread void *mine[SOME];
    while (!stop) {
        for (int i = 0; i < SOME; i++) mine[i] = malloc(i % 256);
        for (int i = 0; i < SOME; i++) free(mine[i]);
    }
    return nothing;
}

/* Whether as much as was asked for is in use by glibc. */
static int is_glibcs(void) {
    static void *some[SOME];
    size_t before = mallinfo2().uordblks;
    for (int i = 0; i < SOME; i++) some[i] = malloc(SIZE);
    size_t after = mallinfo2().uordblks;
    for (int i = 0; i < SOME; i++) free(some[i]);
    return after - before >= SOME * SIZE;
}

static int is_told(void) {
    struct pollfd input = {.fd = 0, .events = POLLIN};
    return poll(&input, 1, 0) > 0;
}

static int tasks(void) {
    int count = 0;
    DIR *folder = opendir("/proc/self/task");
    while (readdir(folder)) count++;
    closedir(folder);
    return count - 2;
}

int main(int count, char **arguments) {
    time_t end = time(0) + atoi(arguments[1]);
    int threads = atoi(arguments[2]);
    pthread_t thread[16];
    for (int i = 0; i < OLD; i++) memset(old[i] = malloc(SIZE), i, SIZE);
    if (count > 3) {
        int status = 0;
        pid_t child = fork();
        if (child) return wait(&status) != child || status;
    }
    for (int i = 0; i < threads; i++) pthread_create(&thread[i], 0, works, 0);
    while (!is_told() && time(0) < end) is_glibcs();
    /* The statistics are those of all threads, so the others are done first. */
    stop = 1;
    for (int i = 0; i < threads; i++) pthread_join(thread[i], 0);
    int in_a_row = 0;
    while (in_a_row < 3 && is_glibcs()) in_a_row++;
    for (int i = 0; i < 1000 && tasks() > 1; i++) usleep(10000);
    for (int i = 0; i < OLD; i++) {
        char *object = i % 3 ? old[i] : realloc(old[i], 2 * SIZE);
        for (int at = 0; at < SIZE; at++)
            if (object[at] != (char)i) return puts("CHANGED"), 1;
        if (malloc_usable_size(object) < SIZE) return puts("SHORT"), 1;
        free(object);
    }
    printf("%s, %d task\n", in_a_row < 3 ? "placed" : "glibc", tasks());
    return 0;
}
