#include "common.h"
#include <dirent.h>
#include <fcntl.h>
#include <sys/time.h>

static char *base;
static void fill(void) {
  base = map(8 * MIB);
  put_all(base, 8 * MIB, 1);
  CHECK(wrong(base, 0, 8 * MIB / PAGE, 1) == 0);
}

static void *last(void *nothing) {
  usleep(50000);
  CHECK(wrong(base, 0, 8 * MIB / PAGE, 1) == 0);
  puts("last");
  return nothing;
}
// The last thread of the program ends it, though ours live on.
static void ends(void) {
  pthread_t thread;
  CHECK(pthread_create(&thread, 0, last, 0) == 0);
  pthread_exit(0);
}

static volatile sig_atomic_t seen, bad;
static void tick(int signal) {
  // Touches pages while its thread may be in the middle of a fault.
  bad += !has(base, (seen * 37) % (8 * MIB / PAGE), 1);
  seen += signal == SIGALRM;
}
static void signals(void) {
  struct itimerval every = {{0, 500}, {0, 500}}, never = {{0, 0}, {0, 0}};
  setitimer(ITIMER_REAL, &every, 0);
  for (int round = 0; round < 10 || seen < 20; round++) CHECK(wrong(base, 0, 8 * MIB / PAGE, 1) == 0);
  setitimer(ITIMER_REAL, &never, 0);
  CHECK(bad == 0);
  // Blocked by all of the program's threads, a signal waits for it, and no thread of ours takes it.
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGTERM);
  CHECK(sigprocmask(SIG_BLOCK, &set, 0) == 0 && kill(getpid(), SIGTERM) == 0);
  usleep(20000);
  CHECK(sigpending(&set) == 0 && sigismember(&set, SIGTERM));
}

static int count_descriptors(void) {
  int count = 0;
  DIR *folder = opendir("/proc/self/fd");
  while (readdir(folder)) count++;
  closedir(folder);
  return count;
}
// A program that closes all that it does not know, as daemons do, loses nothing.
static void descriptors(void) {
  printf("%d descriptors\n", count_descriptors());
  for (int file = 3; file < 1024; file++) close(file);
  press();
  CHECK(wrong(base, 0, 8 * MIB / PAGE, 1) == 0);
}


static void fatal(int signal, siginfo_t *info, void *context) {
  (void)signal, (void)context;
  if (info->si_addr != (void *)16) _exit(4);
  puts("handled");
  fflush(stdout);
  _exit(0);
}
static void handler(void) {
  struct sigaction action = {0};
  action.sa_sigaction = fatal;
  action.sa_flags = SA_SIGINFO;
  CHECK(sigaction(SIGSEGV, &action, 0) == 0);
  *(volatile char *)16 = 1;
}

static pthread_barrier_t gate;
static void *first(void *number) {
  pthread_barrier_wait(&gate);
  char *block = malloc(2 * MIB);
  CHECK(block);
  put_all(block, 2 * MIB, (long)number);
  pthread_barrier_wait(&gate);
  CHECK(wrong(block, 0, 2 * MIB / PAGE, (long)number) == 0);
  return 0;
}
// All threads have their first large objects at once, and all of these are paged.
static void race(void) {
  pthread_t all[8];
  CHECK(pthread_barrier_init(&gate, 0, 8) == 0);
  for (long t = 0; t < 8; t++) CHECK(pthread_create(&all[t], 0, first, (void *)t) == 0);
  for (int t = 0; t < 8; t++) CHECK(pthread_join(all[t], 0) == 0);
}

// Their stacks are paged, too.
static void *deep(void *number) {
  char here[900 * 1024];
  for (unsigned long page = 1; page < sizeof here / PAGE; page++) here[page * PAGE] = (char)(long)number;
  usleep(2000);
  for (unsigned long page = 1; page < sizeof here / PAGE; page++) CHECK(here[page * PAGE] == (char)(long)number);
  return number;
}
static char *places[4];
static volatile int over;
static void *chase(void *nothing) {
  while (!over) {
    for (int t = 0; t < 4; t++) madvise(places[t], 2 * MIB, MADV_PAGEOUT);
    usleep(50);
  }
  return nothing;
}
static void *brief(void *number) { return number; }
// What the kernel writes when a thread ends must be there, though all of its stack is sent away.
static void joins(void) {
  pthread_t chaser, all[4];
  void *gave;
  for (int t = 0; t < 4; t++) CHECK(posix_memalign((void **)&places[t], PAGE, 2 * MIB) == 0);
  CHECK(pthread_create(&chaser, 0, chase, 0) == 0);
  for (int round = 0; round < 40; round++) {
    for (long t = 0; t < 4; t++) {
      pthread_attr_t attributes;
      CHECK(pthread_attr_init(&attributes) == 0 && pthread_attr_setstack(&attributes, places[t], 2 * MIB) == 0);
      CHECK(pthread_create(&all[t], &attributes, brief, (void *)t) == 0);
    }
    for (long t = 0; t < 4; t++) CHECK(pthread_join(all[t], &gave) == 0 && gave == (void *)t);
  }
  over = 1;
  CHECK(pthread_join(chaser, 0) == 0);
  for (int t = 0; t < 4; t++) free(places[t]);
}
static void stacks(void) {
  for (int round = 0; round < 10; round++) {
    pthread_t all[6];
    void *memory[6], *gave;
    for (long t = 0; t < 6; t++) {
      pthread_attr_t attributes;
      CHECK(posix_memalign(&memory[t], PAGE, 2 * MIB) == 0 && pthread_attr_init(&attributes) == 0);
      CHECK(pthread_attr_setstack(&attributes, memory[t], 2 * MIB) == 0);
      CHECK(pthread_create(&all[t], &attributes, deep, (void *)t) == 0);
    }
    for (long t = 0; t < 6; t++) {
      CHECK(pthread_join(all[t], &gave) == 0 && gave == (void *)t);
      free(memory[t]);
    }
  }
}

// Locks that lie in pages that leave.
static struct { pthread_mutex_t mutex; char rest[PAGE - sizeof(pthread_mutex_t)]; } *locks;
static long counts[64];
static void *count_up(void *nothing) {
  for (int round = 0; round < 40; round++)
    for (int at = 0; at < 64; at++) {
      CHECK(pthread_mutex_lock(&locks[at * 8].mutex) == 0);
      counts[at]++;
      if (round % 20 == 0) sched_yield();
      CHECK(pthread_mutex_unlock(&locks[at * 8].mutex) == 0);
    }
  return nothing;
}
static void locked(void) {
  pthread_t all[4];
  locks = (void *)map(64 * 8 * PAGE);
  for (int at = 0; at < 64; at++) CHECK(pthread_mutex_init(&locks[at * 8].mutex, 0) == 0);
  for (int t = 0; t < 4; t++) CHECK(pthread_create(&all[t], 0, count_up, 0) == 0);
  for (int round = 0; round < 4; round++) press();
  for (int t = 0; t < 4; t++) CHECK(pthread_join(all[t], 0) == 0);
  for (int at = 0; at < 64; at++) CHECK(counts[at] == 160);
}

// What each thread of ours may do beyond what anybody may: nothing.
static int powers(void) {
  int count = 0;
  DIR *folder = opendir("/proc/self/task");
  for (struct dirent *entry; (entry = readdir(folder));) {
    char path[300], line[200];
    snprintf(path, sizeof path, "/proc/self/task/%s/status", entry->d_name);
    FILE *file = fopen(path, "r");
    int mine = 0;
    while (file && fgets(line, sizeof line, file)) {
      mine |= !strncmp(line, "Name:\tisochrone-", 16);
      count += mine && !strncmp(line, "CapEff:", 7) && strcmp(line, "CapEff:\t0000000000000000\n");
    }
    if (file) fclose(file);
  }
  closedir(folder);
  return count;
}

static int ours(void) {
  int count = 0;
  DIR *folder = opendir("/proc/self/task");
  for (struct dirent *entry; (entry = readdir(folder));) {
    char path[300], name[32] = {0};
    snprintf(path, sizeof path, "/proc/self/task/%s/comm", entry->d_name);
    int file = open(path, O_RDONLY);
    if (file >= 0 && read(file, name, 31) > 0) count += !strncmp(name, "isochrone-", 10);
    close(file);
  }
  closedir(folder);
  return count;
}

int main(int count, char **words) {
  CHECK(count == 2);
  signal(SIGALRM, tick);
  if (!strcmp(words[1], "names")) {
    CHECK(ours() == 0);
    fill();
    CHECK(ours() >= 2 && powers() == 0);
    return 0;
  }
  if (!strcmp(words[1], "race")) {
    race();
    return 0;
  }
  fill();
  if (!strcmp(words[1], "exit")) ends();
  else if (!strcmp(words[1], "stacks")) stacks();
  else if (!strcmp(words[1], "joins")) joins();
  else if (!strcmp(words[1], "locks")) locked();
  else if (!strcmp(words[1], "signals")) signals();
  else if (!strcmp(words[1], "descriptors")) descriptors();
  else if (!strcmp(words[1], "handler")) handler();
  else if (!strcmp(words[1], "killed")) raise(SIGKILL);
  else return 2;
  puts(words[1]);
  return 0;
}
