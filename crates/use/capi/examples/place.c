/* Lists whose nodes are near the core of the thread that walks them.
 *
 *   cc -pthread place.c $(pkg-config --cflags --libs isochrone) -o place
 *   ./place THREADS [force]
 *
 * With an atlas of this machine (`isochrone map`) nodes are placed by it; without one, or where it promises nothing,
 * they are malloc's, and a line says why. `force` places although nothing is promised. */
#include <isochrone.h>

#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { NODES = 20000, THREADS_MAX = 64 };

struct node {
  struct node *next;
  uint64_t value;
  char rest[48];
};

static isochrone_placement *placement;

/* Makes a list, frees every other node of it, and adds up what is left. Returns its first node. */
static void *work(void *argument) {
  uint64_t first = (uint64_t)(uintptr_t)argument * NODES, sum = 0, wanted = 0;
  struct node *list = NULL;
  for (uint64_t i = 0; i < NODES; i++) {
    struct node *node = isochrone_place_alloc(placement, sizeof *node, 64);
    if (node == NULL) return NULL;
    node->next = list;
    node->value = first + i;
    list = node;
  }
  for (struct node *node = list; node != NULL; node = node->next) {
    struct node *second = node->next;
    node->next = second->next;
    if (isochrone_place_free(placement, second) != ISOCHRONE_OK) return NULL;
  }
  for (struct node *node = list; node != NULL; node = node->next) sum += node->value;
  for (uint64_t i = 1; i < NODES; i += 2) wanted += first + i;
  return sum == wanted ? list : NULL;
}

/* The distance of a node from a core, if it was placed. */
static void say(const struct node *node, uint32_t core) {
  isochrone_place_distances far;
  if (isochrone_place_distance(placement, node, core, &far) == ISOCHRONE_OK)
    printf("a node, core %u: %.1f ns in the cache, %.1f ns in memory (%s)\n", core, far.cache_ns, far.memory_ns,
           far.reading == ISOCHRONE_PREDICTED ? "predicted" : "simulated");
}

int main(int count, char **words) {
  unsigned threads = count > 1 ? (unsigned)atoi(words[1]) : 1;
  if (threads < 1 || threads > THREADS_MAX) return 2;
  isochrone_place_options options;
  memset(&options, 0, sizeof options);
  options.size = sizeof options;
  options.prepare_bytes = (uint64_t)threads * NODES * sizeof(struct node);
  options.prepare_seconds = 2;
  options.flags = count > 2 && strcmp(words[2], "force") == 0 ? ISOCHRONE_PLACE_FORCE : 0;
  if (isochrone_place_open(&options, &placement) != ISOCHRONE_OK) {
    fprintf(stderr, "place: %s\n", isochrone_error());
    return 1;
  }
  const char *why = isochrone_place_why_not(placement);
  if (why != NULL) printf("%s\n", why);

  pthread_t all[THREADS_MAX];
  struct node *lists[THREADS_MAX];
  for (unsigned i = 0; i < threads; i++)
    if (pthread_create(&all[i], NULL, work, (void *)(uintptr_t)i) != 0) return 1;
  for (unsigned i = 0; i < threads; i++) {
    void *list;
    pthread_join(all[i], &list);
    lists[i] = list;
    if (list == NULL) return 1;
  }

  say(lists[0], 0);
  isochrone_place_counts counts = {.size = sizeof counts};
  if (isochrone_place_statistics(placement, &counts) != ISOCHRONE_OK) return 1;
  for (unsigned i = 0; i < threads; i++)
    for (struct node *node = lists[i], *next; node != NULL; node = next) {
      next = node->next;
      if (isochrone_place_free(placement, node) != ISOCHRONE_OK) return 1;
    }
  isochrone_place_close(placement);
  printf("libisochrone %s: %u threads, %llu nodes placed, all as it should be\n", isochrone_version(), threads,
         (unsigned long long)counts.placed_objects);
  return 0;
}
