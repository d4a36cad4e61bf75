/* Rule 8: threads and libraries that come and go, and what runs at the end of a thread and of the process. Arguments:
 * "threads" and how many at once, "library" and a file that is loaded and closed again and again, "destructors",
 * "root" and an empty folder that becomes the root folder, "secure". Prints what happened. */
#include "rules.h"
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/auxv.h>
#include <sys/wait.h>

static unsigned char *own[SOME];

/* Threads that are all there at once. */
static pthread_barrier_t all_there;
static void *is_one_of_many(void *seed) {
    uint64_t random = (uintptr_t)seed;
    unsigned char *few[64] = {0};
    for (int i = 0; i < 640; i++) drop(few[i % 64]), few[i % 64] = make(&random);
    pthread_barrier_wait(&all_there);
    for (int i = 0; i < 640; i++) drop(few[i % 64]), few[i % 64] = make(&random);
    for (int i = 0; i < 64; i++) drop(few[i]);
    return NULL;
}

static void many_threads(long count) {
    pthread_t *threads = malloc((size_t)count * sizeof *threads);
    pthread_attr_t small;
    pthread_attr_init(&small);
    pthread_attr_setstacksize(&small, 64 << 10);
    pthread_barrier_init(&all_there, NULL, (unsigned)count);
    for (uintptr_t i = 0; i < (uintptr_t)count; i++)
        if (pthread_create(&threads[i], &small, is_one_of_many, (void *)(i + 1))) fail("no thread");
    for (long i = 0; i < count; i++) pthread_join(threads[i], NULL);
    free(threads);
    printf("%ld threads\n", count);
}

/* A library whose constructor and destructor allocate; see library.c. */
static void load_and_close(const char *file) {
    long made = 0;
    for (int i = 0; i < 300; i++) {
        void *library = dlopen(file, RTLD_NOW | RTLD_LOCAL);
        if (!library) fail(dlerror());
        char *(*makes)(int) = (char *(*)(int))dlsym(library, "library_makes");
        char *text = makes(i);
        made += (long)strlen(text);
        churn(own, (uint64_t)i, 500);
        dlclose(library);
        free(text);
    }
    printf("%ld bytes\n", made);
}

/* Destructors of keys, of thread-local objects of C++, of the process. */
static pthread_key_t keys[8];
static atomic_long destroyed;
extern int __cxa_thread_atexit_impl(void (*)(void *), void *, void *);
extern void *__dso_handle;

static void of_key(void *value) {
    uint64_t random = 5;
    drop(value);
    for (int i = 0; i < 100; i++) drop(make(&random));
    destroyed++;
    /* Some come again, in each round that there is. */
    pthread_setspecific(keys[destroyed % 8], make(&random));
}

static void of_object(void *value) {
    uint64_t random = 6;
    drop(value);
    for (int i = 0; i < 100; i++) drop(make(&random));
    destroyed++;
}

static void *leaves_things(void *seed) {
    uint64_t random = (uintptr_t)seed;
    unsigned char *few[64] = {0};
    for (int i = 0; i < 6400; i++) drop(few[i % 64]), few[i % 64] = make(&random);
    for (int i = 0; i < 8; i++) pthread_setspecific(keys[i], make(&random));
    for (int i = 0; i < 8; i++) __cxa_thread_atexit_impl(of_object, make(&random), &__dso_handle);
    for (int i = 0; i < 64; i++) drop(few[i]);
    return NULL;
}

static unsigned char *for_the_end;
static void at_exit(void) {
    uint64_t random = 8;
    drop(for_the_end);
    for (int i = 0; i < 1000; i++) drop(make(&random));
    for_the_end = make(&random);
}
static __attribute__((destructor)) void at_the_very_end(void) {
    if (for_the_end) drop(for_the_end);
    churn(own, 9, 1000);
}

static void destructors(void) {
    pthread_t threads[8];
    uint64_t random = 7;
    for (int i = 0; i < 8; i++) pthread_key_create(&keys[i], of_key);
    for (int round = 0; round < 10; round++) {
        for (uintptr_t i = 0; i < 8; i++)
            if (pthread_create(&threads[i], NULL, leaves_things, (void *)(i + 1))) fail("no thread");
        for (int i = 0; i < 8; i++) pthread_join(threads[i], NULL);
    }
    for_the_end = make(&random);
    atexit(at_exit);
    printf("%s\n", destroyed >= 10 * 8 * 16 ? "all were destroyed" : "some were forgotten");
}

/* Without /proc, /sys and whatever else a file system has; a child after it. */
static void another_root(const char *folder) {
    if (chroot(folder) || chdir("/")) fail("no other root");
    churn(own, 3, 100000);
    pid_t pid = fork();
    if (pid == 0) churn(own, 4, 100000), _exit(0);
    int status = 1;
    if (waitpid(pid, &status, 0) != pid || status) fail("a child failed");
    printf("%s\n", access("/proc", F_OK) ? "another root" : "the same root");
}

int main(int count, char **arguments) {
    const char *what = count > 1 ? arguments[1] : "";
    /* First, where it matters whether anything has begun. */
    if (count > 3) churn(own, 1, atol(arguments[3]));
    if (!strcmp(what, "threads")) many_threads(atol(arguments[2]));
    if (!strcmp(what, "library")) load_and_close(arguments[2]);
    if (!strcmp(what, "destructors")) destructors();
    if (!strcmp(what, "root")) another_root(arguments[2]);
    if (!strcmp(what, "secure")) printf("%s\n", getauxval(AT_SECURE) ? "secure" : "ordinary");
    churn(own, 2, 100000);
    printf("ok\n");
    return 0;
}
