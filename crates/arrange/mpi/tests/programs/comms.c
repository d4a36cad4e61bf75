/* Communicators come, are duplicated, split, and go; messages are under way while others wait. */
#include "check.h"

enum { LARGE = 1 << 20 };

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    for (int round = 0; round < 12; round++) {
        MPI_Comm twin, half;
        MPI_Comm_dup(MPI_COMM_WORLD, &twin);
        MPI_Comm_split(MPI_COMM_WORLD, rank % 2, -rank, &half);
        int mine, size;
        MPI_Comm_rank(half, &mine);
        MPI_Comm_size(half, &size);
        for (int call = 0; call < 10; call++) {
            int value = rank == 0 ? round + call : 0, total = 0, least = 0;
            MPI_Bcast(&value, 1, MPI_INT, 0, twin);
            CHECK(value == round + call);
            MPI_Allreduce(&rank, &total, 1, MPI_INT, MPI_SUM, twin);
            CHECK(total == ranks * (ranks - 1) / 2);
            MPI_Allreduce(&rank, &least, 1, MPI_INT, MPI_MIN, half);
            CHECK(least == rank % 2);
            value = mine == size - 1 ? rank : -1;
            MPI_Bcast(&value, 1, MPI_INT, size - 1, half);
            CHECK(value == rank % 2);
            int alone = 0;
            MPI_Allreduce(&rank, &alone, 1, MPI_INT, MPI_SUM, MPI_COMM_SELF);
            CHECK(alone == rank);
        }
        MPI_Comm_free(&twin);
        MPI_Comm_free(&half);
    }
    /* Between two groups there is an intercommunicator, whose collectives are the MPI's. */
    MPI_Comm half, inter;
    MPI_Comm_split(MPI_COMM_WORLD, rank % 2, rank, &half);
    MPI_Intercomm_create(half, 0, MPI_COMM_WORLD, 1 - rank % 2, 7, &inter);
    for (int call = 0; call < 10; call++) {
        int one = 1, others = 0, theirs = rank % 2 ? (ranks + 1) / 2 : ranks / 2;
        MPI_Allreduce(&one, &others, 1, MPI_INT, MPI_SUM, inter);
        CHECK(others == theirs);
    }
    MPI_Comm_free(&inter);
    MPI_Comm_free(&half);
    /* Rank 0's message is too long to be sent at once, and rank 0 waits elsewhere meanwhile: its waiting
       has to move the message. */
    char *large = calloc(LARGE, 1);
    for (int round = 0; round < 8; round++) {
        MPI_Request request;
        memset(large, rank == 0 ? round + 1 : 0, LARGE);
        if (rank == 0) MPI_Isend(large, LARGE, MPI_CHAR, ranks - 1, 5, MPI_COMM_WORLD, &request);
        if (rank == ranks - 1)
            MPI_Recv(large, LARGE, MPI_CHAR, 0, 5, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        MPI_Barrier(MPI_COMM_WORLD);
        if (rank == 0) MPI_Wait(&request, MPI_STATUS_IGNORE);
        if (rank == ranks - 1) CHECK(large[0] == round + 1 && large[LARGE - 1] == round + 1);
    }
    free(large);
    printf("done %d\n", rank);
    MPI_Finalize();
    return 0;
}
