/* Rule 7: what a process does whose atlas is whatever: objects of all sizes in three threads keep their contents.
 * Prints "ok". */
#include "rules.h"
#include <pthread.h>
#include <stdio.h>

static void *work(void *seed) {
    static __thread unsigned char *own[SOME];
    churn(own, (uintptr_t)seed, 60000);
    drop_all(own);
    return NULL;
}

int main(void) {
    pthread_t threads[3];
    work((void *)9);
    for (uintptr_t i = 0; i < 3; i++)
        if (pthread_create(&threads[i], NULL, work, (void *)(i + 1))) fail("no thread");
    for (int i = 0; i < 3; i++) pthread_join(threads[i], NULL);
    return puts("ok") < 0;
}
