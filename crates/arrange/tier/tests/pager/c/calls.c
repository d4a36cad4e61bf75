#include "common.h"
#include <fcntl.h>
#include <sys/uio.h>

static char *base;

static void *feed(void *end) {
  for (unsigned long done = 0; done < 8 * MIB;) {
    long more = write(*(int *)end, base + done, 8 * MIB - done < 3 * PAGE + 5 ? 8 * MIB - done : 3 * PAGE + 5);
    CHECK(more > 0);
    done += more;
  }
  return 0;
}
// Both buffers are paged, and both sides of the pipe touch absent pages in the kernel.
static void pipes(void) {
  char *to = map(8 * MIB);
  int ends[2];
  pthread_t feeder;
  CHECK(pipe(ends) == 0 && pthread_create(&feeder, 0, feed, &ends[1]) == 0);
  for (unsigned long done = 0; done < 8 * MIB;) {
    long more = read(ends[0], to + done, 8 * MIB - done);
    CHECK(more > 0);
    done += more;
  }
  CHECK(pthread_join(feeder, 0) == 0 && wrong(to, 0, 8 * MIB / PAGE, 1) == 0);
}

static int scratch(void) {
  char name[] = "calls-XXXXXX";
  int file = mkstemp(name);
  CHECK(file >= 0);
  for (unsigned long done = 0; done < 8 * MIB; done += MIB) CHECK(pwrite(file, base + done, MIB, done) == (long)MIB);
  CHECK(fsync(file) == 0);
  int direct = open(name, O_RDONLY | O_DIRECT);
  CHECK(unlink(name) == 0);
  if (direct >= 0) {
    close(file);
    return direct;
  }
  return file;
}

static void files(void) {
  int file = scratch();
  char *to = map(8 * MIB);
  for (int round = 0; round < 3; round++) {
    memset(to, round, 8 * MIB);
    press();
    struct iovec parts[2] = {{to, 3 * MIB}, {to + 3 * MIB, 5 * MIB}};
    CHECK(preadv(file, parts, 2, 0) == (long)(8 * MIB));
    CHECK(wrong(to, 0, 8 * MIB / PAGE, 1) == 0);
  }
}

static volatile int over;
// Everything leaves, again and again.
static void *chase(void *nothing) {
  while (!over) madvise(base, 16 * MIB, MADV_PAGEOUT);
  return nothing;
}
static void direct(void) {
  int file = scratch();
  char *to = base + 8 * MIB;
  pthread_t chaser;
  CHECK(pthread_create(&chaser, 0, chase, 0) == 0);
  for (int round = 0; round < 4; round++) {
    memset(to, 200 + round % 50, 8 * MIB);
    for (unsigned long at = 0; at < 8 * MIB; at += 2 * MIB) {
      struct iovec parts[4];
      for (int part = 0; part < 4; part++) parts[part] = (struct iovec){to + at + part * MIB / 2, MIB / 2};
      CHECK(preadv(file, parts, 4, at) == (long)(2 * MIB));
    }
    CHECK(wrong(to, 0, 8 * MIB / PAGE, 1) == 0);
    for (unsigned long page = 0; page < 8 * MIB / PAGE; page += 7)
      CHECK(memcmp(to + page * PAGE, base + page * PAGE, PAGE) == 0);
  }
  over = 1;
  CHECK(pthread_join(chaser, 0) == 0);
}

int main(int count, char **words) {
  CHECK(count == 2);
  base = map(16 * MIB);
  put_all(base, 8 * MIB, 1);
  if (!strcmp(words[1], "pipe")) pipes();
  else if (!strcmp(words[1], "file")) files();
  else if (!strcmp(words[1], "direct")) direct();
  else return 2;
  puts(words[1]);
  return 0;
}
