/* A library that is loaded by the programs of rules 8 and 9: it makes and frees, at its beginning and end too. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { OBJECTS = 200 };
static char *objects[OBJECTS];

static __attribute__((constructor)) void begins(void) {
    for (int i = 0; i < OBJECTS; i++) memset(objects[i] = malloc(1 + (size_t)i), i, 1 + (size_t)i);
}

static __attribute__((destructor)) void ends(void) {
    for (int i = 0; i < OBJECTS; i++) free(objects[i]);
}

/* A text that the caller frees. */
char *library_makes(int number) {
    char *text = NULL;
    if (number % 3 == 0) {
        text = malloc(64);
        snprintf(text, 64, "number %d of the library", number);
    } else if (number % 3 == 1) {
        if (asprintf(&text, "number %d of the C library", number) < 0) return NULL;
    } else {
        text = strdup("some text of the C library");
    }
    return text;
}

/* Grows what the caller has. */
char *library_grows(char *text, int bytes) {
    return realloc(text, (size_t)bytes);
}

/* Frees what the caller has. */
void library_frees(char *text) {
    free(text);
}

/* Loads a library by its name alone, along this library's own path. */
void *library_loads(const char *name) {
    return dlopen(name, RTLD_NOW | RTLD_LOCAL | RTLD_DEEPBIND);
}
