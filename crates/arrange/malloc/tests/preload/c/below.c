// How long objects are that are not placed: each allocator rounds in its own way. Then objects of all sizes are
// taken, grown and given back by several threads, and their contents are summed. At last objects shrink to nothing.
#define _GNU_SOURCE
#include <errno.h>
#include <malloc.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { OBJECTS = 4096, ROUNDS = 200000, THREADS = 4 };

static void *work(void *seed) {
    static __thread unsigned char *all[OBJECTS];
    uint64_t state = (uintptr_t)seed * 0x9e3779b97f4a7c15u + 1, sum = 0;
    for (int round = 0; round < ROUNDS; round++) {
        state ^= state << 13, state ^= state >> 7, state ^= state << 17;
        size_t size = 1 + state % (state >> 60 ? 400 : 6000);
        unsigned char **place = &all[state >> 20 & (OBJECTS - 1)];
        if (*place == NULL) {
            *place = state >> 33 & 1 ? malloc(size) : calloc(1, size);
            **place = (unsigned char)state;
        } else if (state >> 34 & 1) {
            *place = realloc(*place, size);
        } else {
            sum += **place;
            errno = 77;
            free(*place);
            if (errno != 77) abort();
            *place = NULL;
        }
    }
    for (int i = 0; i < OBJECTS; i++) free(all[i]);
    return (void *)(uintptr_t)sum;
}

int main(void) {
    for (size_t size = 300; size < 100000; size = size * 5 / 3) {
        void *plain = malloc(size), *aligned = aligned_alloc(64, size / 64 * 64);
        printf("%zu: %zu, %zu\n", size, malloc_usable_size(plain), malloc_usable_size(aligned));
        free(plain), free(aligned);
    }
    pthread_t threads[THREADS];
    for (uintptr_t i = 0; i < THREADS; i++) pthread_create(&threads[i], NULL, work, (void *)(i + 1));
    for (int i = 0; i < THREADS; i++) {
        void *sum;
        pthread_join(threads[i], &sum);
        printf("%lu\n", (unsigned long)(uintptr_t)sum);
    }
    int left = 0;
    for (int i = 0; i < OBJECTS; i++) {
        errno = 77;
        void *nothing = realloc(malloc(1 + i % 256), 0);
        if (errno != 77) abort();
        left += nothing != NULL;
        free(nothing);
    }
    printf("%d objects of no bytes\n", left);
    return 0;
}
