/* All collectives, all roots, several sizes, with and without MPI_IN_PLACE. */
#include "check.h"

enum { ROUNDS = 6, MOST = 5000 };

static int given[MOST], taken[MOST + 64], all[64 * MOST], got[64 * MOST];
/* A block for each rank of each rank. */
static int blocks[64 * MOST];

static void fill(int round, int count) {
    for (int i = 0; i < count; i++) given[i] = number(rank, round, i);
    for (int r = 0; r < ranks; r++)
        for (int i = 0; i < count; i++) all[r * count + i] = number(r, round, i);
}

static int sum(int round, int i) {
    int total = 0;
    for (int r = 0; r < ranks; r++) total += number(r, round, i);
    return total;
}

/* What `from` gives to `to`. */
static int block(int from, int to, int round, int i) { return number(from, round, i + 17 * to); }

static int sum_of(int first, int last, int round, int i) {
    int total = 0;
    for (int r = first; r <= last; r++) total += number(r, round, i);
    return total;
}

/* Collectives of which each rank gets something else. */
static void parts(int round, int count, MPI_Comm comm) {
    const size_t bytes = (size_t)count * sizeof(int);
    for (int in_place = 0; in_place < 2; in_place++) {
        for (int to = 0; to < ranks; to++)
            for (int i = 0; i < count; i++) blocks[to * count + i] = block(rank, to, round, i);
        memset(got, 0, bytes * ranks);
        if (in_place) memcpy(got, blocks, bytes * ranks);
        MPI_Alltoall(in_place ? MPI_IN_PLACE : blocks, in_place ? 0 : count,
                     in_place ? MPI_DATATYPE_NULL : MPI_INT, got, count, MPI_INT, comm);
        for (int from = 0; from < ranks; from++)
            for (int i = 0; i < count; i++) CHECK(got[from * count + i] == block(from, rank, round, i));

        memset(got, 0, bytes * ranks);
        if (in_place) memcpy(got, blocks, bytes * ranks);
        MPI_Reduce_scatter_block(in_place ? MPI_IN_PLACE : blocks, got, count, MPI_INT, MPI_SUM, comm);
        for (int i = 0; i < count; i++) {
            int total = 0;
            for (int from = 0; from < ranks; from++) total += block(from, rank, round, i);
            CHECK(got[i] == total);
        }

        memset(taken, 0, sizeof taken);
        if (in_place) memcpy(taken, given, bytes);
        MPI_Scan(in_place ? MPI_IN_PLACE : given, taken, count, MPI_INT, MPI_SUM, comm);
        for (int i = 0; i < count; i++) CHECK(taken[i] == sum_of(0, rank, round, i));

        memset(taken, 0, sizeof taken);
        if (in_place) memcpy(taken, given, bytes);
        void *place = taken;
#ifdef OPEN_MPI
        /* The first rank needs no place for what it does not get; MPICH wants one. */
        if (!rank && !in_place && round % 2) place = NULL;
#endif
        MPI_Exscan(in_place ? MPI_IN_PLACE : given, place, count, MPI_INT, MPI_SUM, comm);
        for (int i = 0; i < count && rank; i++) CHECK(taken[i] == sum_of(0, rank - 1, round, i));
        for (int i = 0; i < count && !rank; i++) CHECK(taken[i] == (in_place ? given[i] : 0));
    }
}

static void rooted(int round, int count, int root, MPI_Comm comm) {
    const size_t bytes = (size_t)count * sizeof(int);
    memset(taken, 0, sizeof taken);
    memcpy(taken, given, rank == root ? bytes : 0);
    MPI_Bcast(taken, count, MPI_INT, root, comm);
    for (int i = 0; i < count; i++) CHECK(taken[i] == number(root, round, i));

    memset(taken, 0, sizeof taken);
    MPI_Reduce(given, rank == root ? taken : NULL, count, MPI_INT, MPI_SUM, root, comm);
    for (int i = 0; i < count && rank == root; i++) CHECK(taken[i] == sum(round, i));
    /* MPICH 4.0.2 itself ends by a signal here among four ranks with another root. */
    if (root == 0 || ranks < 4) {
        memcpy(taken, given, bytes);
        MPI_Reduce(rank == root ? MPI_IN_PLACE : taken, taken, count, MPI_INT, MPI_SUM, root, comm);
        for (int i = 0; i < count && rank == root; i++) CHECK(taken[i] == sum(round, i));
    }

    memset(taken, 0, sizeof taken);
    MPI_Scatter(rank == root ? all : NULL, count, MPI_INT, taken, count, MPI_INT, root, comm);
    CHECK(!memcmp(taken, given, bytes));
    memset(taken, 0, sizeof taken);
    MPI_Scatter(all, count, MPI_INT, rank == root ? MPI_IN_PLACE : taken, count, MPI_INT, root, comm);
    CHECK(rank == root || !memcmp(taken, given, bytes));

    memset(got, 0, sizeof got);
    MPI_Gather(given, count, MPI_INT, rank == root ? got : NULL, count, MPI_INT, root, comm);
    CHECK(rank != root || !memcmp(got, all, bytes * ranks));
    memset(got, 0, sizeof got);
    memcpy(got + rank * count, given, bytes);
    MPI_Gather(rank == root ? MPI_IN_PLACE : given, count, MPI_INT, got, count, MPI_INT, root, comm);
    CHECK(rank != root || !memcmp(got, all, bytes * ranks));
}

static void rootless(int round, int count, MPI_Comm comm) {
    const size_t bytes = (size_t)count * sizeof(int);
    memset(taken, 0, sizeof taken);
    MPI_Allreduce(given, taken, count, MPI_INT, MPI_SUM, comm);
    for (int i = 0; i < count; i++) CHECK(taken[i] == sum(round, i));
    memcpy(taken, given, bytes);
    MPI_Allreduce(MPI_IN_PLACE, taken, count, MPI_INT, MPI_SUM, comm);
    for (int i = 0; i < count; i++) CHECK(taken[i] == sum(round, i));
    memset(got, 0, sizeof got);
    MPI_Allgather(given, count, MPI_INT, got, count, MPI_INT, comm);
    CHECK(!memcmp(got, all, bytes * ranks));
    memset(got, 0, sizeof got);
    memcpy(got + rank * count, given, bytes);
    MPI_Allgather(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, got, count, MPI_INT, comm);
    CHECK(!memcmp(got, all, bytes * ranks));
    MPI_Barrier(comm);
}

/* How many elements belong to rank r where ranks have different ones. */
static int part(int r, int count) { return r == 1 ? count / 2 : count + r; }

/* How many elements `from` has for `to`, the same both ways. */
static int between(int from, int to, int count) { return (from + to) % 3 * (count / 2); }

static int counts[64], places[64];

/* Blocks with one element before each that is nobody's. */
static void lay(int from, int count) {
    for (int r = 0, end = 1; r < ranks; end += counts[r++] + 1) {
        counts[r] = from < 0 ? part(r, count) : between(from, r, count);
        places[r] = end;
    }
}

static void clear(void) { memset(got, -1, sizeof got); }

/* That block r is what rank r had, and that nobody wrote before it. */
static void check_block(int r, int round, int seed) {
    for (int i = 0; i < counts[r]; i++) CHECK(got[places[r] + i] == number(r, round, i + seed));
    CHECK(got[places[r] - 1] == -1);
}

/* Collectives of which ranks have different counts. */
static void uneven(int round, int count, MPI_Comm comm) {
    lay(-1, count);
    const int mine = counts[rank];
    for (int i = 0; i < mine; i++) blocks[i] = number(rank, round, i);
    for (int in_place = 0; in_place < 2; in_place++) {
        for (int root = 0; root < ranks; root++) {
            int *all_counts = rank == root ? counts : NULL, *all_places = rank == root ? places : NULL;
            int here = in_place && rank == root;
            clear();
            if (here) memcpy(got + places[rank], blocks, mine * sizeof(int));
            MPI_Gatherv(here ? MPI_IN_PLACE : blocks, mine, MPI_INT, got, all_counts, all_places, MPI_INT, root, comm);
            for (int r = 0; r < ranks && rank == root; r++) check_block(r, round, 0);
            /* The root gives what it got: each rank its own. */
            memset(taken, -1, sizeof taken);
            MPI_Scatterv(got, all_counts, all_places, MPI_INT, here ? MPI_IN_PLACE : taken, mine, MPI_INT, root, comm);
            for (int i = 0; i < mine && !here; i++) CHECK(taken[i] == number(rank, round, i));
            CHECK(taken[mine] == -1);
        }
        clear();
        if (in_place) memcpy(got + places[rank], blocks, mine * sizeof(int));
        MPI_Allgatherv(in_place ? MPI_IN_PLACE : blocks, mine, MPI_INT, got, counts, places, MPI_INT, comm);
        for (int r = 0; r < ranks; r++) check_block(r, round, 0);
    }

    int total = 0, before = 0;
    for (int r = 0; r < ranks; r++) before += r < rank ? counts[r] : 0, total += counts[r];
    for (int in_place = 0; in_place < 2; in_place++) {
        clear();
        for (int i = 0; i < total; i++) all[i] = number(rank, round, i);
        if (in_place) memcpy(got, all, total * sizeof(int));
        MPI_Reduce_scatter(in_place ? MPI_IN_PLACE : all, got, counts, MPI_INT, MPI_SUM, comm);
        for (int i = 0; i < mine; i++) CHECK(got[i] == sum(round, before + i));
        CHECK(in_place || got[mine] == -1);
    }

    lay(rank, count);
    for (int in_place = 0; in_place < 2; in_place++) {
        clear();
        for (int to = 0; to < ranks; to++)
            for (int i = 0; i < counts[to]; i++) all[places[to] + i] = number(rank, round, i + 31 * to);
        if (in_place)
            for (int to = 0; to < ranks; to++) memcpy(got + places[to], all + places[to], counts[to] * sizeof(int));
        MPI_Alltoallv(in_place ? MPI_IN_PLACE : all, counts, places, MPI_INT, got, counts, places, MPI_INT, comm);
        for (int from = 0; from < ranks; from++) check_block(from, round, 31 * rank);
    }
}

/* Reductions whose element or operation is done in lines, and some that are not. */
static void reductions(MPI_Comm comm) {
    double mine = rank + 0.5, most = 0;
    MPI_Allreduce(&mine, &most, 1, MPI_DOUBLE, MPI_MAX, comm);
    CHECK(most == ranks - 0.5);
    float product = 2, result = 0;
    MPI_Allreduce(&product, &result, 1, MPI_FLOAT, MPI_PROD, comm);
    CHECK(result == (float)(1 << ranks));
    unsigned bits = 1u << rank, any = 0;
    MPI_Allreduce(&bits, &any, 1, MPI_UNSIGNED, MPI_BOR, comm);
    CHECK(any == (1u << ranks) - 1);
    int truth = rank == 0, both = 1;
    MPI_Allreduce(&truth, &both, 1, MPI_INT, MPI_LAND, comm);
    CHECK(both == 0);
    struct { double value; int at; } place = { (rank * 3) % ranks, rank }, top;
    MPI_Allreduce(&place, &top, 1, MPI_DOUBLE_INT, MPI_MAXLOC, comm);
    CHECK(top.value >= place.value);
    short small = 1, total = 0;
    MPI_Allreduce(&small, &total, 1, MPI_SHORT, MPI_SUM, comm);
    CHECK(total == ranks);
}

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    const int sizes[] = { 0, 1, 2, 14, 16, 17, 300, MOST };
    for (int round = 0; round < ROUNDS; round++) {
        for (size_t c = 0; c < sizeof sizes / sizeof *sizes; c++) {
            fill(round, sizes[c]);
            for (int root = 0; root < ranks; root++) rooted(round, sizes[c], root, MPI_COMM_WORLD);
            rootless(round, sizes[c], MPI_COMM_WORLD);
            parts(round, sizes[c], MPI_COMM_WORLD);
            uneven(round, sizes[c], MPI_COMM_WORLD);
        }
        reductions(MPI_COMM_WORLD);
    }
    printf("done %d\n", rank);
    MPI_Finalize();
    return 0;
}
