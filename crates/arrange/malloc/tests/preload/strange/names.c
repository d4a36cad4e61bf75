/* glibc's own names of the family, which programs use that count what they allocate: malloc and free are theirs and
 * call __libc_malloc and __libc_free, and posix_memalign, which they forgot, gives what their free gets. Argument:
 * "inside" (this file defines malloc), "outside" (a program that only calls __libc_free). Prints "ok". */
#include "../rules/rules.h"
#include <malloc.h>
#include <stdio.h>

extern void __libc_free(void *);
extern void *__libc_realloc(void *, size_t);

#ifdef COUNTS
extern void *__libc_malloc(size_t), *__libc_calloc(size_t, size_t);
static _Atomic long made, gone;
void *malloc(size_t size) { made++; return __libc_malloc(size); }
void *calloc(size_t count, size_t size) { made++; return __libc_calloc(count, size); }
void *realloc(void *old, size_t size) { return __libc_realloc(old, size); }
void free(void *old) { gone++; __libc_free(old); }
#endif

int main(void) {
    enum { OBJECTS = 20000 };
    static unsigned char *own[SOME];
    static void *objects[OBJECTS];
    /* What is not the program's own in either case begins placing. */
    for (int i = 0; i < OBJECTS; i++) {
        size_t size = 1 + (size_t)i % 250;
        if (i % 3 == 0) objects[i] = malloc(size);
        else if (posix_memalign(&objects[i], 16, size)) fail("no memory");
        memset(objects[i], i, size);
    }
    for (int i = 0; i < OBJECTS; i++) {
        size_t size = 1 + (size_t)i % 250;
        for (size_t at = 0; at < size; at++)
            if (((unsigned char *)objects[i])[at] != (unsigned char)i) fail("an object was overwritten");
        if (i % 2) objects[i] = __libc_realloc(objects[i], size + 100);
        __libc_free(objects[i]);
    }
    churn(own, 1, 100000);
    drop_all(own);
#ifdef COUNTS
    if (!made || !gone) fail("they are not the program's");
#endif
    return puts("ok") < 0;
}
