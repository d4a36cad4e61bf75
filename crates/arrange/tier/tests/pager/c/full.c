#include "common.h"
#include <sys/resource.h>

// What becomes of a program whose far file may not grow: it goes on beyond the limit, and keeps to it again when there
// is room. What it says itself stands beside what is said of it.
static void files(unsigned long most) {
  struct rlimit limit;
  CHECK(getrlimit(RLIMIT_FSIZE, &limit) == 0);
  limit.rlim_cur = most;
  CHECK(setrlimit(RLIMIT_FSIZE, &limit) == 0);
}
static unsigned long there(char *base, unsigned long bytes) {
  static unsigned char pages[24 * MIB / PAGE];
  unsigned long count = 0;
  CHECK(mincore(base, bytes, pages) == 0);
  for (unsigned long page = 0; page < bytes / PAGE; page++) count += pages[page] & 1;
  return count * PAGE;
}
static unsigned long next(unsigned long *state) {
  *state = *state * 6364136223846793005ul + 1442695040888963407ul;
  return *state >> 33;
}

int main(void) {
  unsigned long state = 1, bytes = 24 * MIB, other_bytes = 16 * MIB;
  fputs("before\n", stderr);
  files(6 * MIB);
  char *base = map(bytes);
  put_all(base, bytes, 1);
  fputs("after\n", stderr);
  for (int step = 0; step < 20000; step++) CHECK(has(base, next(&state) % (bytes / PAGE), 1));
  CHECK(wrong(base, 0, bytes / PAGE, 1) == 0);
  CHECK(there(base, bytes) > 12 * MIB);
  files(RLIM_INFINITY);
  char *other = map(other_bytes);
  for (int step = 0; step < 20000; step++) put(other, next(&state) % (other_bytes / PAGE), 2);
  CHECK(there(base, bytes) + there(other, other_bytes) <= 2 * MIB);
  CHECK(wrong(base, 0, bytes / PAGE, 1) == 0);
  return 0;
}
