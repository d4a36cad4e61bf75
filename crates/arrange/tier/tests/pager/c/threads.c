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
    CHECK(ours() >= 2);
    return 0;
  }
  fill();
  if (!strcmp(words[1], "exit")) ends();
  else if (!strcmp(words[1], "signals")) signals();
  else if (!strcmp(words[1], "descriptors")) descriptors();
  else if (!strcmp(words[1], "handler")) handler();
  else if (!strcmp(words[1], "killed")) raise(SIGKILL);
  else return 2;
  puts(words[1]);
  return 0;
}
