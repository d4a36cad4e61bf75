/* What is refused, with which number and whether there are words; tasks that fail, have tasks of their own, use
   many ranges, reduce, leave a trace, or end their worker. Arguments: files for the traces of two runs. */
#define _GNU_SOURCE
#include "want.h"

#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* Kernels, by their places in the list. */
enum { ADD, FAIL, PARENT, GATHER, END, CODE, REDUCE, KERNELS };
enum { MANY = 40 };

static int add(isochrone_task *task, const void *arguments, void *const *ranges) {
  (void)task;
  *(int64_t *)ranges[0] += *(const int64_t *)arguments;
  return 0;
}

static int fail(isochrone_task *task, const void *arguments, void *const *ranges) {
  (void)arguments, (void)ranges;
  return isochrone_task_fail(task, "no more oil");
}

static int code(isochrone_task *task, const void *arguments, void *const *ranges) {
  (void)task, (void)arguments, (void)ranges;
  return 17;
}

/* Two halves, each by a task of its own; then it looks. */
static int parent(isochrone_task *task, const void *arguments, void *const *ranges) {
  uint32_t data = *(const uint32_t *)arguments;
  for (int64_t half = 0; half < 2; half++) {
    int64_t value = 10 + half;
    isochrone_range range = {data, ISOCHRONE_INOUT, (uint64_t)half * 8, 8};
    if (isochrone_task_spawn(task, ADD, 0, &value, sizeof value, &range, 1) != ISOCHRONE_OK) return 1;
  }
  isochrone_range outside = {data, ISOCHRONE_INOUT, 16, 8};
  int64_t one = 1;
  if (isochrone_task_spawn(task, ADD, 0, &one, sizeof one, &outside, 1) != ISOCHRONE_ARGUMENT)
    return isochrone_task_fail(task, "a child got what its parent has not");
  if (isochrone_task_wait(task) != ISOCHRONE_OK) return 2;
  const int64_t *both = ranges[0];
  return both[0] == 10 && both[1] == 11 && isochrone_task_worker(task) < 2 ? 0 : 3;
}

/* Many ranges: the sum of all but the last goes there. */
static int gather(isochrone_task *task, const void *arguments, void *const *ranges) {
  (void)task, (void)arguments;
  int64_t all = 0;
  for (int i = 0; i < MANY - 1; i++) all += *(const int64_t *)ranges[i];
  *(int64_t *)ranges[MANY - 1] = all;
  return 0;
}

/* Adds to two sums, and keeps the larger of a third. */
static int reduce(isochrone_task *task, const void *arguments, void *const *ranges) {
  int64_t value = *(const int64_t *)arguments, *sums = NULL;
  double *most = NULL;
  WANT(ranges[0] == NULL && ranges[2] == NULL, 1, "");
  WANT(isochrone_task_reduce(task, 0, ISOCHRONE_INT64, NULL), ISOCHRONE_ARGUMENT, "null");
  WANT(isochrone_task_reduce(task, 0, 99, (void **)&sums), ISOCHRONE_ARGUMENT, "99");
  WANT(isochrone_task_reduce(task, 1, ISOCHRONE_INT64, (void **)&sums), ISOCHRONE_ARGUMENT, "range 1");
  WANT(isochrone_task_reduce(task, 7, ISOCHRONE_INT64, (void **)&sums), ISOCHRONE_ARGUMENT, "range 7");
  WANT(isochrone_task_reduce(task, 3, ISOCHRONE_INT64, (void **)&sums), ISOCHRONE_ARGUMENT, "whole elements");
  WANT(isochrone_task_reduce(task, 0, ISOCHRONE_INT64, (void **)&sums), ISOCHRONE_OK, "");
  WANT(isochrone_task_reduce(task, 2, ISOCHRONE_DOUBLE, (void **)&most), ISOCHRONE_OK, "");
  if (failed) return 1;
  WANT(sums[0] == 0 && sums[1] == 0 && most[0] < -1e300, 1, "");
  sums[0] += value, sums[1] -= value, most[0] = (double)value;
  return failed;
}

static int end(isochrone_task *task, const void *arguments, void *const *ranges) {
  (void)arguments, (void)ranges;
  if (isochrone_task_worker(task) == 1) _exit(9);
  nanosleep(&(struct timespec){0, 1000000}, NULL);
  return 0;
}

static const isochrone_kernel kernels[] = {{"add", add},       {"fail", fail}, {"parent", parent},
                                           {"gather", gather}, {"end", end},   {"code", code},
                                           {"reduce", reduce}};

static int spawn(isochrone_tasks *tasks, int kernel, int64_t value, isochrone_range range) {
  return isochrone_tasks_spawn(tasks, (uint32_t)kernel, 0, &value, sizeof value, &range, 1);
}

static void refused(void) {
  isochrone_tasks *tasks = NULL;
  isochrone_tasks_options odd = {.workers = 1, .flags = 64}, nowhere = {.regime = "north", .workers = 1},
                          nobody = {.policy = "chance", .workers = 1},
                          both = {.regime = "di", .policy = "paper", .workers = 1},
                          lost = {.workers = 1, .atlas = "/nowhere/at.all"},
                          crowd = {.workers = 3000000000u}, crowded = crowd, traced = crowd,
                          later = {.size = sizeof later, .workers = 1}, unset = {.size = 3}, wide = {.data_bytes = UINT64_MAX};
  struct { isochrone_tasks_options now; uint64_t more; } newer = {{.size = sizeof newer, .workers = 1}, 1};
  later.reserved[3] = 1;
  crowded.flags = ISOCHRONE_TASKS_PROCESSES;
  traced.workers = 8192, traced.flags = ISOCHRONE_TASKS_TRACED;
  isochrone_kernel nothing = {"nothing", NULL}, nameless = {NULL, add};
  WANT(isochrone_tasks_start(&odd, kernels, 1, &tasks), ISOCHRONE_ARGUMENT, "flags");
  WANT(isochrone_tasks_start(&later, kernels, 1, &tasks), ISOCHRONE_ARGUMENT, "flags");
  WANT(isochrone_tasks_start(&unset, kernels, 1, &tasks), ISOCHRONE_ARGUMENT, "sizeof");
  WANT(isochrone_tasks_start(&newer.now, kernels, 1, &tasks), ISOCHRONE_ARGUMENT, "newer library");
  WANT(isochrone_tasks_start(&wide, kernels, 1, &tasks), ISOCHRONE_ARGUMENT, "the most");
  WANT(isochrone_tasks_start(&nowhere, kernels, 1, &tasks), ISOCHRONE_ARGUMENT, "regime");
  WANT(isochrone_tasks_start(&nobody, kernels, 1, &tasks), ISOCHRONE_ARGUMENT, "policy");
  WANT(isochrone_tasks_start(&both, kernels, 1, &tasks), ISOCHRONE_ARGUMENT, "4.1");
  WANT(isochrone_tasks_start(&lost, kernels, 1, &tasks), ISOCHRONE_ARGUMENT, "/nowhere/at.all");
  WANT(isochrone_tasks_start(&crowd, kernels, 1, &tasks), ISOCHRONE_ARGUMENT, "1 to 8192");
  WANT(isochrone_tasks_start(&crowded, kernels, 1, &tasks), ISOCHRONE_ARGUMENT, "1 to 8192");
  WANT(isochrone_tasks_start(&traced, kernels, 1, &tasks), ISOCHRONE_ARGUMENT, "274877906944");
  WANT(isochrone_tasks_start(NULL, kernels, SIZE_MAX, &tasks), ISOCHRONE_ARGUMENT, "addresses");
  WANT(isochrone_tasks_start(NULL, &nothing, 1, &tasks), ISOCHRONE_ARGUMENT, "function");
  WANT(isochrone_tasks_start(NULL, &nameless, 1, &tasks), ISOCHRONE_ARGUMENT, "name");
  WANT(isochrone_tasks_start(NULL, NULL, 1, &tasks), ISOCHRONE_ARGUMENT, "null");
  WANT(isochrone_tasks_start(NULL, kernels, 1, NULL), ISOCHRONE_ARGUMENT, "null");
  WANT(isochrone_tasks_wait(NULL), ISOCHRONE_ARGUMENT, "null");
  WANT(isochrone_tasks_end(NULL), ISOCHRONE_OK, "");

  isochrone_tasks_options one = {.regime = "dft", .workers = 1};
  WANT(isochrone_tasks_start(&one, kernels, KERNELS, &tasks), ISOCHRONE_OK, "");
  uint32_t data = 99;
  WANT(isochrone_tasks_data(tasks, 0, &data), ISOCHRONE_ARGUMENT, "byte");
  WANT(isochrone_tasks_data(tasks, UINT64_MAX, &data), ISOCHRONE_ARGUMENT, "address space");
  WANT(isochrone_tasks_data(tasks, 64, &data), ISOCHRONE_OK, "");
  isochrone_range all = {data, ISOCHRONE_INOUT, 0, 64}, past = {data, ISOCHRONE_INOUT, 60, 8},
                  none = {data, ISOCHRONE_INOUT, 8, 0}, mode = {data, 9, 0, 8}, unknown = {77, 0, 0, 8};
  char many[65] = {0};
  WANT(spawn(tasks, ADD, 1, past), ISOCHRONE_ARGUMENT, "64 bytes");
  WANT(spawn(tasks, ADD, 1, none), ISOCHRONE_ARGUMENT, "no bytes");
  WANT(spawn(tasks, ADD, 1, mode), ISOCHRONE_ARGUMENT, "9");
  WANT(spawn(tasks, ADD, 1, unknown), ISOCHRONE_ARGUMENT, "not registered");
  WANT(spawn(tasks, KERNELS, 1, all), ISOCHRONE_ARGUMENT, "kernel 7 of 7");
  WANT(isochrone_tasks_spawn(tasks, 0, 0, many, 65, &all, 1), ISOCHRONE_ARGUMENT, "65");
  WANT(isochrone_tasks_spawn(tasks, 0, 0, NULL, 8, &all, 1), ISOCHRONE_ARGUMENT, "null");
  WANT(isochrone_tasks_spawn(tasks, 0, 0, NULL, 0, &all, SIZE_MAX), ISOCHRONE_ARGUMENT, "addresses");
  WANT(isochrone_tasks_wait_on(tasks, data, 0, 8), ISOCHRONE_OK, "");
  WANT(isochrone_tasks_wait_on(tasks, 77, 0, 8), ISOCHRONE_ARGUMENT, "77");
  WANT(isochrone_tasks_wait_on(tasks, data, 60, 8), ISOCHRONE_ARGUMENT, "64 bytes");
  const void *at = NULL;
  WANT(isochrone_tasks_read(tasks, 77, 0, 8, &at), ISOCHRONE_ARGUMENT, "77");
  WANT(isochrone_tasks_read(tasks, data, 60, 8, &at), ISOCHRONE_ARGUMENT, "64 bytes");
  WANT(isochrone_tasks_trace(tasks, "trace.json"), ISOCHRONE_ARGUMENT, "ISOCHRONE_TASKS_TRACED");
  WANT(isochrone_tasks_free(tasks, data), ISOCHRONE_OK, "");
  WANT(spawn(tasks, ADD, 1, all), ISOCHRONE_ARGUMENT, "freed");
  WANT(isochrone_tasks_read(tasks, data, 0, 8, &at), ISOCHRONE_ARGUMENT, "freed");
  WANT(isochrone_tasks_free(tasks, data), ISOCHRONE_ARGUMENT, "freed");
  isochrone_tasks_end(tasks);
}

static void works(uint32_t flags, const char *trace) {
  isochrone_tasks *tasks = NULL;
  isochrone_tasks_options two = {.policy = "nanos6", .workers = 2, .flags = flags | ISOCHRONE_TASKS_TRACED};
  WANT(isochrone_tasks_start(&two, kernels, KERNELS, &tasks), ISOCHRONE_OK, "");
  uint32_t data = 99;
  WANT(isochrone_tasks_data(tasks, MANY * 8, &data), ISOCHRONE_OK, "");
  isochrone_range first = {data, ISOCHRONE_INOUT, 0, 16}, word = {data, ISOCHRONE_INOUT, 0, 8};
  WANT(spawn(tasks, PARENT, data, first), ISOCHRONE_OK, "");
  WANT(isochrone_tasks_wait(tasks), ISOCHRONE_OK, "");

  WANT(spawn(tasks, FAIL, 0, word), ISOCHRONE_OK, "");
  WANT(isochrone_tasks_wait(tasks), ISOCHRONE_FAILED, "task fail failed: no more oil");
  /* What it left undone stays so, and what follows from it fails, until it is written without a look. */
  const void *at = NULL;
  for (int again = 0; again < 2; again++) {
    WANT(isochrone_tasks_read(tasks, data, 0, 16, &at), ISOCHRONE_FAILED, "undone since task fail failed");
    WANT(isochrone_tasks_wait_on(tasks, data, 0, 1), ISOCHRONE_FAILED, "bytes 0..8 of data 0");
    WANT(isochrone_tasks_read(tasks, data, 8, 8, &at), ISOCHRONE_OK, "");
  }
  WANT(spawn(tasks, ADD, 1, word), ISOCHRONE_OK, "");
  WANT(isochrone_tasks_wait(tasks), ISOCHRONE_FAILED, "which fail left undone");
  isochrone_range anew = {data, ISOCHRONE_OUT, 0, 8};
  WANT(spawn(tasks, CODE, 0, anew), ISOCHRONE_OK, "");
  WANT(isochrone_tasks_wait(tasks), ISOCHRONE_FAILED, "17");
  WANT(isochrone_tasks_wait(tasks), ISOCHRONE_OK, "");

  void *cells = NULL;
  WANT(isochrone_tasks_write(tasks, data, 0, MANY * 8, &cells), ISOCHRONE_OK, "");
  isochrone_range each[MANY];
  for (int64_t i = 0; i < MANY; i++) {
    ((int64_t *)cells)[i] = i;
    each[i].data = data, each[i].mode = i + 1 < MANY ? ISOCHRONE_IN : ISOCHRONE_OUT;
    each[i].start = (uint64_t)i * 8, each[i].bytes = 8;
  }
  WANT(spawn(tasks, ADD, 1000, word), ISOCHRONE_OK, "");
  WANT(isochrone_tasks_spawn(tasks, GATHER, 0, NULL, 0, each, MANY), ISOCHRONE_OK, "");
  WANT(isochrone_tasks_read(tasks, data, (MANY - 1) * 8, 8, &at), ISOCHRONE_OK, "");
  if (*(const int64_t *)at != 1000 + (MANY - 1) * (MANY - 2) / 2) failed = 1;
  /* Words 0 and 1 become sums, word 3 the largest value; word 2 is read, word 4 is reduced by parts of elements. */
  WANT(isochrone_tasks_write(tasks, data, 0, 40, &cells), ISOCHRONE_OK, "");
  memset(cells, 0, 40);
  isochrone_range parts[] = {{data, ISOCHRONE_REDUCE_SUM, 0, 16},
                             {data, ISOCHRONE_IN, 16, 8},
                             {data, ISOCHRONE_REDUCE_MAX, 24, 8},
                             {data, ISOCHRONE_REDUCE_MIN, 32, 4}};
  for (int64_t i = 1; i <= 100; i++)
    WANT(isochrone_tasks_spawn(tasks, REDUCE, 0, &i, sizeof i, parts, 4), ISOCHRONE_OK, "");
  WANT(isochrone_tasks_read(tasks, data, 0, 40, &at), ISOCHRONE_OK, "");
  const int64_t *sums = at;
  double most;
  memcpy(&most, sums + 3, sizeof most);
  WANT(sums[0] == 5050 && sums[1] == -5050 && most == 100.0, 1, "");

  isochrone_tasks_counts counts = {.size = 1};
  WANT(isochrone_tasks_report(tasks, NULL), ISOCHRONE_ARGUMENT, "null");
  WANT(isochrone_tasks_report(tasks, &counts), ISOCHRONE_ARGUMENT, "sizeof");
  counts.size = sizeof counts;
  WANT(isochrone_tasks_report(tasks, &counts), ISOCHRONE_OK, "");
  if (counts.tasks < 107 || counts.local_bytes == 0) failed = 1;
  /* A program with the struct's first members alone has these, and nothing behind them is written. */
  uint64_t some[4] = {2 * sizeof(uint64_t), 0, 77, 77};
  WANT(isochrone_tasks_report(tasks, (isochrone_tasks_counts *)some), ISOCHRONE_OK, "");
  WANT(some[0] == 16 && some[1] == counts.tasks && some[2] == 77, 1, "");
  WANT(isochrone_tasks_trace(tasks, NULL), ISOCHRONE_ARGUMENT, "null");
  WANT(isochrone_tasks_trace(tasks, "/nowhere/at.all"), ISOCHRONE_SYSTEM, "/nowhere/at.all");
  WANT(isochrone_tasks_trace(tasks, trace), ISOCHRONE_OK, "");
  WANT(isochrone_tasks_end(tasks), ISOCHRONE_OK, "");

  /* A failure that no call has said is said at the end. */
  two.flags = flags;
  WANT(isochrone_tasks_start(&two, kernels, KERNELS, &tasks), ISOCHRONE_OK, "");
  WANT(isochrone_tasks_data(tasks, 8, &data), ISOCHRONE_OK, "");
  WANT(spawn(tasks, FAIL, 0, (isochrone_range){data, ISOCHRONE_INOUT, 0, 8}), ISOCHRONE_OK, "");
  WANT(isochrone_tasks_end(tasks), ISOCHRONE_FAILED, "no more oil");
}

/* A worker that is a process ends in the middle of a task: whoever waits is told. */
static void ended(void) {
  isochrone_tasks *tasks = NULL;
  isochrone_tasks_options two = {.workers = 2, .flags = ISOCHRONE_TASKS_PROCESSES};
  WANT(isochrone_tasks_start(&two, kernels, KERNELS, &tasks), ISOCHRONE_OK, "");
  int status = ISOCHRONE_OK;
  /* Until one of them comes to the other worker. */
  while (status == ISOCHRONE_OK) {
    for (int i = 0; i < 100 && status == ISOCHRONE_OK; i++)
      status = isochrone_tasks_spawn(tasks, END, 0, NULL, 0, NULL, 0);
    if (status == ISOCHRONE_OK) status = isochrone_tasks_wait(tasks);
  }
  WANT(status, ISOCHRONE_GONE, "worker process 1");
  isochrone_tasks_end(tasks);
}

/* Two runs at a time: whichever ends first, the caller has its cores again when both have. */
static void overlapping(void) {
  cpu_set_t before, during, after;
  isochrone_tasks_options one = {.regime = "dft", .workers = 1};
  sched_getaffinity(0, sizeof before, &before);
  for (int first = 0; first < 2; first++) {
    isochrone_tasks *tasks[2] = {NULL, NULL};
    WANT(isochrone_tasks_start(&one, kernels, KERNELS, &tasks[0]), ISOCHRONE_OK, "");
    WANT(isochrone_tasks_start(NULL, kernels, KERNELS, &tasks[1]), ISOCHRONE_OK, "");
    sched_getaffinity(0, sizeof during, &during);
    WANT(CPU_COUNT(&during), 1, "");
    if (isochrone_tasks_workers(tasks[1]) != (uint32_t)CPU_COUNT(&before)) failed = 1;
    isochrone_tasks_end(tasks[first]);
    isochrone_tasks_end(tasks[1 - first]);
    sched_getaffinity(0, sizeof after, &after);
    WANT(CPU_EQUAL(&before, &after) != 0, 1, "");
  }
}

int main(int count, char **arguments) {
  if (count != 3) return 2;
  refused();
  overlapping();
  works(0, arguments[1]);
  works(ISOCHRONE_TASKS_PROCESSES, arguments[2]);
  ended();
  return failed;
}
