/* Calls that have a shape to choose, each compared: one word from rank 0, sums to rank 0 and to all, barriers. */
#include "check.h"

int main(void) {
    MPI_Init(NULL, NULL);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    for (int round = 0; round < 12; round++) {
        int word = rank == 0 ? number(0, round, 0) : -1, sum = -1, all = -1;
        MPI_Bcast(&word, 1, MPI_INT, 0, MPI_COMM_WORLD);
        CHECK(word == number(0, round, 0));
        MPI_Reduce(&rank, &sum, 1, MPI_INT, MPI_SUM, 0, MPI_COMM_WORLD);
        CHECK(rank != 0 || sum == ranks * (ranks - 1) / 2);
        MPI_Allreduce(&rank, &all, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
        CHECK(all == ranks * (ranks - 1) / 2);
        MPI_Barrier(MPI_COMM_WORLD);
    }
    printf("done %d\n", rank);
    MPI_Finalize();
    return 0;
}
