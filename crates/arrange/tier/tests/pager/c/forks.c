#include "common.h"
#include <spawn.h>
#include <sys/syscall.h>
#include <sys/time.h>

extern char **environ;
static char *base;

static int ended(pid_t child) {
  int status;
  while (waitpid(child, &status, 0) != child) CHECK(errno == EINTR);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}
static void look(unsigned long seed) {
  CHECK(wrong(base, 0, 8 * MIB / PAGE, seed) == 0 && is_zero(base + 8 * MIB, 2 * MIB));
}

// The child sees all, writes, maps, frees, and the parent sees nothing of it.
static void once(unsigned long seed) {
  char *block = malloc(3 * MIB);
  memset(block, 5, 3 * MIB);
  pid_t child = fork();
  CHECK(child >= 0);
  if (child == 0) {
    look(seed);
    put_all(base, 8 * MIB, 77);
    CHECK(block[MIB] == 5);
    block = realloc(block, 5 * MIB);
    CHECK(block[MIB] == 5);
    free(block);
    block = malloc(4 * MIB);
    memset(block, 1, 4 * MIB);
    CHECK(munmap(base + 8 * MIB, 2 * MIB) == 0 && mprotect(base, MIB, PROT_READ) == 0);
    CHECK(madvise(base + 4 * MIB, MIB, MADV_DONTNEED) == 0 && is_zero(base + 4 * MIB, MIB));
    pid_t grandchild = fork();
    if (grandchild == 0) _exit(has(base, 700, 77) ? 5 : 6);
    _exit(ended(grandchild));
  }
  press();
  look(seed);
  CHECK(ended(child) == 5);
  CHECK(block[2 * MIB] == 5);
  free(block);
}

static void again(void) {
  for (int round = 2; round < 6; round++) {
    put_all(base, 8 * MIB, round);
    once(round);
    look(round);
  }
}

// A fork inside of the C library, by a process that is paged.
static void demon(void) {
  int ends[2];
  char answer = 0;
  CHECK(pipe(ends) == 0);
  pid_t child = fork();
  CHECK(child >= 0);
  if (child == 0) {
    base = map(10 * MIB);
    put_all(base, 8 * MIB, 1);
    CHECK(daemon(1, 1) == 0);
    alarm(100);
    look(1);
    answer = 9;
    CHECK(write(ends[1], &answer, 1) == 1);
    _exit(0);
  }
  close(ends[1]);
  CHECK(read(ends[0], &answer, 1) == 1 && answer == 9 && ended(child) == 0);
}

static void with_vfork(void) {
  char *words[] = {"/bin/true", 0};
  pid_t child = vfork();
  if (child == 0) {
    execv(words[0], words);
    _exit(9);
  }
  CHECK(ended(child) == 0);
  look(1);
}

static void spawned(void) {
  char *words[] = {"/bin/true", 0};
  pid_t child;
  CHECK(posix_spawn(&child, words[0], 0, 0, words, environ) == 0 && ended(child) == 0);
  CHECK(system("exit 7") == 7 << 8);
  look(1);
}

static volatile int over;
static void *work(void *number) {
  while (!over) {
    char *block = malloc(2 * MIB);
    CHECK(block);
    put_all(block, 2 * MIB, (long)number);
    CHECK(wrong(block, 0, 2 * MIB / PAGE, (long)number) == 0);
    free(block);
  }
  return 0;
}
// Other threads map, fault and unmap meanwhile.
static void busy(void) {
  pthread_t all[3];
  for (long t = 0; t < 3; t++) CHECK(pthread_create(&all[t], 0, work, (void *)t) == 0);
  for (int round = 0; round < 5; round++) {
    pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
      look(1);
      _exit(0);
    }
    CHECK(ended(child) == 0);
  }
  over = 1;
  for (int t = 0; t < 3; t++) CHECK(pthread_join(all[t], 0) == 0);
  look(1);
}

// Another thread sends pages away, and changes what may be done to them, whenever the child is made.
static void *chase(void *nothing) {
  while (!over) {
    CHECK(madvise(base, 8 * MIB, MADV_PAGEOUT) == 0);
    CHECK(mprotect(base, 4 * MIB, PROT_READ) == 0 && mprotect(base, 4 * MIB, PROT_READ | PROT_WRITE) == 0);
    usleep(100);
  }
  return nothing;
}
static void chased(void) {
  pthread_t chaser;
  CHECK(pthread_create(&chaser, 0, chase, 0) == 0);
  for (int round = 0; round < 4; round++) {
    pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
      look(1);
      _exit(0);
    }
    CHECK(ended(child) == 0);
  }
  over = 1;
  CHECK(pthread_join(chaser, 0) == 0);
  look(1);
}

// What a library does in a child before anybody else: it was registered first.
static char *kept;
static void renew(void) {
  if (!kept) return;
  CHECK(kept[2 * MIB] == 3);
  free(kept);
  kept = malloc(5 * MIB);
  memset(kept, 4, 5 * MIB);
  CHECK(munmap(base + 9 * MIB, MIB) == 0);
}
static void registered(void) {
  kept = malloc(3 * MIB);
  memset(kept, 3, 3 * MIB);
  press();
  for (int round = 0; round < 2; round++) {
    pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) _exit(kept[4 * MIB] == 4 && wrong(base, 0, 8 * MIB / PAGE, 1) == 0 ? 5 : 6);
    CHECK(ended(child) == 5);
  }
  CHECK(kept[2 * MIB] == 3);
}

// A handler forks, too, whatever it finds its thread at.
static volatile sig_atomic_t forked;
static void on_tick(int signal) {
  pid_t child = signal == SIGALRM && forked < 40 ? fork() : -1;
  if (child == 0) _exit(has(base, forked * 11 % (8 * MIB / PAGE), 1) ? 0 : 1);
  if (child > 0) forked += ended(child) == 0;
}
static void interrupted(void) {
  struct itimerval every = {{0, 3000}, {0, 3000}}, never = {{0, 0}, {0, 0}};
  signal(SIGALRM, on_tick);
  setitimer(ITIMER_REAL, &every, 0);
  while (forked < 5) {
    pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) _exit(has(base, 900, 1) ? 0 : 1);
    CHECK(ended(child) == 0);
  }
  setitimer(ITIMER_REAL, &never, 0);
  look(1);
}

// Not by the C library: the child sees what its parent had, or it ends by a signal.
static void bare(void) {
  press();
  pid_t child = syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0);
  CHECK(child >= 0);
  if (child == 0) _exit(wrong(base, 0, 8 * MIB / PAGE, 1) == 0 ? 0 : 1);
  int end = ended(child);
  CHECK(end == 128 + SIGSEGV || end == 0);
  look(1);
}

int main(int count, char **words) {
  CHECK(count == 2);
  if (!strcmp(words[1], "daemon")) {
    demon();
    return puts("daemon") < 0;
  }
  CHECK(pthread_atfork(0, 0, renew) == 0);
  base = map(10 * MIB);
  put_all(base, 8 * MIB, 1);
  if (!strcmp(words[1], "fork")) once(1);
  else if (!strcmp(words[1], "chased")) chased();
  else if (!strcmp(words[1], "registered")) registered();
  else if (!strcmp(words[1], "interrupted")) interrupted();
  else if (!strcmp(words[1], "again")) again();
  else if (!strcmp(words[1], "vfork")) with_vfork();
  else if (!strcmp(words[1], "spawn")) spawned();
  else if (!strcmp(words[1], "busy")) busy();
  else if (!strcmp(words[1], "bare")) bare();
  else return 2;
  puts(words[1]);
  return 0;
}
