/* A second C library: a library that is loaded into a name space of its own (dlmopen) brings the C library's own
 * malloc, and allocates and frees there, by turns with the program, in threads and in a child. Nothing crosses over,
 * which no allocator would survive. Argument: the library (library.c of the rules). Prints what it made. */
#include "../rules/rules.h"
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <sys/wait.h>

static char *(*makes)(int), *(*grows)(char *, int);
static void (*frees)(char *);

static void *works(void *seed) {
    static __thread unsigned char *own[SOME];
    long bytes = 0;
    for (int i = 0; i < 3000; i++) {
        /* Those of its C library's printf would need that library's idea of the locale; the third kind does not. */
        char *theirs = makes(3 * i + 2), *mine = strdup(theirs);
        bytes += (long)strlen(theirs);
        theirs = grows(theirs, 1 + i % 500);
        churn(own, (uintptr_t)seed + (uint64_t)i, 20);
        free(mine), frees(theirs);
    }
    drop_all(own);
    return (void *)bytes;
}

int main(int count, char **arguments) {
    static unsigned char *own[SOME];
    pthread_t threads[4];
    if (count < 2) return 4;
    for (int before = 0; before < 2; before++) {
        void *library = dlmopen(LM_ID_NEWLM, arguments[1], RTLD_NOW | RTLD_LOCAL);
        if (!library) fail(dlerror());
        makes = (char *(*)(int))dlsym(library, "library_makes");
        grows = (char *(*)(char *, int))dlsym(library, "library_grows");
        frees = (void (*)(char *))dlsym(library, "library_frees");
        printf("%ld bytes\n", (long)works((void *)1));
        churn(own, 2, 100000);
        for (uintptr_t i = 0; i < 4; i++)
            if (pthread_create(&threads[i], NULL, works, (void *)(i + 2))) fail("no thread");
        for (int i = 0; i < 4; i++) {
            void *bytes = NULL;
            pthread_join(threads[i], &bytes);
            printf("%ld bytes\n", (long)bytes);
        }
        fflush(stdout);
        pid_t pid = fork();
        if (pid == 0) churn(own, 4, 100000), _exit(0);
        int status = 1;
        if (waitpid(pid, &status, 0) != pid || status) fail("a child failed");
        dlclose(library);
    }
    drop_all(own);
    return puts("ok") < 0;
}
