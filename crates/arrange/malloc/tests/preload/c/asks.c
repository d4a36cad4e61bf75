/* Allocates and frees in two threads for some time after it said that it begins, forks once, and ends without more
 * words: what it asks the system for meanwhile is what its allocator asks for. */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { OBJECTS = 60000 };

static void churn(void) {
    static __thread char *mine[OBJECTS];
    for (int i = 0; i < OBJECTS; i++) memset(mine[i] = malloc(i % 256 + 1), i, i % 256 + 1);
    for (int i = 0; i < OBJECTS; i += 2) mine[i] = realloc(mine[i], 300);
    for (int i = 0; i < OBJECTS; i++) free(mine[i]);
}

static void *works(void *rounds) {
    for (int i = 0; i < *(int *)rounds; i++) churn();
    return 0;
}

int main(int count, char **arguments) {
    int rounds = atoi(arguments[1]);
    pthread_t thread;
    write(1, "begins\n", 7);
    pthread_create(&thread, 0, works, &rounds);
    works(&rounds);
    pthread_join(thread, 0);
    pid_t child = fork();
    if (child == 0) {
        works(&rounds);
        _exit(0);
    }
    waitpid(child, 0, 0);
    _exit(0);
}
