/* What the test programs ask of each call: its number, and a part of the words where it was refused. */
#ifndef WANT_H
#define WANT_H

#include <isochrone.h>
#include <stdio.h>
#include <string.h>

static int failed = 0;

static void want(int line, int got, int wanted, const char *part) {
  if (got != wanted || (wanted != ISOCHRONE_OK && strstr(isochrone_error(), part) == NULL)) {
    fprintf(stderr, "line %d: %d where %d was wanted: %s\n", line, got, wanted, isochrone_error());
    failed = 1;
  }
}
#define WANT(call, wanted, part) want(__LINE__, (call), (wanted), (part))

#endif
