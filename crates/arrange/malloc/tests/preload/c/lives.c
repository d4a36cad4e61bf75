/* Objects of known sizes and lives. Words: "fork" has a child do a part of it, "killed" kills the process at the end,
   "load" loads a library first, "threads" has four threads do the short ones. */
#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static void *volatile object;
static void *kept[100000], *batch[1000];

static void *brief(void *calls) {
    for (long call = 0; call < (long)calls; call++) {
        void *volatile own = malloc(24);
        free(own);
    }
    return NULL;
}

int main(int argc, char **argv) {
    const char *how = argc > 1 ? argv[1] : "";
    if (!strcmp(how, "load") && !dlopen("libm.so.6", RTLD_NOW | RTLD_DEEPBIND)) return 3;
    if (!strcmp(how, "threads")) {
        pthread_t threads[4];
        for (int at = 0; at < 4; at++) pthread_create(&threads[at], NULL, brief, (void *)100000L);
        for (int at = 0; at < 4; at++) pthread_join(threads[at], NULL);
        puts("ok");
        return 0;
    }
    brief((void *)200000L);
    /* Of 100 bytes, until the end. */
    for (int at = 0; at < 100000; at++) kept[at] = at % 2 ? malloc(100) : calloc(25, 4);
    if (!strcmp(how, "fork")) {
        pid_t child = fork();
        if (child == 0) {
            for (int at = 0; at < 100000; at++) free(kept[at]);
            for (int at = 0; at < 50000; at++) free(aligned_alloc(16, 48));
            exit(0);
        }
        int status = 1;
        if (waitpid(child, &status, 0) != child || status != 0) return 4;
    }
    /* Of 600 bytes, for 20 ms at least. */
    for (int round = 0; round < 50; round++) {
        for (int at = 0; at < 1000; at++) batch[at] = malloc(600);
        usleep(20000);
        for (int at = 0; at < 1000; at++) free(batch[at]);
    }
    /* Large ones: each is seen. */
    object = NULL;
    for (int call = 0; call < 40; call++) object = realloc(object, 100000 + call);
    free(object);
    puts("ok");
    if (!strcmp(how, "killed")) {
        fflush(stdout);
        raise(SIGKILL);
    }
    return 0;
}
