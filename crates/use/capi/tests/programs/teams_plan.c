/* How a team does its calls, by the atlas that its first rank finds. Ranks say that they run on cores whose numbers
   take turns between two halves of sixteen.
     teams_plan threads RANKS
     teams_plan found RANKS ATLAS...   the others are processes, each with another of these atlases; "-": none
   Each rank says what it goes by, in one line for each collective. */
#define _POSIX_C_SOURCE 200809L
#include "want.h"

#include <pthread.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

enum { RANKS_MAX = 16, ASKED = 4, ROOM = 512 };

static const struct {
  const char *name;
  size_t bytes;
} asked[ASKED] = {{"bcast", 8}, {"reduce", 8}, {"barrier", 0}, {"bcast", 1 << 20}};

static char said[RANKS_MAX][ASKED][ROOM];

/* Calls of every kind that is asked for, then how they are done. */
static void take_part(isochrone_team *team, char (*words)[ROOM]) {
  uint32_t rank = isochrone_team_rank(team), ranks = isochrone_team_ranks(team);
  uint32_t core = rank % 2 * 8 + rank / 2;
  WANT(isochrone_team_cores(team, &core, 1), ISOCHRONE_OK, "");
  int64_t word = rank == 0 ? 42 : 0, mine = rank, sum = 0;
  for (int round = 0; round < 3; round++) {
    WANT(isochrone_broadcast(team, &word, sizeof word, 0), ISOCHRONE_OK, "");
    WANT(isochrone_reduce(team, &mine, &sum, 1, ISOCHRONE_INT64, ISOCHRONE_SUM, 0), ISOCHRONE_OK, "");
    WANT(isochrone_barrier(team), ISOCHRONE_OK, "");
    if (word != 42 || (rank == 0 && sum != (int64_t)ranks * (ranks - 1) / 2)) failed = 1;
  }
  for (int at = 0; at < ASKED; at++)
    WANT(isochrone_team_plan(team, asked[at].name, 0, asked[at].bytes, words[at], ROOM), ISOCHRONE_OK, "");
  WANT(isochrone_barrier(team), ISOCHRONE_OK, "");
}

static void say(uint32_t rank) {
  for (int at = 0; at < ASKED; at++) printf("%u %d %s\n", rank, at, said[rank][at]);
  fflush(stdout);
}

static void *thread(void *of) {
  take_part(of, said[isochrone_team_rank(of)]);
  return NULL;
}

static void refused(isochrone_team *team) {
  char words[4] = "...";
  uint32_t none = 70000;
  WANT(isochrone_team_cores(team, NULL, 1), ISOCHRONE_ARGUMENT, "one core at least");
  WANT(isochrone_team_cores(team, &none, 1), ISOCHRONE_ARGUMENT, "core 70000");
  WANT(isochrone_team_plan(team, "bcast", 99, 8, words, sizeof words), ISOCHRONE_ARGUMENT, "99");
  WANT(isochrone_team_plan(team, "song", 0, 8, words, sizeof words), ISOCHRONE_ARGUMENT, "called song");
  WANT(isochrone_team_plan(team, NULL, 0, 8, words, sizeof words), ISOCHRONE_ARGUMENT, "null pointer");
  WANT(isochrone_team_plan(team, "bcast", 0, 8, words, 0), ISOCHRONE_ARGUMENT, "no room");
}

static void threads(uint32_t ranks) {
  isochrone_team *teams[RANKS_MAX];
  pthread_t running[RANKS_MAX];
  WANT(isochrone_team_threads(ranks, NULL, teams), ISOCHRONE_OK, "");
  refused(teams[0]);
  for (uint32_t rank = 0; rank < ranks; rank++) pthread_create(&running[rank], NULL, thread, teams[rank]);
  for (uint32_t rank = 0; rank < ranks; rank++) {
    pthread_join(running[rank], NULL);
    isochrone_team_free(teams[rank]);
    say(rank);
  }
}

static void joined(char **words) {
  isochrone_place place = {(uint32_t)atol(words[0]), (uint32_t)atol(words[1])};
  uint32_t rank = (uint32_t)atol(words[2]);
  isochrone_team *team;
  WANT(isochrone_team_join(place, rank, NULL, &team), ISOCHRONE_OK, "");
  take_part(team, said[rank]);
  isochrone_team_free(team);
  say(rank);
}

static void found(char *program, uint32_t ranks, char **atlases, int count) {
  isochrone_team *team;
  isochrone_place place;
  WANT(isochrone_team_found(ranks, 0, NULL, &team, &place), ISOCHRONE_OK, "");
  for (uint32_t rank = 1; rank < ranks; rank++) {
    if (fork() == 0) {
      char process[16], descriptor[16], me[16];
      const char *atlas = atlases[rank % (uint32_t)count];
      snprintf(process, sizeof process, "%u", place.process);
      snprintf(descriptor, sizeof descriptor, "%u", place.descriptor);
      snprintf(me, sizeof me, "%u", rank);
      if (atlas[0] == '-') unsetenv("ISOCHRONE_ATLAS");
      else setenv("ISOCHRONE_ATLAS", atlas, 1);
      execl(program, program, "join", process, descriptor, me, (char *)NULL);
      _exit(9);
    }
  }
  take_part(team, said[0]);
  for (uint32_t rank = 1; rank < ranks; rank++) {
    int status = 1;
    if (wait(&status) < 0 || status != 0) failed = 1;
  }
  isochrone_team_free(team);
  say(0);
}

int main(int count, char **words) {
  if (count > 4 && strcmp(words[1], "join") == 0) joined(words + 2);
  else if (count > 3 && strcmp(words[1], "found") == 0)
    found(words[0], (uint32_t)atol(words[2]), words + 3, count - 3);
  else if (count > 2) threads((uint32_t)atol(words[2]));
  return failed;
}
