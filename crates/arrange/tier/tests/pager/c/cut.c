#include "common.h"
#include <dirent.h>
#include <fcntl.h>
#include <setjmp.h>

// Cuts the files without a name that threads of this process have open; how many it found.
static int cut(void) {
  char path[600], to[600];
  int found = 0;
  DIR *tasks = opendir("/proc/self/task");
  for (struct dirent *task; (task = readdir(tasks));) {
    snprintf(path, sizeof path, "/proc/self/task/%s/fd", task->d_name);
    DIR *open_files = opendir(path);
    for (struct dirent *file; open_files && (file = readdir(open_files));) {
      snprintf(path, sizeof path, "/proc/self/task/%.20s/fd/%.20s", task->d_name, file->d_name);
      ssize_t length = readlink(path, to, sizeof to - 1);
      if (length <= 0) continue;
      to[length] = 0;
      if (!strstr(to, "(deleted)")) continue;
      int number = open(path, O_WRONLY | O_TRUNC);
      found += number >= 0;
      close(number);
    }
    if (open_files) closedir(open_files);
  }
  closedir(tasks);
  return found;
}

static sigjmp_buf back;
static void gone(int signal) {
  (void)signal;
  siglongjmp(back, 1);
}

int main(void) {
  char *base = map(24 * MIB);
  volatile unsigned long lost = 0, page = 0;
  put_all(base, 24 * MIB, 1);
  CHECK(cut() > 0);
  CHECK(signal(SIGBUS, gone) != SIG_ERR);
  if (sigsetjmp(back, 1)) lost++, page++;
  for (; page < 24 * MIB / PAGE; page++) CHECK(has(base, page, 1));
  CHECK(lost > 0);
  return 0;
}
