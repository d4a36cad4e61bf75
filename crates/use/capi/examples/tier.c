/*
 * Heat in a plate whose two grids are twice as large as fast memory: between processes, each with page tables of
 * its own, or between threads; and one large array without a team.
 *
 *   cc -pthread tier.c $(pkg-config --cflags --libs isochrone) -o tier
 *   ./tier processes 2
 *   ./tier threads 4 /var/tmp
 *
 * With a folder pages go to a file there. Prints one line and ends with 0 if every bit is that of plain memory.
 */
#define _DEFAULT_SOURCE
#include <isochrone.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { ROWS = 128, COLUMNS = 512, SWEEPS = 4 };

/* Calls a function of the library; where it fails, says why and returns. */
#define TRY(call)                                                                                  \
  do {                                                                                             \
    int status_ = (call);                                                                          \
    if (status_ != ISOCHRONE_OK) {                                                                 \
      fprintf(stderr, "%s: %d: %s\n", #call, status_, isochrone_error());                          \
      return 1;                                                                                    \
    }                                                                                              \
  } while (0)

/* Heap and globals are copies in each process, so addresses travel in memory that was mapped shared before. */
struct shared {
  double *from, *to;
};

static void fill(double *grid, size_t first, size_t last) {
  for (size_t at = first * COLUMNS; at < last * COLUMNS; at++) grid[at] = (double)(at % 1009);
}

/* The mean of nine points for some rows; the rim stays. */
static void sweep(const double *from, double *to, size_t first, size_t last) {
  for (size_t row = first; row < last; row++) {
    if (row == 0 || row == ROWS - 1) {
      memcpy(&to[row * COLUMNS], &from[row * COLUMNS], COLUMNS * sizeof *to);
      continue;
    }
    for (size_t column = 0; column < COLUMNS; column++) {
      size_t at = row * COLUMNS + column;
      double sum = 0;
      if (column == 0 || column == COLUMNS - 1) {
        to[at] = from[at];
        continue;
      }
      for (size_t near = at - COLUMNS; near <= at + COLUMNS; near += COLUMNS)
        sum += from[near - 1] + from[near] + from[near + 1];
      to[at] = sum / 9;
    }
  }
}

/* What a worker does: its band of rows, in step with the others. Returns 0 if all went well. */
static uint64_t heat(uint32_t worker, uint32_t workers, void *argument) {
  struct shared *shared = argument;
  size_t bytes = ROWS * COLUMNS * sizeof(double);
  size_t first = ROWS * worker / workers, last = ROWS * (worker + 1) / workers;
  if (worker == 0) {
    shared->from = malloc_global(bytes);
    shared->to = malloc_global(bytes);
  }
  TRY(isochrone_tier_barrier());
  double *from = shared->from, *to = shared->to;
  if (from == NULL || to == NULL) return 2;
  fill(from, first, last);
  for (int round = 0; round < SWEEPS; round++) {
    TRY(isochrone_tier_barrier());
    sweep(from, to, first, last);
    double *swap = from;
    from = to, to = swap;
  }
  TRY(isochrone_tier_barrier());

  /* What the last sweep read is worth nothing any more. */
  if (worker == 0) TRY(free_global(to));
  double mine = 0, all = 0;
  for (size_t at = first * COLUMNS; at < last * COLUMNS; at++) mine += from[at];
  TRY(isochrone_tier_sum(mine, &all));
  if (worker != 0) return 0;

  /* The one that compares takes all of it: a system call needs its pages in fast memory. */
  double *right = malloc(bytes), *other = malloc(bytes);
  if (right == NULL || other == NULL) return 3;
  fill(right, 0, ROWS);
  for (int round = 0; round < SWEEPS; round++) {
    sweep(right, other, 0, ROWS);
    double *swap = right;
    right = other, other = swap;
  }
  uint64_t wrong = memcmp(right, from, bytes) == 0 ? 0 : 4;
  int ends[2];
  TRY(isochrone_tier_pin(from, 4096));
  if (pipe(ends) != 0 || write(ends[1], from, 4096) != 4096) wrong = 5;
  TRY(isochrone_tier_unpin(from, 4096));
  free(right);
  free(other);
  return all > 0 ? wrong : 6;
}

static int team(isochrone_tier_options options) {
  uint64_t *values = calloc(options.workers, sizeof *values);
  struct shared *shared =
      mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (values == NULL || shared == MAP_FAILED) return 1;
  TRY(isochrone_tier_run(&options, heat, shared, values));
  int failed = 0;
  for (uint32_t worker = 0; worker < options.workers; worker++)
    if (values[worker] != 0) failed = fprintf(stderr, "worker %u: %d\n", worker, (int)values[worker]);
  free(values);
  return failed;
}

static int array(isochrone_tier_options options) {
  isochrone_tier_array *array;
  void *first;
  TRY(isochrone_tier_map(&options, &array, &first));
  double *grid = first;
  fill(grid, 0, ROWS);
  sweep(grid, grid + ROWS * COLUMNS, 0, ROWS);
  int wrong = grid[ROWS * COLUMNS / 2] != (double)(ROWS * COLUMNS / 2 % 1009);
  TRY(isochrone_tier_array_advise(array, grid, ROWS * COLUMNS * sizeof *grid, ISOCHRONE_DISCARD));
  wrong |= grid[ROWS * COLUMNS / 2] != 0;
  isochrone_tier_unmap(array);
  return wrong;
}

int main(int count, char **arguments) {
  isochrone_tier_options options = {0};
  options.area_bytes = 2 * ROWS * COLUMNS * sizeof(double);
  options.fast_bytes = options.area_bytes / 2;
  options.workers = count > 2 ? (uint32_t)strtoul(arguments[2], NULL, 10) : 2;
  if (count > 3) options.far = ISOCHRONE_FAR_FILE, options.folder = arguments[3];
  if (count > 1 && strcmp(arguments[1], "threads") == 0) options.flags |= ISOCHRONE_TIER_THREADS;
  if (count > 1 && strcmp(arguments[1], "host") == 0) options.flags |= ISOCHRONE_TIER_CALLER_WORKS;
  if (team(options) != 0 || array(options) != 0) return 1;
  printf("libisochrone %s: %u workers, every bit as in plain memory\n", isochrone_version(), options.workers);
  return 0;
}
