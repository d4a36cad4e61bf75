/* The last rank may open no more files, so it cannot have the shared memory. */
#include "check.h"
#include <sys/resource.h>

int main(int argc, char **argv) {
    struct rlimit before, none;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    /* Whatever the MPI opens for itself it has opened by then. */
    MPI_Barrier(MPI_COMM_WORLD);
    getrlimit(RLIMIT_NOFILE, &before);
    none = before;
    none.rlim_cur = 3;
    if (rank == ranks - 1) setrlimit(RLIMIT_NOFILE, &none);
    for (int call = 0; call < 50; call++) {
        int total = 0;
        MPI_Allreduce(&rank, &total, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
        CHECK(total == ranks * (ranks - 1) / 2);
    }
    setrlimit(RLIMIT_NOFILE, &before);
    printf("done %d\n", rank);
    MPI_Finalize();
    return 0;
}
