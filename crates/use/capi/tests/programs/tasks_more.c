/* What may be said of a task beside its kernel's number: a function, a name, long arguments that own something, a
   handle to wait for; arrays of the program's; and tasks that are cancelled. Arguments: a file for the trace, and
   "processes" for a run on such, which ThreadSanitizer with its own thread does not allow. */
#include "want.h"

#include <stdlib.h>

enum { LONG = 1000, ARRAY = 4096 };

static int freed = 0;
static void end(void *arguments) {
  freed += 1;
  free(*(void **)arguments);
}

/* The sum of all arguments but the first, which is something of its own. */
struct long_arguments {
  int64_t *own;
  int64_t values[LONG];
};
static int add_all(isochrone_task *task, const void *arguments, void *const *ranges) {
  const struct long_arguments *all = arguments;
  (void)task;
  *(int64_t *)ranges[0] = *all->own;
  for (int i = 0; i < LONG; i++) *(int64_t *)ranges[0] += all->values[i];
  return 0;
}

static int increment(isochrone_task *task, const void *arguments, void *const *ranges) {
  (void)task, (void)arguments;
  for (int i = 0; i < ARRAY; i++) ((int32_t *)ranges[0])[i] += 1;
  return 0;
}

/* Waits for a task of its own by its handle, then for one that was registered before. */
static int waits(isochrone_task *task, const void *arguments, void *const *ranges) {
  isochrone_submission own = {.size = sizeof own, .function = increment, .name = "inner", .count = 1};
  isochrone_range range = {*(const uint32_t *)arguments, ISOCHRONE_INOUT, 0, ARRAY * 4};
  isochrone_handle handle;
  own.ranges = &range;
  int32_t before = *(int32_t *)ranges[0];
  if (isochrone_task_submit(task, &own, &handle) != ISOCHRONE_OK) return 1;
  if (isochrone_task_wait_for(task, handle) != ISOCHRONE_OK) return 2;
  return *(int32_t *)ranges[0] == before + 1 ? 0 : 3;
}

/* Runs until it is in vain. */
static int patient(isochrone_task *task, const void *arguments, void *const *ranges) {
  (void)arguments, (void)ranges;
  while (!isochrone_task_is_in_vain(task)) continue;
  return 0;
}

static int cancels(isochrone_task *task, const void *arguments, void *const *ranges) {
  (void)arguments, (void)ranges;
  return isochrone_task_cancel(task) == ISOCHRONE_OK ? 0 : 1;
}

static const isochrone_kernel kernels[] = {{"increment", increment}};

static void refused(isochrone_tasks *tasks, uint32_t data) {
  isochrone_range range = {data, ISOCHRONE_INOUT, 0, 8};
  isochrone_submission none = {.kernel = 7, .ranges = &range, .count = 1}, odd = {.function = increment, .size = 5},
                       later = {.function = increment, .reserved = {1}};
  void *own = malloc(8);
  isochrone_submission wrong = {.function = increment, .arguments = &own, .bytes = 8, .discard = end};
  isochrone_range unknown = {99, ISOCHRONE_INOUT, 0, 8};
  wrong.ranges = &unknown, wrong.count = 1;
  WANT(isochrone_tasks_submit(tasks, NULL, NULL), ISOCHRONE_ARGUMENT, "null");
  WANT(isochrone_tasks_submit(tasks, &none, NULL), ISOCHRONE_ARGUMENT, "kernel 7");
  none.name = "named";
  WANT(isochrone_tasks_submit(tasks, &none, NULL), ISOCHRONE_ARGUMENT, "no kernel 7");
  WANT(isochrone_tasks_submit(tasks, &odd, NULL), ISOCHRONE_ARGUMENT, "sizeof");
  WANT(isochrone_tasks_submit(tasks, &later, NULL), ISOCHRONE_ARGUMENT, "unused");
  WANT(isochrone_tasks_submit(tasks, &wrong, NULL), ISOCHRONE_ARGUMENT, "99");
  WANT(freed, 0, "");
  free(own);
  WANT(isochrone_tasks_adopt(tasks, NULL, 8, &data), ISOCHRONE_ARGUMENT, "null");
  WANT(isochrone_tasks_adopt(tasks, &range, 0, &data), ISOCHRONE_ARGUMENT, "byte");
  isochrone_handle nobody = {{UINT32_MAX, 3}};
  WANT(isochrone_tasks_wait_for(tasks, nobody), ISOCHRONE_OK, "");
}

static void submitted(isochrone_tasks *tasks, uint32_t sum) {
  static int32_t array[ARRAY];
  uint32_t data = 0;
  WANT(isochrone_tasks_adopt(tasks, array, sizeof array, &data), ISOCHRONE_OK, "");
  isochrone_range range = {data, ISOCHRONE_INOUT, 0, sizeof array}, word = {sum, ISOCHRONE_OUT, 0, 8};
  isochrone_submission by_number = {.size = sizeof by_number, .ranges = &range, .count = 1},
                       named = {.name = "named", .ranges = &range, .count = 1},
                       waiting = {.function = waits, .name = "waits", .arguments = &data, .bytes = 4,
                                  .ranges = &range, .count = 1};
  isochrone_handle handle;
  WANT(isochrone_tasks_submit(tasks, &by_number, NULL), ISOCHRONE_OK, "");
  WANT(isochrone_tasks_submit(tasks, &named, NULL), ISOCHRONE_OK, "");
  WANT(isochrone_tasks_submit(tasks, &waiting, &handle), ISOCHRONE_OK, "");
  WANT(isochrone_tasks_wait_for(tasks, handle), ISOCHRONE_OK, "");
  WANT(array[0] == 3 && array[ARRAY - 1] == 3, 1, "");

  struct long_arguments *all = malloc(sizeof *all);
  for (int i = 0; i < LONG; i++) all->values[i] = i;
  all->own = malloc(sizeof *all->own);
  *all->own = 1000000;
  isochrone_submission longer = {.function = add_all, .name = "add_all", .arguments = all, .bytes = sizeof *all,
                                 .ranges = &word, .count = 1, .discard = end};
  WANT(isochrone_tasks_submit(tasks, &longer, &handle), ISOCHRONE_OK, "");
  free(all);
  const void *at = NULL;
  WANT(isochrone_tasks_read(tasks, sum, 0, 8, &at), ISOCHRONE_OK, "");
  WANT(at != NULL && *(const int64_t *)at == 1000000 + LONG * (LONG - 1) / 2, 1, "");
  WANT(isochrone_tasks_wait(tasks), ISOCHRONE_OK, "");
  WANT(freed, 1, "");
  WANT(isochrone_tasks_free(tasks, data), ISOCHRONE_OK, "");
  array[0] = 4;
}

static void cancelled(isochrone_tasks *tasks, uint32_t sum) {
  isochrone_range range = {sum, ISOCHRONE_INOUT, 0, 8};
  isochrone_submission first = {.function = patient, .name = "patient", .ranges = &range, .count = 1},
                       sibling = {.function = cancels, .name = "cancels"};
  const void *at = NULL;
  for (int inside = 0; inside < 2; inside++) {
    int before = freed, count = 10;
    WANT(isochrone_tasks_submit(tasks, &first, NULL), ISOCHRONE_OK, "");
    for (int i = 0; i < count; i++) {
      void *own = malloc(8);
      isochrone_submission after = {.function = add_all, .arguments = &own, .bytes = 8, .ranges = &range, .count = 1,
                                    .discard = end};
      WANT(isochrone_tasks_submit(tasks, &after, NULL), ISOCHRONE_OK, "");
    }
    if (inside)
      WANT(isochrone_tasks_submit(tasks, &sibling, NULL), ISOCHRONE_OK, "");
    else
      WANT(isochrone_tasks_cancel(tasks), ISOCHRONE_OK, "");
    WANT(isochrone_tasks_wait(tasks), ISOCHRONE_CANCELLED, "cancelled");
    WANT(isochrone_tasks_wait(tasks), ISOCHRONE_OK, "");
    WANT(freed - before, count, "");
    WANT(isochrone_tasks_read(tasks, sum, 0, 8, &at), ISOCHRONE_FAILED, "undone");
    void *anew = NULL;
    WANT(isochrone_tasks_write(tasks, sum, 0, 8, &anew), ISOCHRONE_OK, "");
  }
  WANT(isochrone_tasks_cancel(tasks), ISOCHRONE_OK, "");
  WANT(isochrone_tasks_wait(tasks), ISOCHRONE_OK, "");
}

int main(int count, char **arguments) {
  if (count < 2) return 2;
  isochrone_tasks_options options = {.workers = 2, .flags = ISOCHRONE_TASKS_TRACED};
  isochrone_tasks *tasks = NULL;
  uint32_t sum = 0;
  WANT(isochrone_tasks_start(&options, kernels, 1, &tasks), ISOCHRONE_OK, "");
  WANT(isochrone_tasks_data(tasks, 8, &sum), ISOCHRONE_OK, "");
  refused(tasks, sum);
  submitted(tasks, sum);
  WANT(isochrone_tasks_trace(tasks, arguments[1]), ISOCHRONE_OK, "");
  cancelled(tasks, sum);
  WANT(isochrone_tasks_end(tasks), ISOCHRONE_OK, "");
  if (count == 2) return failed;

  /* Where workers are processes all must fit what they share. */
  isochrone_range range = {0, ISOCHRONE_INOUT, 0, ARRAY * 4};
  isochrone_submission by_number = {.ranges = &range, .count = 1}, function = {.function = increment};
  isochrone_handle handle;
  options.flags = ISOCHRONE_TASKS_PROCESSES;
  WANT(isochrone_tasks_start(&options, kernels, 1, &tasks), ISOCHRONE_OK, "");
  WANT(isochrone_tasks_adopt(tasks, &range, sizeof range, &sum), ISOCHRONE_ARGUMENT, "processes");
  WANT(isochrone_tasks_data(tasks, ARRAY * 4, &range.data), ISOCHRONE_OK, "");
  WANT(isochrone_tasks_submit(tasks, &function, NULL), ISOCHRONE_ARGUMENT, "processes");
  WANT(isochrone_tasks_submit(tasks, &by_number, &handle), ISOCHRONE_OK, "");
  WANT(isochrone_tasks_wait_for(tasks, handle), ISOCHRONE_OK, "");
  WANT(isochrone_tasks_end(tasks), ISOCHRONE_OK, "");
  return failed;
}
