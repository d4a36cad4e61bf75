/* Buffers in the memory of a device, on one rank or on all: what comes is what comes to ordinary ones. */
#define _GNU_SOURCE
#include "check.h"
#include <dlfcn.h>

static void (*device_open)(void), (*device_close)(void), (*device_end)(void);
static void *(*device_make)(size_t);
static int (*device_asked)(void);

static int *filled(void *buffer, size_t n, int seed) {
    int *numbers = buffer;
    for (size_t i = 0; i < n; i++) numbers[i] = number(rank, seed, (int)i % 5000);
    return numbers;
}

/* The same call with ordinary buffers by the MPI, and with those of a device. */
#define BOTH(n_a, n_b, call) do { \
    int *a = filled(malloc(4 * (n_a)), n_a, 1), *b = filled(malloc(4 * (n_b)), n_b, 2), *plain_a = a, *plain_b = b; \
    { call(PMPI_) } \
    if (here) { \
        a = device_make(4 * (n_a)), b = device_make(4 * (n_b)); \
        device_open(); \
    } else a = malloc(4 * (n_a)), b = malloc(4 * (n_b)); \
    filled(a, n_a, 1), filled(b, n_b, 2); \
    device_close(); \
    { call(MPI_) } \
    device_open(); \
    CHECK(!memcmp(a, plain_a, 4 * (n_a)) && !memcmp(b, plain_b, 4 * (n_b))); \
    if (here) device_end(); \
    else free(a), free(b); \
    free(plain_a), free(plain_b); \
} while (0)

static void moved(int n, int root, int here) {
    size_t all = (size_t)n * ranks;
    MPI_Comm world = MPI_COMM_WORLD;
#define BCAST(p) CHECK(!p##Bcast(b, n, MPI_INT, root, world));
    BOTH(1, n, BCAST);
#define SCATTER(p) CHECK(!p##Scatter(a, n, MPI_INT, b, n, MPI_INT, root, world));
    BOTH(all, n, SCATTER);
#define SCATTER_IN_PLACE(p) CHECK(!p##Scatter(a, n, MPI_INT, rank == root ? MPI_IN_PLACE : b, n, MPI_INT, root, world));
    BOTH(all, n, SCATTER_IN_PLACE);
#define GATHER(p) CHECK(!p##Gather(a, n, MPI_INT, b, n, MPI_INT, root, world));
    BOTH(n, all, GATHER);
#define ALLGATHER(p) CHECK(!p##Allgather(a, n, MPI_INT, b, n, MPI_INT, world));
    BOTH(n, all, ALLGATHER);
#define ALLGATHER_IN_PLACE(p) CHECK(!p##Allgather(MPI_IN_PLACE, 0, MPI_INT, b, n, MPI_INT, world));
    BOTH(1, all, ALLGATHER_IN_PLACE);
#define ALLTOALL(p) CHECK(!p##Alltoall(a, n, MPI_INT, b, n, MPI_INT, world));
    BOTH(all, all, ALLTOALL);
}

static void combined(int n, int root, int here) {
    size_t all = (size_t)n * ranks;
    MPI_Comm world = MPI_COMM_WORLD;
#define REDUCE(p) CHECK(!p##Reduce(a, b, n, MPI_INT, MPI_SUM, root, world));
    BOTH(n, n, REDUCE);
#define REDUCE_IN_PLACE(p) CHECK(!p##Reduce(rank == root ? MPI_IN_PLACE : a, b, n, MPI_INT, MPI_SUM, root, world));
    BOTH(n, n, REDUCE_IN_PLACE);
#define ALLREDUCE(p) CHECK(!p##Allreduce(a, b, n, MPI_INT, MPI_MAX, world));
    BOTH(n, n, ALLREDUCE);
#define ALLREDUCE_IN_PLACE(p) CHECK(!p##Allreduce(MPI_IN_PLACE, b, n, MPI_INT, MPI_SUM, world));
    BOTH(1, n, ALLREDUCE_IN_PLACE);
    /* Operands that the MPI combines. */
#define PAIRS(p) CHECK(!p##Allreduce(a, b, n / 2, MPI_2INT, MPI_MINLOC, world));
    BOTH(n, n, PAIRS);
#define SCAN(p) CHECK(!p##Scan(a, b, n, MPI_INT, MPI_SUM, world));
    BOTH(n, n, SCAN);
#define EXSCAN(p) CHECK(!p##Exscan(a, b, n, MPI_INT, MPI_SUM, world));
    BOTH(n, n, EXSCAN);
#define BLOCKS(p) CHECK(!p##Reduce_scatter_block(a, b, n, MPI_INT, MPI_SUM, world));
    BOTH(all, n, BLOCKS);
    int counts[64], places[64];
    for (int r = 0; r < ranks; r++) counts[r] = n - r, places[r] = r * n;
#define PARTS(p) CHECK(!p##Reduce_scatter(a, b, counts, MPI_INT, MPI_SUM, world));
    BOTH(all, n, PARTS);
#define GATHERV(p) CHECK(!p##Gatherv(a, counts[rank], MPI_INT, b, counts, places, MPI_INT, root, world));
    BOTH(n, all, GATHERV);
#define ALLTOALLV(p) \
    for (int r = 0; r < ranks; r++) counts[r] = n; \
    CHECK(!p##Alltoallv(a, counts, places, MPI_INT, b, counts, places, MPI_INT, world));
    BOTH(all, all, ALLTOALLV);
}

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    device_open = dlsym(RTLD_DEFAULT, "device_open"), device_close = dlsym(RTLD_DEFAULT, "device_close");
    device_end = dlsym(RTLD_DEFAULT, "device_end"), device_make = dlsym(RTLD_DEFAULT, "device_make");
    device_asked = dlsym(RTLD_DEFAULT, "device_asked");
    CHECK(device_open && device_close && device_end && device_make && device_asked);
    for (int i = 0; i < 4; i++) MPI_Barrier(MPI_COMM_WORLD);
    static const int counts[] = { 8, 150, 10000, 1 << 18 };
    for (int who = 0; who <= ranks; who += ranks) {
        int here = who == rank || who == ranks;
        for (int size = 0; size < 4; size++) {
            int root = (who + size) % ranks;
            moved(counts[size], root, here);
            /* Longer ones are the MPI's, whatever memory they lie in. */
            if (size < 3) combined(counts[size], root, here);
        }
    }
    CHECK(device_asked() > 100);
    printf("done %d\n", rank);
    MPI_Finalize();
    return 0;
}
