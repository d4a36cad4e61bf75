/*
 * Heat flows along a rod: a stencil by blocks, each step of each block a task, no barrier between steps.
 *
 *   cc -pthread tasks.c $(pkg-config --cflags --libs isochrone) -o tasks
 *   ./tasks threads 2
 *   ./tasks processes 2
 *
 * The result is compared with that of one loop; prints one line and ends with 0 if all was right.
 */
#include <isochrone.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BLOCKS = 24, CELLS = 512, STEPS = 40, ALL = BLOCKS * CELLS };
/* Kernels, by their places in the list. */
enum { SET, STEP, SUM, KERNELS };

/* Arguments: plain, at most 64 bytes. */
typedef struct {
  uint64_t first, cells;
} block;

/* Calls a function of the library; where it fails, says why and returns. */
#define TRY(call)                                                                                  \
  do {                                                                                             \
    int status_ = (call);                                                                          \
    if (status_ != ISOCHRONE_OK) {                                                                 \
      fprintf(stderr, "%s: %d: %s\n", #call, status_, isochrone_error());                          \
      return 1;                                                                                    \
    }                                                                                              \
  } while (0)

/* The first task to touch a block: its memory lies where this task runs. */
static int set(isochrone_task *task, const void *arguments, void *const *ranges) {
  const block *b = arguments;
  double *cells = ranges[0];
  for (uint64_t i = 0; i < b->cells; i++) cells[i] = b->first == 0 ? 1.0 : 0.0;
  (void)task;
  return 0;
}

static double flow(const double *old, uint64_t first, uint64_t cell) {
  double left = old[(cell > 0 ? cell - 1 : 0) - first];
  double right = old[(cell + 1 < ALL ? cell + 1 : ALL - 1) - first];
  return 0.5 * old[cell - first] + 0.25 * (left + right);
}

/* One step of one block: reads it and a cell on either side, writes its next state. */
static int step(isochrone_task *task, const void *arguments, void *const *ranges) {
  const block *b = arguments;
  const double *old = ranges[0];
  double *new = ranges[1];
  uint64_t first = b->first > 0 ? b->first - 1 : 0;
  for (uint64_t i = 0; i < b->cells; i++) new[i] = flow(old, first, b->first + i);
  (void)task;
  return 0;
}

/* Adds a block to one number; in any order. */
static int sum(isochrone_task *task, const void *arguments, void *const *ranges) {
  const block *b = arguments;
  const double *cells = ranges[0];
  double *heat = ranges[1], mine = 0.0;
  for (uint64_t i = 0; i < b->cells; i++) mine += cells[i];
  if (mine < 0.0) return isochrone_task_fail(task, "heat below zero");
  *heat += mine;
  return 0;
}

/* Bytes of some cells. */
static isochrone_range cells(uint32_t data, uint32_t mode, uint64_t first, uint64_t count) {
  isochrone_range range = {data, mode, first * sizeof(double), count * sizeof(double)};
  return range;
}

static int run(isochrone_tasks *tasks, double *wanted) {
  uint32_t rods[2], heat;
  TRY(isochrone_tasks_data(tasks, ALL * sizeof(double), &rods[0]));
  TRY(isochrone_tasks_data(tasks, ALL * sizeof(double), &rods[1]));
  TRY(isochrone_tasks_data(tasks, sizeof(double), &heat));
  for (uint64_t b = 0; b < BLOCKS; b++) {
    block mine = {b * CELLS, CELLS};
    isochrone_range range = cells(rods[0], ISOCHRONE_OUT, b * CELLS, CELLS);
    TRY(isochrone_tasks_spawn(tasks, SET, 0, &mine, sizeof mine, &range, 1));
  }
  for (int s = 0; s < STEPS; s++)
    for (uint64_t b = 0; b < BLOCKS; b++) {
      block mine = {b * CELLS, CELLS};
      uint64_t first = b > 0 ? b * CELLS - 1 : 0, end = b + 1 < BLOCKS ? (b + 1) * CELLS + 1 : ALL;
      isochrone_range ranges[2] = {cells(rods[s % 2], ISOCHRONE_IN, first, end - first),
                                   cells(rods[(s + 1) % 2], ISOCHRONE_OUT, b * CELLS, CELLS)};
      TRY(isochrone_tasks_spawn(tasks, STEP, 0, &mine, sizeof mine, ranges, 2));
    }
  for (uint64_t b = 0; b < BLOCKS; b++) {
    block mine = {b * CELLS, CELLS};
    isochrone_range ranges[2] = {cells(rods[STEPS % 2], ISOCHRONE_IN, b * CELLS, CELLS),
                                 cells(heat, ISOCHRONE_COMMUTATIVE, 0, 1)};
    TRY(isochrone_tasks_spawn(tasks, SUM, 1, &mine, sizeof mine, ranges, 2));
  }
  /* Only what writes these bytes is waited for. */
  const void *at = NULL;
  TRY(isochrone_tasks_read(tasks, rods[STEPS % 2], 0, ALL * sizeof(double), &at));
  if (memcmp(at, wanted, ALL * sizeof(double)) != 0) {
    fprintf(stderr, "the rod is not as it should be\n");
    return 1;
  }
  /* The first failure of a task comes out here. */
  TRY(isochrone_tasks_wait(tasks));
  TRY(isochrone_tasks_read(tasks, heat, 0, sizeof(double), &at));
  double found, difference;
  memcpy(&found, at, sizeof found);
  difference = found - CELLS;
  return difference > -1e-6 && difference < 1e-6 ? 0 : 1;
}

int main(int argc, char **argv) {
  static double rods[2][ALL];
  for (int i = 0; i < CELLS; i++) rods[0][i] = 1.0;
  for (int s = 0; s < STEPS; s++)
    for (uint64_t i = 0; i < ALL; i++) rods[(s + 1) % 2][i] = flow(rods[s % 2], 0, i);

  static const isochrone_kernel kernels[KERNELS] = {{"set", set}, {"step", step}, {"sum", sum}};
  isochrone_tasks_options options = {.workers = 2};
  if (argc > 1 && strcmp(argv[1], "processes") == 0) options.flags |= ISOCHRONE_TASKS_PROCESSES;
  if (argc > 2) options.workers = (uint32_t)strtoul(argv[2], NULL, 10);
  if (argc > 3) options.regime = argv[3];
  isochrone_tasks *tasks = NULL;
  TRY(isochrone_tasks_start(&options, kernels, KERNELS, &tasks));
  int failed = run(tasks, rods[STEPS % 2]);
  isochrone_tasks_counts counts = {.size = sizeof counts};
  TRY(isochrone_tasks_report(tasks, &counts));
  uint32_t workers = isochrone_tasks_workers(tasks);
  isochrone_tasks_end(tasks);
  if (!failed)
    printf("libisochrone %s: %u workers, %lu tasks, all as it should be\n", isochrone_version(),
           (unsigned)workers, (unsigned long)counts.tasks);
  return failed;
}
