/* Every named type with every operation that MPI has for it, operations of the program's own that do not commute, and
   types of its own: by Reduce and Allreduce, each root, with and without MPI_IN_PLACE, and by Scan, Exscan and
   Reduce_scatter_block. What must come out is what
   MPI_Reduce_local makes of all operands in the order of ranks. */
#include "check.h"
#include <complex.h>
#include <stdbool.h>
#include <stdint.h>

enum { MOST = 120, ROOM = MOST * 64 };

/* The operands of all ranks, what comes, and what must. */
static _Alignas(64) char all[16][ROOM], came[ROOM], wanted[ROOM];
static char packed[2][ROOM];

typedef void Fill(void *place, int i, int value);

#define FILL(name, type) \
    static void fill_##name(void *place, int i, int value) { ((type *)place)[i] = (type)value; }
#define PAIR(name, type) \
    static void fill_##name(void *place, int i, int value) { \
        struct { type value; int at; } *pairs = place; \
        pairs[i].value = (type)(value % 3); \
        pairs[i].at = value; \
    }
FILL(i8, int8_t) FILL(i16, int16_t) FILL(i32, int32_t) FILL(i64, int64_t)
FILL(f32, float) FILL(f64, double) FILL(f80, long double)
static void fill_truth(void *place, int i, int value) { ((bool *)place)[i] = value % 2; }
static void fill_logical(void *place, int i, int value) { ((int *)place)[i] = value % 2; }
static void fill_c32(void *place, int i, int value) { ((float complex *)place)[i] = value - 2 * I; }
static void fill_c64(void *place, int i, int value) { ((double complex *)place)[i] = value - 2 * I; }
static void fill_c80(void *place, int i, int value) { ((long double complex *)place)[i] = value - 2 * I; }
PAIR(p16, short) PAIR(p32, float) PAIR(p64, double) PAIR(pl, long) PAIR(p80, long double) PAIR(pi, int)
static void fill_two_reals(void *place, int i, int value) {
    ((float *)place)[2 * i] = value % 3;
    ((float *)place)[2 * i + 1] = value;
}
static void fill_two_doubles(void *place, int i, int value) {
    ((double *)place)[2 * i] = value % 3;
    ((double *)place)[2 * i + 1] = value;
}

static int round_of;

static int pack(void *place, int count, MPI_Datatype type, char *to) {
    int end = 0;
    MPI_Pack(place, count, type, to, ROOM, &end, MPI_COMM_SELF);
    return end;
}

/* Whether `place` holds what must come out. */
static int right(void *place, int count, MPI_Datatype type, size_t offset) {
    int bytes = pack(place, count, type, packed[0]);
    return bytes == pack(wanted + offset, count, type, packed[1]) && !memcmp(packed[0], packed[1], bytes);
}

static void one(const char *name, MPI_Datatype type, MPI_Op op, Fill *fill, int count, size_t offset) {
    round_of++;
    for (int r = 0; r < ranks; r++) {
        memset(all[r], 0, ROOM);
        for (int i = 0; i < count; i++) fill(all[r], i, number(r, round_of, i) % 5 + 1);
    }
    memcpy(wanted, all[0], ROOM);
    for (int r = 1; r < ranks; r++) {
        static _Alignas(64) char right[ROOM];
        memcpy(right, all[r], ROOM);
        MPI_Reduce_local(wanted + offset, right + offset, count, type, op);
        memcpy(wanted, right, ROOM);
    }
    void *const mine = all[rank] + offset, *const got = came + offset;
    for (int root = 0; root < ranks; root++) {
        memset(came, 0x5a, ROOM);
        MPI_Reduce(mine, rank == root ? got : NULL, count, type, op, root, MPI_COMM_WORLD);
        if (rank == root && !right(got, count, type, offset)) printf("%s: reduce to %d\n", name, root), MPI_Abort(MPI_COMM_WORLD, 1);
    }
    memcpy(came, all[rank], ROOM);
    MPI_Reduce(rank ? got : MPI_IN_PLACE, got, count, type, op, 0, MPI_COMM_WORLD);
    if (!rank && !right(got, count, type, offset)) printf("%s: reduce in place\n", name), MPI_Abort(MPI_COMM_WORLD, 1);
    memset(came, 0x5a, ROOM);
    MPI_Allreduce(mine, got, count, type, op, MPI_COMM_WORLD);
    if (!right(got, count, type, offset)) printf("%s: allreduce of %d\n", name, count), MPI_Abort(MPI_COMM_WORLD, 1);
    /* The same operands as blocks: each rank combines its own of all. */
    if (count % ranks == 0) {
        MPI_Aint first, extent;
        MPI_Type_get_extent(type, &first, &extent);
        const int mine_of = count / ranks;
        memset(came, 0x5a, ROOM);
        MPI_Reduce_scatter_block(mine, got, mine_of, type, op, MPI_COMM_WORLD);
        if (!right(got, mine_of, type, offset + rank * mine_of * extent) && mine_of)
            printf("%s: reduce_scatter_block\n", name), MPI_Abort(MPI_COMM_WORLD, 1);
    }
    memcpy(came, all[rank], ROOM);
    MPI_Allreduce(MPI_IN_PLACE, got, count, type, op, MPI_COMM_WORLD);
    if (!right(got, count, type, offset)) printf("%s: allreduce in place\n", name), MPI_Abort(MPI_COMM_WORLD, 1);
    /* Prefixes: up to this rank, and below it. */
    for (int own = 1; own >= 0; own--) {
        const int last = rank - 1 + own;
        if (last >= 0) memcpy(wanted, all[0], ROOM);
        for (int r = 1; r <= last; r++) {
            static _Alignas(64) char right[ROOM];
            memcpy(right, all[r], ROOM);
            MPI_Reduce_local(wanted + offset, right + offset, count, type, op);
            memcpy(wanted, right, ROOM);
        }
        memset(came, 0x5a, ROOM);
        (own ? MPI_Scan : MPI_Exscan)(mine, got, count, type, op, MPI_COMM_WORLD);
        if (last >= 0 && !right(got, count, type, offset))
            printf("%s: %s\n", name, own ? "scan" : "exscan"), MPI_Abort(MPI_COMM_WORLD, 1);
    }
}

static void each(const char *name, MPI_Datatype type, Fill *fill, const MPI_Op *ops) {
    for (; *ops != MPI_OP_NULL; ops++) {
        const int counts[] = { 1, 0, 3, 100 };
        for (int c = 0; c < 4; c++) one(name, type, *ops, fill, counts[c], 0);
    }
}

/* Matrices of two rows, by each other: the order matters. */
static void fill_matrix(void *place, int i, int value) {
    int *matrix = (int *)place + 4 * i;
    for (int n = 0; n < 4; n++) matrix[n] = value + n * (i + 1);
}

static void multiply(void *in, void *inout, int *count, MPI_Datatype *type) {
    (void)type;
    for (int i = 0; i < *count; i++) {
        const int *a = (int *)in + 4 * i;
        int *b = (int *)inout + 4 * i, c[4];
        for (int n = 0; n < 4; n++) c[n] = (a[n / 2 * 2] * b[n % 2] + a[n / 2 * 2 + 1] * b[n % 2 + 2]) % 997;
        memcpy(b, c, sizeof c);
    }
}

/* Two numbers with gaps around them, the second one first, 8 bytes below an element's place. */
static void fill_spread(void *place, int i, int value) {
    char *element = (char *)place + 8 + 24 * i;
    memcpy(element + 4, &value, sizeof value);
    const int other = value * 3 + i;
    memcpy(element - 8, &other, sizeof other);
}

/* The numbers of an element are a line's slope and height; one line after the other is a line. */
static void follow(void *in, void *inout, int *count, MPI_Datatype *type) {
    (void)type;
    for (int i = 0; i < *count; i++) {
        int left[2], right[2];
        for (int n = 0; n < 2; n++) {
            memcpy(&left[n], (char *)in + 24 * i + (n ? 4 : -8), sizeof(int));
            memcpy(&right[n], (char *)inout + 24 * i + (n ? 4 : -8), sizeof(int));
        }
        right[1] = (left[0] * right[1] + left[1]) % 9973;
        right[0] = left[0] * right[0] % 9973;
        memcpy((char *)inout + 24 * i - 8, &right[0], sizeof(int));
        memcpy((char *)inout + 24 * i + 4, &right[1], sizeof(int));
    }
}

static void own(void) {
    MPI_Op product, lines;
    MPI_Op_create(multiply, 0, &product);
    MPI_Op_create(follow, 0, &lines);
    MPI_Datatype matrix, spread, sized;
    MPI_Type_contiguous(4, MPI_INT, &matrix);
    MPI_Type_commit(&matrix);
    const int places[2] = { 1, -2 };
    MPI_Type_create_indexed_block(2, 1, places, MPI_INT, &spread);
    MPI_Type_create_resized(spread, -8, 24, &sized);
    MPI_Type_commit(&sized);
    const int counts[] = { 1, 0, 7, 100 };
    for (int c = 0; c < 4; c++) {
        one("matrices", matrix, product, fill_matrix, counts[c], 0);
        one("spread", sized, lines, fill_spread, counts[c], 8);
    }
    MPI_Type_free(&matrix);
    MPI_Type_free(&spread);
    MPI_Type_free(&sized);
    MPI_Op_free(&product);
    MPI_Op_free(&lines);
}

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    const MPI_Op integers[] = { MPI_MAX, MPI_MIN, MPI_SUM, MPI_PROD, MPI_LAND, MPI_LOR, MPI_LXOR,
                                MPI_BAND, MPI_BOR, MPI_BXOR, MPI_OP_NULL };
    const MPI_Op addresses[] = { MPI_MAX, MPI_MIN, MPI_SUM, MPI_PROD, MPI_BAND, MPI_BOR, MPI_BXOR, MPI_OP_NULL };
    const MPI_Op floats[] = { MPI_MAX, MPI_MIN, MPI_SUM, MPI_PROD, MPI_OP_NULL };
    const MPI_Op complexes[] = { MPI_SUM, MPI_PROD, MPI_OP_NULL };
    const MPI_Op truths[] = { MPI_LAND, MPI_LOR, MPI_LXOR, MPI_OP_NULL };
    const MPI_Op bits[] = { MPI_BAND, MPI_BOR, MPI_BXOR, MPI_OP_NULL };
    const MPI_Op places[] = { MPI_MINLOC, MPI_MAXLOC, MPI_OP_NULL };
#define EACH(type, fill, ops) each(#type, type, fill_##fill, ops)
    EACH(MPI_SIGNED_CHAR, i8, integers); EACH(MPI_UNSIGNED_CHAR, i8, integers);
    EACH(MPI_SHORT, i16, integers); EACH(MPI_UNSIGNED_SHORT, i16, integers);
    EACH(MPI_INT, i32, integers); EACH(MPI_UNSIGNED, i32, integers);
    EACH(MPI_LONG, i64, integers); EACH(MPI_UNSIGNED_LONG, i64, integers);
    EACH(MPI_LONG_LONG, i64, integers); EACH(MPI_UNSIGNED_LONG_LONG, i64, integers);
    EACH(MPI_INT8_T, i8, integers); EACH(MPI_UINT8_T, i8, integers);
    EACH(MPI_INT16_T, i16, integers); EACH(MPI_UINT16_T, i16, integers);
    EACH(MPI_INT32_T, i32, integers); EACH(MPI_UINT32_T, i32, integers);
    EACH(MPI_INT64_T, i64, integers); EACH(MPI_UINT64_T, i64, integers);
    EACH(MPI_CHAR, i8, floats);
    EACH(MPI_AINT, i64, addresses); EACH(MPI_OFFSET, i64, addresses); EACH(MPI_COUNT, i64, addresses);
    EACH(MPI_INTEGER, i32, addresses); EACH(MPI_BYTE, i8, bits);
    EACH(MPI_FLOAT, f32, floats); EACH(MPI_DOUBLE, f64, floats); EACH(MPI_LONG_DOUBLE, f80, floats);
    EACH(MPI_REAL, f32, floats); EACH(MPI_DOUBLE_PRECISION, f64, floats);
    EACH(MPI_C_BOOL, truth, truths); EACH(MPI_LOGICAL, logical, truths);
    EACH(MPI_C_FLOAT_COMPLEX, c32, complexes); EACH(MPI_C_DOUBLE_COMPLEX, c64, complexes);
    EACH(MPI_C_LONG_DOUBLE_COMPLEX, c80, complexes);
    EACH(MPI_COMPLEX, c32, complexes); EACH(MPI_DOUBLE_COMPLEX, c64, complexes);
    EACH(MPI_SHORT_INT, p16, places); EACH(MPI_FLOAT_INT, p32, places); EACH(MPI_DOUBLE_INT, p64, places);
    EACH(MPI_LONG_INT, pl, places); EACH(MPI_LONG_DOUBLE_INT, p80, places); EACH(MPI_2INT, pi, places);
    EACH(MPI_2INTEGER, pi, places); EACH(MPI_2REAL, two_reals, places);
    EACH(MPI_2DOUBLE_PRECISION, two_doubles, places);
    own();
    printf("done %d\n", rank);
    MPI_Finalize();
    return 0;
}
