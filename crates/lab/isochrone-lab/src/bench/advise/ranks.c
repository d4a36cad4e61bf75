/* Ranks that compute a little and add up what they have, again and again. */
#include <mpi.h>
#include <stdio.h>

int main(int argc, char **argv) {
    double own[8] = {0}, sum[8] = {0};
    int rank;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    for (int round = 0; round < 60000; round++) {
        for (int i = 0; i < 4000; i++) own[i & 7] = own[i & 7] * 0.5 + rank + i;
        MPI_Allreduce(own, sum, 8, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
        own[0] += sum[0] * 1e-9;
    }
    if (rank == 0) printf("%g\n", own[0]);
    MPI_Finalize();
    return 0;
}
