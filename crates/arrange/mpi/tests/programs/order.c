/* Reductions of numbers whose sum depends on the order, of each kind, compared bit by bit with what the operands of
   all ranks come to in their order: on a communicator of all ranks, and on its halves where these have three and more. */
#include "check.h"

enum { MOST = 200000, RANKS = 8 };

static double given[MOST], got[MOST], all[RANKS][MOST], want[MOST];

/* What a rank gives: numbers far apart, and some that are equal but for the last bits. */
static double operand(int of, int at) {
    double value = (number(of, 3, at) - 32000.25) / 7;
    for (int step = (of * 5 + at) % 9; step > 0; step--) value *= at % 2 ? -37.3 : 1 / 19.7;
    return value;
}

static void wanted(int from, int to, int count, int product) {
    for (int at = 0; at < count; at++) {
        double sum = all[from][at];
        for (int of = from + 1; of < to; of++) sum = product ? sum * all[of][at] : sum + all[of][at];
        want[at] = sum;
    }
}

static int same(const double *left, const double *right, int count) {
    return memcmp(left, right, count * sizeof *left) == 0;
}

/* Neither commutes nor is the same in any other order. */
static void own(void *in, void *out, int *count, MPI_Datatype *type) {
    (void)type;
    for (int at = 0; at < *count; at++) ((double *)out)[at] = ((double *)in)[at] / 3 - ((double *)out)[at];
}

static void try(MPI_Comm comm, int count, MPI_Op mine) {
    int me, size;
    MPI_Comm_rank(comm, &me);
    MPI_Comm_size(comm, &size);
    for (int of = 0; of < size; of++)
        for (int at = 0; at < count * size; at++) all[of][at] = operand(of, at);
    for (int at = 0; at < count * size; at++) given[at] = operand(me, at);
    for (int product = 0; product < 2; product++) {
        MPI_Op op = product ? MPI_PROD : MPI_SUM;
        wanted(0, size, count, product);
        MPI_Allreduce(given, got, count, MPI_DOUBLE, op, comm);
        CHECK(same(got, want, count));
        memcpy(got, given, count * sizeof *got);
        MPI_Allreduce(MPI_IN_PLACE, got, count, MPI_DOUBLE, op, comm);
        CHECK(same(got, want, count));
        for (int root = 0; root < size; root++) {
            MPI_Reduce(given, got, count, MPI_DOUBLE, op, root, comm);
            CHECK(me != root || same(got, want, count));
        }
        memcpy(got, given, count * sizeof *got);
        int last = me == size - 1;
        MPI_Reduce(last ? MPI_IN_PLACE : got, got, count, MPI_DOUBLE, op, size - 1, comm);
        CHECK(!last || same(got, want, count));
        wanted(0, me + 1, count, product);
        MPI_Scan(given, got, count, MPI_DOUBLE, op, comm);
        CHECK(same(got, want, count));
        wanted(0, me, count, product);
        MPI_Exscan(given, got, count, MPI_DOUBLE, op, comm);
        CHECK(me == 0 || same(got, want, count));
        wanted(0, size, count * size, product);
        MPI_Reduce_scatter_block(given, got, count, MPI_DOUBLE, op, comm);
        CHECK(same(got, want + me * count, count));
        memcpy(got, given, count * size * sizeof *got);
        MPI_Reduce_scatter_block(MPI_IN_PLACE, got, count, MPI_DOUBLE, op, comm);
        CHECK(same(got, want + me * count, count));
        int counts[RANKS], place = 0;
        for (int of = 0; of < size; of++) counts[of] = of == 1 ? count : count / 2;
        for (int of = 0; of < me; of++) place += counts[of];
        MPI_Reduce_scatter(given, got, counts, MPI_DOUBLE, op, comm);
        CHECK(same(got, want + place, counts[me]));
        memcpy(got, given, count * size * sizeof *got);
        MPI_Reduce_scatter(MPI_IN_PLACE, got, counts, MPI_DOUBLE, op, comm);
        CHECK(same(got, want + place, counts[me]));
    }
    for (int at = 0; at < count; at++) {
        want[at] = all[0][at];
        for (int of = 1; of < size; of++) want[at] = want[at] / 3 - all[of][at];
    }
    MPI_Allreduce(given, got, count, MPI_DOUBLE, mine, comm);
    CHECK(same(got, want, count));
    /* What has no order is as it was. */
    int one = me, total = 0;
    MPI_Allreduce(&one, &total, 1, MPI_INT, MPI_SUM, comm);
    CHECK(total == size * (size - 1) / 2);
}

int main(int argc, char **argv) {
    MPI_Op mine;
    MPI_Comm half;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    MPI_Op_create(own, 0, &mine);
    for (int round = 0; round < 2; round++) {
        try(MPI_COMM_WORLD, 2, mine);
        try(MPI_COMM_WORLD, 301, mine);
    }
    /* More than go through lines, and more than are moved at once. */
    try(MPI_COMM_WORLD, argc > 1 ? atoi(argv[1]) : 160000 / ranks, mine);
    MPI_Comm_split(MPI_COMM_WORLD, rank % 2, -rank, &half);
    try(half, 40, mine);
    MPI_Comm_free(&half);
    MPI_Op_free(&mine);
    printf("done %d\n", rank);
    MPI_Finalize();
    return 0;
}
