/* Two threads of each rank, each with a communicator of its own; rank 0 alone asks for less. */
#include "check.h"
#include <pthread.h>

enum { CALLS = 400 };

static void *works(void *argument) {
    MPI_Comm comm = *(MPI_Comm *)argument;
    for (int call = 0; call < CALLS; call++) {
        const int root = call % ranks;
        int total = 0, value = rank == root ? call : -1, all[64];
        MPI_Allreduce(&rank, &total, 1, MPI_INT, MPI_SUM, comm);
        CHECK(total == ranks * (ranks - 1) / 2);
        MPI_Bcast(&value, 1, MPI_INT, root, comm);
        CHECK(value == call);
        MPI_Gather(&rank, 1, MPI_INT, all, 1, MPI_INT, root, comm);
        for (int r = 0; r < ranks && rank == root; r++) CHECK(all[r] == r);
        /* Packed by the MPI, each thread in room of its own. */
        MPI_Datatype spaced;
        int columns[8], block[8];
        for (int i = 0; i < 8; i++) columns[i] = rank == root ? call + i : -1;
        MPI_Type_vector(4, 1, 2, MPI_INT, &spaced);
        MPI_Type_commit(&spaced);
        MPI_Bcast(columns, 1, spaced, root, comm);
        MPI_Type_free(&spaced);
        for (int i = 0; i < 8; i++) CHECK(columns[i] == (rank == root || i % 2 == 0 ? call + i : -1));
        MPI_Allgather(columns, 1, MPI_INT, block, 1, MPI_INT, comm);
        CHECK(block[ranks - 1] == call);
        /* A communicator that comes and goes meanwhile. */
        if (call % 50 == 0) {
            MPI_Comm other;
            MPI_Comm_dup(comm, &other);
            for (int i = 0; i < 20; i++) MPI_Barrier(other);
            MPI_Comm_free(&other);
        }
    }
    return NULL;
}

int main(int argc, char **argv) {
    int provided, me = getenv("OMPI_COMM_WORLD_RANK") ? atoi(getenv("OMPI_COMM_WORLD_RANK"))
                                                      : atoi(getenv("PMI_RANK"));
    const int several = argc < 2 || me != 0;
    MPI_Init_thread(&argc, &argv, several ? MPI_THREAD_MULTIPLE : MPI_THREAD_SINGLE, &provided);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    MPI_Comm comms[2];
    for (int i = 0; i < 2; i++) MPI_Comm_dup(MPI_COMM_WORLD, &comms[i]);
    if (argc < 2 && provided == MPI_THREAD_MULTIPLE) {
        pthread_t thread;
        pthread_create(&thread, NULL, works, &comms[1]);
        works(&comms[0]);
        pthread_join(thread, NULL);
    } else {
        works(&comms[0]);
    }
    printf("done %d\n", rank);
    MPI_Finalize();
    return 0;
}
