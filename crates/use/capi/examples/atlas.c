/*
 * Asks an atlas: how far cores are from one another, from memory regions and from a line.
 *
 *   atlas [FILE [ADDRESS]]
 *
 * Without a file, the atlas of this machine. The address is a physical one, as in /proc/self/pagemap.
 */
#include <isochrone.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

static const char *reading(uint32_t number) {
  static const char *const words[] = {"unknown", "measured", "predicted", "simulated"};
  return words[number < 4 ? number : 0];
}

static void tell(const char *what, uint32_t of, const isochrone_cost *cost, const char *unit) {
  if (isnan(cost->value))
    printf("%s %u: not known\n", what, of);
  else
    printf("%s %u: %.1f %s [%.1f, %.1f], %s\n", what, of, cost->value, unit, cost->lo, cost->hi, reading(cost->reading));
}

int main(int argc, char **argv) {
  const char *path = argc > 1 ? argv[1] : NULL;
  isochrone_atlas *atlas;
  if (isochrone_atlas_open(path, path == NULL ? 0 : ISOCHRONE_ANY_MACHINE, &atlas) != ISOCHRONE_OK) {
    fprintf(stderr, "%s\n", isochrone_error());
    return 1;
  }
  uint32_t cores[1024], near[1024];
  size_t count = isochrone_atlas_cores(atlas, cores, 1024);
  printf("%zu cores; line transfers graded %u\n", count, isochrone_atlas_quality(atlas, ISOCHRONE_TRANSFER));
  if (count == 0) return 1;

  size_t known = isochrone_atlas_nearest_cores(atlas, cores[0], near, 1024);
  for (size_t at = 0; at < known && at < 3; at++) {
    isochrone_cost cost;
    if (isochrone_atlas_line_transfer(atlas, near[at], cores[0], &cost) != ISOCHRONE_OK) return 1;
    tell("a line from core", near[at], &cost, "ns");
  }
  isochrone_cost latency, bandwidth;
  if (isochrone_atlas_region(atlas, cores[0], 0, &latency, &bandwidth) != ISOCHRONE_OK) return 1;
  tell("memory of region", 0, &latency, "ns");
  tell("memory of region", 0, &bandwidth, "GB/s");
  if (argc > 2) {
    uint64_t address = strtoull(argv[2], NULL, 0);
    for (uint32_t level = ISOCHRONE_LLC; level <= ISOCHRONE_DRAM; level++)
      printf("level %u: bin %d, %.1f ns\n", level, isochrone_atlas_line_class(atlas, level, address),
             isochrone_atlas_latency(atlas, cores[0], level, address));
  }
  isochrone_atlas_close(atlas);
  return 0;
}
