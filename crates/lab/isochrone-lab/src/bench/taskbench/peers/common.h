/* What all peers share: the graphs, the work of a task, the clock, and what a run is asked for.
 *
 *   PROGRAM graph PATTERN WIDTH STEPS TURNS WORKERS RUNS    seconds of each run, then the last values' number
 *   PROGRAM empty nodep|3dep TASKS WORKERS RUNS             seconds of each run and the share of tasks that
 *                                                           the registering thread did not run
 *   PROGRAM empty nested TASKS WORKERS RUNS                 the same of tasks inside of tasks, each of which
 *                                                           registers two and waits for both
 *
 * The arithmetic is that of crates/lab/workloads/src/taskbench. */
#ifndef COMMON_H
#define COMMON_H

#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { FIELDS = 2, MOST_BEFORE = 5, LINES = 16 };
enum pattern { TRIVIAL, STENCIL_1D, FFT, DOM, TREE, NEAREST, PATTERNS };

struct cell {
  uint64_t step, point, value, spare[5];
} __attribute__((aligned(64)));

struct graph {
  enum pattern pattern;
  int width, steps;
  uint64_t turns;
  struct cell *cells;
};

static inline uint64_t spend(uint64_t seed, uint64_t turns) {
  uint64_t x = seed | 1;
  for (uint64_t i = 0; i < turns; i++) {
    x ^= x << 13;
    x ^= x >> 7;
    x ^= x << 17;
  }
  return x;
}

static inline uint64_t mix(uint64_t sum, uint64_t next) {
  uint64_t z = (sum << 7 | sum >> 57) ^ next * 0x9e3779b97f4a7c15u;
  z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
  return z ^ z >> 27;
}

static inline int around(int reach, int point, int width, int *out) {
  int n = 0;
  for (int at = point - reach; at <= point + reach; at++)
    if (at >= 0 && at < width) out[n++] = at;
  return n;
}

/* The points of the step before that a task reads, ascending. */
static inline int before(const struct graph *g, int step, int point, int *out) {
  if (step == 0) return 0;
  int n = 0, w = g->width;
  switch (g->pattern) {
    case STENCIL_1D: return around(1, point, w, out);
    case NEAREST: return around(2, point, w, out);
    case DOM:
      if (point > 0) out[n++] = point - 1;
      out[n++] = point;
      return n;
    case TREE: {
      int apart = step > 31 ? 0 : w >> (step - 1);
      out[0] = apart < 2 ? point : point - point % apart;
      return 1;
    }
    case FFT: {
      int log = 31 - __builtin_clz((unsigned)w);
      int far = 1 << ((step - 1) % (log > 1 ? log : 1));
      if (point >= far) out[n++] = point - far;
      out[n++] = point;
      if (point + far < w) out[n++] = point + far;
      return n;
    }
    default: return 0;
  }
}

static inline struct cell *cell(const struct graph *g, int step, int point) {
  return &g->cells[step % FIELDS * g->width + point];
}

/* A task: checks what it reads, and leaves its value. */
static inline void task(const struct graph *g, int step, int point) {
  int points[MOST_BEFORE], n = before(g, step, point, points);
  uint64_t inputs = 0;
  for (int i = 0; i < n; i++) {
    const struct cell *in = cell(g, step - 1, points[i]);
    if (in->step != (uint64_t)(step - 1) || in->point != (uint64_t)points[i]) {
      fprintf(stderr, "step %d, point %d: point %d holds point %lu of step %lu\n", step, point,
              points[i], (unsigned long)in->point, (unsigned long)in->step);
      exit(4);
    }
    inputs = mix(inputs, in->value);
  }
  struct cell *out = cell(g, step, point);
  out->value = spend(mix(inputs, mix((uint64_t)step, (uint64_t)point)), g->turns);
  out->step = (uint64_t)step;
  out->point = (uint64_t)point;
}

static inline uint64_t result(const struct graph *g) {
  uint64_t sum = 0;
  for (int i = 0; i < g->width; i++) sum = mix(sum, cell(g, g->steps - 1, i)->value);
  return sum;
}

static inline double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* The three lines of an empty task: two to read, one to change. */
static inline void lines_of(uint64_t number, int *out) {
  uint64_t mixed = mix(0, number);
  for (int i = 0; i < 3; i++) out[i] = (int)(mixed >> 8 * i) & (LINES - 1);
}

/* Tasks that the registering thread did not run. Each system counts in a place of every thread's own. */
struct count {
  uint64_t tasks;
  char spare[120];
};

#define MOST_THREADS 1024

/* What each system has. */
void begin(int workers);
void run_graph(const struct graph *g);
void run_empty(int ranges, uint64_t tasks);
void run_nested(uint64_t tasks);
double share_of_others(uint64_t tasks);
void end(void);

static inline int usage(void) {
  fprintf(stderr, "usage: graph PATTERN WIDTH STEPS TURNS WORKERS RUNS | "
                  "empty nodep|3dep|nested TASKS WORKERS RUNS\n");
  return 2;
}

int main(int argc, char **argv) {
  static const char *const names[PATTERNS] = {"trivial", "stencil_1d", "fft",
                                              "dom", "tree", "nearest"};
  if (argc == 8 && !strcmp(argv[1], "graph")) {
    struct graph g = {TRIVIAL, atoi(argv[3]), atoi(argv[4]), strtoull(argv[5], 0, 10), 0};
    int pattern = 0;
    while (pattern < PATTERNS && strcmp(names[pattern], argv[2])) pattern++;
    if (pattern == PATTERNS || g.width < 1 || g.steps < 1) return usage();
    g.pattern = (enum pattern)pattern;
    size_t bytes = (size_t)(FIELDS * g.width) * sizeof(struct cell);
    g.cells = (struct cell *)aligned_alloc(64, bytes);
    begin(atoi(argv[6]));
    for (int i = 0; i < atoi(argv[7]); i++) {
      memset(g.cells, 0xff, bytes);
      double t = now();
      run_graph(&g);
      printf("%.9f\n", now() - t);
    }
    printf("result %lu\n", (unsigned long)result(&g));
    end();
    return 0;
  }
  if (argc == 6 && !strcmp(argv[1], "empty")) {
    uint64_t tasks = strtoull(argv[3], 0, 10);
    begin(atoi(argv[4]));
    for (int i = 0; i < atoi(argv[5]); i++) {
      double t = now();
      if (strcmp(argv[2], "nested"))
        run_empty(!strcmp(argv[2], "3dep"), tasks);
      else
        run_nested(tasks);
      double seconds = now() - t;
      printf("%.9f %.6f\n", seconds, share_of_others(tasks));
    }
    end();
    return 0;
  }
  return usage();
}

#endif
