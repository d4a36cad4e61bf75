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

/* Many answers at once are those of single questions, and end where there is no room. */
static void arrays(const isochrone_atlas *atlas) {
  isochrone_cost costs[256], one;
  const uint64_t addresses[] = {512 * 4096, 512 * 4096 + 64 * 7, 0};
  double ns[4] = {-1, -1, -1, -1};
  int32_t bins[4] = {-9, -9, -9, -9};
  uint32_t regions[2] = {99, 99};
  WANT(isochrone_atlas_transfers(NULL, costs, 256), ISOCHRONE_ARGUMENT, "null");
  WANT(isochrone_atlas_transfers(atlas, costs, 255), ISOCHRONE_ARGUMENT, "256");
  WANT(isochrone_atlas_transfers(atlas, NULL, 256), ISOCHRONE_ARGUMENT, "no place");
  WANT(isochrone_atlas_transfers(atlas, costs, 256), ISOCHRONE_OK, "");
  WANT(isochrone_atlas_line_transfer(atlas, 1, 9, &one), ISOCHRONE_OK, "");
  NUMBER(costs[16 + 9].value == one.value && costs[16 + 9].reading == one.reading && costs[16 + 9].hi == one.hi);
  NUMBER(isnan(costs[17].value) && !isnan(costs[16].value));
  WANT(isochrone_atlas_lines(atlas, 0, ISOCHRONE_LLC, NULL, 1, ns, bins), ISOCHRONE_ARGUMENT, "addresses");
  WANT(isochrone_atlas_lines(atlas, 0, ISOCHRONE_LLC, NULL, 0, ns, bins), ISOCHRONE_OK, "");
  WANT(isochrone_atlas_lines(atlas, 0, ISOCHRONE_LLC, addresses, 3, ns, bins), ISOCHRONE_OK, "");
  for (int at = 0; at < 2; at++) {
    NUMBER(ns[at] == isochrone_atlas_latency(atlas, 0, ISOCHRONE_LLC, addresses[at]) && ns[at] > 0);
    NUMBER(bins[at] == isochrone_atlas_line_class(atlas, ISOCHRONE_LLC, addresses[at]) && bins[at] >= 0);
  }
  NUMBER(isnan(ns[2]) && ns[3] == -1 && bins[2] == -1 && bins[3] == -9);
  WANT(isochrone_atlas_lines(atlas, 0, ISOCHRONE_LLC, addresses, 3, NULL, NULL), ISOCHRONE_OK, "");
  double by_bin[64];
  NUMBER(isochrone_atlas_bins(atlas, 0, ISOCHRONE_LLC, by_bin, 64) == 64 && by_bin[bins[1]] == ns[1]);
  NUMBER(isochrone_atlas_bins(atlas, 0, ISOCHRONE_DRAM, by_bin, 64) == 0);
  NUMBER(isochrone_atlas_bins(atlas, 99, ISOCHRONE_LLC, NULL, 0) == 0);
  NUMBER(isochrone_atlas_bins(atlas, 0, ISOCHRONE_LLC, NULL, 64) == 64);
  NUMBER(isochrone_atlas_regions(atlas, regions, 2) == 1 && regions[0] == 0 && regions[1] == 99);
  NUMBER(isochrone_atlas_regions(NULL, regions, 2) == 0);
}

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
  arrays(atlas);
  isochrone_atlas_close(atlas);
  return failed;
}
