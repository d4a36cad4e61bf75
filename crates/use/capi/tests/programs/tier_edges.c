/* Memory larger than fast memory beside what else a program does: signals that it blocks, handles or sends itself, its
   own handler of SIGBUS, forks, system calls, and threads that touch the array at once. Argument: "threads" for the
   usual mode, "sigbus" for faults by signal. */
#define _GNU_SOURCE
#include "want.h"

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

enum { PAGES = 256, FAST = 32, PAGE = 4096, THREADS = 8, ROUNDS = 4 };

static isochrone_tier_options options;
static isochrone_tier_array *array;
static unsigned char *base;

static void map(void) {
  void *at = NULL;
  WANT(isochrone_tier_map(&options, &array, &at), ISOCHRONE_OK, "");
  base = at;
}

static volatile uint64_t *word(size_t page, size_t place) {
  return (volatile uint64_t *)(base + page * PAGE) + place;
}

/* Adds one to a word of each page, in an order of its own, some times. */
static void sweep(size_t place, int rounds) {
  for (int round = 0; round < rounds; round++)
    for (size_t step = 0; step < PAGES; step++) *word((step * 37 + place * 11) % PAGES, place) += 1;
}

static void holds(size_t place, uint64_t wanted) {
  for (size_t page = 0; page < PAGES; page++) WANT(*word(page, place) == wanted, 1, "");
}

static void *swept(void *place) {
  sweep((size_t)(uintptr_t)place, ROUNDS);
  return NULL;
}

static void at_once(void) {
  pthread_t threads[THREADS];
  for (uintptr_t number = 0; number < THREADS; number++)
    WANT(pthread_create(&threads[number], NULL, swept, (void *)(number + 1)), 0, "");
  for (int number = 0; number < THREADS; number++) pthread_join(threads[number], NULL);
  for (size_t place = 1; place <= THREADS; place++) holds(place, ROUNDS);
}

/* A handler that touches the array, on whatever its thread does. It asks for the next signal itself: where one takes longer
   than an interval its thread would do nothing else. */
enum { TOUCHES = 100 };
static const struct itimerval soon = {{0, 0}, {0, 200}};
static volatile sig_atomic_t touches;
static void touch(int signal) {
  (void)signal;
  *word((size_t)touches * 29 % PAGES, 20) += 1;
  touches += 1;
  /* On Linux a system call and no more. */
  if (touches < TOUCHES) setitimer(ITIMER_REAL, &soon, NULL);
}

static void disturbed(void) {
  struct sigaction action = {.sa_handler = touch};
  sigemptyset(&action.sa_mask);
  sigaction(SIGALRM, &action, NULL);
  setitimer(ITIMER_REAL, &soon, NULL);
  int rounds = 0;
  while (touches < TOUCHES) sweep(21, 1), rounds++;
  holds(21, (uint64_t)rounds);
  uint64_t all = 0;
  for (size_t page = 0; page < PAGES; page++) all += *word(page, 20);
  WANT(all == (uint64_t)touches, 1, "");
}

/* A thread in which all signals are blocked, SIGBUS too. */
static void *blocked(void *unused) {
  sigset_t all;
  sigfillset(&all);
  pthread_sigmask(SIG_BLOCK, &all, NULL);
  sweep(30, 2);
  return unused;
}

/* The program's own handler of SIGBUS: for a mapped file that is cut, and not for the array. */
static volatile sig_atomic_t own;
static unsigned char *cut_page;
static void mend(int signal, siginfo_t *info, void *context) {
  (void)signal, (void)context;
  if ((unsigned char *)info->si_addr != cut_page) _exit(90);
  own += 1;
  mmap(cut_page, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
}

static void install(void) {
  struct sigaction action = {.sa_sigaction = mend, .sa_flags = SA_SIGINFO | SA_ONSTACK};
  sigemptyset(&action.sa_mask);
  sigaction(SIGBUS, &action, NULL);
}

static void own_fault(void) {
  int file = memfd_create("cut", 0);
  sig_atomic_t before = own;
  cut_page = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  *(volatile unsigned char *)cut_page = 7;
  WANT(own == before + 1, 1, "");
  munmap(cut_page, PAGE);
  close(file);
}

static int ended(pid_t child) {
  int status = 0;
  waitpid(child, &status, 0);
  return WIFSIGNALED(status) ? WTERMSIG(status) : 1000 + WEXITSTATUS(status);
}

static void forked(void) {
  isochrone_tier_statistics counts = {.size = sizeof counts};
  sweep(40, 1);
  pid_t child = fork();
  if (child == 0) _exit((int)*word(3, 40));
  WANT(ended(child), SIGSEGV, "");
  child = fork();
  if (child == 0) {
    failed = 0;
    WANT(isochrone_tier_array_pin(array, base, PAGE), ISOCHRONE_GONE, "forked");
    WANT(isochrone_tier_array_unpin(array, base, PAGE), ISOCHRONE_GONE, "forked");
    WANT(isochrone_tier_array_advise(array, base, PAGE, ISOCHRONE_COLD), ISOCHRONE_GONE, "forked");
    WANT(isochrone_tier_array_count(array, &counts), ISOCHRONE_GONE, "forked");
    isochrone_tier_unmap(array);
    map();
    sweep(0, 2);
    holds(0, 2);
    isochrone_tier_unmap(array);
    _exit(failed);
  }
  WANT(ended(child), 1000, "");
  holds(40, 1);
}

/* System calls on pages that are not in fast memory succeed or fail as the statistics say, and pinned ones succeed. */
static void calls(void) {
  isochrone_tier_statistics counts = {.size = sizeof counts};
  int ends[2];
  WANT(isochrone_tier_array_count(array, &counts), ISOCHRONE_OK, "");
  WANT(counts.fetched > PAGES && counts.left > 0 && counts.fault_ns > 0, 1, "");
  WANT(counts.came_back <= counts.fetched && counts.group_pages == 1, 1, "");
  WANT(pipe(ends), 0, "");
  *word(9, 50) = 4711;
  WANT(isochrone_tier_array_advise(array, base, (size_t)PAGES * PAGE, ISOCHRONE_COLD), ISOCHRONE_OK, "");
  int serves = (counts.flags & ISOCHRONE_TIER_SERVES_SYSTEM_CALLS) != 0;
  ssize_t done = write(ends[1], (const void *)word(9, 50), 8);
  WANT(done == (serves ? 8 : -1), 1, "");
  WANT(isochrone_tier_array_pin(array, base + 9 * PAGE, PAGE), ISOCHRONE_OK, "");
  WANT(write(ends[1], (const void *)word(9, 50), 8) == 8, 1, "");
  uint64_t got = 0;
  WANT(read(ends[0], &got, 8) == 8 && got == 4711, 1, "");
  WANT(isochrone_tier_array_unpin(array, base + 9 * PAGE, PAGE), ISOCHRONE_OK, "");
  close(ends[0]), close(ends[1]);
}

/* Six pages that are used again and again, each in a group of its own: of groups of eight four fit. One line says so, and
   what to set. With 0 the size is chosen, and all fit. */
static void thrashes(void) {
  enum { USED = 6, GROUP = 8 };
  isochrone_tier_statistics counts = {.size = sizeof counts};
  isochrone_tier_options before = options;
  for (uint32_t pages = 0; pages <= GROUP; pages += GROUP) {
    options.group_pages = pages;
    map();
    uint64_t state = 1;
    for (int step = 0; step < 4000; step++) {
      state = state * 6364136223846793005u + 1442695040888963407u;
      *word((state >> 33) % USED * GROUP, 0) += 1;
    }
    WANT(isochrone_tier_array_count(array, &counts), ISOCHRONE_OK, "");
    WANT((int)counts.group_pages, pages == 0 ? 1 : (int)pages, "");
    if (pages > 0) WANT(strstr(counts.advice, "try group_pages = 1") != NULL, 1, "");
    else WANT(strstr(counts.advice, "group_pages") == NULL, 1, "");
    isochrone_tier_unmap(array);
  }
  options = before;
}

int main(int count, char **arguments) {
  int by_signal = count > 1 && strcmp(arguments[1], "sigbus") == 0;
  pthread_t thread;
  options.area_bytes = (uint64_t)PAGES * PAGE, options.fast_bytes = (uint64_t)FAST * PAGE;
  options.flags = by_signal ? ISOCHRONE_TIER_SIGBUS : 0;
  thrashes();
  for (int again = 0; again < 3; again++) {
    options.far = again == 1 ? ISOCHRONE_FAR_ZSTD : ISOCHRONE_FAR_COMPRESSED;
    /* A handler of the program's that comes before an area, or between two. */
    install();
    map();
    if (!by_signal) {
      /* Nothing of the program's signals is asked for: one that comes in the middle, and one that is blocked. */
      install();
      WANT(pthread_create(&thread, NULL, blocked, NULL), 0, "");
      pthread_join(thread, NULL);
      holds(30, 2);
    }
    own_fault();
    at_once();
    own_fault();
    touches = 0;
    disturbed();
    calls();
    forked();
    isochrone_tier_unmap(array);
    own_fault();
  }
  return failed;
}
