/* What a peer of `isochrone bench cholesky --peers` is: a library that factors a matrix of tiles by tasks of its own,
 * with kernels that the caller gives. So all systems run the same kernels on the same memory, and the caller times and
 * checks them alike.
 *
 *   begin(workers)   starts the runtime; not timed
 *   solve(...)       turns the lower triangle into its factor; timed. 0, or 1 where a pivot is not positive
 *   end()            stops the runtime; not timed
 */
#ifndef TILES_H
#define TILES_H

struct kernels {
  /* Tiles are n wide and row-major. */
  int (*factor)(double *c, long n);                                          /* c = chol(c), lower */
  void (*solve)(const double *a, double *c, long n);                         /* c = c a^-T, a lower */
  void (*update_diagonal)(const double *a, double *c, long n);               /* c -= a a^T, lower */
  void (*update)(const double *a, const double *b, double *c, long n);       /* c -= a b^T */
};

/* Tile (i, j) of the lower triangle: columns of tiles one after the other, each from its diagonal down. */
static inline double *tile(double *values, long tiles, long n, long i, long j) {
  return values + (j * (2 * tiles + 1 - j) / 2 + i - j) * n * n;
}

int isochrone_begin(int workers);
int isochrone_solve(double *values, long tiles, long n, const struct kernels *kernels);
void isochrone_end(void);

#endif
