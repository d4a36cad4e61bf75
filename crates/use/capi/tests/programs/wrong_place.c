/* What is refused of memory near cores, with which number and words; what a library that is older or newer than the
   program does with its structures; threads that free for each other; a child of fork. ISOCHRONE_ATLAS names an atlas
   by which everything can be placed. */
#define _GNU_SOURCE
#include "want.h"

#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

enum { OBJECTS = 5000 };

static isochrone_placement *placement;
static void *objects[OBJECTS];

static isochrone_place_options forced(void) {
  isochrone_place_options options;
  memset(&options, 0, sizeof options);
  options.size = sizeof options;
  options.flags = ISOCHRONE_PLACE_FORCE;
  return options;
}

static void refused_options(void) {
  isochrone_placement *none = NULL;
  uint32_t core = 70000;
  isochrone_place_options odd = forced();
  WANT(isochrone_place_open(&odd, NULL), ISOCHRONE_ARGUMENT, "null");
  odd.size = 3;
  WANT(isochrone_place_open(&odd, &none), ISOCHRONE_ARGUMENT, "3 bytes");
  odd = forced(), odd.flags = 64;
  WANT(isochrone_place_open(&odd, &none), ISOCHRONE_ARGUMENT, "flags");
  odd = forced(), odd.reserved[3] = 1;
  WANT(isochrone_place_open(&odd, &none), ISOCHRONE_ARGUMENT, "set what is unused to 0");
  odd = forced(), odd.mix = 3;
  WANT(isochrone_place_open(&odd, &none), ISOCHRONE_ARGUMENT, "3 is no level");
  odd = forced(), odd.near_share = 1.5;
  WANT(isochrone_place_open(&odd, &none), ISOCHRONE_ARGUMENT, "1.5");
  odd = forced(), odd.near_share = NAN;
  WANT(isochrone_place_open(&odd, &none), ISOCHRONE_ARGUMENT, "near");
  odd = forced(), odd.prepare_seconds = -1;
  WANT(isochrone_place_open(&odd, &none), ISOCHRONE_ARGUMENT, "-1");
  odd = forced(), odd.cores_count = 2;
  WANT(isochrone_place_open(&odd, &none), ISOCHRONE_ARGUMENT, "cores");
  odd = forced(), odd.cores = &core, odd.cores_count = 1;
  WANT(isochrone_place_open(&odd, &none), ISOCHRONE_ARGUMENT, "core 70000");
  WANT(none == NULL, 1, "");
}

/* Programs that were compiled with a shorter structure, and with a longer one. */
static void other_structures(void) {
  struct {
    isochrone_place_options known;
    uint64_t later;
  } longer;
  memset(&longer, 0, sizeof longer);
  longer.known = forced();
  longer.known.size = sizeof longer;
  isochrone_placement *other = NULL;
  WANT(isochrone_place_open(&longer.known, &other), ISOCHRONE_OK, "");
  WANT(isochrone_place_why_not(other) == NULL, 1, "");
  isochrone_place_close(other), other = NULL;
  longer.later = 1;
  WANT(isochrone_place_open(&longer.known, &other), ISOCHRONE_ARGUMENT, "does not know");
  isochrone_place_options shorter = forced();
  shorter.size = offsetof(isochrone_place_options, atlas);
  shorter.atlas = "/no/such/file"; /* beyond what it says it has */
  WANT(isochrone_place_open(&shorter, &other), ISOCHRONE_OK, "");
  isochrone_place_close(other);
  isochrone_place_close(NULL);

  isochrone_place_counts counts;
  memset(&counts, 0xff, sizeof counts);
  counts.size = offsetof(isochrone_place_counts, placed_bytes);
  WANT(isochrone_place_statistics(placement, &counts), ISOCHRONE_OK, "");
  WANT(counts.placed_objects == 0 && counts.placed_bytes == UINT64_MAX, 1, "");
  counts.size = 0;
  WANT(isochrone_place_statistics(placement, &counts), ISOCHRONE_ARGUMENT, "0 bytes");
  WANT(isochrone_place_statistics(placement, NULL), ISOCHRONE_ARGUMENT, "null");
}

static void refused_calls(void) {
  isochrone_place_distances far;
  int local = 0;
  WANT(isochrone_place_alloc(NULL, 8, 0) == NULL, 1, "");
  WANT(isochrone_place_free(NULL, &local), ISOCHRONE_ARGUMENT, "null");
  WANT(isochrone_place_why_not(NULL) != NULL, 1, "");
  WANT(isochrone_place_alloc(placement, 8, 24) == NULL, 1, "");
  WANT(strstr(isochrone_error(), "power of two") != NULL, 1, "");
  WANT(isochrone_place_alloc(placement, SIZE_MAX / 2, 0) == NULL, 1, "");
  WANT(isochrone_place_alloc_near(placement, 70000, 8, 0) == NULL, 1, "");
  WANT(isochrone_place_prepare(placement, 1, -2, NULL), ISOCHRONE_ARGUMENT, "-2");

  char *object = isochrone_place_alloc(placement, 100, 0), *large = isochrone_place_alloc(placement, 1000, 4096);
  WANT(object != NULL && (uintptr_t)object % 16 == 0 && (uintptr_t)large % 4096 == 0, 1, "");
  WANT(isochrone_place_distance(placement, object, 0, &far), ISOCHRONE_OK, "");
  WANT(far.cache_ns > 0 && far.memory_ns > 0 && far.reading == ISOCHRONE_PREDICTED, 1, "");
  WANT(isochrone_place_distance(placement, object, 0, NULL), ISOCHRONE_ARGUMENT, "null");
  WANT(isochrone_place_distance(placement, large, 0, &far), ISOCHRONE_ARGUMENT, "no object");
  WANT(isochrone_place_distance(placement, &local, 0, &far), ISOCHRONE_ARGUMENT, "no object");
  WANT(isochrone_place_free(placement, object + 16), ISOCHRONE_ARGUMENT, "invalid pointer");
  WANT(isochrone_place_free(placement, object), ISOCHRONE_OK, "");
  WANT(isochrone_place_free(placement, object), ISOCHRONE_ARGUMENT, "double free");
  WANT(isochrone_place_distance(placement, object, 0, &far), ISOCHRONE_ARGUMENT, "freed");
  WANT(isochrone_place_free(placement, large), ISOCHRONE_OK, "");
  WANT(isochrone_place_free(placement, NULL), ISOCHRONE_OK, "");
}

static void *free_half(void *from) {
  for (size_t i = (size_t)(uintptr_t)from; i < OBJECTS; i += 2)
    if (isochrone_place_free(placement, objects[i]) != ISOCHRONE_OK) failed = 1;
  return NULL;
}

static void across_threads(void) {
  pthread_t threads[2];
  for (int i = 0; i < OBJECTS; i++) objects[i] = isochrone_place_alloc(placement, (size_t)i % 256, 0);
  for (int i = 0; i < 2; i++) pthread_create(&threads[i], NULL, free_half, (void *)(uintptr_t)i);
  for (int i = 0; i < 2; i++) pthread_join(threads[i], NULL);
}

static void child_of_fork(void) {
  int *object = isochrone_place_alloc(placement, sizeof *object, 0);
  *object = 7;
  pid_t child = fork();
  if (child == 0) {
    const char *why = isochrone_place_why_not(placement);
    int *own = isochrone_place_alloc(placement, sizeof *own, 0);
    isochrone_place_distances far;
    int right = why != NULL && strstr(why, "fork") != NULL && *object == 7 && own != NULL &&
                isochrone_place_distance(placement, own, 0, &far) == ISOCHRONE_ARGUMENT &&
                isochrone_place_free(placement, own) == ISOCHRONE_OK &&
                isochrone_place_free(placement, object) == ISOCHRONE_OK;
    _exit(right ? 0 : 1);
  }
  int status = 1;
  WANT(waitpid(child, &status, 0) == child && status == 0, 1, "");
  WANT(isochrone_place_why_not(placement) == NULL && isochrone_place_free(placement, object) == ISOCHRONE_OK, 1, "");
}

int main(void) {
  refused_options();
  isochrone_place_options options = forced();
  WANT(isochrone_place_open(&options, &placement), ISOCHRONE_OK, "");
  if (isochrone_place_why_not(placement) != NULL) {
    fprintf(stderr, "%s\n", isochrone_place_why_not(placement));
    return 1;
  }
  other_structures();
  refused_calls();
  across_threads();
  child_of_fork();
  isochrone_place_counts counts = {.size = sizeof counts};
  WANT(isochrone_place_statistics(placement, &counts), ISOCHRONE_OK, "");
  WANT(counts.placed_objects == counts.freed_objects && counts.placed_objects > OBJECTS / 2, 1, "");
  isochrone_place_close(placement);
  return failed;
}
