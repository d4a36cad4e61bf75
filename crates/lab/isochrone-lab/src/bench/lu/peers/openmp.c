/* OpenMP: tasks with depend clauses on the first element of each tile, and priorities on the critical path. */
#include "lu.h"

#include <omp.h>

static int threads;

int isochrone_begin(int workers) {
  threads = workers;
  omp_set_num_threads(workers);
  /* Starts the threads. */
#pragma omp parallel
  {
  }
  return 0;
}

int isochrone_solve(double *values, long tiles, long n, const struct kernels *kernels) {
  int failed = 0;
#pragma omp parallel num_threads(threads)
#pragma omp single
  for (long k = 0; k < tiles; k++) {
    double *kk = tile(values, tiles, n, k, k);
#pragma omp task depend(inout : kk[0]) priority(2) firstprivate(kk) shared(failed)
    if (kernels->factor(kk, n) != 0) {
#pragma omp atomic write
      failed = 1;
    }
    for (long j = k + 1; j < tiles; j++) {
      double *kj = tile(values, tiles, n, k, j);
#pragma omp task depend(in : kk[0]) depend(inout : kj[0]) priority(1) firstprivate(kk, kj)
      kernels->right(kk, kj, n);
    }
    for (long i = k + 1; i < tiles; i++) {
      double *ik = tile(values, tiles, n, i, k);
#pragma omp task depend(in : kk[0]) depend(inout : ik[0]) priority(1) firstprivate(kk, ik)
      kernels->below(kk, ik, n);
      for (long j = k + 1; j < tiles; j++) {
        double *kj = tile(values, tiles, n, k, j), *ij = tile(values, tiles, n, i, j);
#pragma omp task depend(in : ik[0], kj[0]) depend(inout : ij[0]) firstprivate(ik, kj, ij)
        kernels->update(ik, kj, ij, n);
      }
    }
  }
  return failed;
}

void isochrone_end(void) {}
