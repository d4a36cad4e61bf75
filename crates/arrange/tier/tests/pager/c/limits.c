#include "common.h"
#include <sys/resource.h>

// What a program has when the kernel gives it less than others: it is paged, or a line says that it is not.
static void bound(int what, unsigned long most) {
  struct rlimit limit = {most, most};
  CHECK(setrlimit(what, &limit) == 0);
}

int main(int count, char **words) {
  CHECK(count == 2);
  if (!strcmp(words[1], "files")) bound(RLIMIT_NOFILE, 3);
  else if (!strcmp(words[1], "data")) bound(RLIMIT_DATA, 100 * MIB);
  else if (!strcmp(words[1], "addresses")) bound(RLIMIT_AS, 120 * MIB);
  else if (!strcmp(words[1], "threads")) bound(RLIMIT_NPROC, 1);
  else if (strcmp(words[1], "none")) return 2;
  char *base = map(24 * MIB);
  put_all(base, 24 * MIB, 1);
  CHECK(wrong(base, 0, 24 * MIB / PAGE, 1) == 0);
  pid_t child = fork();
  if (child == 0) _exit(wrong(base, 0, 24 * MIB / PAGE, 1) == 0 ? 0 : 1);
  int status = 0;
  CHECK(child < 0 || (waitpid(child, &status, 0) == child && status == 0));
  puts(child < 0 ? "no child" : "a child");
  return 0;
}
