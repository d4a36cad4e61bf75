/* Loads that wait for one another, over more memory than translations reach. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

int main(void) {
    const uint64_t words = 8u << 20;
    uint64_t *next = malloc(words * sizeof *next);
    uint64_t state = 88172645463325252u, at = 0;
    if (!next) return 1;
    for (uint64_t i = 0; i < words; i++) next[i] = i;
    /* One cycle through all of them (Sattolo). */
    for (uint64_t i = words - 1; i > 0; i--) {
        state ^= state << 13, state ^= state >> 7, state ^= state << 17;
        uint64_t j = state % i, kept = next[i];
        next[i] = next[j], next[j] = kept;
    }
    for (uint64_t step = 0; step < 6000000; step++) at = next[at];
    printf("%llu\n", (unsigned long long)at);
    free(next);
    return 0;
}
