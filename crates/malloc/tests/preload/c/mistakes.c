/* What no right program does, one mistake for each argument. A checking library ends the process. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int main(int count, char **arguments) {
    const char *mistake = count > 1 ? arguments[1] : "";
    enum { MANY = 20000 };
    static char *many[MANY];
    for (int i = 0; i < MANY; i++) many[i] = malloc(64);
    char *object = many[MANY - 1];
    if (!strcmp(mistake, "double")) free(object), free(object);
    if (!strcmp(mistake, "inside")) free(object + 16);
    if (!strcmp(mistake, "odd")) free(object + 3);
    /* Far above everything that was handed out, and still of the arena, which is reserved whole. */
    if (!strcmp(mistake, "foreign")) free(object + (256 << 20));
    return 0;
}
