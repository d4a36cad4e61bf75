/* What the questions of an atlas refuse, and what has no number: an atlas of this machine, one of another, no atlas. */
#include "want.h"

#include <math.h>

static void number(int line, int right) {
  if (!right) {
    fprintf(stderr, "line %d: another number\n", line);
    failed = 1;
  }
}
#define NUMBER(right) number(__LINE__, (right))

int main(int argc, char **argv) {
  if (argc != 4) return 2;
  isochrone_atlas *atlas = NULL;
  isochrone_cost cost, other;
  uint32_t cores[4] = {99, 99, 99, 99};
  WANT(isochrone_atlas_open(argv[1], 0, NULL), ISOCHRONE_ARGUMENT, "no place");
  WANT(isochrone_atlas_open(argv[1], 2, &atlas), ISOCHRONE_ARGUMENT, "flags");
  WANT(isochrone_atlas_open(NULL, ISOCHRONE_ANY_MACHINE, &atlas), ISOCHRONE_ARGUMENT, "path");
  WANT(isochrone_atlas_open("/nowhere/at/all", 0, &atlas), ISOCHRONE_SYSTEM, "/nowhere/at/all");
  WANT(isochrone_atlas_open(argv[2], 0, &atlas), ISOCHRONE_SYSTEM, "another machine");
  WANT(isochrone_atlas_open(argv[3], ISOCHRONE_ANY_MACHINE, &atlas), ISOCHRONE_SYSTEM, argv[3]);
  NUMBER(atlas == NULL);
  isochrone_atlas_close(NULL);
  NUMBER(isnan(isochrone_atlas_latency(NULL, 0, 0, 0)));
  NUMBER(isochrone_atlas_cores(NULL, cores, 4) == 0);
  WANT(isochrone_atlas_line_transfer(NULL, 0, 1, &cost), ISOCHRONE_ARGUMENT, "null");

  WANT(isochrone_atlas_open(argv[2], ISOCHRONE_ANY_MACHINE, &atlas), ISOCHRONE_OK, "");
  isochrone_atlas_close(atlas);
  WANT(isochrone_atlas_open(argv[1], 0, &atlas), ISOCHRONE_OK, "");
  NUMBER(isochrone_atlas_cores(atlas, cores, 2) == 16 && cores[1] == 1 && cores[2] == 99);
  NUMBER(isochrone_atlas_cores(atlas, NULL, 4) == 16);
  NUMBER(isochrone_atlas_nearest_cores(atlas, 8, cores, 1) == 15 && cores[0] == 9 && cores[1] == 1);
  NUMBER(isochrone_atlas_nearest_cores(atlas, 70000, cores, 1) == 0);
  WANT(isochrone_atlas_line_transfer(atlas, 0, 1, NULL), ISOCHRONE_ARGUMENT, "no place");
  WANT(isochrone_atlas_line_transfer(atlas, 1, 1, &cost), ISOCHRONE_OK, "");
  NUMBER(isnan(cost.value) && isnan(cost.lo) && cost.reading == ISOCHRONE_UNKNOWN);
  WANT(isochrone_atlas_line_transfer(atlas, 0, 65536, &cost), ISOCHRONE_OK, "");
  NUMBER(isnan(cost.value));
  WANT(isochrone_atlas_region(atlas, 2, 0, &cost, NULL), ISOCHRONE_OK, "");
  NUMBER(cost.value == 102.0 && cost.reading == ISOCHRONE_MEASURED);
  WANT(isochrone_atlas_region(atlas, 2, 65536, &cost, &other), ISOCHRONE_OK, "");
  NUMBER(isnan(cost.value) && isnan(other.value));
  NUMBER(isnan(isochrone_atlas_latency(atlas, 0, 2, 512 * 4096)));
  NUMBER(isnan(isochrone_atlas_latency(atlas, 16, ISOCHRONE_LLC, 512 * 4096)));
  NUMBER(isnan(isochrone_atlas_latency(atlas, 0, ISOCHRONE_LLC, 0)));
  NUMBER(isnan(isochrone_atlas_latency(atlas, 0, ISOCHRONE_LLC, UINT64_MAX)));
  NUMBER(isochrone_atlas_line_class(atlas, 7, 512 * 4096) == -1);
  NUMBER(isochrone_atlas_quality(atlas, ISOCHRONE_TRANSFER) == ISOCHRONE_DISTURBED);
  NUMBER(isochrone_atlas_quality(atlas, 77) == ISOCHRONE_UNKNOWN);
  isochrone_atlas_close(atlas);
  return failed;
}
