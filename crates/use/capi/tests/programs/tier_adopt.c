/* Memory that a program has already is paged, and given back as it was. Arguments: the far tier ("memory", "lz4", "zstd",
   "file" and its folder), or "nobody" for a user who may not. And "sanitized" last, for a sanitizer, which says of a
   child's signal that it is wrong, and lets nobody lock memory. */
#define _GNU_SOURCE
#include "want.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

enum { PAGE = 4096, PAGES = 2048, FAST = 256, WORDS = PAGE / 8, THREADS = 4, ROUNDS = 2 };
static const size_t BYTES = (size_t)PAGES * PAGE;

static isochrone_tier_options options;
static int sanitized;

static uint64_t value(uint64_t at) { return (at * 0x9e3779b97f4a7c15u) >> 40; }

static void fill(uint64_t *words, size_t count) {
  for (size_t at = 0; at < count; at++) words[at] = value(at);
}

static uint64_t wrong(const volatile uint64_t *words, size_t count) {
  uint64_t wrong = 0;
  for (size_t at = 0; at < count; at++) wrong += words[at] != value(at);
  return wrong;
}

static size_t resident(void *at, size_t pages) {
  static unsigned char there[PAGES];
  size_t sum = 0;
  WANT(mincore(at, pages * PAGE, there), 0, "");
  for (size_t page = 0; page < pages; page++) sum += there[page] & 1;
  return sum;
}

static int adopt(void *at, size_t bytes) { return isochrone_tier_adopt(&options, at, bytes); }

/* The pages that lie in an object of malloc whole. */
static uint64_t *whole(void *object) { return (uint64_t *)(((uintptr_t)object + PAGE - 1) / PAGE * PAGE); }

static void *map(size_t bytes, int access, int flags, int file) {
  void *at = mmap(NULL, bytes, access, flags, file, 0);
  WANT(at != MAP_FAILED, 1, "");
  return at;
}

/* A child's end: its code, or 100 and the signal. */
static int child(int (*act)(void *), void *argument) {
  pid_t made = fork();
  int how = 0;
  if (made == 0) _exit(act(argument));
  WANT(made > 0 && waitpid(made, &how, 0) == made, 1, "");
  return WIFSIGNALED(how) ? 100 + WTERMSIG(how) : WEXITSTATUS(how);
}

static int touches(void *at) { return *(volatile uint64_t *)at != value(0); }
static int releases(void *at) { return isochrone_tier_release(at); }

static uint64_t *shared_words;

/* Adds to its own words of each page, in an order of its own. */
static void *adds(void *argument) {
  size_t mine = (uintptr_t)argument;
  for (int round = 0; round < ROUNDS; round++)
    for (size_t step = 0; step < PAGES; step++) shared_words[(step * 37 + mine * 11) % PAGES * WORDS + mine] += 3;
  return NULL;
}

static void at_once(uint64_t *words, void (*meanwhile)(uint64_t *)) {
  pthread_t threads[THREADS];
  shared_words = words;
  for (uintptr_t mine = 0; mine < THREADS; mine++) WANT(pthread_create(&threads[mine], NULL, adds, (void *)mine), 0, "");
  if (meanwhile != NULL) meanwhile(words);
  for (int mine = 0; mine < THREADS; mine++) pthread_join(threads[mine], NULL);
  uint64_t wrong_ones = 0;
  for (size_t page = 0; page < PAGES; page++)
    for (size_t mine = 0; mine < THREADS; mine++) {
      size_t at = page * WORDS + mine;
      wrong_ones += words[at] != value(at) + 3 * ROUNDS, words[at] = value(at);
    }
  WANT(wrong_ones == 0, 1, "");
  WANT(wrong(words, BYTES / 8) == 0, 1, "");
}

static void adopts(uint64_t *words) { WANT(adopt(words, BYTES), ISOCHRONE_OK, ""); }
static void gives_back(uint64_t *words) { WANT(isochrone_tier_release(words), ISOCHRONE_OK, ""); }

/* An array from malloc: its sum before and after, and what the kernel has of it. */
static void of_malloc(void) {
  void *object = malloc(BYTES + PAGE);
  uint64_t *words = whole(object);
  fill(words, BYTES / 8);
  WANT(resident(words, PAGES) == PAGES, 1, "");
  adopts(words);
  WANT(resident(words, PAGES) <= FAST, 1, "");
  WANT(wrong(words, BYTES / 8) == 0, 1, "");
  WANT(resident(words, PAGES) <= FAST, 1, "");
  at_once(words, NULL);
  WANT(resident(words, PAGES) <= FAST, 1, "");

  WANT(adopt(words, BYTES), ISOCHRONE_ARGUMENT, "adopted already");
  WANT(adopt(words + WORDS, 2 * PAGE), ISOCHRONE_ARGUMENT, "adopted already");
  WANT(isochrone_tier_release(words + WORDS), ISOCHRONE_ARGUMENT, "begins there");
  if (!sanitized) WANT(child(touches, words), 100 + SIGSEGV, "");
  WANT(child(releases, words), ISOCHRONE_GONE, "");

  gives_back(words);
  WANT(isochrone_tier_release(words), ISOCHRONE_ARGUMENT, "begins there");
  WANT(resident(words, PAGES) == PAGES, 1, "");
  WANT(wrong(words, BYTES / 8) == 0, 1, "");
  WANT(child(touches, words), 0, "");
  /* Threads use it all the time while it is adopted, and while it is given back. */
  at_once(words, adopts);
  at_once(words, gives_back);
  free(object);
}

/* Pages that nobody has touched are zeros, also to system calls; two ranges have a limit each. */
static void two(void) {
  int both = PROT_READ | PROT_WRITE, private = MAP_PRIVATE | MAP_ANONYMOUS, ends[2];
  uint64_t *first = map(BYTES, both, private, -1), *second = map(BYTES, both, private, -1);
  fill(first, BYTES / 16);
  adopts(first);
  WANT(resident(first, PAGES) <= FAST, 1, "");
  adopts(second);
  WANT(resident(second, PAGES) == 0, 1, "");
  fill(second, BYTES / 8);
  WANT(wrong(first, BYTES / 16) == 0, 1, "");
  uint64_t other = 0;
  for (size_t at = BYTES / 16; at < BYTES / 8; at++) other |= first[at];
  WANT(other == 0, 1, "");
  WANT(wrong(second, BYTES / 8) == 0, 1, "");
  WANT(resident(first, PAGES) <= FAST && resident(second, PAGES) <= FAST, 1, "");
  /* What left long ago is written to a pipe, and read from it into what left, too. */
  WANT(pipe(ends), 0, "");
  WANT((int)write(ends[1], first, 64), 64, "");
  WANT((int)read(ends[0], second, 64), 64, "");
  WANT(wrong(second, 8) == 0, 1, "");
  close(ends[0]), close(ends[1]);
  gives_back(second);
  WANT(wrong(second, BYTES / 8) == 0, 1, "");
  munmap(second, BYTES);
  WANT(wrong(first, BYTES / 16) == 0, 1, "");
  gives_back(first);
  WANT(wrong(first, BYTES / 16) == 0 && first[BYTES / 16] == 0, 1, "");
  /* Unmapped pages in the midst are seen; what is whole again can be adopted again. */
  WANT(munmap(first + 2 * WORDS, PAGE), 0, "");
  WANT(adopt(first, BYTES), ISOCHRONE_ARGUMENT, "not mapped");
  WANT(adopt(first, 2 * PAGE), ISOCHRONE_OK, "");
  gives_back(first);
  munmap(first, BYTES);
}

static int ends[2];

/* A child that has the same pages until one of both writes. */
static int looks_later(void *words) {
  char word;
  return read(ends[0], &word, 1) != 1 || wrong(words, BYTES / 8) != 0;
}

static void shared_with_a_child_and_huge(void) {
  size_t huge = (size_t)2 << 20;
  char *place = map(BYTES + huge, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1);
  uint64_t *words = (uint64_t *)(((uintptr_t)place + huge - 1) / huge * huge);
  (void)madvise(words, BYTES, MADV_HUGEPAGE);
  fill(words, BYTES / 8);
  int how = 0;
  WANT(pipe(ends), 0, "");
  pid_t made = fork();
  if (made == 0) _exit(looks_later(words));
  adopts(words);
  at_once(words, NULL);
  WANT(resident(words, PAGES) <= FAST, 1, "");
  for (size_t page = 0; page < PAGES; page++) words[page * WORDS]++;
  WANT((int)write(ends[1], "", 1), 1, "");
  WANT(waitpid(made, &how, 0) == made && how == 0, 1, "");
  for (size_t page = 0; page < PAGES; page++) words[page * WORDS]--;
  gives_back(words);
  WANT(wrong(words, BYTES / 8) == 0, 1, "");
  munmap(place, BYTES + huge);
}

/* Other numbers than those of fill: of a mapping that came later. */
static uint64_t later(uint64_t at) { return value(at) ^ 0x5555; }

static uint64_t wrong_later(const volatile uint64_t *words, size_t count) {
  uint64_t wrong = 0;
  for (size_t at = 0; at < count; at++) wrong += words[at] != later(at);
  return wrong;
}

/* A part is unmapped without a word, and something else is mapped there: it is the program's, and nothing of it leaves.
   How: 0 by munmap and mmap, 1 by MAP_FIXED over it, 2 the same with a file. */
static void unmapped(int how) {
  int both = PROT_READ | PROT_WRITE, private = MAP_PRIVATE | MAP_ANONYMOUS, file = -1;
  size_t half = BYTES / 2, words_of_half = half / 8;
  uint64_t *words = map(BYTES, both, private, -1), *second = words + words_of_half;
  fill(words, BYTES / 8);
  adopts(words);
  if (how == 0) WANT(munmap(second, half), 0, "");
  if (how == 2) {
    char name[] = "adopt-XXXXXX";
    file = mkstemp(name);
    WANT(file >= 0 && unlink(name) == 0 && ftruncate(file, (off_t)half) == 0, 1, "");
    private = MAP_PRIVATE;
  }
  WANT(mmap(second, half, both, private | MAP_FIXED, file, 0) == (void *)second, 1, "");
  uint64_t other = 0;
  for (size_t at = 0; at < words_of_half; at++) other |= second[at], second[at] = later(at);
  WANT(other == 0, 1, "");
  for (int round = 0; round < 3; round++) {
    WANT(wrong(words, words_of_half) == 0, 1, "");
    WANT(wrong_later(second, words_of_half) == 0, 1, "");
  }
  WANT(resident(second, PAGES / 2) == PAGES / 2, 1, "");
  WANT(resident(words, PAGES / 2) <= FAST, 1, "");
  gives_back(words);
  WANT(wrong(words, words_of_half) == 0 && wrong_later(second, words_of_half) == 0, 1, "");
  WANT(resident(words, PAGES) == PAGES, 1, "");
  munmap(words, BYTES);
  if (file >= 0) close(file);
}

static void unmaps_its_second_half(uint64_t *words) {
  for (size_t page = PAGES; page < 2 * PAGES; page += 16) WANT(munmap(words + page * WORDS, 16 * PAGE), 0, "");
}

/* Threads touch the first half while the second is unmapped piece by piece: each call waits until it was heard. */
static void unmapped_meanwhile(void) {
  uint64_t *words = map(2 * BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1);
  fill(words, BYTES / 4);
  WANT(adopt(words, 2 * BYTES), ISOCHRONE_OK, "");
  at_once(words, unmaps_its_second_half);
  if (!sanitized) WANT(child(touches, words + PAGES * WORDS), 100 + SIGSEGV, "");
  gives_back(words);
  WANT(wrong(words, BYTES / 8) == 0, 1, "");
  munmap(words, BYTES);
}

/* All of it is unmapped: nothing is left to give back. What lies there later is adopted anew, and is what is given back. */
static void all_unmapped(void) {
  int both = PROT_READ | PROT_WRITE, private = MAP_PRIVATE | MAP_ANONYMOUS;
  uint64_t *words = map(BYTES, both, private, -1);
  fill(words, BYTES / 8);
  adopts(words);
  WANT(munmap(words, BYTES), 0, "");
  gives_back(words);
  WANT(isochrone_tier_release(words), ISOCHRONE_ARGUMENT, "begins there");
  WANT(mmap(words, BYTES, both, private | MAP_FIXED, -1, 0) == (void *)words, 1, "");
  adopts(words);
  WANT(munmap(words, BYTES), 0, "");
  WANT(mmap(words, BYTES, both, private | MAP_FIXED, -1, 0) == (void *)words, 1, "");
  fill(words, BYTES / 8);
  adopts(words);
  WANT(wrong(words, BYTES / 8) == 0, 1, "");
  gives_back(words);
  WANT(resident(words, PAGES) == PAGES, 1, "");
  WANT(wrong(words, BYTES / 8) == 0, 1, "");
  WANT(isochrone_tier_release(words), ISOCHRONE_ARGUMENT, "begins there");
  munmap(words, BYTES);
}

static uint64_t *moved_words;
static int moved_away;

/* Reads what it can while it is moved: from the new place as soon as that is known. */
static void *reads_there(void *argument) {
  (void)argument;
  while (!__atomic_load_n(&moved_away, __ATOMIC_ACQUIRE)) sched_yield();
  return (void *)(uintptr_t)(wrong(moved_words, BYTES / 8) != 0);
}

/* What is moved (mremap, realloc) comes whole to its new place, and is the program's alone there. */
static void moved(void) {
  int both = PROT_READ | PROT_WRITE, private = MAP_PRIVATE | MAP_ANONYMOUS;
  uint64_t *words = map(BYTES, both, private, -1), *there = map(BYTES, PROT_NONE, private, -1);
  pthread_t threads[THREADS];
  void *bad;
  fill(words, BYTES / 8);
  adopts(words);
  moved_words = there;
  for (int each = 0; each < THREADS; each++) WANT(pthread_create(&threads[each], NULL, reads_there, NULL), 0, "");
  WANT(mremap(words, BYTES, BYTES, MREMAP_MAYMOVE | MREMAP_FIXED, there) == (void *)there, 1, "");
  __atomic_store_n(&moved_away, 1, __ATOMIC_RELEASE);
  for (int each = 0; each < THREADS; each++) WANT(pthread_join(threads[each], &bad) == 0 && bad == NULL, 1, "");
  WANT(wrong(there, BYTES / 8) == 0, 1, "");
  gives_back(words);
  WANT(resident(there, PAGES) == PAGES, 1, "");
  WANT(wrong(there, BYTES / 8) == 0, 1, "");
  WANT(child(touches, there), 0, "");
  adopts(there);
  gives_back(there);
  WANT(wrong(there, BYTES / 8) == 0, 1, "");
  munmap(there, BYTES);
  void *object = malloc(BYTES + PAGE);
  size_t offset = (size_t)((char *)whole(object) - (char *)object);
  fill(whole(object), BYTES / 8);
  uint64_t *inside = whole(object);
  adopts(inside);
  object = realloc(object, 2 * BYTES + PAGE);
  WANT(object != NULL, 1, "");
  for (size_t at = 0; object != NULL && at < BYTES / 8; at++) {
    uint64_t word;
    memcpy(&word, (char *)object + offset + 8 * at, 8);
    if (word != value(at)) {
      WANT(0, 1, "");
      break;
    }
  }
  gives_back(inside);
  free(object);
}

/* The first half is gone through while the other is given up, piece by piece. */
static void empties_its_second_half(uint64_t *words) {
  for (size_t page = PAGES; page < 2 * PAGES; page += 16) {
    WANT(madvise(words + page * WORDS, 16 * PAGE, MADV_DONTNEED), 0, "");
    WANT(words[page * WORDS] | words[(page + 15) * WORDS + 9], 0, "");
    words[page * WORDS] = later(page);
  }
}

enum { OWN = 64 };
static uint64_t *emptied_words;

/* Gives its own pages up again and again, in odd rounds by MADV_FREE, after which what is in memory may stay. It has
   what it wrote afterwards, and zeros, whatever leaves meanwhile. */
static void *empties(void *argument) {
  uint64_t *own = emptied_words + (uintptr_t)argument * OWN * WORDS, bad = 0;
  for (uint64_t round = 1; round <= 40; round++) {
    for (size_t page = 0; page < OWN; page++) {
      uint64_t old = own[page * WORDS + 1];
      bad += old != 0 && !(round % 2 == 0 && old == round - 1);
      own[page * WORDS + 1] = round;
    }
    for (size_t page = 0; page < PAGES; page += 3) bad += emptied_words[page * WORDS + 7] != value(page * WORDS + 7) &&
                                                        emptied_words[page * WORDS + 7] != 0;
    for (size_t page = 0; page < OWN; page++) bad += own[page * WORDS + 1] != round;
    bad += madvise(own, OWN * PAGE, round % 2 == 0 ? MADV_DONTNEED : MADV_FREE) != 0;
  }
  return (void *)(uintptr_t)bad;
}

/* What the program gives up is zeros from then on, wherever it was; with MADV_FREE what is in memory may stay. */
static void emptied(void) {
  int both = PROT_READ | PROT_WRITE, private = MAP_PRIVATE | MAP_ANONYMOUS, advice[] = {MADV_DONTNEED, MADV_FREE};
  size_t half = BYTES / 2, words_of_half = half / 8;
  for (int way = 0; way < 2; way++) {
    uint64_t *words = map(BYTES, both, private, -1), *second = words + words_of_half, other = 0;
    fill(words, BYTES / 8);
    adopts(words);
    WANT(madvise(words, BYTES, MADV_REMOVE) == -1 && errno == EINVAL, 1, "");
    WANT(wrong(words, BYTES / 8) == 0, 1, "");
    WANT(madvise(second, half, advice[way]), 0, "");
    for (size_t at = 0; at < words_of_half; at++) {
      int may_stay = way == 1 && second[at] == value(words_of_half + at);
      other |= may_stay ? 0 : second[at];
      second[at] = later(at);
    }
    WANT(other == 0, 1, "");
    for (int round = 0; round < 2; round++) {
      WANT(wrong(words, words_of_half) == 0, 1, "");
      WANT(wrong_later(second, words_of_half) == 0, 1, "");
    }
    WANT(resident(words, PAGES) <= FAST, 1, "");
    WANT(madvise(second + 3 * WORDS, PAGE, advice[way]), 0, "");
    WANT((second[3 * WORDS] == 0 || way == 1) && second[4 * WORDS] == later(4 * WORDS), 1, "");
    WANT(madvise(words, half, advice[way]), 0, "");
    gives_back(words);
    for (size_t at = other = 0; at < words_of_half; at++) other |= way == 1 && words[at] == value(at) ? 0 : words[at];
    WANT(other == 0 && second[4 * WORDS] == later(4 * WORDS), 1, "");
    munmap(words, BYTES);
  }
  uint64_t *words = map(2 * BYTES, both, private, -1);
  fill(words, BYTES / 4);
  WANT(adopt(words, 2 * BYTES), ISOCHRONE_OK, "");
  at_once(words, empties_its_second_half);
  for (size_t page = PAGES; page < 2 * PAGES; page++)
    if (words[page * WORDS] != (page % 16 == 0 ? later(page) : 0)) WANT(0, 1, "");
  gives_back(words);
  munmap(words, 2 * BYTES);
  emptied_words = map(BYTES, both, private, -1);
  fill(emptied_words, BYTES / 8);
  adopts(emptied_words);
  WANT(madvise(emptied_words, THREADS * OWN * PAGE, MADV_DONTNEED), 0, "");
  pthread_t threads[THREADS];
  void *bad;
  for (uintptr_t mine = 0; mine < THREADS; mine++) WANT(pthread_create(&threads[mine], NULL, empties, (void *)mine), 0, "");
  for (int mine = 0; mine < THREADS; mine++) WANT(pthread_join(threads[mine], &bad) == 0 && bad == NULL, 1, "");
  gives_back(emptied_words);
  uint64_t others = 0;
  for (size_t at = THREADS * OWN * WORDS; at < BYTES / 8; at++) others += emptied_words[at] != value(at);
  WANT(others == 0, 1, "");
  munmap(emptied_words, BYTES);
}

static sigjmp_buf back;
static void caught(int signal) { siglongjmp(back, signal); }

/* The signal of a read at an address; 0 for none. */
static int reads(const volatile uint64_t *at) {
  int signal = sigsetjmp(back, 1);
  if (signal == 0) (void)*at;
  return signal;
}

/* What may not be touched for a while is a signal then, and holds what it held; and what is locked stays. */
static void shut_and_locked(void) {
  struct sigaction before, now = {.sa_handler = caught};
  unsigned char there[FAST / 4];
  uint64_t *words = map(BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1), *second = words + BYTES / 16;
  fill(words, BYTES / 8);
  adopts(words);
  WANT(sigaction(SIGSEGV, &now, &before), 0, "");
  WANT(mprotect(second, BYTES / 2, PROT_NONE), 0, "");
  WANT(reads(second) == SIGSEGV && reads(words + BYTES / 8 - 1) == SIGSEGV && reads(words) == 0, 1, "");
  WANT(sigaction(SIGSEGV, &before, NULL), 0, "");
  for (int round = 0; round < 2; round++) WANT(wrong(words, BYTES / 16) == 0, 1, "");
  WANT(mprotect(second, BYTES / 2, PROT_READ | PROT_WRITE), 0, "");
  WANT(wrong(words, BYTES / 8) == 0, 1, "");
  if (!sanitized && mlock(words, sizeof there * PAGE) == 0) {
    WANT(wrong(words, BYTES / 8) == 0, 1, "");
    WANT(mincore(words, sizeof there * PAGE, there), 0, "");
    for (size_t page = 0; page < sizeof there; page++) WANT(there[page] & 1, 1, "");
    WANT(munlock(words, sizeof there * PAGE), 0, "");
  }
  WANT(wrong(words, BYTES / 8) == 0, 1, "");
  gives_back(words);
  WANT(wrong(words, BYTES / 8) == 0, 1, "");
  munmap(words, BYTES);
}

/* A thread whose stack lies in memory that it has adopted would wait for itself. */
static void *adopts_its_stack(void *stack) {
  WANT(adopt(stack, BYTES), ISOCHRONE_ARGUMENT, "the caller's stack");
  return NULL;
}

static void own_stack(void) {
  void *stack = map(BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1);
  pthread_attr_t how;
  pthread_t thread;
  WANT(pthread_attr_init(&how), 0, "");
  WANT(pthread_attr_setstack(&how, stack, BYTES), 0, "");
  WANT(pthread_create(&thread, &how, adopts_its_stack, stack), 0, "");
  WANT(pthread_join(thread, NULL), 0, "");
  pthread_attr_destroy(&how);
  munmap(stack, BYTES);
}

/* A signal that the program keeps from its threads waits for it: no thread of ours takes it. */
static void signals_wait(void) {
  uint64_t *words = map(BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1);
  sigset_t one, waiting;
  int got = 0;
  fill(words, BYTES / 8);
  sigemptyset(&one), sigaddset(&one, SIGUSR1);
  adopts(words);
  WANT(pthread_sigmask(SIG_BLOCK, &one, NULL), 0, "");
  WANT(kill(getpid(), SIGUSR1), 0, "");
  WANT(wrong(words, BYTES / 8) == 0, 1, "");
  WANT(sigpending(&waiting) == 0 && sigismember(&waiting, SIGUSR1) == 1, 1, "");
  WANT(sigwait(&one, &got) == 0 && got == SIGUSR1, 1, "");
  WANT(pthread_sigmask(SIG_UNBLOCK, &one, NULL), 0, "");
  gives_back(words);
  munmap(words, BYTES);
}

static void refused(void) {
  int both = PROT_READ | PROT_WRITE, private = MAP_PRIVATE | MAP_ANONYMOUS;
  char name[] = "adopt-XXXXXX";
  int file = mkstemp(name);
  WANT(file >= 0 && unlink(name) == 0 && ftruncate(file, 16 * PAGE) == 0, 1, "");
  char *memory = map(16 * PAGE, both, private, -1);
  struct {
    void *at;
    const char *why;
  } others[] = {{map(16 * PAGE, both, MAP_PRIVATE, file), "file"},
                {map(16 * PAGE, both, MAP_SHARED, file), "shared"},
                {map(16 * PAGE, both, MAP_SHARED | MAP_ANONYMOUS, -1), "shared"},
                {map(16 * PAGE, PROT_READ, private, -1), "readable and writable"}};
  for (size_t at = 0; at < sizeof others / sizeof others[0]; at++) {
    WANT(adopt(others[at].at, 16 * PAGE), ISOCHRONE_ARGUMENT, others[at].why);
    WANT(munmap(others[at].at, 16 * PAGE), 0, "");
  }
  char local[3 * PAGE];
  local[0] = 1;
  WANT(adopt((char *)whole(local), PAGE), ISOCHRONE_ARGUMENT, "stack");
  WANT(adopt(memory + 16, PAGE), ISOCHRONE_ARGUMENT, "whole pages");
  WANT(adopt(memory, PAGE + 16), ISOCHRONE_ARGUMENT, "whole pages");
  WANT(adopt(memory, 0), ISOCHRONE_ARGUMENT, "whole pages");
  WANT(adopt(memory, SIZE_MAX / PAGE * PAGE), ISOCHRONE_ARGUMENT, "addresses");
  WANT(adopt(NULL, PAGE), ISOCHRONE_ARGUMENT, "null");
  WANT(isochrone_tier_adopt(NULL, memory, PAGE), ISOCHRONE_ARGUMENT, "no options");
  WANT(isochrone_tier_release(NULL), ISOCHRONE_ARGUMENT, "begins there");
  if (!sanitized && mlock(memory + PAGE, PAGE) == 0) WANT(adopt(memory, 16 * PAGE), ISOCHRONE_ARGUMENT, "locked");
  WANT(munlock(memory + PAGE, PAGE), 0, "");
  WANT(madvise(memory, PAGE, MADV_DONTFORK), 0, "");
  WANT(adopt(memory, 16 * PAGE), ISOCHRONE_ARGUMENT, "MADV_DONTFORK");
  WANT(madvise(memory, PAGE, MADV_DOFORK), 0, "");
  isochrone_tier_options good = options;
  options.fast_bytes = PAGE;
  WANT(adopt(memory, 16 * PAGE), ISOCHRONE_ARGUMENT, "fast_bytes");
  options = good, options.flags = ISOCHRONE_TIER_SIGBUS;
  WANT(adopt(memory, 16 * PAGE), ISOCHRONE_ARGUMENT, "flags");
  options = good;
  WANT(adopt(memory, 16 * PAGE), ISOCHRONE_OK, "");
  gives_back((uint64_t *)memory);
  munmap(memory, 16 * PAGE), close(file);
}

/* A user whose process is not told of the kernel's faults is told what mends that. */
static int nobody(void) {
  uint64_t *words = map(BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1);
  if (geteuid() == 0 && (setgid(65534) != 0 || setuid(65534) != 0)) return 77;
  fill(words, BYTES / 8);
  int got = adopt(words, BYTES);
  if (got == ISOCHRONE_OK) return 77;
  WANT(got, ISOCHRONE_STATE, "vm.unprivileged_userfaultfd=1");
  WANT(resident(words, PAGES) == PAGES && wrong(words, BYTES / 8) == 0, 1, "");
  return failed;
}

int main(int count, char **arguments) {
  const char *how = count > 1 ? arguments[1] : "lz4";
  sanitized = count > 2 && strcmp(arguments[count - 1], "sanitized") == 0;
  options.size = sizeof options;
  options.fast_bytes = (uint64_t)FAST * PAGE;
  options.far = ISOCHRONE_FAR_COMPRESSED;
  if (strcmp(how, "nobody") == 0) return nobody();
  if (strcmp(how, "memory") == 0) options.far = ISOCHRONE_FAR_MEMORY;
  if (strcmp(how, "zstd") == 0) options.far = ISOCHRONE_FAR_ZSTD;
  if (strcmp(how, "file") == 0) options.far = ISOCHRONE_FAR_FILE, options.folder = arguments[2];
  void *tried = map(PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1);
  if (adopt(tried, PAGE) == ISOCHRONE_STATE) return fprintf(stderr, "%s\n", isochrone_error()), 77;
  WANT(isochrone_tier_release(tried), ISOCHRONE_OK, "");
  refused();
  if (!sanitized) own_stack();
  signals_wait();
  of_malloc();
  two();
  shared_with_a_child_and_huge();
  for (int way = 0; way < 3; way++) unmapped(way);
  unmapped_meanwhile();
  all_unmapped();
  moved();
  emptied();
  shut_and_locked();
  return failed;
}
