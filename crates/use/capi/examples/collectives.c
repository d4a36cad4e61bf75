/*
 * All collectives between threads, or between processes.
 *
 *   cc -pthread collectives.c $(pkg-config --cflags --libs isochrone) -o collectives
 *   ./collectives threads 4
 *   ./collectives processes 2
 *
 * Every rank compares what it gets; prints one line and ends with 0 if all was right.
 */
#define _POSIX_C_SOURCE 200809L
#include <isochrone.h>

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { ROUNDS = 50, WORDS = 40 };

static int64_t number(uint32_t rank, int round, int at) { return rank * 1000003 + round * 7919 + at * 31; }

/* Calls a function of the library; where it fails, says why and returns. */
#define TRY(call)                                                                                  \
  do {                                                                                             \
    int status_ = (call);                                                                          \
    if (status_ != ISOCHRONE_OK) {                                                                 \
      fprintf(stderr, "%s: %d: %s\n", #call, status_, isochrone_error());                          \
      return 1;                                                                                    \
    }                                                                                              \
  } while (0)

/* What must hold. */
#define WANT(condition)                                                                            \
  do {                                                                                             \
    if (!(condition)) {                                                                            \
      fprintf(stderr, "rank %u: wrong: %s\n", isochrone_team_rank(team), #condition);              \
      return 1;                                                                                    \
    }                                                                                              \
  } while (0)

/* All collectives with one root. */
static int round_of(isochrone_team *team, int round, uint32_t root) {
  uint32_t me = isochrone_team_rank(team), ranks = isochrone_team_ranks(team);
  size_t block = WORDS * sizeof(int64_t);
  int64_t mine[WORDS], got[WORDS];
  int64_t *all = malloc(ranks * block), *given = malloc(ranks * block);
  if (all == NULL || given == NULL) return 1;
  for (int at = 0; at < WORDS; at++) mine[at] = number(me, round, at);
  for (uint32_t rank = 0; rank < ranks; rank++)
    for (int at = 0; at < WORDS; at++) given[rank * WORDS + at] = number(rank, round, at);

  memcpy(got, mine, block);
  TRY(isochrone_broadcast(team, got, block, root));
  for (int at = 0; at < WORDS; at++) WANT(got[at] == number(root, round, at));

  TRY(isochrone_reduce(team, mine, me == root ? got : NULL, WORDS, ISOCHRONE_INT64, ISOCHRONE_MAX, root));
  if (me == root) WANT(got[0] == number(ranks - 1, round, 0));

  TRY(isochrone_scatter(team, me == root ? given : NULL, got, block, root));
  WANT(memcmp(got, mine, block) == 0);

  memset(all, 0, ranks * block);
  TRY(isochrone_gather(team, mine, me == root ? all : NULL, block, root));
  if (me == root) WANT(memcmp(all, given, ranks * block) == 0);

  memset(all, 0, ranks * block);
  TRY(isochrone_allgather(team, mine, all, block));
  WANT(memcmp(all, given, ranks * block) == 0);

  double sum = me + 0.5;
  TRY(isochrone_allreduce(team, &sum, &sum, 1, ISOCHRONE_DOUBLE, ISOCHRONE_SUM));
  WANT(sum == ranks * (ranks - 1) / 2 + ranks * 0.5);

  TRY(isochrone_barrier(team));
  free(all);
  free(given);
  return 0;
}

static int work(isochrone_team *team) {
  for (int round = 0; round < ROUNDS; round++)
    for (uint32_t root = 0; root < isochrone_team_ranks(team); root++)
      if (round_of(team, round, root) != 0) return 1;
  return 0;
}

static void *thread(void *team) {
  intptr_t failed = work(team);
  isochrone_team_free(team);
  return (void *)failed;
}

static int threads(uint32_t ranks) {
  isochrone_team **teams = calloc(ranks, sizeof *teams);
  pthread_t *ids = calloc(ranks, sizeof *ids);
  if (teams == NULL || ids == NULL) return 1;
  TRY(isochrone_team_threads(ranks, NULL, teams));
  for (uint32_t rank = 0; rank < ranks; rank++)
    if (pthread_create(&ids[rank], NULL, thread, teams[rank]) != 0) return 1;
  int failed = 0;
  for (uint32_t rank = 0; rank < ranks; rank++) {
    void *result = NULL;
    if (pthread_join(ids[rank], &result) != 0 || result != NULL) failed = 1;
  }
  free(teams);
  free(ids);
  return failed;
}

/* A process that joins the team whose place comes through `from`. */
static int joined(uint32_t rank, int from) {
  isochrone_place place;
  isochrone_team *team = NULL;
  if (read(from, &place, sizeof place) != (ssize_t)sizeof place) return 1;
  TRY(isochrone_team_join(place, rank, NULL, &team));
  int failed = work(team);
  isochrone_team_free(team);
  return failed;
}

static int processes(uint32_t ranks) {
  int ends[2];
  if (pipe(ends) != 0) return 1;
  /* First the processes, then the team: a child would keep the parent's place taken. */
  for (uint32_t rank = 1; rank < ranks; rank++) {
    pid_t child = fork();
    if (child < 0) return 1;
    if (child == 0) {
      close(ends[1]);
      _exit(joined(rank, ends[0]));
    }
  }
  close(ends[0]);
  isochrone_place place;
  isochrone_team *team = NULL;
  TRY(isochrone_team_found(ranks, 0, NULL, &team, &place));
  for (uint32_t rank = 1; rank < ranks; rank++)
    if (write(ends[1], &place, sizeof place) != (ssize_t)sizeof place) return 1;
  TRY(isochrone_team_await(team, 30.0));
  int failed = work(team);
  for (uint32_t rank = 1; rank < ranks; rank++) {
    int status = 0;
    if (wait(&status) < 0 || status != 0) failed = 1;
  }
  isochrone_team_free(team);
  return failed;
}

int main(int count, char **arguments) {
  uint32_t ranks = count > 2 ? (uint32_t)strtoul(arguments[2], NULL, 10) : 2;
  int failed = count > 1 && strcmp(arguments[1], "processes") == 0 ? processes(ranks) : threads(ranks);
  if (failed) return 1;
  printf("libisochrone %s: %u ranks, all as it should be\n", isochrone_version(), ranks);
  return 0;
}
