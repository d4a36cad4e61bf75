/* Every collective by its function with large counts (MPI 4.0), asked for at run time: an older MPI has none, and then
   only the library does. */
#define _GNU_SOURCE
#include "check.h"
#include <dlfcn.h>

static void *called(const char *name) {
    void *function = dlsym(RTLD_DEFAULT, name);
    CHECK(function != NULL);
    return function;
}

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    int (*bcast)(void *, MPI_Count, MPI_Datatype, int, MPI_Comm) = called("MPI_Bcast_c");
    int (*reduce)(const void *, void *, MPI_Count, MPI_Datatype, MPI_Op, int, MPI_Comm) = called("MPI_Reduce_c");
    int (*allreduce)(const void *, void *, MPI_Count, MPI_Datatype, MPI_Op, MPI_Comm) = called("MPI_Allreduce_c");
    int (*scatter)(const void *, MPI_Count, MPI_Datatype, void *, MPI_Count, MPI_Datatype, int, MPI_Comm) =
        called("MPI_Scatter_c");
    int (*gather)(const void *, MPI_Count, MPI_Datatype, void *, MPI_Count, MPI_Datatype, int, MPI_Comm) =
        called("MPI_Gather_c");
    int (*allgather)(const void *, MPI_Count, MPI_Datatype, void *, MPI_Count, MPI_Datatype, MPI_Comm) =
        called("MPI_Allgather_c");
    int (*alltoall)(const void *, MPI_Count, MPI_Datatype, void *, MPI_Count, MPI_Datatype, MPI_Comm) =
        called("MPI_Alltoall_c");
    int (*scan)(const void *, void *, MPI_Count, MPI_Datatype, MPI_Op, MPI_Comm) = called("MPI_Scan_c");
    int (*exscan)(const void *, void *, MPI_Count, MPI_Datatype, MPI_Op, MPI_Comm) = called("MPI_Exscan_c");
    int (*reduce_scatter)(const void *, void *, MPI_Count, MPI_Datatype, MPI_Op, MPI_Comm) =
        called("MPI_Reduce_scatter_block_c");
    int (*gatherv)(const void *, MPI_Count, MPI_Datatype, void *, const MPI_Count *, const MPI_Aint *, MPI_Datatype, int,
                   MPI_Comm) = called("MPI_Gatherv_c");
    int (*scatterv)(const void *, const MPI_Count *, const MPI_Aint *, MPI_Datatype, void *, MPI_Count, MPI_Datatype, int,
                    MPI_Comm) = called("MPI_Scatterv_c");
    int (*allgatherv)(const void *, MPI_Count, MPI_Datatype, void *, const MPI_Count *, const MPI_Aint *, MPI_Datatype,
                      MPI_Comm) = called("MPI_Allgatherv_c");
    int (*alltoallv)(const void *, const MPI_Count *, const MPI_Aint *, MPI_Datatype, void *, const MPI_Count *,
                     const MPI_Aint *, MPI_Datatype, MPI_Comm) = called("MPI_Alltoallv_c");
    int (*reduce_parts)(const void *, void *, const MPI_Count *, MPI_Datatype, MPI_Op, MPI_Comm) =
        called("MPI_Reduce_scatter_c");
    /* The last ones are more than is done in lines. */
    MPI_Count counts[] = {1, 7, 100, 3000, 40000};
    for (int round = 0; round < 25; round++) {
        MPI_Count count = counts[round % 5];
        int root = round % ranks, sum = ranks * (ranks - 1) / 2;
        int *mine = malloc(count * sizeof(int)), *all = malloc(ranks * count * sizeof(int));
        for (MPI_Count i = 0; i < count; i++) mine[i] = rank == root ? round + (int)i : -1;
        CHECK(bcast(mine, count, MPI_INT, root, MPI_COMM_WORLD) == MPI_SUCCESS);
        for (MPI_Count i = 0; i < count; i++) CHECK(mine[i] == round + (int)i);
        for (MPI_Count i = 0; i < count; i++) mine[i] = rank + (int)i;
        CHECK(reduce(mine, all, count, MPI_INT, MPI_SUM, root, MPI_COMM_WORLD) == MPI_SUCCESS);
        for (MPI_Count i = 0; i < count && rank == root; i++) CHECK(all[i] == sum + ranks * (int)i);
        CHECK(allreduce(mine, all, count, MPI_INT, MPI_SUM, MPI_COMM_WORLD) == MPI_SUCCESS);
        for (MPI_Count i = 0; i < count; i++) CHECK(all[i] == sum + ranks * (int)i);
        CHECK(allgather(mine, count, MPI_INT, all, count, MPI_INT, MPI_COMM_WORLD) == MPI_SUCCESS);
        for (MPI_Count i = 0; i < ranks * count; i++) CHECK(all[i] == (int)(i / count + i % count));
        memset(all, 0, ranks * count * sizeof(int));
        CHECK(gather(mine, count, MPI_INT, all, count, MPI_INT, root, MPI_COMM_WORLD) == MPI_SUCCESS);
        for (MPI_Count i = 0; i < ranks * count && rank == root; i++) CHECK(all[i] == (int)(i / count + i % count));
        CHECK(scatter(all, count, MPI_INT, mine, count, MPI_INT, root, MPI_COMM_WORLD) == MPI_SUCCESS);
        for (MPI_Count i = 0; i < count; i++) CHECK(mine[i] == rank + (int)i);
        CHECK(scan(mine, all, count, MPI_INT, MPI_SUM, MPI_COMM_WORLD) == MPI_SUCCESS);
        for (MPI_Count i = 0; i < count; i++) CHECK(all[i] == rank * (rank + 1) / 2 + (rank + 1) * (int)i);
        CHECK(exscan(mine, all, count, MPI_INT, MPI_SUM, MPI_COMM_WORLD) == MPI_SUCCESS);
        for (MPI_Count i = 0; i < count && rank; i++) CHECK(all[i] == rank * (rank - 1) / 2 + rank * (int)i);
        int *blocks = malloc(ranks * count * sizeof(int));
        for (MPI_Count i = 0; i < ranks * count; i++) blocks[i] = 100 * rank + (int)i;
        CHECK(alltoall(blocks, count, MPI_INT, all, count, MPI_INT, MPI_COMM_WORLD) == MPI_SUCCESS);
        for (MPI_Count i = 0; i < ranks * count; i++)
            CHECK(all[i] == 100 * (int)(i / count) + (int)(rank * count + i % count));
        CHECK(reduce_scatter(blocks, mine, count, MPI_INT, MPI_SUM, MPI_COMM_WORLD) == MPI_SUCCESS);
        for (MPI_Count i = 0; i < count; i++) CHECK(mine[i] == 100 * sum + ranks * (int)(rank * count + i));
        /* Each rank has one more than the one below it; its block begins after as many as all below have at most. */
        MPI_Count each[64], own = count + rank - ranks + 1, before = 0;
        MPI_Aint places[64];
        if (own < 0) own = 0;
        for (int r = 0; r < ranks; r++) {
            each[r] = count + r < ranks ? 0 : count + r - ranks + 1, places[r] = r * count;
            if (r < rank) before += each[r];
        }
        for (MPI_Count i = 0; i < own; i++) mine[i] = 1000 * rank + (int)i;
        CHECK(gatherv(mine, own, MPI_INT, all, rank == root ? each : NULL, rank == root ? places : NULL, MPI_INT, root,
                      MPI_COMM_WORLD) == MPI_SUCCESS);
        for (int r = 0; r < ranks && rank == root; r++)
            for (MPI_Count i = 0; i < each[r]; i++) CHECK(all[places[r] + i] == 1000 * r + (int)i);
        CHECK(scatterv(all, rank == root ? each : NULL, rank == root ? places : NULL, MPI_INT, blocks, own, MPI_INT, root,
                       MPI_COMM_WORLD) == MPI_SUCCESS);
        CHECK(!memcmp(blocks, mine, own * sizeof(int)));
        memset(all, 0, ranks * count * sizeof(int));
        CHECK(allgatherv(mine, own, MPI_INT, all, each, places, MPI_INT, MPI_COMM_WORLD) == MPI_SUCCESS);
        for (int r = 0; r < ranks; r++)
            for (MPI_Count i = 0; i < each[r]; i++) CHECK(all[places[r] + i] == 1000 * r + (int)i);
        for (MPI_Count i = 0; i < ranks * count; i++) blocks[i] = 100 * rank + (int)i;
        CHECK(reduce_parts(blocks, all, each, MPI_INT, MPI_SUM, MPI_COMM_WORLD) == MPI_SUCCESS);
        for (MPI_Count i = 0; i < own; i++) CHECK(all[i] == 100 * sum + ranks * (int)(before + i));
        /* As many to each other rank as that one has. */
        MPI_Count to[64];
        for (int r = 0; r < ranks; r++) to[r] = own;
        CHECK(alltoallv(blocks, each, places, MPI_INT, all, to, places, MPI_INT, MPI_COMM_WORLD) == MPI_SUCCESS);
        for (int r = 0; r < ranks; r++)
            for (MPI_Count i = 0; i < own; i++) CHECK(all[places[r] + i] == 100 * r + (int)(places[rank] + i));
        free(mine), free(all), free(blocks);
    }
    printf("done %d\n", rank);
    MPI_Finalize();
    return 0;
}
