/* Memory larger than fast memory in a program that locks its memory, all that it will ever have before the area is
   made, or parts of it and all of it afterwards: fast memory stays as small as it was asked for, nothing is lost, and
   what is worth nothing is zeros. Argument: "threads" or "sigbus", for who brings pages. */
#define _GNU_SOURCE
#include "want.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>

enum { PAGES = 256, FAST = 32, PAGE = 4096 };

static isochrone_tier_options options;
static isochrone_tier_array *array;
static unsigned char *base;

static volatile uint64_t *word(size_t page) { return (volatile uint64_t *)(base + page * PAGE) + 7; }

static size_t resident(void) {
  unsigned char pages[PAGES];
  size_t count = 0;
  WANT(mincore(base, (size_t)PAGES * PAGE, pages), 0, "");
  for (size_t page = 0; page < PAGES; page++) count += pages[page] & 1;
  return count;
}

static void map(void) {
  void *at = NULL;
  WANT(isochrone_tier_map(&options, &array, &at), ISOCHRONE_OK, "");
  base = at;
}

/* Writes everywhere, and looks twice: what was written is there, and no more of it in memory than there may be. */
static void used(uint64_t seed) {
  for (size_t page = 0; page < PAGES; page++) *word(page) = seed + page;
  WANT(resident() <= FAST, 1, "");
  for (int round = 0; round < 2; round++)
    for (size_t page = 0; page < PAGES; page++) WANT(*word(page) == seed + page, 1, "");
  WANT(resident() <= FAST, 1, "");
}

static void discarded(void) {
  WANT(isochrone_tier_array_advise(array, base, (size_t)PAGES * PAGE, ISOCHRONE_DISCARD), ISOCHRONE_OK, "");
  WANT(resident() == 0, 1, "");
  for (size_t page = 0; page < PAGES; page++) WANT(*word(page) == 0, 1, "");
}

static uint64_t body(uint32_t worker, uint32_t workers, void *argument) {
  uint64_t *first = isochrone_malloc_global((size_t)PAGES / 2 * PAGE / workers), sum = 0;
  size_t words = (size_t)PAGES / 2 * PAGE / workers / 8;
  (void)argument;
  for (size_t at = 0; at < words; at += 64) sum += first[at], first[at] = worker + 1;
  for (size_t at = 0; at < words; at += 64) sum += first[at] != worker + 1;
  return sum;
}

int main(int count, char **arguments) {
  int by_signal = count > 1 && strcmp(arguments[1], "sigbus") == 0;
  options.size = sizeof options;
  options.area_bytes = (uint64_t)PAGES * PAGE, options.fast_bytes = (uint64_t)FAST * PAGE;
  for (uint32_t far = 0; far < 3; far += 2) {
    options.far = far, options.flags = by_signal ? ISOCHRONE_TIER_SIGBUS : 0;
    /* Who may lock little is told so by the kernel, and has nothing of what is tried here. */
    if (mlockall(MCL_CURRENT | MCL_FUTURE) != 0) return fprintf(stderr, "mlockall: %s\n", strerror(errno)), 77;
    map();
    WANT(resident() == 0, 1, "");
    used(1000);
    discarded();
    used(2000);
    isochrone_tier_unmap(array);
    /* The caller is a worker: it has what it was told of its memory, and the other has not. */
    uint64_t sums[2] = {9, 9};
    options.workers = 2, options.flags |= ISOCHRONE_TIER_CALLER_WORKS;
    WANT(isochrone_tier_run(&options, body, NULL, sums), ISOCHRONE_OK, "");
    WANT(sums[0] == 0 && sums[1] == 0, 1, "");
    options.flags &= ~ISOCHRONE_TIER_CALLER_WORKS;
    WANT(munlockall(), 0, "");

    map();
    used(3000);
    /* Whether the kernel could touch all of it is no matter here: what it could is locked. */
    int locked = mlock(base, (size_t)PAGES / 2 * PAGE);
    WANT(locked == 0 || errno == ENOMEM || errno == EAGAIN, 1, "");
    used(4000);
    discarded();
    WANT(mlock2(base, (size_t)PAGES * PAGE, MLOCK_ONFAULT), 0, "");
    used(5000);
    discarded();
    WANT(mlockall(MCL_CURRENT | MCL_FUTURE), 0, "");
    used(6000);
    discarded();
    used(7000);
    WANT(isochrone_tier_array_pin(array, base, PAGE), ISOCHRONE_OK, "");
    WANT(isochrone_tier_array_unpin(array, base, PAGE), ISOCHRONE_OK, "");
    isochrone_tier_unmap(array);
    WANT(munlockall(), 0, "");
  }
  return failed;
}
