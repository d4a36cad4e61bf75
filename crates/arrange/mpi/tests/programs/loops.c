/* Communicators that are made, used a few times and freed, 20 of them or as many as the second word says; then one
   that lives for long, if asked for, for as many calls as the third word says. */
#include "check.h"
#include <unistd.h>

static void use(MPI_Comm comm, int calls) {
    int mine, size;
    MPI_Comm_rank(comm, &mine);
    MPI_Comm_size(comm, &size);
    for (int call = 0; call < calls; call++) {
        int total = 0;
        MPI_Allreduce(&mine, &total, 1, MPI_INT, MPI_SUM, comm);
        CHECK(total == size * (size - 1) / 2);
    }
}

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    MPI_Group all;
    MPI_Comm_group(MPI_COMM_WORLD, &all);
    int rounds = argc > 2 ? atoi(argv[2]) : 20, calls = argc > 3 ? atoi(argv[3]) : 1100;
    for (int round = 0; round < rounds; round++) {
        MPI_Comm one;
        if (round % 3 == 0) MPI_Comm_dup(MPI_COMM_WORLD, &one);
        if (round % 3 == 1) MPI_Comm_split(MPI_COMM_WORLD, 0, -rank, &one);
        if (round % 3 == 2) MPI_Comm_create(MPI_COMM_WORLD, all, &one);
        use(one, 9);
        MPI_Comm_free(&one);
    }
    MPI_Group_free(&all);
    if (argc > 1 && calls) {
        MPI_Comm one;
        MPI_Comm_dup(MPI_COMM_WORLD, &one);
        use(one, 1);
        /* One rank's clock says more than the other's. */
        usleep(rank == 0 ? 200000 : 100000);
        use(one, calls - 1);
        MPI_Comm_free(&one);
    }
    printf("done %d\n", rank);
    MPI_Finalize();
    return 0;
}
