/* For ThreadSanitizer. Argument: "race" for two tasks that write one word which neither declares, on two workers at
   once; else all is declared, in each way that there is: in order, commutative, reduced, by tasks of tasks, and by the
   program in between. */
#include "want.h"

enum { ADD, PARENT, REDUCE, UNDECLARED, KERNELS, TIMES = 50 };

static volatile long undeclared;
static int begun;

static int add(isochrone_task *task, const void *arguments, void *const *ranges) {
  (void)task;
  *(int64_t *)ranges[0] += *(const int64_t *)arguments;
  return 0;
}

static int parent(isochrone_task *task, const void *arguments, void *const *ranges) {
  int64_t one = 1;
  uint32_t data = *(const uint32_t *)arguments;
  int64_t *cells = ranges[0];
  cells[1] = 5;
  for (uint64_t cell = 0; cell < 2; cell++) {
    isochrone_range range = {data, ISOCHRONE_INOUT, cell * 8, 8};
    if (isochrone_task_spawn(task, ADD, 0, &one, sizeof one, &range, 1) != ISOCHRONE_OK) return 1;
  }
  if (isochrone_task_wait(task) != ISOCHRONE_OK || cells[1] != 6) return 2;
  cells[0] += 1;
  return 0;
}

static int reduce(isochrone_task *task, const void *arguments, void *const *ranges) {
  int64_t *own = NULL;
  (void)arguments, (void)ranges;
  if (isochrone_task_reduce(task, 0, ISOCHRONE_INT64, (void **)&own) != ISOCHRONE_OK) return 1;
  own[0] += 1;
  return 0;
}

static int racing(isochrone_task *task, const void *arguments, void *const *ranges) {
  (void)task, (void)arguments, (void)ranges;
  /* Both are under way, which orders nothing. */
  __atomic_fetch_add(&begun, 1, __ATOMIC_RELAXED);
  while (__atomic_load_n(&begun, __ATOMIC_RELAXED) < 2) continue;
  /* Many times: ThreadSanitizer misses two accesses that its threads look up at the same moment. */
  for (int i = 0; i < 1000; i++) undeclared += 1;
  return 0;
}

int main(int count, char **arguments) {
  static const isochrone_kernel kernels[] = {
      {"add", add}, {"parent", parent}, {"reduce", reduce}, {"racing", racing}};
  isochrone_tasks_options options = {.size = sizeof options, .workers = 2};
  isochrone_tasks *tasks = NULL;
  uint32_t data = 0;
  int64_t one = 1;
  void *cells = NULL;
  const void *sums = NULL;
  WANT(isochrone_tasks_start(&options, kernels, KERNELS, &tasks), ISOCHRONE_OK, "");
  WANT(isochrone_tasks_data(tasks, 32, &data), ISOCHRONE_OK, "");
  if (count > 1 && strcmp(arguments[1], "race") == 0) {
    for (int i = 0; i < 2; i++)
      WANT(isochrone_tasks_spawn(tasks, UNDECLARED, 0, NULL, 0, NULL, 0), ISOCHRONE_OK, "");
    WANT(isochrone_tasks_end(tasks), ISOCHRONE_OK, "");
    return failed;
  }
  WANT(isochrone_tasks_write(tasks, data, 0, 32, &cells), ISOCHRONE_OK, "");
  for (int i = 0; i < 4; i++) ((int64_t *)cells)[i] = 0;
  isochrone_range both = {data, ISOCHRONE_INOUT, 0, 16}, any = {data, ISOCHRONE_COMMUTATIVE, 16, 8},
                  sum = {data, ISOCHRONE_REDUCE_SUM, 24, 8}, first = {data, ISOCHRONE_INOUT, 0, 8};
  for (int i = 0; i < TIMES; i++) {
    WANT(isochrone_tasks_spawn(tasks, PARENT, 0, &data, sizeof data, &both, 1), ISOCHRONE_OK, "");
    WANT(isochrone_tasks_spawn(tasks, ADD, 0, &one, sizeof one, &any, 1), ISOCHRONE_OK, "");
    WANT(isochrone_tasks_spawn(tasks, REDUCE, 0, NULL, 0, &sum, 1), ISOCHRONE_OK, "");
    WANT(isochrone_tasks_spawn(tasks, ADD, 0, &one, sizeof one, &first, 1), ISOCHRONE_OK, "");
    if (i % 10 == 9) {
      WANT(isochrone_tasks_write(tasks, data, 0, 8, &cells), ISOCHRONE_OK, "");
      *(int64_t *)cells += 1;
    }
  }
  WANT(isochrone_tasks_read(tasks, data, 0, 32, &sums), ISOCHRONE_OK, "");
  const int64_t *all = sums;
  WANT(all[0] == 3 * TIMES + TIMES / 10 && all[1] == 6 && all[2] == TIMES && all[3] == TIMES, 1, "");
  WANT(isochrone_tasks_end(tasks), ISOCHRONE_OK, "");
  return failed;
}
