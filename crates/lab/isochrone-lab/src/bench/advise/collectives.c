/* Ranks of which each kind leans on one collective, on rare ones beside neighbours, or on none. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { WIDE = 512, HIGH = 256 };

static double cells[2][HIGH + 2][WIDE];

/* Sweeps of a stencil over rows that ranks share out; how far it is from its end is asked for after every 20. */
static double stencil(int rank, int ranks, int sweeps) {
    int up = rank > 0 ? rank - 1 : MPI_PROC_NULL, down = rank + 1 < ranks ? rank + 1 : MPI_PROC_NULL;
    double own = 0, all = 0;
    for (int x = 0; x < WIDE; x++) cells[0][1][x] = cells[1][1][x] = x % 7 + rank;
    for (int sweep = 0; sweep < sweeps; sweep++) {
        double (*from)[WIDE] = cells[sweep & 1], (*to)[WIDE] = cells[~sweep & 1];
        MPI_Sendrecv(from[1], WIDE, MPI_DOUBLE, up, 0, from[HIGH + 1], WIDE, MPI_DOUBLE, down, 0, MPI_COMM_WORLD,
                     MPI_STATUS_IGNORE);
        MPI_Sendrecv(from[HIGH], WIDE, MPI_DOUBLE, down, 1, from[0], WIDE, MPI_DOUBLE, up, 1, MPI_COMM_WORLD,
                     MPI_STATUS_IGNORE);
        own = 0;
        for (int y = 1; y <= HIGH; y++)
            for (int x = 1; x < WIDE - 1; x++) {
                to[y][x] = 0.25 * (from[y - 1][x] + from[y + 1][x] + from[y][x - 1] + from[y][x + 1]);
                own += (to[y][x] - from[y][x]) * (to[y][x] - from[y][x]);
            }
        if (sweep % 20 == 0) MPI_Allreduce(&own, &all, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    }
    return all;
}

int main(int argc, char **argv) {
    int rank, ranks, rounds = argc > 2 ? atoi(argv[2]) : 0;
    const char *kind = argc > 1 ? argv[1] : "";
    double own = 1, sum = 0;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    if (!strcmp(kind, "allreduce")) {
        for (int round = 0; round < rounds; round++) {
            MPI_Allreduce(&own, &sum, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
            own = sum / ranks;
        }
    } else if (!strcmp(kind, "bcast")) {
        /* By turns: else the root runs ahead of the others. */
        for (int round = 0; round < rounds; round++) MPI_Bcast(&own, 1, MPI_DOUBLE, round % ranks, MPI_COMM_WORLD);
        sum = own;
    } else if (!strcmp(kind, "barrier")) {
        for (int round = 0; round < rounds; round++) MPI_Barrier(MPI_COMM_WORLD);
    } else if (!strcmp(kind, "stencil")) {
        sum = stencil(rank, ranks, rounds);
    } else {
        for (int round = 0; round < rounds; round++)
            for (int i = 0; i < 4000; i++) own = own * 0.999 + i;
        MPI_Reduce(&own, &sum, 1, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD);
    }
    if (rank == 0) printf("%s %g\n", kind, sum);
    MPI_Finalize();
    return 0;
}
