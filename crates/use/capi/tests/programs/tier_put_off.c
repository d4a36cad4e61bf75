/* A thread that gives pages of adopted memory up is put off its core in the midst of the call: after the pager has
   heard of it, and before the kernel has taken the pages away. Whatever leaves and comes meanwhile, it does not find
   again what it gave up, and does not lose what it writes afterwards.

   Between both it takes the kernel's lock of mappings. So it is made to wait for that lock, by a thread that changes a
   large mapping again and again; and where it sleeps there, its core is taken by a thread with a priority of real time. */
#define _GNU_SOURCE
#include "want.h"

#include <pthread.h>
#include <sched.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { PAGE = 4096, PAGES = 1024, FAST = 256, GIVEN = 64, WORDS = PAGE / 8, TRIES = 20, LATER = 3 };
static const size_t LARGE = (size_t)128 << 20;
static const size_t BYTES = (size_t)PAGES * PAGE;

enum way { DONT_NEED, FREE, WAYS };
static const char *const NAMES[] = {"MADV_DONTNEED", "MADV_FREE"};

static uint64_t *words;
static char *large;
static enum way way;
static int core;
static cpu_set_t all;
static int giver, may_ask, returned, may_begin, is_busy, over, wrong;

static int get(const int *word) { return __atomic_load_n(word, __ATOMIC_SEQ_CST); }
static void set(int *word, int value) { __atomic_store_n(word, value, __ATOMIC_SEQ_CST); }
static void add(int *word, int value) { __atomic_fetch_add(word, value, __ATOMIC_SEQ_CST); }

static uint64_t old_value(size_t page) { return 0x1111u + page; }
static uint64_t new_value(size_t page) { return 0x777777u + page; }

static void pin(int first, int last) {
  cpu_set_t some;
  CPU_ZERO(&some);
  for (int each = first; each <= last; each++)
    if (CPU_ISSET(each, &all)) CPU_SET(each, &some);
  WANT(pthread_setaffinity_np(pthread_self(), sizeof some, &some), 0, "");
}

static int schedule(int policy, int priority) {
  struct sched_param how = {.sched_priority = priority};
  return sched_setscheduler(0, policy, &how);
}

static double now(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

/* Once it is heard it goes on when its core lets it. */
static void *is_put_off(void *nothing) {
  pin(core, core);
  set(&giver, (int)syscall(SYS_gettid));
  while (!get(&may_ask)) usleep(200);
  WANT(madvise(words, (size_t)GIVEN * PAGE, way == FREE ? MADV_FREE : MADV_DONTNEED), 0, "");
  set(&returned, 1);
  for (size_t page = 0; page < GIVEN; page++) {
    uint64_t there = words[page * WORDS];
    add(&wrong, there != 0 && !(way == FREE && there == old_value(page)));
    words[page * WORDS] = new_value(page);
  }
  return nothing;
}

/* A word that the kernel says of it. */
static void said_of_it(int thread, const char *file, char *word, size_t room) {
  char name[64];
  snprintf(name, sizeof name, "/proc/self/task/%d/%s", thread, file);
  FILE *opened = fopen(name, "r");
  if (opened == NULL || fgets(word, (int)room, opened) == NULL) word[0] = 0;
  if (opened != NULL) fclose(opened);
}

/* Waits until a thread sleeps in a call, and is not heard; -1 of a fault. Who waits here keeps the pager's threads from
   their core. */
static void until_it_asks(int thread, long call) {
  char said[64] = "";
  while (said[0] == 0 || said[0] == 'r' || atol(said) != call) said_of_it(thread, "syscall", said, sizeof said);
}

/* Keeps others from its core, from when it sleeps elsewhere than where it waits to be heard. */
static void *keeps_busy(void *nothing) {
  char said[64] = "0";
  pin(core, core);
  WANT(schedule(SCHED_FIFO, 1), 0, "");
  while (!get(&may_begin)) usleep(200);
  while ((said[0] == 0 || strcmp(said, "0") == 0 || strstr(said, "userfault") != NULL) && !get(&returned)) {
    usleep(20);
    said_of_it(get(&giver), "wchan", said, sizeof said);
  }
  set(&is_busy, 1);
  while (!get(&over) && !get(&returned)) {
  }
  return nothing;
}

static void touch(size_t page) {
  if (words[page * WORDS] != old_value(page)) add(&wrong, 1);
  words[page * WORDS] = old_value(page);
}

/* Touches all that nobody gives up, so that the rest leaves. */
static void others(void) {
  for (size_t page = GIVEN; page < PAGES; page++) touch(page);
}

/* Once; whether the thread was still in the call when all had been touched for a while. */
static int once(const isochrone_tier_options *options) {
  pthread_t busy, thread;
  words = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  WANT((void *)words != MAP_FAILED, 1, "");
  WANT(isochrone_tier_adopt(options, words, BYTES), ISOCHRONE_OK, "");
  for (size_t page = 0; page < PAGES; page++) words[page * WORDS] = old_value(page);
  /* In memory, and last to leave. */
  for (size_t page = 0; page < GIVEN; page++) words[page * WORDS] = old_value(page);
  set(&giver, 0), set(&may_ask, 0), set(&returned, 0);
  set(&may_begin, 0), set(&is_busy, 0), set(&over, 0);
  WANT(pthread_create(&busy, NULL, keeps_busy, NULL), 0, "");
  WANT(pthread_create(&thread, NULL, is_put_off, NULL), 0, "");
  while (!get(&giver)) usleep(200);
  WANT(schedule(SCHED_FIFO, 2), 0, "");
  set(&may_ask, 1);
  until_it_asks(get(&giver), SYS_madvise);
  set(&may_begin, 1);
  WANT(schedule(SCHED_OTHER, 0), 0, "");
  while (!get(&is_busy)) {
    WANT(mprotect(large, LARGE, PROT_READ), 0, "");
    if (!get(&is_busy)) WANT(mprotect(large, LARGE, PROT_READ | PROT_WRITE), 0, "");
  }
  /* Its core is kept from it for 0.95 s by default (/proc/sys/kernel/sched_rt_runtime_us). */
  double end = now() + 0.8;
  for (size_t page = 0; now() < end && !get(&returned); page++) touch(GIVEN + page % (PAGES - GIVEN));
  int was_put_off = !get(&returned);
  set(&over, 1);
  WANT(pthread_join(busy, NULL), 0, "");
  WANT(pthread_join(thread, NULL), 0, "");
  for (int round = 0; round < LATER; round++) {
    others();
    for (size_t page = 0; page < GIVEN; page++) add(&wrong, words[page * WORDS] != new_value(page));
  }
  unsigned char there[PAGES];
  size_t resident = 0;
  others();
  WANT(mincore(words, BYTES, there), 0, "");
  for (size_t page = 0; page < PAGES; page++) resident += there[page] & 1;
  WANT(resident <= FAST, 1, "");
  WANT(isochrone_tier_release(words), ISOCHRONE_OK, "");
  for (size_t page = 0; page < GIVEN; page++) add(&wrong, words[page * WORDS] != new_value(page));
  others();
  munmap(words, BYTES);
  return was_put_off;
}

/* What a thread waits for is mapped over before anybody has heard of it: it goes on, and reads what is there now. */
static void *reads(void *nothing) {
  pin(core, core);
  set(&giver, (int)syscall(SYS_gettid));
  while (!get(&may_ask)) usleep(200);
  uint64_t seen = *(volatile uint64_t *)words;
  add(&wrong, seen != 0 && seen != old_value(0));
  return nothing;
}

static int mapper;
static void *maps_over(void *nothing) {
  int both = PROT_READ | PROT_WRITE, fixed = MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED;
  pin(core, core);
  set(&mapper, (int)syscall(SYS_gettid));
  while (!get(&may_begin)) usleep(200);
  WANT(mmap(words, (size_t)GIVEN * PAGE, both, fixed, -1, 0) == (void *)words, 1, "");
  return nothing;
}

static void mapped_over(const isochrone_tier_options *options) {
  pthread_t reader, over_it;
  words = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  WANT((void *)words != MAP_FAILED, 1, "");
  WANT(isochrone_tier_adopt(options, words, BYTES), ISOCHRONE_OK, "");
  for (size_t page = 0; page < PAGES; page++) words[page * WORDS] = old_value(page);
  set(&giver, 0), set(&may_ask, 0), set(&may_begin, 0);
  WANT(pthread_create(&reader, NULL, reads, NULL), 0, "");
  WANT(pthread_create(&over_it, NULL, maps_over, NULL), 0, "");
  while (!get(&giver) || !get(&mapper)) usleep(200);
  WANT(schedule(SCHED_FIFO, 2), 0, "");
  set(&may_ask, 1);
  until_it_asks(get(&giver), -1);
  set(&may_begin, 1);
  until_it_asks(get(&mapper), SYS_mmap);
  WANT(schedule(SCHED_OTHER, 0), 0, "");
  /* Who is not woken waits for ever. */
  alarm(60);
  WANT(pthread_join(reader, NULL), 0, "");
  WANT(pthread_join(over_it, NULL), 0, "");
  alarm(0);
  for (size_t page = 0; page < GIVEN; page++) add(&wrong, words[page * WORDS] != 0);
  others();
  WANT(get(&wrong), 0, "mapped over");
  WANT(isochrone_tier_release(words), ISOCHRONE_OK, "");
  munmap(words, BYTES);
}

int main(void) {
  isochrone_tier_options options = {.size = sizeof options, .far = ISOCHRONE_FAR_COMPRESSED};
  options.fast_bytes = (uint64_t)FAST * PAGE;
  WANT(sched_getaffinity(0, sizeof all, &all), 0, "");
  for (core = CPU_SETSIZE - 1; core > 0 && !CPU_ISSET(core, &all);) core--;
  if (CPU_COUNT(&all) < 2) return fprintf(stderr, "one core: everybody waits for the busy one\n"), 77;
  if (schedule(SCHED_FIFO, 1) != 0) return fprintf(stderr, "nobody may keep others from a core here\n"), 77;
  WANT(schedule(SCHED_OTHER, 0), 0, "");
  /* The pager's threads, too: one core, which is not the busy one. */
  int first = 0;
  while (!CPU_ISSET(first, &all)) first++;
  pin(first, first);
  void *tried = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (isochrone_tier_adopt(&options, tried, PAGE) == ISOCHRONE_STATE) return fprintf(stderr, "%s\n", isochrone_error()), 77;
  WANT(isochrone_tier_release(tried), ISOCHRONE_OK, "");
  large = mmap(NULL, LARGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  WANT((void *)large != MAP_FAILED, 1, "");
  (void)madvise(large, LARGE, MADV_NOHUGEPAGE);
  memset(large, 1, LARGE);
  mapped_over(&options);
  for (way = DONT_NEED; way < WAYS; way++) {
    int put_off = 0;
    for (int attempt = 0; attempt < TRIES && !put_off; attempt++) put_off = once(&options);
    WANT(get(&wrong), 0, NAMES[way]);
    if (!put_off && !failed) return fprintf(stderr, "%s: never put off\n", NAMES[way]), 77;
  }
  return failed;
}
