// Reads and writes that the kernel does while the program goes on: by io_uring, with plain and with registered buffers,
// and by the older calls of libaio. Everything leaves again and again meanwhile. By raw system calls: no library of either.
#include "common.h"
#include <fcntl.h>
#include <linux/aio_abi.h>
#include <linux/io_uring.h>
#include <sys/syscall.h>
#include <sys/uio.h>

enum { DEPTH = 32, PART = 64 << 10, FIXED = 4, FIXED_BYTES = 256 << 10, ROUNDS = 4 };
static const unsigned long ALL = 8 * MIB;
static char *base;
static volatile int over;

static void *chase(void *nothing) {
  while (!over) madvise(base, 2 * ALL, MADV_PAGEOUT);
  return nothing;
}

// A file of the first half, which is read and written past the page cache where the file system can.
static int scratch(void) {
  char name[] = "rings-XXXXXX";
  int file = mkstemp(name);
  CHECK(file >= 0);
  for (unsigned long done = 0; done < ALL; done += MIB) CHECK(pwrite(file, base + done, MIB, done) == (long)MIB);
  CHECK(fsync(file) == 0);
  int direct = open(name, O_RDWR | O_DIRECT);
  CHECK(unlink(name) == 0);
  if (direct < 0) return file;
  close(file);
  return direct;
}

static struct {
  int number;
  unsigned *sq_tail, *sq_mask, *sq_array, *cq_head, *cq_tail, *cq_mask;
  struct io_uring_sqe *sqes;
  struct io_uring_cqe *cqes;
} ring;

static int open_ring(void) {
  struct io_uring_params of;
  memset(&of, 0, sizeof of);
  ring.number = syscall(SYS_io_uring_setup, DEPTH, &of);
  if (ring.number < 0) return 0;
  unsigned long sq = of.sq_off.array + of.sq_entries * sizeof(unsigned);
  unsigned long cq = of.cq_off.cqes + of.cq_entries * sizeof(struct io_uring_cqe);
  int access = PROT_READ | PROT_WRITE;
  char *sqs = mmap(0, sq, access, MAP_SHARED | MAP_POPULATE, ring.number, IORING_OFF_SQ_RING);
  char *cqs = mmap(0, cq, access, MAP_SHARED | MAP_POPULATE, ring.number, IORING_OFF_CQ_RING);
  ring.sqes = mmap(0, of.sq_entries * sizeof *ring.sqes, access, MAP_SHARED | MAP_POPULATE, ring.number, IORING_OFF_SQES);
  CHECK(sqs != MAP_FAILED && cqs != MAP_FAILED && (void *)ring.sqes != MAP_FAILED);
  ring.sq_tail = (unsigned *)(sqs + of.sq_off.tail), ring.sq_mask = (unsigned *)(sqs + of.sq_off.ring_mask);
  ring.sq_array = (unsigned *)(sqs + of.sq_off.array);
  ring.cq_head = (unsigned *)(cqs + of.cq_off.head), ring.cq_tail = (unsigned *)(cqs + of.cq_off.tail);
  ring.cq_mask = (unsigned *)(cqs + of.cq_off.ring_mask);
  ring.cqes = (struct io_uring_cqe *)(cqs + of.cq_off.cqes);
  return 1;
}

// Puts one into the queue; a registered buffer has a number.
static void queue(int what, int file, char *at, unsigned bytes, unsigned long offset, int buffer) {
  unsigned tail = *ring.sq_tail, place = tail & *ring.sq_mask;
  struct io_uring_sqe *one = &ring.sqes[place];
  memset(one, 0, sizeof *one);
  one->opcode = what, one->fd = file, one->addr = (unsigned long)at, one->len = bytes, one->off = offset;
  if (buffer >= 0) one->buf_index = buffer;
  one->user_data = bytes;
  ring.sq_array[place] = place;
  __atomic_store_n(ring.sq_tail, tail + 1, __ATOMIC_RELEASE);
}

// Has so many done. Those whose kernel has no way to wait for them do it in threads of its own.
static void done(unsigned count) {
  unsigned entered = 0, seen = 0;
  while (seen < count) {
    long more = syscall(SYS_io_uring_enter, ring.number, count - entered, 1, IORING_ENTER_GETEVENTS, 0, 0);
    CHECK(more >= 0 || errno == EINTR);
    entered += more > 0 ? more : 0;
    unsigned head = *ring.cq_head, tail = __atomic_load_n(ring.cq_tail, __ATOMIC_ACQUIRE);
    for (; head != tail; head++, seen++) {
      struct io_uring_cqe *one = &ring.cqes[head & *ring.cq_mask];
      errno = one->res < 0 ? -one->res : 0;
      CHECK(one->res == (int)one->user_data);
    }
    __atomic_store_n(ring.cq_head, head, __ATOMIC_RELEASE);
  }
}

// Whether what is at `to` is what the file has from `from` on.
static void same(const char *to, unsigned long from, unsigned long bytes) {
  for (unsigned long at = 0; at < bytes; at += PAGE) {
    const unsigned long *words = (const unsigned long *)(to + at);
    unsigned long word = word_of((from + at) / PAGE, 1);
    CHECK(words[0] == word && words[300] == word && words[511] == word);
  }
}

static void plain(int file) {
  char *to = base + ALL;
  for (int round = 0; round < ROUNDS; round++) {
    memset(to, 200 + round, ALL);
    for (unsigned long at = 0; at < ALL; at += (unsigned long)DEPTH * PART) {
      for (unsigned long part = at; part < at + (unsigned long)DEPTH * PART; part += PART)
        queue(IORING_OP_READ, file, to + part, PART, part, -1);
      done(DEPTH);
    }
    same(to, 0, ALL);
  }
}

// The kernel has these pages from their registration on: what it writes there, and what the program does, both see.
static void registered(int file) {
  char *to = base + ALL, *other = map(ALL);
  struct iovec parts[FIXED];
  for (int part = 0; part < FIXED; part++) parts[part] = (struct iovec){to + part * FIXED_BYTES, FIXED_BYTES};
  CHECK(syscall(SYS_io_uring_register, ring.number, IORING_REGISTER_BUFFERS, parts, FIXED) == 0);
  unsigned long step = (unsigned long)FIXED * FIXED_BYTES;
  for (int round = 0; round < ROUNDS; round++) {
    for (unsigned long at = 0; at < ALL; at += step) {
      for (int part = 0; part < FIXED; part++)
        queue(IORING_OP_READ_FIXED, file, parts[part].iov_base, FIXED_BYTES, at + part * FIXED_BYTES, part);
      done(FIXED);
      same(to, at, step);
      memset(to, round, step);
    }
    for (unsigned long page = 0; page < step / PAGE; page++) put(to, page, 50 + round);
    for (int part = 0; part < FIXED; part++)
      queue(IORING_OP_WRITE_FIXED, file, parts[part].iov_base, FIXED_BYTES, ALL + part * FIXED_BYTES, part);
    done(FIXED);
    CHECK(pread(file, other, step, ALL) == (long)step && wrong(other, 0, step / PAGE, 50 + round) == 0);
  }
  CHECK(syscall(SYS_io_uring_register, ring.number, IORING_UNREGISTER_BUFFERS, 0, 0) == 0);
  press();
  CHECK(wrong(to, 0, step / PAGE, 50 + ROUNDS - 1) == 0);
}

static void aio(int file) {
  char *to = base + ALL;
  aio_context_t context = 0;
  CHECK(syscall(SYS_io_setup, DEPTH, &context) == 0);
  for (int round = 0; round < ROUNDS; round++) {
    memset(to, 220 + round, ALL);
    for (unsigned long at = 0; at < ALL; at += (unsigned long)DEPTH * PART) {
      struct iocb all[DEPTH], *each[DEPTH];
      struct io_event events[DEPTH];
      memset(all, 0, sizeof all);
      for (int part = 0; part < DEPTH; part++) {
        unsigned long from = at + (unsigned long)part * PART;
        all[part].aio_lio_opcode = IOCB_CMD_PREAD, all[part].aio_fildes = file;
        all[part].aio_buf = (unsigned long)(to + from), all[part].aio_nbytes = PART, all[part].aio_offset = from;
        each[part] = &all[part];
      }
      for (long sent = 0; sent < DEPTH;) {
        long more = syscall(SYS_io_submit, context, DEPTH - sent, each + sent);
        CHECK(more > 0);
        sent += more;
      }
      for (long came = 0; came < DEPTH;) {
        long more = syscall(SYS_io_getevents, context, 1, DEPTH - came, events, 0);
        CHECK(more > 0 || errno == EINTR);
        for (long event = 0; event < more; event++) CHECK(events[event].res == PART);
        came += more > 0 ? more : 0;
      }
    }
    same(to, 0, ALL);
  }
  CHECK(syscall(SYS_io_destroy, context) == 0);
}

int main(int count, char **words) {
  CHECK(count == 2);
  base = map(2 * ALL);
  put_all(base, ALL, 1);
  if (strcmp(words[1], "aio") && !open_ring()) {
    puts("no io_uring");
    return 0;
  }
  int file = scratch();
  pthread_t chaser;
  CHECK(pthread_create(&chaser, 0, chase, 0) == 0);
  if (!strcmp(words[1], "plain")) plain(file);
  else if (!strcmp(words[1], "registered")) registered(file);
  else if (!strcmp(words[1], "aio")) aio(file);
  else return 2;
  over = 1;
  CHECK(pthread_join(chaser, 0) == 0);
  same(base, 0, ALL);
  puts(words[1]);
  return 0;
}
