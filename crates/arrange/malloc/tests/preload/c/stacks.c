/* The malloc family on stacks that are hardly enough for glibc's own, in a process whose first calls come from
 * there: what begins, learns and grows does so on that stack. Each stack has a page below it that ends the
 * process. Arguments: "thread", "coroutine" or "signal", and the stack's size in KiB. Prints "ok". */
#define _GNU_SOURCE
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>

enum { OBJECTS = 3000, ROUNDS = 40 };
static unsigned char *objects[OBJECTS];
static ucontext_t there, back;
static volatile int wrong;

/* Nothing here takes more of the stack than a call does. */
static void work(void) {
    for (int round = 0; round < ROUNDS; round++) {
        for (int i = 0; i < OBJECTS; i++) {
            size_t size = 1 + (size_t)(i * 7 + round) % 256;
            void *found = NULL;
            switch (i % 4) {
            case 0: found = calloc(1, size); break;
            case 1:
                if (posix_memalign(&found, 16, size)) wrong = 1;
                break;
            default: found = malloc(size);
            }
            if (!found) wrong = 1;
            memset(found, i, size);
            objects[i] = found;
        }
        for (int i = 0; i < OBJECTS; i += 5) {
            objects[i] = realloc(objects[i], 1 + (size_t)i % 400);
            if (!objects[i]) wrong = 1;
        }
        /* Some stay, so that there is always more to place. */
        for (int i = 0; i < OBJECTS; i++)
            if (i % 3 || round % 2) free(objects[i]);
    }
}

static void *in_thread(void *argument) {
    work();
    return argument;
}

static void in_coroutine(void) {
    work();
}

static void in_handler(int number) {
    (void)number;
    work();
}

static char *stack_of(size_t bytes) {
    char *all = mmap(NULL, bytes + 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (all == MAP_FAILED || mprotect(all + 4096, bytes, PROT_READ | PROT_WRITE)) _exit(3);
    return all + 4096;
}

int main(int count, char **arguments) {
    if (count != 3) return 4;
    size_t bytes = (size_t)atoi(arguments[2]) << 10;
    switch (arguments[1][0]) {
    case 't': {
        /* Several: of each the first call is its own. */
        for (int i = 0; i < 8; i++) {
            pthread_attr_t attributes;
            pthread_t thread;
            pthread_attr_init(&attributes);
            if (pthread_attr_setstacksize(&attributes, bytes)) return 5;
            if (pthread_create(&thread, &attributes, in_thread, NULL)) return 6;
            pthread_join(thread, NULL);
        }
        break;
    }
    case 'c':
        for (int i = 0; i < 4; i++) {
            getcontext(&there);
            there.uc_stack.ss_sp = stack_of(bytes);
            there.uc_stack.ss_size = bytes;
            there.uc_link = &back;
            makecontext(&there, in_coroutine, 0);
            swapcontext(&back, &there);
        }
        break;
    default: {
        stack_t alternate = {.ss_sp = stack_of(bytes), .ss_size = bytes};
        struct sigaction action = {.sa_handler = in_handler, .sa_flags = SA_ONSTACK};
        if (sigaltstack(&alternate, NULL) || sigaction(SIGUSR1, &action, NULL)) return 7;
        for (int i = 0; i < 4; i++) raise(SIGUSR1);
    }
    }
    if (write(1, wrong ? "wrong\n" : "ok\n", wrong ? 6 : 3) < 0) return 8;
    return wrong;
}
