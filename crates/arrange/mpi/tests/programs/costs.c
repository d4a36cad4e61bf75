/* What communicators cost under the library and by profiling names, which pass it by, in turns in one process. Rank 0
   says times in ns: library, plain, plain once more.
     costs rounds SECONDS CALLS   a communicator is duplicated, has so many allreduces of a double, and is freed; the
                                  fourth number is one of plain's allreduces on it
     costs memory COUNT           so many communicators at once, each with some collectives
     costs churn COUNT            so many one after another; says kilobytes of memory after a tenth of them and at the end
     costs kinds SECONDS CALLS    each collective with 8 and 4096 bytes, so many calls on a communicator of its own */
#include "check.h"
#include <time.h>

enum { ARMS = 3, BYTES = 4096 };

typedef struct {
    int (*bcast)(void *, int, MPI_Datatype, int, MPI_Comm);
    int (*barrier)(MPI_Comm);
    int (*reduce)(const void *, void *, int, MPI_Datatype, MPI_Op, int, MPI_Comm);
    int (*allreduce)(const void *, void *, int, MPI_Datatype, MPI_Op, MPI_Comm);
    int (*scatter)(const void *, int, MPI_Datatype, void *, int, MPI_Datatype, int, MPI_Comm);
    int (*gather)(const void *, int, MPI_Datatype, void *, int, MPI_Datatype, int, MPI_Comm);
    int (*allgather)(const void *, int, MPI_Datatype, void *, int, MPI_Datatype, MPI_Comm);
    int (*alltoall)(const void *, int, MPI_Datatype, void *, int, MPI_Datatype, MPI_Comm);
    int (*parts)(const void *, void *, int, MPI_Datatype, MPI_Op, MPI_Comm);
    int (*scan)(const void *, void *, int, MPI_Datatype, MPI_Op, MPI_Comm);
    int (*exscan)(const void *, void *, int, MPI_Datatype, MPI_Op, MPI_Comm);
} Calls;

#define CALLS(P) \
    { P##Bcast, P##Barrier, P##Reduce, P##Allreduce, P##Scatter, P##Gather, P##Allgather, P##Alltoall, \
      P##Reduce_scatter_block, P##Scan, P##Exscan }

static const Calls arms[ARMS] = {CALLS(MPI_), CALLS(PMPI_), CALLS(PMPI_)};
static const char *const names[] = {"bcast",     "barrier",  "reduce",               "allreduce", "scatter", "gather",
                                    "allgather", "alltoall", "reduce_scatter_block", "scan",      "exscan"};
enum { KINDS = sizeof names / sizeof *names };

static double *given, *got;

static long now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec * 1000000000L + time.tv_nsec;
}

static void call(const Calls *by, int kind, int count, MPI_Comm comm) {
    switch (kind) {
    case 0: by->bcast(given, count, MPI_DOUBLE, 0, comm); break;
    case 1: by->barrier(comm); break;
    case 2: by->reduce(given, got, count, MPI_DOUBLE, MPI_SUM, 0, comm); break;
    case 3: by->allreduce(given, got, count, MPI_DOUBLE, MPI_SUM, comm); break;
    case 4: by->scatter(given, count, MPI_DOUBLE, got, count, MPI_DOUBLE, 0, comm); break;
    case 5: by->gather(given, count, MPI_DOUBLE, got, count, MPI_DOUBLE, 0, comm); break;
    case 6: by->allgather(given, count, MPI_DOUBLE, got, count, MPI_DOUBLE, comm); break;
    case 7: by->alltoall(given, count, MPI_DOUBLE, got, count, MPI_DOUBLE, comm); break;
    case 8: by->parts(given, got, count, MPI_DOUBLE, MPI_SUM, comm); break;
    case 9: by->scan(given, got, count, MPI_DOUBLE, MPI_SUM, comm); break;
    default: by->exscan(given, got, count, MPI_DOUBLE, MPI_SUM, comm);
    }
}

/* A communicator with so many calls, ns; what one of them took is put there. */
static long one(const Calls *by, int kind, int count, int calls, double *each) {
    MPI_Comm comm;
    PMPI_Barrier(MPI_COMM_WORLD);
    long begin = now();
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    long made = now();
    for (int at = 0; at < calls; at++) call(by, kind, count, comm);
    long done = now();
    MPI_Comm_free(&comm);
    *each = (double)(done - made) / calls;
    return now() - begin;
}

/* Whether there is time for another round: rank 0 says it. */
static int goes_on(long end) {
    int on = now() < end;
    PMPI_Bcast(&on, 1, MPI_INT, 0, MPI_COMM_WORLD);
    return on;
}

static void round_of(int turn, int kind, int count, int calls, int said) {
    long took[ARMS];
    double each[ARMS];
    for (int at = 0; at < ARMS; at++) {
        int arm = (at + turn) % ARMS;
        took[arm] = one(&arms[arm], kind, count, calls, &each[arm]);
    }
    if (rank == 0 && said)
        printf("%s %d %ld %ld %ld %.0f\n", names[kind], kind == 1 ? 0 : count * 8, took[0], took[1], took[2], each[1]);
}

static long kilobytes(void) {
    char line[256];
    long found = -1;
    FILE *file = fopen("/proc/self/status", "r");
    CHECK(file);
    while (fgets(line, sizeof line, file))
        if (sscanf(line, "VmRSS: %ld", &found) == 1) break;
    fclose(file);
    return found;
}

static void memory(int count) {
    MPI_Comm *comms = calloc(count, sizeof *comms);
    for (int at = 0; at < count; at++) {
        MPI_Comm_dup(MPI_COMM_WORLD, &comms[at]);
        for (int kind = 0; kind < 6; kind++) call(&arms[0], kind, 1, comms[at]);
    }
    PMPI_Barrier(MPI_COMM_WORLD);
    for (int at = 0; at < count; at++) MPI_Comm_free(&comms[at]);
    free(comms);
}

static void churn(int count) {
    for (int at = 1; at <= count; at++) {
        MPI_Comm comm;
        MPI_Comm_dup(MPI_COMM_WORLD, &comm);
        call(&arms[0], 3, 1, comm);
        call(&arms[0], 0, 1, comm);
        MPI_Comm_free(&comm);
        if ((at == count / 10 || at == count) && rank == 0) printf("kilobytes %ld\n", kilobytes());
    }
}

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    given = calloc(ranks, BYTES);
    got = calloc(ranks, BYTES);
    CHECK(argc > 2 && given && got);
    int number = atoi(argv[2]), calls = argc > 3 ? atoi(argv[3]) : 1;
    long end = now() + number * 1000000000L;
    if (!strcmp(argv[1], "memory")) memory(number);
    if (!strcmp(argv[1], "churn")) churn(number);
    if (!strcmp(argv[1], "rounds")) {
        for (int turn = 0; turn < 50 || goes_on(end); turn++) round_of(turn, 3, 1, calls, turn >= 20);
    }
    if (!strcmp(argv[1], "kinds")) {
        for (int turn = 0; turn < 5 || goes_on(end); turn++)
            for (int kind = 0; kind < KINDS; kind++)
                for (int count = 1; count <= BYTES / 8; count *= BYTES / 8)
                    if (kind != 1 || count == 1) round_of(turn, kind, count, calls, 1);
    }
    printf("done %d\n", rank);
    MPI_Finalize();
    return 0;
}
