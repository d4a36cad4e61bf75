#include "common.h"
#include <setjmp.h>

static sigjmp_buf back;
static void caught(int signal) { siglongjmp(back, signal); }
// The signal of a read, or of a write, at an address; 0 for none.
static int fault(volatile char *at, int writes) {
  int signal = sigsetjmp(back, 1);
  if (signal) return signal;
  if (writes) *at = *at;
  else (void)*at;
  return 0;
}

static void unmap(void) {
  char *base = map(8 * MIB);
  put_all(base, 8 * MIB, 1);
  press();
  CHECK(munmap(base + 2 * MIB, 3 * MIB) == 0);
  CHECK(fault(base + 2 * MIB, 0) == SIGSEGV && fault(base + 5 * MIB - 1, 1) == SIGSEGV);
  CHECK(wrong(base, 0, 2 * MIB / PAGE, 1) == 0 && wrong(base, 5 * MIB / PAGE, 8 * MIB / PAGE, 1) == 0);
  for (int round = 0; round < 40; round++) {
    char *other = map(3 * MIB);
    for (int at = 0; at < 3; at++) CHECK(is_zero(other + at * MIB, PAGE));
    put_all(other, 3 * MIB, round);
    CHECK(wrong(other, 0, 3 * MIB / PAGE, round) == 0);
    CHECK(munmap(other, 3 * MIB) == 0);
  }
  CHECK(munmap(base, 8 * MIB) == 0);
  CHECK(munmap(base, 8 * MIB) == 0);
  CHECK(munmap(base + 1, PAGE) == -1 && errno == EINVAL);
}

static void remap(void) {
  char *base = map(2 * MIB), *wall;
  put_all(base, 2 * MIB, 1);
  wall = map(2 * MIB);
  put_all(wall, 2 * MIB, 2);
  for (unsigned long bytes = 2 * MIB; bytes < 16 * MIB; bytes += 2 * MIB) {
    base = mremap(base, bytes, bytes + 2 * MIB, MREMAP_MAYMOVE);
    CHECK(base != MAP_FAILED);
    CHECK(is_zero(base + bytes, 2 * MIB));
    for (unsigned long page = bytes / PAGE; page < (bytes + 2 * MIB) / PAGE; page++) put(base, page, 1);
    CHECK(wrong(base, 0, (bytes + 2 * MIB) / PAGE, 1) == 0);
  }
  CHECK(mremap(base, 16 * MIB, 4 * MIB, 0) == base);
  CHECK(fault(base + 4 * MIB, 0) == SIGSEGV);
  CHECK(wrong(base, 0, 4 * MIB / PAGE, 1) == 0 && wrong(wall, 0, 2 * MIB / PAGE, 2) == 0);
  char *place = mmap(0, 4 * MIB, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  CHECK(mremap(base, 4 * MIB, 4 * MIB, MREMAP_MAYMOVE | MREMAP_FIXED, place) == place);
  CHECK(wrong(place, 0, 4 * MIB / PAGE, 1) == 0 && fault(base, 0) == SIGSEGV);
}

#ifndef MADV_DONTNEED_LOCKED
#define MADV_DONTNEED_LOCKED 24
#endif

// What was given up was in memory or had left: it is zeros, or with MADV_FREE may be what it was; and new data stay.
static void give_up(void) {
  char *base = map(8 * MIB);
  int advice[] = {MADV_DONTNEED, MADV_DONTNEED_LOCKED, MADV_FREE};
  for (int way = 0; way < 3; way++) {
    put_all(base, 8 * MIB, 1);
    for (int after = 0; after < 2; after++) {
      char *part = base + (2 + 3 * after) * MIB;
      unsigned long first = (part - base) / PAGE, end = first + 2 * MIB / PAGE;
      if (after) press();
      int done = madvise(part, 2 * MIB, advice[way]);
      if (done != 0 && way == 1 && errno == EINVAL) continue;
      CHECK(done == 0);
      for (unsigned long page = first; page < end; page++)
        CHECK(is_zero(base + page * PAGE, PAGE) || (way == 2 && has(base, page, 1)));
      for (unsigned long page = first; page < end; page++) put(base, page, 2);
      press();
      CHECK(wrong(base, first, end, 2) == 0);
    }
    CHECK(wrong(base, 0, 2 * MIB / PAGE, 1) == 0 && wrong(base, 4 * MIB / PAGE, 5 * MIB / PAGE, 1) == 0);
    CHECK(wrong(base, 7 * MIB / PAGE, 8 * MIB / PAGE, 1) == 0);
  }
  CHECK(madvise(base, 8 * MIB, MADV_REMOVE) == -1 && errno == EINVAL);
  CHECK(wrong(base, 2 * MIB / PAGE, 4 * MIB / PAGE, 2) == 0);
  CHECK(mlock(base, MIB / 2) == 0 && madvise(base, MIB / 2, MADV_DONTNEED) == -1 && errno == EINVAL);
  CHECK(wrong(base, 0, MIB / 2 / PAGE, 1) == 0 && munlock(base, MIB / 2) == 0);
}

static void advise(void) {
  char *base = map(8 * MIB);
  put_all(base, 8 * MIB, 1);
  CHECK(madvise(base + 2 * MIB, 2 * MIB, MADV_DONTNEED) == 0);
  CHECK(is_zero(base + 2 * MIB, 2 * MIB));
  CHECK(madvise(base, 8 * MIB, MADV_COLD) == 0 && madvise(base, MIB, MADV_WILLNEED) == 0);
  CHECK(madvise(base, 8 * MIB, MADV_HUGEPAGE) == 0 && madvise(base, 8 * MIB, MADV_NORMAL) == 0);
  CHECK(madvise(base, 8 * MIB, MADV_POPULATE_READ) == 0);
  CHECK(wrong(base, 0, 2 * MIB / PAGE, 1) == 0 && wrong(base, 4 * MIB / PAGE, 8 * MIB / PAGE, 1) == 0);
  put_all(base, 8 * MIB, 2);
  press();
  CHECK(madvise(base, 8 * MIB, MADV_DONTNEED) == 0 && is_zero(base, 8 * MIB));
  CHECK(madvise(base + 1, PAGE, MADV_DONTNEED) == -1 && errno == EINVAL);
  CHECK(madvise(base, PAGE, 12345) == -1 && errno == EINVAL);
  CHECK(munmap(base + MIB, MIB) == 0);
  CHECK(madvise(base, 3 * MIB, MADV_DONTNEED) == -1 && errno == ENOMEM);
}

static void over(void) {
  char *base = map(8 * MIB);
  char name[] = "over-XXXXXX", text[PAGE];
  int file = mkstemp(name);
  CHECK(file >= 0 && unlink(name) == 0);
  memset(text, 'x', PAGE);
  for (int page = 0; page < 512; page++) CHECK(write(file, text, PAGE) == (long)PAGE);
  put_all(base, 8 * MIB, 1);
  CHECK(mmap(base + 2 * MIB, 2 * MIB, PROT_READ, MAP_PRIVATE | MAP_FIXED, file, 0) == base + 2 * MIB);
  int fresh = MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED;
  CHECK(mmap(base + 5 * MIB, MIB, PROT_READ | PROT_WRITE, fresh, -1, 0) == base + 5 * MIB);
  CHECK(is_zero(base + 5 * MIB, MIB));
  press();
  for (unsigned long at = 0; at < 2 * MIB; at += 100) CHECK(base[2 * MIB + at] == 'x');
  CHECK(wrong(base, 0, 2 * MIB / PAGE, 1) == 0 && wrong(base, 4 * MIB / PAGE, 5 * MIB / PAGE, 1) == 0);
  CHECK(wrong(base, 6 * MIB / PAGE, 8 * MIB / PAGE, 1) == 0);
  CHECK(fault(base + 2 * MIB, 1) == SIGSEGV);
  CHECK(mprotect(base, 8 * MIB, PROT_READ) == 0 && fault(base + 4 * MIB, 1) == SIGSEGV);
  CHECK(fault(base + 5 * MIB, 1) == SIGSEGV && fault(base, 1) == SIGSEGV);
  CHECK(munmap(base, 8 * MIB) == 0 && fault(base + 3 * MIB, 0) == SIGSEGV);
}

static void protect(void) {
  char *base = map(8 * MIB);
  put_all(base, 8 * MIB, 1);
  CHECK(mprotect(base + 2 * MIB, 2 * MIB, PROT_READ) == 0);
  CHECK(mprotect(base + 4 * MIB, 2 * MIB, PROT_NONE) == 0);
  CHECK(mprotect(base + 6 * MIB, MIB, PROT_READ | PROT_EXEC) == 0);
  for (int round = 0; round < 3; round++) {
    press();
    CHECK(wrong(base, 0, 4 * MIB / PAGE, 1) == 0 && wrong(base, 6 * MIB / PAGE, 8 * MIB / PAGE, 1) == 0);
    CHECK(fault(base + 3 * MIB, 1) == SIGSEGV && fault(base + 3 * MIB, 0) == 0);
    CHECK(fault(base + 5 * MIB, 0) == SIGSEGV && fault(base + 6 * MIB, 1) == SIGSEGV);
  }
  CHECK(mprotect(base, 8 * MIB, PROT_READ | PROT_WRITE) == 0);
  CHECK(wrong(base, 0, 8 * MIB / PAGE, 1) == 0);
  for (int round = 2; round < 12; round++) {
    put_all(base, 8 * MIB, round);
    CHECK(mprotect(base, 4 * MIB, PROT_READ) == 0);
    if (round % 5 == 0) press();
    CHECK(mprotect(base, 8 * MIB, PROT_READ | PROT_WRITE) == 0);
    CHECK(wrong(base, 0, 8 * MIB / PAGE, round) == 0);
  }
}

static void lock(void) {
  char *base = map(8 * MIB);
  unsigned char there[256];
  put_all(base, 8 * MIB, 1);
  CHECK(mlock(base, MIB) == 0 && mlock(base + 100, PAGE) == 0);
  press();
  CHECK(mincore(base, MIB, there) == 0);
  for (int page = 0; page < 256; page++) CHECK(there[page] & 1);
  CHECK(munlock(base, MIB) == 0);
  press();
  CHECK(wrong(base, 0, 8 * MIB / PAGE, 1) == 0);
  CHECK(mlock(base, MIB) == 0 && munmap(base, 8 * MIB) == 0 && fault(base, 0) == SIGSEGV);
  base = map(8 * MIB);
  put_all(base, 8 * MIB, 2);
  CHECK(wrong(base, 0, 8 * MIB / PAGE, 2) == 0);
}

// Where the program mapped something else and unmapped it, the C library may get the addresses for objects of its own.
static void hole(void) {
  char *base = map(8 * MIB), *blocks[24];
  put_all(base, 8 * MIB, 1);
  CHECK(mmap(base + 2 * MIB, 3 * MIB, PROT_READ, MAP_SHARED | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == base + 2 * MIB);
  CHECK(munmap(base + 2 * MIB, 3 * MIB) == 0);
  for (int round = 0; round < 3; round++) {
    for (int block = 0; block < 24; block++) {
      CHECK((blocks[block] = malloc((200 + 30 * block) << 10)) != 0);
      memset(blocks[block], block, 200 << 10);
    }
    for (int block = 0; block < 24; block++) {
      CHECK(blocks[block][199 << 10] == block);
      CHECK((blocks[block] = realloc(blocks[block], 300 << 10)) != 0);
      free(blocks[block]);
    }
  }
  press();
  CHECK(wrong(base, 0, 2 * MIB / PAGE, 1) == 0 && wrong(base, 5 * MIB / PAGE, 8 * MIB / PAGE, 1) == 0);
}

// More than there are addresses: refused, and nothing has changed.
static void too_much(void) {
  char *base = map(8 * MIB), *block = malloc(4 * MIB);
  put_all(base, 8 * MIB, 1);
  put_all(block, 4 * MIB, 2);
  unsigned long sizes[] = {-1ul, -PAGE, -4097ul, 1ul << 63, 1ul << 62, 1ul << 48};
  for (int size = 0; size < 6; size++) {
    CHECK(mremap(base, 8 * MIB, sizes[size], MREMAP_MAYMOVE) == MAP_FAILED);
    CHECK(mremap(base, 8 * MIB, sizes[size], 0) == MAP_FAILED);
    CHECK(realloc(block, sizes[size]) == 0 && errno == ENOMEM);
    CHECK(mmap(0, sizes[size], PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) == MAP_FAILED);
  }
  press();
  CHECK(wrong(base, 0, 8 * MIB / PAGE, 1) == 0 && wrong(block, 0, 4 * MIB / PAGE, 2) == 0);
  free(block);
}

// Pages that are to be a signal for whoever touches them, and zeros afterwards.
static void guard(void) {
  char *base = map(8 * MIB);
  put_all(base, 8 * MIB, 1);
  press();
  if (madvise(base + MIB, 2 * MIB, 102) != 0) {
    CHECK(errno == EINVAL);
    return;
  }
  press();
  CHECK(fault(base + MIB, 0) == SIGSEGV && fault(base + 3 * MIB - 1, 1) == SIGSEGV);
  CHECK(wrong(base, 0, MIB / PAGE, 1) == 0 && wrong(base, 3 * MIB / PAGE, 8 * MIB / PAGE, 1) == 0);
  CHECK(madvise(base + MIB, 2 * MIB, 103) == 0 && is_zero(base + MIB, 2 * MIB));
  put_all(base, 8 * MIB, 2);
  press();
  CHECK(wrong(base, 0, 8 * MIB / PAGE, 2) == 0);
}

static void lock_much(void) {
  // Also before there is anything to be paged.
  CHECK(mlockall(MCL_FUTURE) == -1 && errno == ENOMEM);
  char *base = map(8 * MIB);
  put_all(base, 8 * MIB, 1);
  CHECK(mlock(base, 8 * MIB) == -1 && errno == ENOMEM);
  CHECK(mlockall(MCL_CURRENT) == -1 && errno == ENOMEM);
  CHECK(wrong(base, 0, 8 * MIB / PAGE, 1) == 0);
}

int main(int count, char **words) {
  CHECK(count == 2);
  signal(SIGSEGV, caught);
  signal(SIGBUS, caught);
  if (!strcmp(words[1], "unmap")) unmap();
  else if (!strcmp(words[1], "remap")) remap();
  else if (!strcmp(words[1], "advise")) advise();
  else if (!strcmp(words[1], "give-up")) give_up();
  else if (!strcmp(words[1], "over")) over();
  else if (!strcmp(words[1], "protect")) protect();
  else if (!strcmp(words[1], "lock")) lock();
  else if (!strcmp(words[1], "lock-much")) lock_much();
  else if (!strcmp(words[1], "hole")) hole();
  else if (!strcmp(words[1], "much")) too_much();
  else if (!strcmp(words[1], "guard")) guard();
  else return 2;
  puts(words[1]);
  return 0;
}
