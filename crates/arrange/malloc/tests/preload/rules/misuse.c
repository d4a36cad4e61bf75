/* Rule 4: what no right program does, one mistake for each argument, with objects of so many bytes. A program that
 * gets past its mistake says so: then two owners have one object, or the allocator took what it never gave. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MANY = 20000 };
static char *many[MANY];
static char fixed[4096];

static void *frees(void *object) {
    free(object);
    return 0;
}

static void in_another_thread(void *object) {
    pthread_t thread;
    pthread_create(&thread, 0, frees, object);
    pthread_join(thread, 0);
}

int main(int count, char **arguments) {
    const char *mistake = count > 1 ? arguments[1] : "";
    int size = count > 2 ? atoi(arguments[2]) : 64;
    for (int i = 0; i < MANY; i++) many[i] = malloc(size);
    char *object = many[MANY - 1];
    if (!strcmp(mistake, "none")) free(object), in_another_thread(many[0]), puts("right");
    if (!strcmp(mistake, "double")) free(object), free(object);
    if (!strcmp(mistake, "between")) {
        free(object);
        for (int i = 0; i < MANY / 2; i++) free(many[i]);
        free(object);
    }
    if (!strcmp(mistake, "moved")) {
        if (realloc(object, 4096) == object) puts("it stayed");
        free(object);
    }
    if (!strcmp(mistake, "thread")) in_another_thread(object), free(object);
    if (!strcmp(mistake, "threads")) in_another_thread(object), in_another_thread(object);
    if (!strcmp(mistake, "inside")) free(object + 16);
    if (!strcmp(mistake, "odd")) free(object + 3);
    /* Far above everything that was handed out, and still of the arena, which takes 4 MiB of addresses at first. */
    if (!strcmp(mistake, "foreign")) free(object + (2 << 20));
    char local[256] = {0};
    if (!strcmp(mistake, "stack")) free(local + 32);
    if (!strcmp(mistake, "static")) free(fixed + 64);
    if (!strcmp(mistake, "static-odd")) free(fixed + 65);
    if (!strcmp(mistake, "grown")) {
        if (realloc(object, size * 3 + 700) == object) puts("it stayed");
        free(object);
    }
    if (!strcmp(mistake, "aligned")) {
        char *other = aligned_alloc(64, 128);
        free(other), free(other);
    }
    if (!strcmp(mistake, "zeroed")) {
        char *other = calloc(1, size);
        free(other), free(other);
    }
    if (!strcmp(mistake, "realloc")) free(object), realloc(object, 48);
    if (!strcmp(mistake, "realloc-inside")) realloc(object + 16, 300);
    if (strcmp(mistake, "none")) puts("it went on");
    return 0;
}
