/* StarPU: a handle for each tile, CPU workers only, priorities on the critical path, its default scheduler. The
 * registering thread runs no tasks; so a worker for each core is asked for. */
#include "tiles.h"

#include <starpu.h>
#include <stdlib.h>

static const struct kernels *used;
static long width;
static volatile int failed;

static double *part(void *buffers[], int at) { return (double *)STARPU_VECTOR_GET_PTR(buffers[at]); }

static void run_factor(void *b[], void *unused) {
  (void)unused;
  if (used->factor(part(b, 0), width) != 0) failed = 1;
}
static void run_solve(void *b[], void *unused) {
  (void)unused;
  used->solve(part(b, 0), part(b, 1), width);
}
static void run_update_diagonal(void *b[], void *unused) {
  (void)unused;
  used->update_diagonal(part(b, 0), part(b, 1), width);
}
static void run_update(void *b[], void *unused) {
  (void)unused;
  used->update(part(b, 0), part(b, 1), part(b, 2), width);
}

static struct starpu_codelet factor = {
    .cpu_funcs = {run_factor}, .nbuffers = 1, .modes = {STARPU_RW}, .name = "factor"};
static struct starpu_codelet solve = {
    .cpu_funcs = {run_solve}, .nbuffers = 2, .modes = {STARPU_R, STARPU_RW}, .name = "solve"};
static struct starpu_codelet update_diagonal = {.cpu_funcs = {run_update_diagonal},
                                                .nbuffers = 2,
                                                .modes = {STARPU_R, STARPU_RW},
                                                .name = "update diagonal"};
static struct starpu_codelet update = {.cpu_funcs = {run_update},
                                       .nbuffers = 3,
                                       .modes = {STARPU_R, STARPU_R, STARPU_RW},
                                       .name = "update"};

int isochrone_begin(int workers) {
  struct starpu_conf conf;
  starpu_conf_init(&conf);
  conf.ncpus = workers;
  conf.ncuda = conf.nopencl = 0;
  return starpu_init(&conf);
}

static int submit(struct starpu_codelet *codelet, int priority, int n, starpu_data_handle_t *handles) {
  struct starpu_task *t = starpu_task_create();
  t->cl = codelet;
  t->priority = priority;
  for (int i = 0; i < n; i++) STARPU_TASK_SET_HANDLE(t, handles[i], i);
  return starpu_task_submit(t);
}

int isochrone_solve(double *values, long tiles, long n, const struct kernels *kernels) {
  used = kernels;
  width = n;
  failed = 0;
  long count = tiles * (tiles + 1) / 2;
  starpu_data_handle_t *handles = malloc((size_t)count * sizeof *handles);
  for (long at = 0; at < count; at++)
    starpu_vector_data_register(&handles[at], STARPU_MAIN_RAM, (uintptr_t)(values + at * n * n),
                                (uint32_t)(n * n), sizeof(double));
#define HANDLE(i, j) handles[(tile(values, tiles, n, i, j) - values) / (n * n)]
  for (long k = 0; k < tiles; k++) {
    failed |= submit(&factor, 2, 1, (starpu_data_handle_t[]){HANDLE(k, k)});
    for (long i = k + 1; i < tiles; i++)
      failed |= submit(&solve, 1, 2, (starpu_data_handle_t[]){HANDLE(k, k), HANDLE(i, k)});
    for (long i = k + 1; i < tiles; i++) {
      failed |= submit(&update_diagonal, 0, 2, (starpu_data_handle_t[]){HANDLE(i, k), HANDLE(i, i)});
      for (long j = k + 1; j < i; j++)
        failed |= submit(&update, 0, 3,
                         (starpu_data_handle_t[]){HANDLE(i, k), HANDLE(j, k), HANDLE(i, j)});
    }
  }
  starpu_task_wait_for_all();
  for (long at = 0; at < count; at++) starpu_data_unregister(handles[at]);
  free(handles);
  return failed;
}

void isochrone_end(void) { starpu_shutdown(); }
