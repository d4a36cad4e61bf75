/* Two ranks have no shape to choose, so no atlas is looked for; three go by the rule without distances where the atlas
   that was named cannot be used, and are told why. */
#include "want.h"

#include <pthread.h>

enum { RANKS = 3 };

static void *work(void *of) {
  isochrone_team *team = of;
  int64_t mine = isochrone_team_rank(team) + 1, sum = 0;
  WANT(isochrone_allreduce(team, &mine, &sum, 1, ISOCHRONE_INT64, ISOCHRONE_SUM), ISOCHRONE_OK, "");
  int64_t ranks = isochrone_team_ranks(team);
  if (sum != ranks * (ranks + 1) / 2) failed = 1;
  return NULL;
}

static void together(uint32_t ranks) {
  isochrone_team *teams[RANKS];
  pthread_t threads[RANKS];
  WANT(isochrone_team_threads(ranks, NULL, teams), ISOCHRONE_OK, "");
  for (uint32_t rank = 0; rank < ranks; rank++) pthread_create(&threads[rank], NULL, work, teams[rank]);
  for (uint32_t rank = 0; rank < ranks; rank++) {
    pthread_join(threads[rank], NULL);
    isochrone_team_free(teams[rank]);
  }
}

int main(void) {
  together(2);
  if (isochrone_error()[0] != '\0') failed = 1;
  together(3);
  if (strstr(isochrone_error(), "no/such/file") == NULL) failed = 1;
  if (failed) fprintf(stderr, "the last words: %s\n", isochrone_error());
  return failed;
}
