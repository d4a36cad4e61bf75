/* What is refused, with which number and whether there are words; and a rank that is killed. */
#define _POSIX_C_SOURCE 200809L
#include "want.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static void refused(void) {
  isochrone_team *team = NULL;
  isochrone_place place;
  int64_t word = 7, sum = 0;
  WANT(isochrone_team_threads(0, NULL, &team), ISOCHRONE_ARGUMENT, "1 to 1024");
  WANT(isochrone_team_threads(100000, NULL, &team), ISOCHRONE_ARGUMENT, "100000");
  WANT(isochrone_team_threads(1, NULL, NULL), ISOCHRONE_ARGUMENT, "null");
  isochrone_team_options huge = {.bytes = UINT64_MAX / 2}, odd = {.flags = 64}, kept = {.reserved = {0, 1}};
  isochrone_team_options never_set = {.size = 3};
  struct {
    isochrone_team_options known;
    uint64_t newer;
  } newer = {{.size = sizeof newer}, 0};
  WANT(isochrone_team_threads(1, &huge, &team), ISOCHRONE_MEMORY, "shared memory");
  WANT(isochrone_team_threads(1, &odd, &team), ISOCHRONE_ARGUMENT, "flags");
  WANT(isochrone_team_threads(1, &kept, &team), ISOCHRONE_ARGUMENT, "set what is unused to 0");
  WANT(isochrone_team_threads(1, &never_set, &team), ISOCHRONE_ARGUMENT, "sizeof");
  WANT(isochrone_team_threads(1, &newer.known, &team), ISOCHRONE_OK, "");
  isochrone_team_free(team), newer.newer = 1;
  WANT(isochrone_team_threads(1, &newer.known, &team), ISOCHRONE_ARGUMENT, "newer library");
  WANT(isochrone_barrier(NULL), ISOCHRONE_ARGUMENT, "null");
  WANT(isochrone_team_found(2, 2, NULL, &team, &place), ISOCHRONE_ARGUMENT, "rank 2");
  place.process = 0x3fffffff, place.descriptor = 0;
  WANT(isochrone_team_join(place, 0, NULL, &team), ISOCHRONE_SYSTEM, "");

  WANT(isochrone_team_threads(1, NULL, &team), ISOCHRONE_OK, "");
  WANT(isochrone_broadcast(team, &word, 8, 1), ISOCHRONE_ARGUMENT, "root");
  WANT(isochrone_broadcast(team, &word, 8, 70000), ISOCHRONE_ARGUMENT, "70000");
  WANT(isochrone_broadcast(team, NULL, 8, 0), ISOCHRONE_ARGUMENT, "null");
  WANT(isochrone_broadcast(team, NULL, 0, 0), ISOCHRONE_OK, "");
  WANT(isochrone_broadcast(team, &word, SIZE_MAX, 0), ISOCHRONE_ARGUMENT, "1 GiB");
  WANT(isochrone_allreduce(team, &word, &sum, 1, 17, ISOCHRONE_SUM), ISOCHRONE_ARGUMENT, "17");
  WANT(isochrone_allreduce(team, &word, &sum, 1, ISOCHRONE_INT64, 9), ISOCHRONE_ARGUMENT, "9");
  WANT(isochrone_allreduce(team, &word, &sum, 1, ISOCHRONE_DOUBLE, ISOCHRONE_XOR), ISOCHRONE_ARGUMENT,
       "bitwise");
  WANT(isochrone_allreduce(team, &word, &sum, 1, ISOCHRONE_INT64, ISOCHRONE_SUM), ISOCHRONE_OK, "");
  if (sum != 7) failed = 1;
  WANT(isochrone_team_await(team, -1.0), ISOCHRONE_ARGUMENT, "-1");
  isochrone_team_free(team);
  isochrone_team_free(NULL);

  WANT(isochrone_team_found(2, 0, NULL, &team, &place), ISOCHRONE_OK, "");
  WANT(isochrone_team_await(team, 0.01), ISOCHRONE_LATE, "1 of 2");
  isochrone_team *again = NULL;
  WANT(isochrone_team_join(place, 0, NULL, &again), ISOCHRONE_ARGUMENT, "taken");
  WANT(isochrone_team_stop(team), ISOCHRONE_OK, "");
  WANT(isochrone_barrier(team), ISOCHRONE_GONE, "");
  isochrone_team_free(team);
}

static void killed(void) {
  int to[2], from[2];
  if (pipe(to) != 0 || pipe(from) != 0) return;
  pid_t child = fork();
  if (child == 0) {
    isochrone_place place;
    isochrone_team *team = NULL;
    if (read(to[0], &place, sizeof place) != (ssize_t)sizeof place) _exit(2);
    if (isochrone_team_join(place, 1, NULL, &team) != ISOCHRONE_OK) _exit(3);
    isochrone_barrier(team);
    if (write(from[1], "x", 1) != 1) _exit(4);
    pause();
    _exit(5);
  }
  isochrone_team *team = NULL;
  isochrone_place place;
  char byte;
  WANT(isochrone_team_found(2, 0, NULL, &team, &place), ISOCHRONE_OK, "");
  if (write(to[1], &place, sizeof place) != (ssize_t)sizeof place) failed = 1;
  WANT(isochrone_barrier(team), ISOCHRONE_OK, "");
  if (read(from[0], &byte, 1) != 1) failed = 1;
  kill(child, SIGKILL);
  waitpid(child, NULL, 0);
  WANT(isochrone_barrier(team), ISOCHRONE_GONE, "rank 1");
  WANT(isochrone_barrier(team), ISOCHRONE_GONE, "rank 1");
  isochrone_team_free(team);
}

int main(void) {
  refused();
  killed();
  return failed;
}
