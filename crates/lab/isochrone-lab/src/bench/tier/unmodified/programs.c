/*
 * Three programs that take their memory by malloc, for `isochrone bench tier --only unmodified`, which compiles them:
 *
 *   programs sweep|sort|pagerank BYTES [file:DIR | library:PATH]
 *
 * They print the seconds from the first allocation to the last result, and a digest of the result. With file:DIR memory
 * is a mapped file, with library:PATH what `isochrone_map` of that library gives (umap.cpp).
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

static const char *place = "";

static _Noreturn void fail(const char *what) {
  perror(what);
  exit(1);
}

static void *of_file(const char *folder, size_t bytes) {
  char path[4096];
  snprintf(path, sizeof path, "%s/isochrone-mapped-XXXXXX", folder);
  int file = mkstemp(path);
  if (file < 0 || unlink(path) != 0 || ftruncate(file, (off_t)bytes) != 0) fail(path);
  void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  close(file);
  return memory == MAP_FAILED ? NULL : memory;
}

static void *of_library(const char *path, size_t bytes) {
  void *library = dlopen(path, RTLD_NOW);
  void *(*map)(size_t) = library ? (void *(*)(size_t))dlsym(library, "isochrone_map") : NULL;
  return map ? map(bytes) : NULL;
}

static void *array(size_t count, size_t size) {
  void *memory = NULL;
  if (strncmp(place, "file:", 5) == 0)
    memory = of_file(place + 5, count * size);
  else if (strncmp(place, "library:", 8) == 0)
    memory = of_library(place + 8, count * size);
  else
    memory = malloc(count * size);
  if (!memory) fail("memory");
  return memory;
}

static uint64_t drawn(uint64_t *state) {
  *state ^= *state << 13;
  *state ^= *state >> 7;
  return *state ^= *state << 17;
}

static uint64_t mixed(uint64_t sum, uint64_t word) { return (sum ^ word) * 0x9e3779b97f4a7c15u + (sum >> 29); }

static uint64_t bits(double value) {
  uint64_t word;
  memcpy(&word, &value, sizeof word);
  return word;
}

/* STREAM's triad over three arrays, eight times, of values with few digits. */
static uint64_t sweep(size_t bytes) {
  size_t n = bytes / (3 * sizeof(double));
  double *a = array(n, sizeof *a), *b = array(n, sizeof *b), *c = array(n, sizeof *c);
  for (size_t i = 0; i < n; i++) {
    a[i] = 0;
    b[i] = (double)(i * 7919 % 1000) * 0.25;
    c[i] = (double)(i * 104729 % 500) * 0.5;
  }
  for (int pass = 0; pass < 8; pass++) {
    double *x = pass % 2 ? b : a, *y = pass % 2 ? a : b;
    for (size_t i = 0; i < n; i++) x[i] = 0.5 * y[i] + c[i];
  }
  uint64_t sum = 0;
  for (size_t i = 0; i < n; i++) sum = mixed(sum, bits(a[i]) ^ bits(b[i]));
  return sum;
}

/* Keys of 24 bits, least digit of eight bits first, from one array to the other and back; twice. */
static uint64_t sort(size_t bytes) {
  size_t n = bytes / (2 * sizeof(uint64_t));
  uint64_t *from = array(n, sizeof *from), *to = array(n, sizeof *to);
  uint64_t state = 88172645463325252u, sum = 0;
  for (int turn = 0; turn < 2; turn++) {
    for (size_t i = 0; i < n; i++) from[i] = drawn(&state) & 0xffffff;
    for (int shift = 0; shift < 24; shift += 8) {
      size_t first[256] = {0}, before = 0;
      for (size_t i = 0; i < n; i++) first[from[i] >> shift & 255]++;
      for (int digit = 0; digit < 256; digit++) {
        size_t many = first[digit];
        first[digit] = before;
        before += many;
      }
      for (size_t i = 0; i < n; i++) to[first[from[i] >> shift & 255]++] = from[i];
      uint64_t *other = from;
      from = to;
      to = other;
    }
    for (size_t i = 0; i < n; i++) {
      if (i > 0 && from[i] < from[i - 1]) return 0;
      sum = mixed(sum, from[i]);
    }
  }
  return sum;
}

/* Four steps of PageRank over a graph with eight links to each page, most of them from few pages. */
static uint64_t pagerank(size_t bytes) {
  size_t links = 8, n = bytes / (links * sizeof(uint32_t) + sizeof(uint32_t) + 2 * sizeof(double));
  uint32_t *from = array(n * links, sizeof *from), *degree = array(n, sizeof *degree);
  double *rank = array(n, sizeof *rank), *share = array(n, sizeof *share);
  uint64_t state = 88172645463325252u, sum = 0;
  for (size_t v = 0; v < n; v++) {
    rank[v] = 1;
    degree[v] = 0;
  }
  for (size_t e = 0; e < n * links; e++) {
    double part = (double)(drawn(&state) >> 11) * 0x1p-53;
    uint64_t page = (uint64_t)(part * part * (double)n);
    /* Pages with many links lie anywhere. */
    from[e] = (uint32_t)(page * 2654435761u % n);
    degree[from[e]]++;
  }
  for (int step = 0; step < 4; step++) {
    for (size_t v = 0; v < n; v++) share[v] = degree[v] ? rank[v] / degree[v] : 0;
    for (size_t v = 0; v < n; v++) {
      double all = 0;
      for (size_t l = 0; l < links; l++) all += share[from[v * links + l]];
      rank[v] = 0.15 + 0.85 * all;
    }
  }
  for (size_t v = 0; v < n; v++) sum = mixed(sum, bits(rank[v]));
  return sum;
}

int main(int count, char **words) {
  if (count < 3) return 2;
  if (count > 3) place = words[3];
  size_t bytes = strtoull(words[2], NULL, 10);
  uint64_t (*work)(size_t) = NULL;
  if (strcmp(words[1], "sweep") == 0) work = sweep;
  if (strcmp(words[1], "sort") == 0) work = sort;
  if (strcmp(words[1], "pagerank") == 0) work = pagerank;
  if (!work) return 2;
  struct timespec begin, end;
  clock_gettime(CLOCK_MONOTONIC, &begin);
  uint64_t digest = work(bytes);
  clock_gettime(CLOCK_MONOTONIC, &end);
  double seconds = (double)(end.tv_sec - begin.tv_sec) + 1e-9 * (double)(end.tv_nsec - begin.tv_nsec);
  printf("%.6f %016" PRIx64 "\n", seconds, digest);
  return 0;
}
