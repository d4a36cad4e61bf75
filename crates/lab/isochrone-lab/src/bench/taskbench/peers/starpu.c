/* StarPU: tasks with data handles, CPU workers only. Its registering thread runs no tasks; so a worker for each
 * core is asked for, and the registering thread shares a core with one of them. */
#include "common.h"

#include <starpu.h>

static struct count counts[MOST_THREADS];
static const struct graph *current;

struct node {
  int step, point;
};

static void run_node(void *buffers[], void *argument) {
  (void)buffers;
  const struct node *n = argument;
  task(current, n->step, n->point);
}

static void run_nothing(void *buffers[], void *argument) {
  (void)buffers;
  (void)argument;
  counts[starpu_worker_get_id() & (MOST_THREADS - 1)].tasks++;
}

static struct starpu_codelet node_codelet = {
    .cpu_funcs = {run_node}, .nbuffers = STARPU_VARIABLE_NBUFFERS, .name = "point"};
static struct starpu_codelet empty_codelet = {
    .cpu_funcs = {run_nothing}, .nbuffers = STARPU_VARIABLE_NBUFFERS, .name = "empty"};

void begin(int n) {
  struct starpu_conf conf;
  starpu_conf_init(&conf);
  conf.ncpus = n;
  conf.ncuda = conf.nopencl = 0;
  if (starpu_init(&conf) != 0) {
    fprintf(stderr, "starpu_init failed\n");
    exit(5);
  }
}

void end(void) { starpu_shutdown(); }

static void submit(struct starpu_codelet *codelet, void *argument, size_t bytes,
                   struct starpu_data_descr *data, int n) {
  struct starpu_task *t = starpu_task_create();
  t->cl = codelet;
  t->cl_arg = argument;
  t->cl_arg_size = bytes;
  t->cl_arg_free = argument != NULL;
  t->nbuffers = n;
  for (int i = 0; i < n; i++) {
    STARPU_TASK_SET_HANDLE(t, data[i].handle, i);
    STARPU_TASK_SET_MODE(t, data[i].mode, i);
  }
  if (starpu_task_submit(t) != 0) {
    fprintf(stderr, "starpu_task_submit failed\n");
    exit(5);
  }
}

void run_graph(const struct graph *g) {
  current = g;
  starpu_data_handle_t *handles = malloc((size_t)(FIELDS * g->width) * sizeof *handles);
  for (int i = 0; i < FIELDS * g->width; i++)
    starpu_variable_data_register(&handles[i], STARPU_MAIN_RAM, (uintptr_t)&g->cells[i],
                                  sizeof g->cells[i]);
  for (int step = 0; step < g->steps; step++)
    for (int point = 0; point < g->width; point++) {
      int b[MOST_BEFORE], n = before(g, step, point, b);
      struct starpu_data_descr data[MOST_BEFORE + 1];
      for (int i = 0; i < n; i++) {
        data[i].handle = handles[(step - 1) % FIELDS * g->width + b[i]];
        data[i].mode = STARPU_R;
      }
      data[n].handle = handles[step % FIELDS * g->width + point];
      /* What was there is written over; W alone would let StarPU take another copy for it. */
      data[n].mode = STARPU_RW;
      struct node *argument = malloc(sizeof *argument);
      argument->step = step;
      argument->point = point;
      submit(&node_codelet, argument, sizeof *argument, data, n + 1);
    }
  starpu_task_wait_for_all();
  for (int i = 0; i < FIELDS * g->width; i++) starpu_data_unregister(handles[i]);
  free(handles);
}

void run_empty(int ranges, uint64_t tasks) {
  static struct cell lines[LINES];
  starpu_data_handle_t handles[LINES];
  memset(counts, 0, sizeof counts);
  for (int i = 0; i < LINES; i++)
    starpu_variable_data_register(&handles[i], STARPU_MAIN_RAM, (uintptr_t)&lines[i],
                                  sizeof lines[i]);
  for (uint64_t i = 0; i < tasks; i++) {
    struct starpu_data_descr data[3];
    int l[3], n = 0;
    if (ranges) {
      lines_of(i, l);
      /* A handle may stand once in a task. */
      if (l[0] != l[2]) data[n].handle = handles[l[0]], data[n++].mode = STARPU_R;
      if (l[1] != l[2] && l[1] != l[0]) data[n].handle = handles[l[1]], data[n++].mode = STARPU_R;
      data[n].handle = handles[l[2]], data[n++].mode = STARPU_RW;
    }
    submit(&empty_codelet, NULL, 0, data, n);
  }
  starpu_task_wait_for_all();
  for (int i = 0; i < LINES; i++) starpu_data_unregister(handles[i]);
}

/* Its tasks cannot wait for tasks. */
void run_nested(uint64_t tasks) {
  (void)tasks;
  fprintf(stderr, "tasks inside of tasks cannot be waited for\n");
  exit(5);
}

/* All tasks are run by workers, and none by the thread that registers. */
double share_of_others(uint64_t tasks) {
  uint64_t all = 0;
  for (int i = 0; i < MOST_THREADS; i++) all += counts[i].tasks;
  return (double)all / (double)tasks;
}
