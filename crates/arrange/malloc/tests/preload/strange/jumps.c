/* Handlers of signals, on a stack of their own and on that of a coroutine, allocate, free what the interrupted code
 * had, and jump out; what they made is freed where they jump to. Signals come between calls of malloc, where POSIX lets
 * a handler do so. Prints "ok". */
#include "../rules/rules.h"
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <ucontext.h>

static sigjmp_buf out;
static unsigned char *volatile before, *volatile made;
static uint64_t random_state = 5;

static void handler(int number) {
    unsigned char *old = before;
    before = NULL, drop(old);
    uint64_t random = random_state;
    for (int i = 0; i < 10; i++) drop(make(&random));
    made = make(&random), random_state = random;
    siglongjmp(out, number);
}

static void interrupted(long times) {
    for (volatile long i = 0; i < times; i++) {
        if (!sigsetjmp(out, 1)) {
            uint64_t random = random_state;
            before = make(&random), random_state = random;
            raise(i % 2 ? SIGUSR1 : SIGUSR2);
            fail("it came back");
        }
        unsigned char *object = made;
        made = NULL, drop(object);
    }
}

static ucontext_t here, there;
static void coroutine(void) {
    interrupted(20000);
}

int main(void) {
    static unsigned char *own[SOME];
    stack_t alternate = {.ss_sp = malloc(64 << 10), .ss_size = 64 << 10};
    struct sigaction on_it = {.sa_handler = handler, .sa_flags = SA_ONSTACK}, plain = {.sa_handler = handler};
    if (sigaltstack(&alternate, NULL) || sigaction(SIGUSR1, &on_it, NULL) || sigaction(SIGUSR2, &plain, NULL))
        fail("no handler");
    interrupted(20000);
    churn(own, 1, 50000);
    interrupted(20000);
    getcontext(&there);
    there.uc_stack.ss_sp = malloc(32 << 10), there.uc_stack.ss_size = 32 << 10, there.uc_link = &here;
    makecontext(&there, coroutine, 0);
    swapcontext(&here, &there);
    churn(own, 2, 50000);
    drop_all(own);
    return puts("ok") < 0;
}
