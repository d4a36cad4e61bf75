/* Allocates some 100 MB in small objects, and has a few KiB of them in use at a time. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SOME = 100, ROUNDS = 20000 };

int main(void) {
    static char *mine[SOME];
    for (int round = 0; round < ROUNDS; round++) {
        for (int i = 0; i < SOME; i++) memset(mine[i] = malloc(48), i, 48);
        for (int i = 0; i < SOME; i++) free(mine[i]);
    }
    puts("done");
    return 0;
}
