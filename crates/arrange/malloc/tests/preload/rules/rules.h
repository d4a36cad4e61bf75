/* What the programs of the rules share: objects that hold their own mark over their whole length, and are checked
 * when they are freed. Nothing here prints but a line of what was wrong, after which the process has failed. */
#define _GNU_SOURCE
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { SOME = 4096 };

static void fail(const char *what) {
    /* Not printf: it allocates. */
    if (write(1, "FAILED: ", 8) < 0 || write(1, what, strlen(what)) < 0 || write(1, "\n", 1) < 0) _exit(98);
    _exit(99);
}

/* An object: two bytes of length, then its mark to the end. */
static unsigned char *make(uint64_t *random) {
    *random = *random * 6364136223846793005u + 1442695040888963407u;
    size_t size = 3 + (*random >> 33) % (*random >> 60 ? 253 : 2000);
    unsigned char *object = *random >> 59 & 1 ? malloc(size) : calloc(1, size);
    if (!object) fail("no memory");
    object[0] = (unsigned char)size, object[1] = (unsigned char)(size >> 8);
    memset(object + 2, (int)(*random >> 50 & 255), size - 2);
    return object;
}

static void check(const unsigned char *object) {
    size_t size = object[0] + 256u * object[1];
    for (size_t at = 3; at < size; at++)
        if (object[at] != object[2]) fail("an object was overwritten");
}

static void drop(unsigned char *object) {
    if (object) check(object), free(object);
}

/* Makes so many objects in `own`, which has SOME places, and drops those that lay there. */
static void churn(unsigned char **own, uint64_t seed, long objects) {
    uint64_t random = seed * 0x9e3779b97f4a7c15u + 1;
    for (long i = 0; i < objects; i++) {
        unsigned char **place = &own[random >> 45 & (SOME - 1)];
        drop(*place), *place = make(&random);
    }
}

static void drop_all(unsigned char **own) {
    for (int i = 0; i < SOME; i++) drop(own[i]), own[i] = NULL;
}
