/* What the malloc family answers, one line for each question, in words that any right
 * implementation answers alike: run once with the library and once without, the two outputs must
 * be equal. Addresses and exact usable sizes are not printed, since they may differ. */
#define _GNU_SOURCE
#include <errno.h>
#include <malloc.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *name(int error) {
    return error == 0 ? "0" : error == ENOMEM ? "ENOMEM" : error == EINVAL ? "EINVAL" : "other";
}

/* Null or not, aligned or not, large enough or not, writable to its usable end, errno. */
static void tell(const char *call, size_t a, size_t b, void *p, size_t size, size_t align, int error) {
    printf("%s(%zu, %zu): ", call, a, b);
    if (!p) {
        printf("null, errno %s\n", name(error));
        return;
    }
    size_t usable = malloc_usable_size(p);
    printf("%s, %s", (uintptr_t)p % align ? "MISALIGNED" : "aligned", usable < size ? "SHORT" : "enough");
    memset(p, 0xa5, usable);
    printf(", errno %s\n", name(error));
    errno = 7;
    free(p);
    if (errno != 7) printf("free changed errno\n");
}

static size_t next_power(size_t n) {
    size_t power = 1;
    while (power < n) power *= 2;
    return power;
}

int main(void) {
    /* Enough small objects that the library has begun to place; their content is checked. */
    enum { WARM = 40000 };
    static unsigned char *warm[WARM];
    for (int i = 0; i < WARM; i++) {
        size_t size = 1 + (size_t)i % 256;
        warm[i] = malloc(size);
        memset(warm[i], i & 0xff, size);
    }
    for (int i = 0; i < WARM; i++) {
        for (size_t at = 0; at < 1 + (size_t)i % 256; at++)
            if (warm[i][at] != (i & 0xff)) printf("OVERLAP at object %d\n", i);
        if (i % 2) free(warm[i]), warm[i] = NULL;
    }
    static const size_t sizes[] = {0, 1, 8, 15, 16, 17, 24, 31, 32, 33, 48, 63, 64, 65, 96, 127, 128, 129,
        192, 255, 256, 257, 300, 511, 512, 1000, 4095, 4096, 4097, 65536, 1 << 20,
        PTRDIFF_MAX, (size_t)PTRDIFF_MAX + 1, SIZE_MAX - 4096, SIZE_MAX};
    static const size_t aligns[] = {0, 1, 2, 3, 4, 8, 16, 24, 32, 48, 64, 100, 128, 256, 512, 1024, 4096, 8192,
        (size_t)1 << 40, (size_t)1 << 63, SIZE_MAX};
    for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++) {
        size_t size = sizes[s];
        void *p;
        errno = 0, p = malloc(size), tell("malloc", size, 0, p, size, 16, errno);
        errno = 0, p = calloc(1, size);
        for (size_t at = 0; p && at < size; at++)
            if (((char *)p)[at]) { printf("NOT ZERO\n"); break; }
        tell("calloc", 1, size, p, size, 16, errno);
        errno = 0, p = calloc(size, 3);
        tell("calloc", size, 3, p, p ? size * 3 : 0, 16, errno);
        errno = 0, p = calloc(SIZE_MAX / 2, size), tell("calloc", SIZE_MAX / 2, size, p, 0, 16, errno);
        errno = 0, p = realloc(NULL, size), tell("realloc null", 0, size, p, size, 16, errno);
        errno = 0, p = valloc(size), tell("valloc", size, 0, p, size, 4096, errno);
        if (size <= PTRDIFF_MAX) errno = 0, p = pvalloc(size), tell("pvalloc", size, 0, p, size, 4096, errno);
        for (size_t a = 0; a < sizeof aligns / sizeof *aligns; a++) {
            size_t align = aligns[a], promised = align <= 16 ? 16 : align > (size_t)1 << 62 ? 16 : next_power(align);
            errno = 0, p = memalign(align, size), tell("memalign", align, size, p, size, promised, errno);
            errno = 0, p = aligned_alloc(align, size), tell("aligned_alloc", align, size, p, size, promised, errno);
            p = (void *)1, errno = 3;
            int result = posix_memalign(&p, align, size);
            printf("posix_memalign(%zu, %zu): %s, %s, %s\n", align, size, name(result),
                   result ? (p == (void *)1 ? "untouched" : "TOUCHED") : p ? "set" : "NULL",
                   result ? "" : (uintptr_t)p % align ? "MISALIGNED" : "aligned");
            if (!result) free(p);
        }
        /* From every size to every other, keeping what fits. */
        for (size_t t = 0; t < sizeof sizes / sizeof *sizes; t++) {
            size_t to = sizes[t], kept = size < to ? size : to;
            unsigned char *old = malloc(size), *new;
            if (!old) continue;
            for (size_t at = 0; at < size; at++) old[at] = (unsigned char)(at * 7 + size);
            errno = 0, new = realloc(old, to);
            int error = errno;
            for (size_t at = 0; new && at < kept; at++)
                if (new[at] != (unsigned char)(at * 7 + size)) { printf("LOST\n"); break; }
            printf("%zu to %zu: %s, errno %s\n", size, to, new ? "moved" : "null", name(error));
            if (new) free(new);
            else if (to) free(old);
        }
    }
    errno = 0;
    printf("reallocarray overflow: %s", reallocarray(NULL, SIZE_MAX, 2) ? "SET" : "null");
    printf(", errno %s\n", name(errno));
    printf("usable size of null: %zu\n", malloc_usable_size(NULL));
    errno = 5, free(NULL), printf("free of null: errno %s\n", errno == 5 ? "kept" : "CHANGED");
    char *copy = strdup("a string that libc allocates and the program frees");
    printf("%s\n", copy), free(copy);
    for (int i = 0; i < WARM; i += 2) {
        for (size_t at = 0; at < 1 + (size_t)i % 256; at++)
            if (warm[i][at] != (i & 0xff)) printf("OVERLAP later at object %d\n", i);
        free(warm[i]);
    }
    return 0;
}
