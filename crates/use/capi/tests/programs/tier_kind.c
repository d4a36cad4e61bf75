/* An allocator over memory larger than fast memory: what is asked for holds what was written there, whoever frees it;
   what is wrong is refused; a child has nothing of it. */
#define _GNU_SOURCE
#include "want.h"

#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

enum { PAGE = 4096, PAGES = 1024, FAST = 128, THREADS = 3, SLOTS = 120, STEPS = 700 };

static isochrone_tier_kind *kind;

static isochrone_tier_options options_of(uint32_t far, uint32_t group_pages, uint32_t flags) {
  isochrone_tier_options options = {0};
  options.size = sizeof options;
  options.area_bytes = (uint64_t)PAGES * PAGE, options.fast_bytes = (uint64_t)FAST * PAGE;
  options.far = far, options.group_pages = group_pages, options.flags = flags;
  return options;
}

static uint64_t next(uint64_t *state) {
  *state = *state * 6364136223846793005u + 1442695040888963407u;
  return *state >> 33;
}

/* Mostly small, some of many pages. */
static size_t size_of(uint64_t *state) {
  uint64_t which = next(state) % 16;
  if (which == 0) return next(state) % (64 * PAGE) + 1;
  return which < 4 ? next(state) % (3 * PAGE) + 1 : next(state) % 600 + 1;
}

struct object {
  unsigned char *at;
  size_t bytes;
  unsigned char seed;
};

static void fill(struct object *one) {
  for (size_t at = 0; at < one->bytes; at++) one->at[at] = (unsigned char)(one->seed + at * 7);
}

static size_t wrong(const struct object *one, size_t bytes) {
  size_t count = 0;
  for (size_t at = 0; at < bytes; at++) count += one->at[at] != (unsigned char)(one->seed + at * 7);
  return count;
}

static void *work(void *number) {
  struct object all[SLOTS] = {{NULL, 0, 0}};
  uint64_t state = (uint64_t)(uintptr_t)number;
  for (int step = 0; step < STEPS; step++) {
    struct object *one = &all[next(&state) % SLOTS];
    if (one->at != NULL && next(&state) % 4 == 0) {
      size_t bytes = size_of(&state), kept = bytes < one->bytes ? bytes : one->bytes;
      unsigned char *at = isochrone_tier_kind_realloc(kind, one->at, bytes);
      if (at == NULL) continue;
      one->at = at;
      WANT(wrong(one, kept) == 0, 1, "");
      one->bytes = bytes;
      fill(one);
      continue;
    }
    if (one->at != NULL) {
      WANT(wrong(one, one->bytes) == 0, 1, "");
      WANT(isochrone_tier_kind_free(kind, one->at), ISOCHRONE_OK, "");
      one->at = NULL;
      continue;
    }
    one->bytes = size_of(&state), one->seed = (unsigned char)next(&state);
    int zeroed = next(&state) % 2 == 0;
    one->at = zeroed ? isochrone_tier_kind_calloc(kind, one->bytes, 1) : isochrone_tier_kind_malloc(kind, one->bytes);
    if (one->at == NULL) continue;
    WANT(isochrone_tier_kind_usable(kind, one->at) >= one->bytes && (uintptr_t)one->at % 16 == 0, 1, "");
    for (size_t at = 0; zeroed && at < one->bytes; at++) WANT(one->at[at] == 0, 1, "");
    fill(one);
  }
  for (int slot = 0; slot < SLOTS; slot++) {
    if (all[slot].at != NULL) WANT(wrong(&all[slot], all[slot].bytes) == 0, 1, "");
    WANT(isochrone_tier_kind_free(kind, all[slot].at), ISOCHRONE_OK, "");
  }
  return NULL;
}

static void at_once(void) {
  pthread_t threads[THREADS];
  for (uintptr_t number = 0; number < THREADS; number++)
    WANT(pthread_create(&threads[number], NULL, work, (void *)(number + 1)), 0, "");
  for (int number = 0; number < THREADS; number++) pthread_join(threads[number], NULL);
  isochrone_tier_statistics counts = {.size = sizeof counts};
  WANT(isochrone_tier_array_count(isochrone_tier_kind_array(kind), &counts), ISOCHRONE_OK, "");
  WANT(counts.left > 0 && counts.fetched > FAST, 1, "");
  /* All but slabs is free again, and zeros. */
  void *most = isochrone_tier_kind_calloc(kind, (size_t)32 * PAGE, 1);
  WANT(most != NULL, 1, "");
  WANT(isochrone_tier_kind_free(kind, most), ISOCHRONE_OK, "");
}

static void refused(void) {
  isochrone_tier_options options = options_of(0, 0, 0);
  isochrone_tier_kind *second = NULL;
  isochrone_tier_array *array;
  void *at;
  char other = 0;
  WANT(isochrone_tier_kind_create(&options, &second), ISOCHRONE_ARGUMENT, "at a time");
  WANT(isochrone_tier_map(&options, &array, &at), ISOCHRONE_ARGUMENT, "at a time");
  WANT(isochrone_tier_kind_create(&options, NULL), ISOCHRONE_ARGUMENT, "no room");
  WANT(isochrone_tier_kind_malloc(kind, (size_t)PAGES * PAGE + 1) == NULL, 1, "in one piece");
  WANT(isochrone_tier_kind_malloc(kind, SIZE_MAX) == NULL, 1, "in one piece");
  WANT(isochrone_tier_kind_calloc(kind, SIZE_MAX / 2, 3) == NULL, 1, "addresses");
  WANT(isochrone_tier_kind_memalign(kind, 24, 1) == NULL, 1, "power of two");
  WANT(isochrone_tier_kind_memalign(kind, 0, 1) == NULL, 1, "power of two");
  WANT(isochrone_tier_kind_memalign(kind, (size_t)4 << 20, 1) == NULL, 1, "power of two");
  WANT(isochrone_tier_kind_malloc(NULL, 1) == NULL, 1, "null");
  WANT(isochrone_tier_kind_free(NULL, &other), ISOCHRONE_ARGUMENT, "null");
  WANT(isochrone_tier_kind_free(kind, &other), ISOCHRONE_ARGUMENT, "begins");
  WANT(isochrone_tier_kind_usable(kind, &other) == 0, 1, "begins");
  WANT(isochrone_tier_kind_usable(kind, NULL) == 0, 1, "null");
  WANT(isochrone_tier_kind_realloc(kind, &other, 1) == NULL, 1, "begins");
  WANT(isochrone_tier_kind_array(NULL) == NULL, 1, "");
  char *small = isochrone_tier_kind_malloc(kind, 100), *large = isochrone_tier_kind_malloc(kind, 5 * PAGE);
  WANT(isochrone_tier_kind_free(kind, small + 16), ISOCHRONE_ARGUMENT, "begins");
  WANT(isochrone_tier_kind_free(kind, large + PAGE), ISOCHRONE_ARGUMENT, "begins");
  WANT(isochrone_tier_kind_realloc(kind, large, (size_t)PAGES * PAGE + 1) == NULL, 1, "in one piece");
  WANT(isochrone_tier_kind_usable(kind, large) >= 5 * PAGE, 1, "");
  WANT(isochrone_tier_kind_free(kind, small), ISOCHRONE_OK, "");
  WANT(isochrone_tier_kind_free(kind, large), ISOCHRONE_OK, "");
  WANT(isochrone_tier_kind_free(kind, small), ISOCHRONE_ARGUMENT, "begins");
  WANT(isochrone_tier_kind_free(kind, large), ISOCHRONE_ARGUMENT, "begins");
  for (size_t alignment = 1; alignment <= (size_t)64 << 10; alignment *= 2) {
    void *aligned = isochrone_tier_kind_memalign(kind, alignment, 24);
    WANT(aligned != NULL && (uintptr_t)aligned % alignment == 0, 1, "");
    WANT(isochrone_tier_kind_free(kind, aligned), ISOCHRONE_OK, "");
  }
  void *nothing = isochrone_tier_kind_malloc(kind, 0);
  WANT(nothing != NULL && isochrone_tier_kind_free(kind, nothing) == ISOCHRONE_OK, 1, "");
  /* A pin of what is freed ends with it, and what comes there is zeros. */
  size_t half = (size_t)FAST / 2 * PAGE;
  unsigned char *pinned = isochrone_tier_kind_malloc(kind, half);
  memset(pinned, 9, half);
  const isochrone_tier_array *of = isochrone_tier_kind_array(kind);
  WANT(isochrone_tier_array_pin(of, pinned, half), ISOCHRONE_OK, "");
  WANT(isochrone_tier_kind_free(kind, pinned), ISOCHRONE_OK, "");
  WANT(isochrone_tier_array_unpin(of, pinned, half), ISOCHRONE_ARGUMENT, "no pin");
  unsigned char *again = isochrone_tier_kind_calloc(kind, half, 1);
  for (size_t byte = 0; byte < half; byte++) WANT(again[byte] == 0, 1, "");
  WANT(isochrone_tier_kind_free(kind, again), ISOCHRONE_OK, "");
}

static void forked(void) {
  unsigned char *mine = isochrone_tier_kind_malloc(kind, 3 * PAGE);
  memset(mine, 5, 3 * PAGE);
  pid_t child = fork();
  if (child == 0) {
    failed = 0;
    WANT(isochrone_tier_kind_malloc(kind, 1) == NULL, 1, "forked");
    WANT(isochrone_tier_kind_free(kind, mine), ISOCHRONE_GONE, "forked");
    WANT(isochrone_tier_kind_realloc(kind, mine, 1) == NULL, 1, "forked");
    WANT(isochrone_tier_kind_usable(kind, mine) == 0, 1, "forked");
    isochrone_tier_kind_destroy(kind);
    isochrone_tier_options options = options_of(2, 0, 0);
    WANT(isochrone_tier_kind_create(&options, &kind), ISOCHRONE_OK, "");
    work((void *)7);
    isochrone_tier_kind_destroy(kind);
    _exit(failed);
  }
  int status = 0;
  waitpid(child, &status, 0);
  WANT(WIFEXITED(status) && WEXITSTATUS(status) == 0, 1, "");
  child = fork();
  if (child == 0) _exit(*(volatile unsigned char *)mine);
  waitpid(child, &status, 0);
  WANT(WIFSIGNALED(status) && WTERMSIG(status) == SIGSEGV, 1, "");
  for (size_t byte = 0; byte < 3 * PAGE; byte++) WANT(mine[byte] == 5, 1, "");
  WANT(isochrone_tier_kind_free(kind, mine), ISOCHRONE_OK, "");
}

int main(int count, char **arguments) {
  uint32_t flags = count > 1 && strcmp(arguments[1], "sigbus") == 0 ? ISOCHRONE_TIER_SIGBUS : 0;
  int has_forks = count < 3;
  isochrone_tier_options odd = options_of(0, 3, flags);
  WANT(isochrone_tier_kind_create(&odd, &kind), ISOCHRONE_ARGUMENT, "pages");
  WANT(isochrone_tier_kind_create(NULL, &kind), ISOCHRONE_ARGUMENT, "no size");
  odd = options_of(0, 0, flags), odd.reserved[3] = 1;
  WANT(isochrone_tier_kind_create(&odd, &kind), ISOCHRONE_ARGUMENT, "flags");
  isochrone_tier_kind_destroy(NULL);
  for (uint32_t group_pages = 0; group_pages < 3; group_pages++) {
    isochrone_tier_options options = options_of(group_pages == 1 ? 0 : 2, 2 * group_pages, flags);
    WANT(isochrone_tier_kind_create(&options, &kind), ISOCHRONE_OK, "");
    if (failed) return failed;
    void *aligned = isochrone_tier_kind_memalign(kind, (size_t)2 << 20, PAGE);
    WANT(aligned != NULL && (uintptr_t)aligned % ((size_t)2 << 20) == 0, 1, "");
    WANT(isochrone_tier_kind_free(kind, aligned), ISOCHRONE_OK, "");
    at_once();
    refused();
    if (has_forks) forked();
    isochrone_tier_kind_destroy(kind);
  }
  return failed;
}
