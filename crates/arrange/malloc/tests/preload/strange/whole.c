/* What a program may do with an object, all of it at the same time in threads: use all that malloc_usable_size says,
 * grow and shrink it over the size up to which objects are placed, by realloc and reallocarray, ask for odd and for
 * large alignments; while another thread trims and tunes the heap and asks it for its figures. Prints "ok". */
#include "../rules/rules.h"
#include <malloc.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>

enum { THREADS = 8, OBJECTS = 512, STEPS = 40000 };
static atomic_int busy = 1;

struct object {
    unsigned char *at;
    size_t bytes;
    unsigned char mark;
};

static void look(const struct object *object, size_t bytes) {
    for (size_t at = 0; at < bytes; at++)
        if (object->at[at] != object->mark) fail("an object was overwritten");
}

/* All of it, to its usable end. */
static void fill(struct object *object, size_t asked, unsigned char mark) {
    if (!object->at) fail("no memory");
    object->bytes = malloc_usable_size(object->at), object->mark = mark;
    if (object->bytes < asked) fail("it is shorter than was asked for");
    memset(object->at, mark, object->bytes);
}

static void *works(void *seed) {
    struct object own[OBJECTS] = {0};
    uint64_t random = (uintptr_t)seed * 0x9e3779b97f4a7c15u;
    for (int step = 0; step < STEPS; step++) {
        random = random * 6364136223846793005u + 1442695040888963407u;
        struct object *object = &own[random >> 40 & (OBJECTS - 1)];
        size_t size = 1 + (random >> 20) % 600, kept = object->bytes < size ? object->bytes : size;
        unsigned char mark = (unsigned char)(random >> 50);
        size_t align = 16u << (random >> 33) % 5;
        void *aligned = NULL;
        switch (random >> 61) {
        case 0:
            look(object, object->bytes), free(object->at);
            if (posix_memalign(&aligned, 8u << (random >> 33) % 10, size)) fail("no aligned memory");
            object->at = aligned;
            break;
        case 1:
            look(object, object->bytes), free(object->at);
            object->at = aligned_alloc(align, (size + align - 1) / align * align);
            break;
        case 2:
            look(object, object->bytes), free(object->at);
            object->at = calloc(1, size);
            for (size_t at = 0; object->at && at < size; at++)
                if (object->at[at]) fail("it is not zero");
            break;
        case 3:
            object->at = reallocarray(object->at, size, 1);
            if (object->at) look(object, kept);
            break;
        default:
            object->at = realloc(object->at, size);
            if (object->at) look(object, kept);
        }
        fill(object, size, mark);
    }
    for (int i = 0; i < OBJECTS; i++) look(&own[i], own[i].bytes), free(own[i].at);
    return NULL;
}

/* What a program does to its heap from outside. */
static void *tunes(void *none) {
    for (int round = 0; busy; round++) {
        void *huge = NULL;
        malloc_trim((size_t)(round % 3) << 16);
        mallopt(M_TRIM_THRESHOLD, 64 << 10), mallopt(M_MMAP_THRESHOLD, 128 << 10), mallopt(M_ARENA_MAX, 2);
        if (mallinfo2().arena == (size_t)-1) fail("no figures");
        if (posix_memalign(&huge, 2 << 20, 2 << 20) || (uintptr_t)huge % (2 << 20)) fail("no huge page");
        memset(huge, 7, 2 << 20);
        huge = realloc(huge, 200);
        if (!huge || ((unsigned char *)huge)[199] != 7) fail("realloc lost something");
        free(huge);
        usleep(1000);
    }
    return none;
}

int main(void) {
    static unsigned char *first[SOME];
    pthread_t threads[THREADS], tuner;
    churn(first, 1, 100000);
    if (pthread_create(&tuner, NULL, tunes, NULL)) fail("no thread");
    for (uintptr_t i = 0; i < THREADS; i++)
        if (pthread_create(&threads[i], NULL, works, (void *)(i + 1))) fail("no thread");
    for (int i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
    busy = 0;
    pthread_join(tuner, NULL);
    drop_all(first);
    return puts("ok") < 0;
}
