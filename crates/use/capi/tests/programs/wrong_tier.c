/* What is refused of memory larger than fast memory, with which number and words; a worker that is killed. */
#define _DEFAULT_SOURCE
#include "want.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#ifdef __aarch64__
enum { LONG_ADDRESSES = 1 };
#else
enum { LONG_ADDRESSES = 0 };
#endif

static uint64_t nothing(uint32_t worker, uint32_t workers, void *argument) {
  (void)argument;
  return worker + workers;
}

static uint64_t refused_inside(uint32_t worker, uint32_t workers, void *argument) {
  isochrone_tier_options *options = argument;
  isochrone_tier_array *array;
  void *address;
  char *piece = malloc_global(8 * 4096), other = 0;
  double sum = 0;
  (void)worker, (void)workers;
  WANT(piece == NULL, 0, "");
  WANT(malloc_global(options->area_bytes) == NULL, 1, "in one piece");
  WANT(isochrone_tier_run(options, nothing, NULL, NULL), ISOCHRONE_ARGUMENT, "at a time");
  WANT(isochrone_tier_map(options, &array, &address), ISOCHRONE_ARGUMENT, "at a time");
  WANT(isochrone_tier_pin(&other, 1), ISOCHRONE_ARGUMENT, "outside");
  WANT(isochrone_tier_pin(piece, SIZE_MAX), ISOCHRONE_ARGUMENT, "outside");
  WANT(isochrone_tier_pin(piece, options->area_bytes + 1), ISOCHRONE_ARGUMENT, "outside");
  WANT(isochrone_tier_pin(piece, 8 * 4096), ISOCHRONE_MEMORY, "pinned");
  WANT(isochrone_tier_pin(piece, 4096), ISOCHRONE_OK, "");
  WANT(isochrone_tier_unpin(piece, 4096), ISOCHRONE_OK, "");
  WANT(isochrone_tier_unpin(piece, 4096), ISOCHRONE_ARGUMENT, "no pin");
  WANT(isochrone_tier_advise(piece, 4096, 3), ISOCHRONE_ARGUMENT, "advice");
  WANT(isochrone_tier_count(NULL), ISOCHRONE_ARGUMENT, "no room");
  memset(piece, 1, 8 * 4096);
  isochrone_tier_statistics counts = {.size = sizeof counts};
  WANT(isochrone_tier_count(&counts), ISOCHRONE_OK, "");
  WANT(counts.size == sizeof counts && counts.group_pages == 1 && counts.left > 0, 1, "");
  WANT(counts.left_bytes == counts.left * 4096 && counts.advice[0] == '\0', 1, "");
  WANT(isochrone_tier_sum(1.0, NULL), ISOCHRONE_ARGUMENT, "sum");
  WANT(isochrone_tier_sum(1.5, &sum), ISOCHRONE_OK, "");
  WANT(sum == 1.5, 1, "");
  WANT(free_global(piece + 4096), ISOCHRONE_ARGUMENT, "begins");
  WANT(free_global(piece), ISOCHRONE_OK, "");
  WANT(free_global(piece), ISOCHRONE_ARGUMENT, "begins");
  WANT(free_global(NULL), ISOCHRONE_OK, "");
  return (uint64_t)failed;
}

/* Worker 1 is killed; worker 0 is told and does not wait for ever. */
static uint64_t killed(uint32_t worker, uint32_t workers, void *argument) {
  (void)workers, (void)argument;
  if (worker == 1) raise(SIGKILL);
  WANT(isochrone_tier_barrier(), ISOCHRONE_GONE, "worker 1");
  _exit(failed);
}

int main(void) {
  isochrone_tier_options options = {0}, odd;
  isochrone_tier_array *array;
  void *address;
  uint64_t values[2] = {9, 9};
  options.area_bytes = 64 * 4096;
  options.fast_bytes = 4 * 4096;

  WANT(malloc_global(1) == NULL, 1, "not in a worker");
  WANT(isochrone_tier_barrier(), ISOCHRONE_ARGUMENT, "not in a worker");
  WANT(isochrone_tier_run(NULL, nothing, NULL, NULL), ISOCHRONE_ARGUMENT, "no size");
  WANT(isochrone_tier_run(&options, NULL, NULL, NULL), ISOCHRONE_ARGUMENT, "function");
  odd = options, odd.flags = 64;
  WANT(isochrone_tier_run(&odd, nothing, NULL, NULL), ISOCHRONE_ARGUMENT, "flags");
  odd = options, odd.area_bytes = 0;
  WANT(isochrone_tier_run(&odd, nothing, NULL, NULL), ISOCHRONE_ARGUMENT, "area_bytes");
  WANT(isochrone_tier_map(&odd, &array, &address), ISOCHRONE_ARGUMENT, "area_bytes");
  odd.far = ISOCHRONE_FAR_COMPRESSED;
  WANT(isochrone_tier_map(&odd, &array, &address), ISOCHRONE_ARGUMENT, "area_bytes");
  odd = options, odd.size = 7;
  WANT(isochrone_tier_run(&odd, nothing, NULL, NULL), ISOCHRONE_ARGUMENT, "sizeof");
  odd = options, odd.reserved[3] = 1;
  WANT(isochrone_tier_run(&odd, nothing, NULL, NULL), ISOCHRONE_ARGUMENT, "flags");
  odd = options, odd.group_pages = 3;
  WANT(isochrone_tier_run(&odd, nothing, NULL, NULL), ISOCHRONE_ARGUMENT, "pages");
  odd = options, odd.workers = 70000;
  WANT(isochrone_tier_run(&odd, nothing, NULL, NULL), ISOCHRONE_ARGUMENT, "70000");
  odd = options, odd.workers = 3000000000u;
  WANT(isochrone_tier_run(&odd, nothing, NULL, NULL), ISOCHRONE_ARGUMENT, "8191");
  odd = options, odd.workers = 8192;
  WANT(isochrone_tier_run(&odd, nothing, NULL, NULL), ISOCHRONE_ARGUMENT, "8191");
  odd = options, odd.movers = UINT32_MAX;
  WANT(isochrone_tier_run(&odd, nothing, NULL, NULL), ISOCHRONE_ARGUMENT, "8191");
  odd = options, odd.area_bytes = odd.fast_bytes = UINT64_MAX >> 17;
  /* No room among addresses of 47 bits; among 48 there may be, and then the groups are too many. */
  for (odd.far = 0; odd.far < 3; odd.far += 2) {
    int status = isochrone_tier_run(&odd, nothing, NULL, NULL);
    WANT(status == ISOCHRONE_SYSTEM || (LONG_ADDRESSES && status == ISOCHRONE_ARGUMENT), 1, "");
  }
  odd = options, odd.group_pages = UINT32_MAX;
  WANT(isochrone_tier_run(&odd, nothing, NULL, NULL), ISOCHRONE_ARGUMENT, "pages");
  odd = options, odd.policy = 4;
  WANT(isochrone_tier_run(&odd, nothing, NULL, NULL), ISOCHRONE_ARGUMENT, "policy");
  odd = options, odd.far = 4;
  WANT(isochrone_tier_run(&odd, nothing, NULL, NULL), ISOCHRONE_ARGUMENT, "far tier");
  odd = options, odd.far = ISOCHRONE_FAR_FILE;
  WANT(isochrone_tier_run(&odd, nothing, NULL, NULL), ISOCHRONE_ARGUMENT, "folder");
  odd.folder = "/nowhere at all";
  WANT(isochrone_tier_run(&odd, nothing, NULL, NULL), ISOCHRONE_SYSTEM, "nowhere at all");
  odd = options, odd.area_bytes = UINT64_MAX;
  WANT(isochrone_tier_run(&odd, nothing, NULL, NULL), ISOCHRONE_ARGUMENT, "addresses");

  WANT(isochrone_tier_run(&options, refused_inside, &options, values), ISOCHRONE_OK, "");
  WANT((int)values[0], 0, "");
  options.far = ISOCHRONE_FAR_COMPRESSED, options.workers = 2;
  WANT(isochrone_tier_run(&options, nothing, NULL, values), ISOCHRONE_OK, "");
  WANT(values[0] == 2 && values[1] == 3, 1, "");
  WANT(isochrone_tier_run(&options, killed, NULL, NULL), ISOCHRONE_GONE, "worker 0 ended with code 0");

  WANT(isochrone_tier_map(&options, NULL, &address), ISOCHRONE_ARGUMENT, "no room");
  WANT(isochrone_tier_map(&options, &array, &address), ISOCHRONE_OK, "");
  WANT(isochrone_tier_array_pin(array, (char *)address + 1, 64 * 4096), ISOCHRONE_ARGUMENT, "outside");
  WANT(isochrone_tier_array_pin(array, address, 64 * 4096), ISOCHRONE_MEMORY, "pinned");
  WANT(isochrone_tier_array_count(array, NULL), ISOCHRONE_ARGUMENT, "no room");
  WANT(isochrone_tier_array_count(NULL, NULL), ISOCHRONE_ARGUMENT, "null");
  WANT(isochrone_tier_array_advise(array, address, 4096, 9), ISOCHRONE_ARGUMENT, "advice");
  WANT(isochrone_tier_array_unpin(NULL, address, 1), ISOCHRONE_ARGUMENT, "null");
  WANT(isochrone_tier_array_unpin(array, address, 1), ISOCHRONE_ARGUMENT, "no pin");
  isochrone_tier_unmap(array);
  isochrone_tier_unmap(NULL);
  WANT(isochrone_tier_map(&options, &array, &address), ISOCHRONE_OK, "");
  isochrone_tier_unmap(array);
  return failed;
}
