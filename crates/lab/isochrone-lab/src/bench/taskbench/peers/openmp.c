/* OpenMP tasks with `depend`: libgomp when gcc compiles it, libomp when clang does. */
#include "common.h"
#include <omp.h>

static struct count counts[MOST_THREADS];
static int workers;

void begin(int n) {
  workers = n;
  omp_set_num_threads(n);
  omp_set_dynamic(0);
}

void end(void) {}

/* The number of `depend` items is part of the source, so each number has its own construct. */
#define TEXT(...) _Pragma(#__VA_ARGS__)
#define NODE(...) TEXT(omp task firstprivate(g, step, point) __VA_ARGS__) task(g, step, point)
#define IN(k) c[b[k]].step
#define OUT depend(out: o[point].step)

static void node(const struct graph *g, int step, int point) {
  int b[MOST_BEFORE], n = before(g, step, point, b);
  struct cell *c = step ? cell(g, step - 1, 0) : g->cells, *o = cell(g, step, 0);
  (void)c;
  switch (n) {
    case 0: NODE(OUT); break;
    case 1: NODE(depend(in: IN(0)) OUT); break;
    case 2: NODE(depend(in: IN(0), IN(1)) OUT); break;
    case 3: NODE(depend(in: IN(0), IN(1), IN(2)) OUT); break;
    case 4: NODE(depend(in: IN(0), IN(1), IN(2), IN(3)) OUT); break;
    default: NODE(depend(in: IN(0), IN(1), IN(2), IN(3), IN(4)) OUT); break;
  }
}

void run_graph(const struct graph *g) {
#pragma omp parallel
#pragma omp single
  for (int step = 0; step < g->steps; step++)
    for (int point = 0; point < g->width; point++) node(g, step, point);
}

void run_empty(int ranges, uint64_t tasks) {
  static struct cell lines[LINES];
  memset(counts, 0, sizeof counts);
  int producer = 0;
#pragma omp parallel
#pragma omp single
  {
    producer = omp_get_thread_num();
    for (uint64_t i = 0; i < tasks; i++) {
      if (!ranges) {
#pragma omp task
        counts[omp_get_thread_num()].tasks++;
        continue;
      }
      int l[3];
      lines_of(i, l);
#pragma omp task depend(in: lines[l[0]].step, lines[l[1]].step) depend(inout: lines[l[2]].step)
      counts[omp_get_thread_num()].tasks++;
    }
  }
  counts[producer].tasks = 0;
}

static void nested(uint64_t tasks) {
  counts[omp_get_thread_num()].tasks++;
  uint64_t below = tasks - 1;
  if (below == 0) return;
  if (below / 2) {
#pragma omp task
    nested(below / 2);
  }
#pragma omp task
  nested(below - below / 2);
#pragma omp taskwait
}

void run_nested(uint64_t tasks) {
  int producer = 0;
  memset(counts, 0, sizeof counts);
#pragma omp parallel
#pragma omp single
  {
    producer = omp_get_thread_num();
    nested(tasks);
  }
  counts[producer].tasks = 0;
}

double share_of_others(uint64_t tasks) {
  uint64_t others = 0;
  for (int i = 0; i < workers; i++) others += counts[i].tasks;
  return (double)others / (double)tasks;
}
