/* A run in the wrong hands: of another thread, of its own tasks, of a child of fork; memory that is adopted twice,
   arguments for which there is no memory, tasks too deep inside of one another; and cancelling from beside. Argument:
   "no forks" leaves out the child and the depth. */
#define _GNU_SOURCE
#include "want.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { CHILDREN = 10, DEEP = 1000000 };

static isochrone_tasks *run;
static int counted, may_end;

static int count(isochrone_task *task, const void *arguments, void *const *ranges) {
  (void)task, (void)arguments, (void)ranges;
  __atomic_fetch_add(&counted, 1, __ATOMIC_SEQ_CST);
  return 0;
}

static int submit(isochrone_tasks *to, isochrone_kernel_function function, isochrone_handle *handle) {
  isochrone_submission task = {.size = sizeof task, .function = function};
  return isochrone_tasks_submit(to, &task, handle);
}

/* Functions of tasks use the task, not the run. */
static int uses_the_run(isochrone_task *task, const void *arguments, void *const *ranges) {
  (void)task, (void)arguments, (void)ranges;
  isochrone_submission more = {.size = sizeof more, .function = count};
  WANT(isochrone_tasks_submit(run, &more, NULL), ISOCHRONE_STATE, "isochrone_task_submit");
  WANT(isochrone_tasks_wait(run), ISOCHRONE_STATE, "isochrone_task_wait");
  WANT(isochrone_tasks_end(run), ISOCHRONE_STATE, "");
  WANT(isochrone_tasks_workers(run), 2, "");
  return 0;
}

static void *by_another(void *nothing) {
  isochrone_submission more = {.size = sizeof more, .function = count};
  uint32_t data;
  WANT(isochrone_tasks_submit(run, &more, NULL), ISOCHRONE_STATE, "the thread that started it");
  WANT(isochrone_tasks_wait(run), ISOCHRONE_STATE, "the thread that started it");
  WANT(isochrone_tasks_data(run, 8, &data), ISOCHRONE_STATE, "the thread that started it");
  return nothing;
}

static isochrone_tasks *started(void) {
  isochrone_tasks *tasks = NULL;
  isochrone_tasks_options two = {.size = sizeof two, .workers = 2};
  WANT(isochrone_tasks_start(&two, NULL, 0, &tasks), ISOCHRONE_OK, "");
  return tasks;
}

static void *starts(void *nothing) {
  run = started();
  return nothing;
}

static void in_thread(void *(*function)(void *)) {
  pthread_t thread;
  WANT(pthread_create(&thread, NULL, function, NULL), 0, "");
  WANT(pthread_join(thread, NULL), 0, "");
}

static void hands(void) {
  run = started();
  in_thread(by_another);
  for (int i = 0; i < 100; i++) WANT(submit(run, uses_the_run, NULL), ISOCHRONE_OK, "");
  WANT(isochrone_tasks_wait(run), ISOCHRONE_OK, "");
  WANT(isochrone_tasks_end(run), ISOCHRONE_OK, "");
  WANT(counted, 0, "");
  /* Whose thread has ended is ended by another one. */
  in_thread(starts);
  WANT(isochrone_tasks_wait(run), ISOCHRONE_STATE, "");
  WANT(isochrone_tasks_end(run), ISOCHRONE_OK, "");
}

static int waits(isochrone_task *task, const void *arguments, void *const *ranges) {
  (void)task, (void)arguments, (void)ranges;
  while (!__atomic_load_n(&may_end, __ATOMIC_SEQ_CST)) usleep(100);
  return 0;
}

/* The child has no worker; it is told so, and may have a run of its own. */
static void forked(void) {
  run = started();
  may_end = 0;
  for (int i = 0; i < 4; i++) WANT(submit(run, waits, NULL), ISOCHRONE_OK, "");
  pid_t child = fork();
  if (child == 0) {
    alarm(60);
    WANT(submit(run, count, NULL), ISOCHRONE_GONE, "forked");
    WANT(isochrone_tasks_wait(run), ISOCHRONE_GONE, "forked");
    WANT(isochrone_tasks_cancel(run), ISOCHRONE_GONE, "forked");
    WANT(isochrone_tasks_end(run), ISOCHRONE_GONE, "forked");
    isochrone_tasks *own = started();
    counted = 0;
    WANT(submit(own, count, NULL), ISOCHRONE_OK, "");
    WANT(isochrone_tasks_end(own), ISOCHRONE_OK, "");
    WANT(counted, 1, "");
    _exit(failed);
  }
  int status = 1;
  WANT(waitpid(child, &status, 0) == child && status == 0, 1, "");
  __atomic_store_n(&may_end, 1, __ATOMIC_SEQ_CST);
  WANT(isochrone_tasks_end(run), ISOCHRONE_OK, "");
}

/* Who waits for whom goes by numbers of data: one byte has one number. */
static void adopted(void) {
  static int64_t array[100];
  uint32_t all, data;
  void *ours = NULL;
  run = started();
  WANT(isochrone_tasks_adopt(run, array + 10, 80 * 8, &all), ISOCHRONE_OK, "");
  WANT(isochrone_tasks_adopt(run, array + 10, 80 * 8, &data), ISOCHRONE_ARGUMENT, "data 0 already");
  WANT(isochrone_tasks_adopt(run, array, 11 * 8, &data), ISOCHRONE_ARGUMENT, "data 0 already");
  WANT(isochrone_tasks_adopt(run, array + 89, 8, &data), ISOCHRONE_ARGUMENT, "data 0 already");
  WANT(isochrone_tasks_adopt(run, array, sizeof array, &data), ISOCHRONE_ARGUMENT, "data 0 already");
  WANT(isochrone_tasks_adopt(run, array, 10 * 8, &data), ISOCHRONE_OK, "");
  WANT(isochrone_tasks_adopt(run, array + 90, 10 * 8, &data), ISOCHRONE_OK, "");
  WANT(isochrone_tasks_free(run, all), ISOCHRONE_OK, "");
  WANT(isochrone_tasks_adopt(run, array + 20, 70 * 8, &all), ISOCHRONE_OK, "");
  WANT(isochrone_tasks_data(run, 4096, &data), ISOCHRONE_OK, "");
  WANT(isochrone_tasks_write(run, data, 0, 4096, &ours), ISOCHRONE_OK, "");
  WANT(isochrone_tasks_adopt(run, (char *)ours + 100, 8, &all), ISOCHRONE_ARGUMENT, "already");
  WANT(isochrone_tasks_end(run), ISOCHRONE_OK, "");
}

static int checks_arguments(isochrone_task *task, const void *arguments, void *const *ranges) {
  (void)task, (void)ranges;
  const unsigned char *bytes = arguments;
  size_t length = bytes[0], line = length < 64 ? 64 : length;
  if ((uintptr_t)bytes % 64 != 0) return 1;
  for (size_t i = 1; i < line; i++)
    if (bytes[i] != (i < length ? (unsigned char)i : 0)) return 2;
  return 0;
}

static void no_discard(void *arguments) { counted += ((unsigned char *)arguments)[0]; }

static void long_arguments(void) {
  unsigned char bytes[256];
  isochrone_submission task = {.size = sizeof task, .function = checks_arguments, .arguments = bytes};
  run = started();
  for (size_t i = 0; i < sizeof bytes; i++) bytes[i] = (unsigned char)i;
  /* In the task, and beside it. */
  for (size_t length = 1; length < 200; length++) {
    bytes[0] = (unsigned char)length, task.bytes = length;
    WANT(isochrone_tasks_submit(run, &task, NULL), ISOCHRONE_OK, "");
  }
  WANT(isochrone_tasks_wait(run), ISOCHRONE_OK, "");
  counted = 0, task.discard = no_discard;
  for (unsigned char length = 8; length < 48; length++) {
    bytes[0] = length, task.bytes = length;
    WANT(isochrone_tasks_submit(run, &task, NULL), ISOCHRONE_OK, "");
    WANT(isochrone_tasks_wait(run), ISOCHRONE_OK, "");
  }
  WANT(counted, (47 * 48 - 7 * 8) / 2, "");
  /* Nobody has so much: nothing of it is looked at. */
  task.bytes = (uint64_t)1 << 62;
  WANT(isochrone_tasks_submit(run, &task, NULL), ISOCHRONE_MEMORY, "no memory");
  task.bytes = UINT64_MAX;
  WANT(isochrone_tasks_submit(run, &task, NULL), ISOCHRONE_ARGUMENT, "addresses");
  WANT(isochrone_tasks_end(run), ISOCHRONE_OK, "");
}

static int dives(isochrone_task *task, const void *arguments, void *const *ranges) {
  (void)ranges;
  int left = *(const int *)arguments - 1;
  isochrone_submission next = {.size = sizeof next, .function = dives, .arguments = &left, .bytes = sizeof left};
  if (left == 0) return 0;
  if (isochrone_task_submit(task, &next, NULL) != ISOCHRONE_OK) return isochrone_task_fail(task, isochrone_error());
  int status = isochrone_task_wait(task);
  return status == ISOCHRONE_OK ? 0 : isochrone_task_fail(task, isochrone_error());
}

static void deep(void) {
  int much = DEEP, some = 200;
  isochrone_submission first = {.size = sizeof first, .function = dives, .arguments = &some, .bytes = sizeof some};
  run = started();
  WANT(isochrone_tasks_submit(run, &first, NULL), ISOCHRONE_OK, "");
  WANT(isochrone_tasks_wait(run), ISOCHRONE_OK, "");
  first.arguments = &much;
  WANT(isochrone_tasks_submit(run, &first, NULL), ISOCHRONE_OK, "");
  WANT(isochrone_tasks_wait(run), ISOCHRONE_FAILED, "task function failed");
  first.arguments = &some;
  WANT(isochrone_tasks_submit(run, &first, NULL), ISOCHRONE_OK, "");
  WANT(isochrone_tasks_end(run), ISOCHRONE_OK, "");
}

/* Goes on when it is cancelled: what it has registered then is left out, and it is told. */
static int goes_on(isochrone_task *task, const void *arguments, void *const *ranges) {
  (void)arguments, (void)ranges;
  isochrone_submission own = {.size = sizeof own, .function = count};
  isochrone_handle handle;
  __atomic_store_n(&may_end, 1, __ATOMIC_SEQ_CST);
  while (!isochrone_task_is_in_vain(task)) usleep(100);
  for (int i = 0; i < CHILDREN; i++) WANT(isochrone_task_submit(task, &own, &handle), ISOCHRONE_OK, "");
  WANT(isochrone_task_wait(task), ISOCHRONE_CANCELLED, "cancelled");
  WANT(isochrone_task_submit(task, &own, &handle), ISOCHRONE_OK, "");
  WANT(isochrone_task_wait_for(task, handle), ISOCHRONE_CANCELLED, "cancelled");
  return isochrone_task_fail(task, "it gave up");
}

static void *cancels(void *nothing) {
  while (!__atomic_load_n(&may_end, __ATOMIC_SEQ_CST)) usleep(100);
  WANT(isochrone_tasks_cancel(run), ISOCHRONE_OK, "");
  WANT(isochrone_tasks_cancel(run), ISOCHRONE_OK, "");
  return nothing;
}

/* While one task runs, which others wait for, a third is waited for: when that is over, so are all. */
static void cancelled(void) {
  isochrone_handle handle;
  uint32_t data;
  for (int how = 0; how < 3; how++) {
    pthread_t thread;
    run = started();
    WANT(isochrone_tasks_data(run, 8, &data), ISOCHRONE_OK, "");
    isochrone_range range = {data, ISOCHRONE_INOUT, 0, 8};
    isochrone_submission first = {.size = sizeof first, .function = goes_on, .ranges = &range, .count = 1}, next = first;
    counted = may_end = 0;
    next.function = count;
    WANT(isochrone_tasks_submit(run, &first, NULL), ISOCHRONE_OK, "");
    for (int i = 0; i < CHILDREN; i++) WANT(isochrone_tasks_submit(run, &next, &handle), ISOCHRONE_OK, "");
    WANT(pthread_create(&thread, NULL, cancels, NULL), 0, "");
    if (how > 0) {
      WANT(pthread_join(thread, NULL), 0, "");
      WANT(submit(run, waits, &handle), ISOCHRONE_OK, "");
    }
    if (how < 2)
      WANT(isochrone_tasks_wait_for(run, handle), ISOCHRONE_CANCELLED, "cancelled");
    else
      WANT(isochrone_tasks_wait_on(run, data, 0, 8), ISOCHRONE_CANCELLED, "cancelled");
    if (how == 0) WANT(pthread_join(thread, NULL), 0, "");
    WANT(counted, 0, "");
    WANT(isochrone_tasks_cancel(run), ISOCHRONE_OK, "");
    WANT(submit(run, count, &handle), ISOCHRONE_OK, "");
    WANT(isochrone_tasks_wait_for(run, handle), ISOCHRONE_OK, "");
    WANT(counted, 1, "");
    WANT(isochrone_tasks_wait_on(run, data, 0, 8), ISOCHRONE_FAILED, "undone");
    WANT(isochrone_tasks_end(run), ISOCHRONE_OK, "");
  }
}

int main(int arguments, char **words) {
  hands();
  adopted();
  long_arguments();
  cancelled();
  /* What sanitizers do not have room for, and ThreadSanitizer does not allow. */
  if (arguments > 1 && strcmp(words[1], "no forks") == 0) return failed;
  forked();
  deep();
  return failed;
}
