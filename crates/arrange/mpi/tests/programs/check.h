/* What the programs share: each compares every byte and ends with status 1 at the first difference. */
#ifndef CHECK_H
#define CHECK_H
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int rank, ranks;

#define CHECK(condition) \
    do { \
        if (!(condition)) { \
            printf("rank %d, line %d: %s\n", rank, __LINE__, #condition); \
            fflush(stdout); \
            MPI_Abort(MPI_COMM_WORLD, 1); \
        } \
    } while (0)

static inline int number(int of, int round, int i) { return (of * 10007 + round * 7919 + i * 31) % 65521; }

#endif
