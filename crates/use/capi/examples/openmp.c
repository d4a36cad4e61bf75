/* A program of OpenMP's tasks with `depend`, and the same by Isochrone, side by side: a wave of blocks, each of which
   needs those to its left and above it. Both must come to the same bits.

     cc -fopenmp -pthread openmp.c $(pkg-config --cflags --libs isochrone) -o openmp && ./openmp

   What changes: the place that stands for a block (`own[0]`) becomes the bytes of the block; the code of the task becomes
   a function, which gets the addresses in the order of the ranges; `parallel`, `single` and the barrier at their end
   become a start and an end. */
#include <isochrone.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BLOCKS = 12, SIDE = 48, CELLS = SIDE * SIDE, ROUNDS = 4 };
/* Blocks lie one after the other; those of row 0 and of column 0 are the border, which nobody writes. */
enum { ROW = BLOCKS + 1 };

static double *block(double *grid, int row, int column) { return grid + (size_t)(row * ROW + column) * CELLS; }

static void relax(double *own, const double *left, const double *above) {
  for (int y = 0; y < SIDE; y++)
    for (int x = 0; x < SIDE; x++) {
      double before = x > 0 ? own[y * SIDE + x - 1] : left[y * SIDE + SIDE - 1];
      double over = y > 0 ? own[(y - 1) * SIDE + x] : above[(SIDE - 1) * SIDE + x];
      own[y * SIDE + x] = 0.5 * own[y * SIDE + x] + 0.3 * before + 0.2 * over;
    }
}

static void by_openmp(double *grid) {
#pragma omp parallel
#pragma omp single
  for (int round = 0; round < ROUNDS; round++)
    for (int row = 1; row < ROW; row++)
      for (int column = 1; column < ROW; column++) {
        double *own = block(grid, row, column);
        double *left = block(grid, row, column - 1), *above = block(grid, row - 1, column);
#pragma omp task depend(in : left[0], above[0]) depend(inout : own[0]) firstprivate(own, left, above)
        relax(own, left, above);
      }
}

static int relax_task(isochrone_task *task, const void *arguments, void *const *ranges) {
  (void)task, (void)arguments;
  relax(ranges[2], ranges[0], ranges[1]);
  return 0;
}

static isochrone_range range(uint32_t data, int row, int column, uint32_t mode) {
  uint64_t bytes = CELLS * sizeof(double);
  isochrone_range range = {data, mode, (uint64_t)(row * ROW + column) * bytes, bytes};
  return range;
}

static int by_isochrone(double *grid, size_t bytes) {
  isochrone_tasks *run;
  uint32_t data;
  int status = isochrone_tasks_start(NULL, NULL, 0, &run);
  if (status != ISOCHRONE_OK) return status;
  status = isochrone_tasks_adopt(run, grid, bytes, &data);
  for (int round = 0; round < ROUNDS; round++)
    for (int row = 1; row < ROW; row++)
      for (int column = 1; column < ROW && status == ISOCHRONE_OK; column++) {
        isochrone_range uses[3] = {range(data, row, column - 1, ISOCHRONE_IN),
                                   range(data, row - 1, column, ISOCHRONE_IN),
                                   range(data, row, column, ISOCHRONE_INOUT)};
        isochrone_submission task = {
            .size = sizeof task, .function = relax_task, .name = "relax", .ranges = uses, .count = 3};
        status = isochrone_tasks_submit(run, &task, NULL);
      }
  int ended = isochrone_tasks_end(run);
  return status != ISOCHRONE_OK ? status : ended;
}

int main(void) {
  size_t cells = (size_t)ROW * ROW * CELLS, bytes = cells * sizeof(double);
  double *one = malloc(bytes), *other = malloc(bytes), *before = malloc(bytes);
  if (one == NULL || other == NULL || before == NULL) return 1;
  for (size_t cell = 0; cell < cells; cell++) before[cell] = (double)(cell * 2654435761u % 1000);
  memcpy(one, before, bytes), memcpy(other, before, bytes);
  by_openmp(one);
  if (by_isochrone(other, bytes) != ISOCHRONE_OK) {
    fprintf(stderr, "%s\n", isochrone_error());
    return 1;
  }
  int same = memcmp(one, other, bytes) == 0 && memcmp(one, before, bytes) != 0;
  printf("%d tasks, %s\n", ROUNDS * BLOCKS * BLOCKS, same ? "the same bits" : "NOT the same");
  free(one), free(other), free(before);
  return !same;
}
