// What the programs share: a check that says where it failed, and pages that say which they are.
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#define PAGE 4096ul
#define MIB (1ul << 20)
#define CHECK(what)                                                                    \
  do {                                                                                 \
    if (!(what)) {                                                                     \
      fprintf(stderr, "%s:%d: %s (errno %d)\n", __FILE__, __LINE__, #what, errno);     \
      _exit(3);                                                                        \
    }                                                                                  \
  } while (0)

// What a page holds: words that depend on its number and a seed.
static inline unsigned long word_of(unsigned long page, unsigned long seed) {
  return (page + 1) * 0x9e3779b97f4a7c15ul ^ seed * 0xbf58476d1ce4e5b9ul;
}
static inline void put(char *base, unsigned long page, unsigned long seed) {
  unsigned long *words = (unsigned long *)(base + page * PAGE);
  words[0] = words[300] = words[511] = word_of(page, seed);
}
static inline int has(const char *base, unsigned long page, unsigned long seed) {
  const unsigned long *words = (const unsigned long *)(base + page * PAGE);
  unsigned long word = word_of(page, seed);
  return words[0] == word && words[300] == word && words[511] == word;
}
static inline void put_all(char *base, unsigned long bytes, unsigned long seed) {
  for (unsigned long page = 0; page < bytes / PAGE; page++) put(base, page, seed);
}
// Pages from `first` on that do not hold what they should.
static inline unsigned long wrong(const char *base, unsigned long first, unsigned long end, unsigned long seed) {
  unsigned long count = 0;
  for (unsigned long page = first; page < end; page++) count += !has(base, page, seed);
  return count;
}
static inline int is_zero(const char *bytes, unsigned long length) {
  for (unsigned long at = 0; at < length; at++)
    if (bytes[at]) return 0;
  return 1;
}
static inline char *map(unsigned long bytes) {
  char *base = mmap(0, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  CHECK(base != MAP_FAILED);
  return base;
}
// Has everything else leave: more than fast memory is touched.
static inline void press(void) {
  char *other = map(12 * MIB);
  put_all(other, 12 * MIB, 99);
  CHECK(wrong(other, 0, 12 * MIB / PAGE, 99) == 0);
  CHECK(munmap(other, 12 * MIB) == 0);
}
