/* What a peer of `isochrone bench lu` is: a library that factors a matrix of tiles by tasks of its own, with kernels
 * that the caller gives. So all systems run the same kernels on the same memory, and the caller times and checks them
 * alike.
 *
 *   begin(workers)   starts the runtime; not timed
 *   solve(...)       turns the matrix into its factors, without pivots; timed. 0, or 1 where a pivot is zero
 *   end()            stops the runtime; not timed
 */
#ifndef LU_H
#define LU_H

struct kernels {
  /* Tiles are n wide and row-major. */
  int (*factor)(double *c, long n);                                    /* c = its U, and its L below the diagonal */
  void (*right)(const double *a, double *c, long n);                   /* c = L^-1 c, of a's L */
  void (*below)(const double *a, double *c, long n);                   /* c = c U^-1, of a's U */
  void (*update)(const double *a, const double *b, double *c, long n); /* c -= a b */
};

/* Tile (i, j): rows of tiles one after the other. */
static inline double *tile(double *values, long tiles, long n, long i, long j) {
  return values + (i * tiles + j) * n * n;
}

int isochrone_begin(int workers);
int isochrone_solve(double *values, long tiles, long n, const struct kernels *kernels);
void isochrone_end(void);

#endif
