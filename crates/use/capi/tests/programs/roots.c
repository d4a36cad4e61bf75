/* Every collective with every root, in teams as they are by default: what one root used is there for the next. */
#define _POSIX_C_SOURCE 200809L
#include "want.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

enum { RANKS_MAX = 12, SIZES = 4 };
/* Words: one line, some, more than a chunk, and a long message. */
static const size_t sizes[SIZES] = {1, 32, 520, 20000};

static int64_t number(uint32_t rank, uint32_t root, size_t at) {
  return (int64_t)rank * 1000003 + root * 7919 + (int64_t)at * 31;
}

/* Whether a block is what `rank` gives. */
static int is_of(const int64_t *block, uint32_t rank, uint32_t root, size_t words) {
  for (size_t at = 0; at < words; at++)
    if (block[at] != number(rank, root, at)) return 0;
  return 1;
}

/* Whether the words are everybody's sum. */
static int is_sum(const int64_t *block, uint32_t ranks, uint32_t root, size_t words) {
  for (size_t at = 0; at < words; at++) {
    int64_t sum = 0;
    for (uint32_t rank = 0; rank < ranks; rank++) sum += number(rank, root, at);
    if (block[at] != sum) return 0;
  }
  return 1;
}

static void all_with(isochrone_team *team, uint32_t root, size_t words, int64_t *mine, int64_t *got, int64_t *all) {
  uint32_t me = isochrone_team_rank(team), ranks = isochrone_team_ranks(team);
  size_t bytes = words * sizeof *mine;
  for (size_t at = 0; at < words; at++) mine[at] = number(me, root, at);

  memcpy(got, mine, bytes);
  WANT(isochrone_broadcast(team, got, bytes, root), ISOCHRONE_OK, "");
  WANT(is_of(got, root, root, words), 1, "");
  WANT(isochrone_reduce(team, mine, got, words, ISOCHRONE_INT64, ISOCHRONE_SUM, root), ISOCHRONE_OK, "");
  WANT(me != root || is_sum(got, ranks, root, words), 1, "");
  WANT(isochrone_allreduce(team, mine, got, words, ISOCHRONE_INT64, ISOCHRONE_SUM), ISOCHRONE_OK, "");
  WANT(is_sum(got, ranks, root, words), 1, "");
  WANT(isochrone_gather(team, mine, all, bytes, root), ISOCHRONE_OK, "");
  for (uint32_t rank = 0; me == root && rank < ranks; rank++) WANT(is_of(all + rank * words, rank, root, words), 1, "");
  memset(got, 0, bytes);
  WANT(isochrone_scatter(team, all, got, bytes, root), ISOCHRONE_OK, "");
  WANT(is_of(got, me, root, words), 1, "");
  WANT(isochrone_allgather(team, mine, all, bytes), ISOCHRONE_OK, "");
  for (uint32_t rank = 0; rank < ranks; rank++) WANT(is_of(all + rank * words, rank, root, words), 1, "");
  /* All ranks have the same blocks: each gets as many of its own, and then everybody's sum. */
  WANT(isochrone_alltoall(team, all, all, bytes), ISOCHRONE_OK, "");
  for (uint32_t rank = 0; rank < ranks; rank++) WANT(is_of(all + rank * words, me, root, words), 1, "");
  WANT(isochrone_reduce_scatter(team, all, got, words, ISOCHRONE_INT64, ISOCHRONE_SUM), ISOCHRONE_OK, "");
  WANT(is_sum(got, ranks, root, words), 1, "");
  WANT(isochrone_scan(team, mine, got, words, ISOCHRONE_INT64, ISOCHRONE_SUM), ISOCHRONE_OK, "");
  WANT(is_sum(got, me + 1, root, words), 1, "");
  memcpy(got, mine, bytes);
  WANT(isochrone_exscan(team, got, got, words, ISOCHRONE_INT64, ISOCHRONE_SUM), ISOCHRONE_OK, "");
  WANT(me == 0 ? is_of(got, 0, root, words) : is_sum(got, me, root, words), 1, "");
  WANT(isochrone_barrier(team), ISOCHRONE_OK, "");
}

static void *work(void *argument) {
  isochrone_team *team = argument;
  uint32_t ranks = isochrone_team_ranks(team);
  size_t most = sizes[SIZES - 1] * sizeof(int64_t);
  int64_t *mine = malloc(most), *got = malloc(most), *all = malloc(ranks * most);
  if (mine == NULL || got == NULL || all == NULL) abort();
  for (int size = 0; size < SIZES; size++)
    for (uint32_t root = 0; root < ranks && failed == 0; root++) all_with(team, root, sizes[size], mine, got, all);
  free(mine), free(got), free(all);
  isochrone_team_free(team);
  return NULL;
}

int main(void) {
  for (uint32_t ranks = 1; ranks <= RANKS_MAX && failed == 0; ranks++) {
    isochrone_team *teams[RANKS_MAX];
    pthread_t threads[RANKS_MAX];
    WANT(isochrone_team_threads(ranks, NULL, teams), ISOCHRONE_OK, "");
    for (uint32_t rank = 0; rank < ranks && failed == 0; rank++)
      if (pthread_create(&threads[rank], NULL, work, teams[rank]) != 0) abort();
    for (uint32_t rank = 0; rank < ranks && failed == 0; rank++) pthread_join(threads[rank], NULL);
  }
  return failed;
}
