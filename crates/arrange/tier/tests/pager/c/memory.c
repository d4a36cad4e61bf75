#include "common.h"

static void sweep(void) {
  unsigned long bytes = 32 * MIB, sum = 0;
  char *one = malloc(bytes), *two = calloc(bytes / 8, 8);
  CHECK(one && two && is_zero(two + 5 * MIB, MIB));
  put_all(one, bytes, 1);
  for (int round = 0; round < 2; round++)
    for (unsigned long page = 0; page < bytes / PAGE; page++) {
      CHECK(has(one, page, 1));
      sum = sum * 31 + *(unsigned long *)(one + page * PAGE);
      two[page * PAGE + round] = (char)page;
    }
  for (unsigned long step = 0, page = 7; step < 9000; step++, page = page * 5 % (bytes / PAGE)) {
    CHECK(has(one, page, 1));
    sum += two[page * PAGE + 1];
  }
  free(one);
  free(two);
  printf("%lx\n", sum);
}

static char *shared;
static void *work(void *number) {
  for (int round = 0; round < 3; round++)
    for (unsigned long page = 0; page < 8 * MIB / PAGE; page++) {
      unsigned long *words = (unsigned long *)(shared + page * PAGE);
      __atomic_fetch_add(words + (page + round) % 512, (long)number, __ATOMIC_RELAXED);
    }
  return 0;
}
static void threads(void) {
  pthread_t all[6];
  unsigned long sum = 0;
  shared = map(8 * MIB);
  for (long t = 0; t < 6; t++) CHECK(pthread_create(&all[t], 0, work, (void *)(t + 1)) == 0);
  for (int t = 0; t < 6; t++) CHECK(pthread_join(all[t], 0) == 0);
  for (unsigned long at = 0; at < 8 * MIB / 8; at++) sum += ((unsigned long *)shared)[at];
  CHECK(sum == 8 * MIB / PAGE * 3 * 21);
  printf("%lu\n", sum);
}

static void resize(void) {
  char *block = malloc(100), *aligned;
  memset(block, 7, 100);
  for (unsigned long bytes = 512 << 10; bytes <= 24 * MIB; bytes += bytes / 2) {
    block = realloc(block, bytes);
    CHECK(block && block[99] == 7);
    for (unsigned long page = 1; page < bytes / PAGE; page++) put(block, page, 3);
    char *between = malloc(2 * MIB);
    CHECK(between);
    memset(between, 1, 2 * MIB);
    CHECK(wrong(block, 1, bytes / PAGE, 3) == 0);
    free(between);
  }
  for (unsigned long bytes = 12 * MIB; bytes > 1000; bytes /= 3) {
    block = realloc(block, bytes);
    CHECK(block && block[99] == 7 && wrong(block, 1, bytes / PAGE, 3) == 0);
  }
  free(block);
  CHECK(posix_memalign((void **)&aligned, 2 * MIB, 3 * MIB) == 0 && (unsigned long)aligned % (2 * MIB) == 0);
  memset(aligned, 1, 3 * MIB);
  CHECK(posix_memalign((void **)&block, 3, 3 * MIB) == EINVAL);
  free(aligned);
  volatile unsigned long much = -100ul;
  CHECK(!malloc(much) && errno == ENOMEM);
  CHECK(!calloc(much / 4, 100) && errno == ENOMEM);
  puts("resized");
}

int main(int count, char **words) {
  CHECK(count == 2);
  if (!strcmp(words[1], "sweep")) sweep();
  else if (!strcmp(words[1], "threads")) threads();
  else if (!strcmp(words[1], "realloc")) resize();
  else return 2;
  return 0;
}
