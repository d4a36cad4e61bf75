/* Rule 9: libraries that are loaded with RTLD_DEEPBIND, which bind to the C library's own malloc: objects cross over
 * in both directions. Arguments: a library (library.c), and the name of one that only its own path finds. Prints
 * what came back. */
#include "rules.h"
#include <dlfcn.h>
#include <stdio.h>

static unsigned char *own[SOME];

int main(int count, char **arguments) {
    if (count < 3) return 4;
    long before = count > 3 ? atol(arguments[3]) : 0;
    churn(own, 1, before);
    char *early = strdup("made before the library came");
    void *library = dlopen(arguments[1], RTLD_NOW | RTLD_LOCAL | RTLD_DEEPBIND);
    if (!library) fail(dlerror());
    char *(*makes)(int) = (char *(*)(int))dlsym(library, "library_makes");
    char *(*grows)(char *, int) = (char *(*)(char *, int))dlsym(library, "library_grows");
    void (*frees)(char *) = (void (*)(char *))dlsym(library, "library_frees");
    void *(*loads)(const char *) = (void *(*)(const char *))dlsym(library, "library_loads");
    printf("%s\n", early);
    frees(early);
    long bytes = 0;
    for (int i = 0; i < 60000; i++) {
        char *theirs = makes(i), *mine = malloc(1 + (size_t)i % 300);
        if (!theirs || !mine) fail("no memory");
        bytes += (long)strlen(theirs);
        memset(mine, 0, 1 + (size_t)i % 300);
        mine = grows(mine, 1 + i % 500);
        free(theirs);
        if (i % 2) frees(mine);
        else free(mine);
    }
    printf("%ld bytes\n", bytes);
    /* By its name alone: along the path of the library that asks, and of nobody else. */
    printf("%s\n", dlopen(arguments[2], RTLD_NOW | RTLD_DEEPBIND) ? "found by the program" : "not the program's");
    printf("%s\n", loads(arguments[2]) ? "found by the library" : "not found");
    if (dlopen("/nonexistent.so", RTLD_NOW | RTLD_DEEPBIND)) fail("there is no such library");
    const char *error = dlerror();
    printf("%s\n", error ? error : "no error");
    churn(own, 2, 100000);
    drop_all(own);
    dlclose(library);
    return 0;
}
