/* Rule 1: how much of its caller's stack the malloc family takes, as the stack itself shows: it is painted, and the
 * deepest byte that lost its colour counts. Everything runs on a coroutine's stack, with no signals. Prints "ok" as
 * its output, and the depth in bytes to what standard error is. Argument: "quiet" for calls that ask the system for
 * nothing, "all" for all calls, the first ones among them. */
#include "rules.h"
#include <malloc.h>
#include <stdio.h>
#include <sys/mman.h>
#include <ucontext.h>

enum { STACK = 256 << 10, COLOUR = 0xa5, OBJECTS = 60000, LIVE = 20000 };
static unsigned char *stack;
static ucontext_t there, back;
static size_t deepest;
static void *live[LIVE];
static int only_quiet;

/* Where the stack is now, as seen by who calls; below it everything gets its colour. */
static __attribute__((noinline)) unsigned char *paint(void) {
    unsigned char *here = __builtin_frame_address(0);
    /* Not the frame of this function, which calls nothing, with what it may use below it. */
    for (volatile unsigned char *at = here - 64; at >= stack; at--) *at = COLOUR;
    return here;
}

static __attribute__((noinline)) void look(unsigned char *here) {
    unsigned char *at = stack;
    while (at < here && *at == COLOUR) at++;
    if ((size_t)(here - at) > deepest) deepest = (size_t)(here - at);
}

static __attribute__((noinline)) void one(int i) {
    void **place = &live[(i * 7919u) % LIVE], *found = NULL;
    size_t size = 1 + (size_t)(i * 7u) % 256;
    free(*place);
    switch (i % 8) {
    case 0: found = calloc(1, size); break;
    case 1:
        if (posix_memalign(&found, 16, size)) fail("posix_memalign");
        break;
    case 2: found = realloc(malloc(size), size + 40); break;
    case 3: found = memalign(64, size); break;
    default: found = malloc(size);
    }
    if (!found) fail("no memory");
    *place = found;
}

static void work(void) {
    if (only_quiet) {
        for (int i = 0; i < OBJECTS; i++) one(i);
        for (int i = 0; i < 2000; i++) {
            unsigned char *here = paint();
            for (int k = 0; k < 8; k++) {
                void *object = malloc(48);
                free(object);
            }
            look(here);
        }
        return;
    }
    unsigned char *here = paint();
    for (int i = 0; i < OBJECTS; i++) one(i);
    look(here);
}

int main(int count, char **arguments) {
    only_quiet = count > 1 && !strcmp(arguments[1], "quiet");
    stack = mmap(NULL, STACK, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (stack == MAP_FAILED) return 3;
    getcontext(&there);
    there.uc_stack.ss_sp = stack;
    there.uc_stack.ss_size = STACK;
    there.uc_link = &back;
    makecontext(&there, work, 0);
    swapcontext(&back, &there);
    fprintf(stderr, "%zu\n", deepest);
    return puts("ok") < 0;
}
