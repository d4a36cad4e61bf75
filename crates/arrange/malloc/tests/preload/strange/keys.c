/* More keys than a thread has room for at first (their table comes from malloc), each with an object that its
 * destructor frees, round after round; keys that are deleted while threads have values; a thread that is cancelled
 * while it allocates, which must not end inside of malloc, since that is no cancellation point. Prints "ok". */
#include "../rules/rules.h"
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>

enum { KEYS = 200, THREADS = 8, ROUNDS = 12 };
static pthread_key_t keys[KEYS];
static atomic_long freed;

/* In three of the four rounds it leaves another object to the next one. */
static void frees(void *value) {
    unsigned char *object = value;
    uint64_t random = (uintptr_t)value;
    int round = object[2] & 3;
    check(object), free(object);
    freed++;
    for (int i = 0; i < 20; i++) drop(make(&random));
    if (round == 3) return;
    for (int i = 0; i < KEYS; i++)
        if (!pthread_getspecific(keys[i])) {
            unsigned char *next = malloc(40);
            next[0] = 40, next[1] = 0;
            memset(next + 2, round + 1, 38);
            pthread_setspecific(keys[i], next);
            return;
        }
}

static void *has_values(void *seed) {
    uint64_t random = (uintptr_t)seed;
    for (int i = 0; i < 2000; i++) drop(make(&random));
    for (int i = 0; i < KEYS; i++) {
        unsigned char *object = malloc(100);
        object[0] = 100, object[1] = 0;
        memset(object + 2, 0, 98);
        if (pthread_setspecific(keys[i], object)) fail("no value");
    }
    return NULL;
}

static pthread_barrier_t cancelled;
static atomic_int past;

/* It is cancelled from before on, and allocates until it asks whether it is. */
static void *allocates(void *seed) {
    static __thread unsigned char *own[SOME];
    int old;
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &old);
    pthread_barrier_wait(&cancelled);
    pthread_barrier_wait(&cancelled);
    pthread_setcancelstate(PTHREAD_CANCEL_ENABLE, &old);
    churn(own, (uintptr_t)seed, 60000);
    drop_all(own);
    past++;
    pthread_testcancel();
    fail("it was not cancelled");
    return NULL;
}

int main(void) {
    pthread_t threads[THREADS];
    static unsigned char *own[SOME];
    pthread_barrier_init(&cancelled, NULL, 2);
    /* Before anything is placed: the thread begins it. */
    for (int i = 0; i < 4; i++) {
        void *end = NULL;
        if (pthread_create(&threads[0], NULL, allocates, (void *)(uintptr_t)(i + 1))) fail("no thread");
        pthread_barrier_wait(&cancelled);
        pthread_cancel(threads[0]);
        pthread_barrier_wait(&cancelled);
        if (pthread_join(threads[0], &end) || end != PTHREAD_CANCELED) fail("it ended otherwise");
    }
    if (past != 4) fail("it ended inside of malloc");
    for (int i = 0; i < KEYS; i++)
        if (pthread_key_create(&keys[i], frees)) fail("no key");
    for (int round = 0; round < ROUNDS; round++) {
        for (uintptr_t i = 0; i < THREADS; i++)
            if (pthread_create(&threads[i], NULL, has_values, (void *)(i + 1))) fail("no thread");
        churn(own, (uint64_t)round, 5000);
        for (int i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
    }
    if (freed < ROUNDS * THREADS * KEYS) fail("some were forgotten");
    for (int i = 0; i < KEYS; i++) pthread_key_delete(keys[i]);
    drop_all(own);
    return puts("ok") < 0;
}
