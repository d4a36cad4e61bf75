/* Makes small objects, and from then on only makes a large one longer and shorter until its input is closed, or half a
 * minute is over. Says how many KiB of memory it has by then. */
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { OBJECTS = 60000, LARGE = 4096 };
static char *mine[OBJECTS];

static int is_told(void) {
    struct pollfd input = {.fd = 0, .events = POLLIN};
    return poll(&input, 1, 0) > 0;
}

int main(void) {
    for (int i = 0; i < OBJECTS; i++) memset(mine[i] = malloc(48), i, 48);
    char *large = malloc(LARGE);
    time_t end = time(0) + 30;
    while (!is_told() && time(0) < end)
        for (int i = 1; i < 1000; i++) large = realloc(large, LARGE + i);
    FILE *status = fopen("/proc/self/statm", "r");
    long all, resident;
    fscanf(status, "%ld %ld", &all, &resident);
    printf("%ld\n", resident * sysconf(_SC_PAGESIZE) / 1024);
    free(large);
    return 0;
}
