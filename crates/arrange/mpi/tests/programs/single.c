/* Calls of many bytes: what comes by the functions of MPI is what comes by its profiling functions, bit for bit. With
   "filtered" or "later" the last rank may not read the memory of others, from the beginning or from the middle on. */
#define _GNU_SOURCE
#include "check.h"
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

enum { SPARE = 64 };
static const int SIZES[] = { 4095, 4097, 65536, 1 << 20, (4 << 20) + 1 };

/* Refuses to copy from process to process. */
static void filter(void) {
    struct sock_filter rules[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_process_vm_readv, 1, 0),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_process_vm_writev, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = { sizeof rules / sizeof *rules, rules };
    CHECK(!prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0));
    CHECK(!prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program));
}

static unsigned char *made(size_t bytes, int seed) {
    unsigned char *buffer = malloc(bytes + SPARE);
    for (size_t i = 0; i < bytes + SPARE; i++) buffer[i] = (unsigned char)(i * 31 + i / 251 + seed * 7 + rank * 13);
    return buffer;
}

/* What came both ways is the same, and nothing beside it changed; both are freed. */
static void same(unsigned char *ours, unsigned char *plain, size_t bytes) {
    CHECK(!memcmp(ours, plain, bytes + SPARE));
    free(ours), free(plain);
}

/* The same call both ways: `pre` is nothing or P. Buffers `a` and `b` begin the same both times. */
#define BOTH(bytes_a, bytes_b, call) do { \
    unsigned char *a = made(bytes_a, 1), *b = made(bytes_b, 2), *first_a = a, *first_b = b; \
    { call(MPI_) } \
    a = made(bytes_a, 1), b = made(bytes_b, 2); \
    { call(PMPI_) } \
    same(first_a, a, bytes_a), same(first_b, b, bytes_b); \
} while (0)

static void moved(int n, int root, MPI_Comm world) {
    size_t all = (size_t)n * ranks;
#define BCAST(p) CHECK(!p##Bcast(b, n, MPI_BYTE, root, world));
    BOTH(0, n, BCAST);
#define SCATTER(p) CHECK(!p##Scatter(a, n, MPI_BYTE, b, n, MPI_BYTE, root, world));
    BOTH(all, n, SCATTER);
#define SCATTER_IN_PLACE(p) \
    CHECK(!p##Scatter(a, n, MPI_BYTE, rank == root ? MPI_IN_PLACE : b, n, MPI_BYTE, root, world));
    BOTH(all, n, SCATTER_IN_PLACE);
#define GATHER(p) CHECK(!p##Gather(a, n, MPI_BYTE, b, n, MPI_BYTE, root, world));
    BOTH(n, all, GATHER);
#define GATHER_IN_PLACE(p) \
    CHECK(!p##Gather(rank == root ? MPI_IN_PLACE : a, n, MPI_BYTE, b, n, MPI_BYTE, root, world));
    BOTH(n, all, GATHER_IN_PLACE);
    if (root) return;
#define ALLGATHER(p) CHECK(!p##Allgather(a, n, MPI_BYTE, b, n, MPI_BYTE, world));
    BOTH(n, all, ALLGATHER);
#define ALLGATHER_IN_PLACE(p) CHECK(!p##Allgather(MPI_IN_PLACE, 0, MPI_BYTE, b, n, MPI_BYTE, world));
    BOTH(0, all, ALLGATHER_IN_PLACE);
#define ALLTOALL(p) CHECK(!p##Alltoall(a, n, MPI_BYTE, b, n, MPI_BYTE, world));
    BOTH(all, all, ALLTOALL);
#define ALLTOALL_IN_PLACE(p) CHECK(!p##Alltoall(MPI_IN_PLACE, 0, MPI_BYTE, b, n, MPI_BYTE, world));
    BOTH(0, all, ALLTOALL_IN_PLACE);
}

/* A type with gaps on one rank alone: every other block of 3 bytes. */
static void derived(int blocks, int who, int root, MPI_Comm world) {
    MPI_Datatype gaps, mine = MPI_BYTE;
    MPI_Type_vector(blocks, 3, 6, MPI_BYTE, &gaps);
    MPI_Type_create_resized(gaps, 0, 6 * blocks, &mine);
    MPI_Type_commit(&mine);
    int n = 3 * blocks, count = 1;
    size_t room = (size_t)6 * blocks * ranks;
    if (rank != who) MPI_Type_free(&mine), mine = MPI_BYTE, count = n;
#define BCAST_TYPE(p) CHECK(!p##Bcast(b, count, mine, root, world));
    BOTH(0, room, BCAST_TYPE);
#define SCATTER_TYPE(p) CHECK(!p##Scatter(a, count, mine, b, count, mine, root, world));
    BOTH(room, room, SCATTER_TYPE);
#define GATHER_TYPE(p) CHECK(!p##Gather(a, count, mine, b, count, mine, root, world));
    BOTH(room, room, GATHER_TYPE);
#define GATHER_INTO_TYPE(p) CHECK(!p##Gather(a, n, MPI_BYTE, b, count, mine, root, world));
    BOTH(room, room, GATHER_INTO_TYPE);
#define ALLGATHER_TYPE(p) CHECK(!p##Allgather(a, count, mine, b, n, MPI_BYTE, world));
    BOTH(room, room, ALLGATHER_TYPE);
#define ALLGATHER_INTO_TYPE(p) CHECK(!p##Allgather(a, n, MPI_BYTE, b, count, mine, world));
    BOTH(room, room, ALLGATHER_INTO_TYPE);
#define ALLTOALL_TYPE(p) CHECK(!p##Alltoall(a, count, mine, b, n, MPI_BYTE, world));
    BOTH(room, room, ALLTOALL_TYPE);
    if (rank == who) MPI_Type_free(&mine);
    MPI_Type_free(&gaps);
}

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    int later = argc > 1 && !strcmp(argv[1], "later"), filtered = argc > 1 && !strcmp(argv[1], "filtered");
    if (filtered && rank == ranks - 1) filter();
    for (int i = 0; i < 4; i++) MPI_Barrier(MPI_COMM_WORLD);
    for (int half = 0; half <= later; half++) {
        if (half && rank == ranks - 1) filter();
        for (unsigned size = 0; size < sizeof SIZES / sizeof *SIZES; size++)
            for (int root = 0; root < ranks; root++) {
                /* These take long. */
                if (SIZES[size] > 1 << 20 && root && root < ranks - 1) continue;
                moved(SIZES[size], root, MPI_COMM_WORLD);
            }
        for (int root = 0; root < ranks; root++) derived(30000, (root + half) % 2, root, MPI_COMM_WORLD);
    }
    /* A communicator that comes later has what the first one found. */
    MPI_Comm twin;
    MPI_Comm_dup(MPI_COMM_WORLD, &twin);
    for (int i = 0; i < 4; i++) MPI_Barrier(twin);
    moved(1 << 20, ranks - 1, twin);
    MPI_Comm_free(&twin);
    printf("done %d\n", rank);
    MPI_Finalize();
    return 0;
}
