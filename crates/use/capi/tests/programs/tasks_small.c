/* A run in a process that may have few addresses, as under valgrind or ThreadSanitizer; and many pieces of data.
   Argument: "processes" for workers that are. */
#include "want.h"

#include <stdlib.h>

enum { PIECES = 20000 };

static int fill(isochrone_task *task, const void *arguments, void *const *ranges) {
  (void)task;
  *(uint32_t *)ranges[0] = *(const uint32_t *)arguments;
  return 0;
}

int main(int count, char **arguments) {
  static const isochrone_kernel kernels[] = {{"fill", fill}};
  isochrone_tasks_options options = {.size = sizeof options, .workers = 2};
  isochrone_tasks *tasks = NULL;
  uint32_t *data = malloc(PIECES * sizeof *data), large = 0;
  if (data == NULL) return 2;
  if (count > 1 && strcmp(arguments[1], "processes") == 0)
    options.flags = ISOCHRONE_TASKS_PROCESSES, options.data_bytes = (uint64_t)256 << 20;
  WANT(isochrone_tasks_start(&options, kernels, 1, &tasks), ISOCHRONE_OK, "");
  if (failed) return 1;
  for (uint32_t piece = 0; piece < PIECES; piece++) {
    WANT(isochrone_tasks_data(tasks, 4, &data[piece]), ISOCHRONE_OK, "");
    isochrone_range range = {data[piece], ISOCHRONE_OUT, 0, 4};
    WANT(isochrone_tasks_spawn(tasks, 0, 0, &piece, sizeof piece, &range, 1), ISOCHRONE_OK, "");
  }
  for (uint32_t piece = 0; piece < PIECES; piece++) {
    const void *at = NULL;
    WANT(isochrone_tasks_read(tasks, data[piece], 0, 4, &at), ISOCHRONE_OK, "");
    WANT(at != NULL && *(const uint32_t *)at == piece, 1, "");
  }
  WANT(isochrone_tasks_data(tasks, (uint64_t)1 << 60, &large), ISOCHRONE_ARGUMENT, "address space");
  WANT(isochrone_tasks_data(tasks, (uint64_t)64 << 20, &large), ISOCHRONE_OK, "");
  WANT(isochrone_tasks_end(tasks), ISOCHRONE_OK, "");
  free(data);
  return failed;
}
