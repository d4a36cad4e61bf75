/* Wrong calls, each on a communicator of its own: every rank says what error it is told. */
#include "check.h"

static int send[80000], receive[80000];

static const char *name(int error) {
    static const struct { int class; const char *name; } all[] = {
        { MPI_SUCCESS, "none" }, { MPI_ERR_TRUNCATE, "truncate" }, { MPI_ERR_BUFFER, "buffer" },
        { MPI_ERR_COUNT, "count" }, { MPI_ERR_TYPE, "type" }, { MPI_ERR_ROOT, "root" },
        { MPI_ERR_OP, "op" }, { MPI_ERR_COMM, "comm" }, { MPI_ERR_ARG, "argument" },
    };
    int class = MPI_SUCCESS;
    if (error) MPI_Error_class(error, &class);
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        if (all[i].class == class) return all[i].name;
    return "other";
}

/* A communicator whose calls are done in lines, if any are. */
static MPI_Comm fresh(void) {
    MPI_Comm new;
    MPI_Comm_dup(MPI_COMM_WORLD, &new);
    MPI_Comm_set_errhandler(new, MPI_ERRORS_RETURN);
    for (int i = 0; i < 6; i++) MPI_Barrier(new);
    return new;
}

static int heard;
static void handler(MPI_Comm *comm, int *error, ...) { heard += *error != 0 && *comm != MPI_COMM_NULL; }

#define CASE(what, ...) \
    do { \
        MPI_Comm comm = fresh(); \
        (void)comm; \
        int error = __VA_ARGS__; \
        printf("%d %s: %s\n", rank, what, name(error)); \
        fflush(stdout); \
        MPI_Barrier(MPI_COMM_WORLD); \
    } while (0)

/* A root that gives what it gets, and does it right afterwards. */
static int reduced_at_last(MPI_Comm comm) {
    int wrong = MPI_Reduce(send, send, 1, MPI_INT, MPI_SUM, 0, comm);
    return wrong && !MPI_Reduce(send, receive, 1, MPI_INT, MPI_SUM, 0, comm) ? wrong : MPI_SUCCESS;
}

/* The same whatever MPI it is, and with lines: what a rank refuses by itself. */
static void refused(void) {
    CASE("negative count", MPI_Bcast(send, -1, MPI_INT, 0, comm));
    CASE("no type", MPI_Bcast(send, 1, MPI_DATATYPE_NULL, 0, comm));
    CASE("no such root", MPI_Reduce(send, receive, 1, MPI_INT, MPI_SUM, ranks, comm));
    CASE("no operation", MPI_Allreduce(send, receive, 1, MPI_INT, MPI_OP_NULL, comm));
    CASE("bits of floats", MPI_Allreduce(send, receive, 1, MPI_FLOAT, MPI_BAND, comm));
    MPI_Datatype type;
    MPI_Type_vector(2, 1, 2, MPI_INT, &type);
    CASE("not committed", MPI_Bcast(send, 1, type, 0, comm));
    MPI_Type_free(&type);
    MPI_Comm counted;
    MPI_Comm_dup(MPI_COMM_WORLD, &counted);
    MPI_Comm_set_errhandler(counted, MPI_ERRORS_RETURN);
    for (int call = 0; call < 12; call++) {
        int error = rank ? MPI_Reduce(send, NULL, 1, MPI_INT, MPI_SUM, 0, counted) : reduced_at_last(counted);
        printf("%d root gives what it gets while calls are counted: %s\n", rank, name(error));
    }
    CASE("root gives what it gets",
         rank ? MPI_Reduce(send, NULL, 1, MPI_INT, MPI_SUM, 0, comm) : reduced_at_last(comm));
}

/* What MPICH looks for and Open MPI does not: there it is no error, or the end by a signal. */
static void looked_for(void) {
    CASE("aliased allreduce", MPI_Allreduce(send, send, 1, MPI_INT, MPI_SUM, comm));
    CASE("aliased gather", rank ? MPI_Gather(send, 1, MPI_INT, receive, 1, MPI_INT, 0, comm)
                                : MPI_Gather(send, 1, MPI_INT, send, 1, MPI_INT, 0, comm) &&
                                          !MPI_Gather(send, 1, MPI_INT, receive, 1, MPI_INT, 0, comm)
                                      ? MPI_ERR_BUFFER
                                      : 0);
    CASE("aliased scatter", rank ? MPI_Scatter(send, 1, MPI_INT, receive, 1, MPI_INT, 0, comm)
                                 : MPI_Scatter(send, 1, MPI_INT, send, 1, MPI_INT, 0, comm) &&
                                           !MPI_Scatter(send, 1, MPI_INT, receive, 1, MPI_INT, 0, comm)
                                       ? MPI_ERR_BUFFER
                                       : 0);
    CASE("aliased allgather", MPI_Allgather(&receive[rank], 1, MPI_INT, receive, 1, MPI_INT, comm));
    CASE("nowhere to broadcast", MPI_Bcast(NULL, 1, MPI_INT, 0, comm));
    CASE("nothing to reduce", MPI_Allreduce(NULL, receive, 1, MPI_INT, MPI_SUM, comm));
    CASE("nowhere to reduce", MPI_Allreduce(send, NULL, 1, MPI_INT, MPI_SUM, comm));
    CASE("nothing to gather", MPI_Gather(NULL, 1, MPI_INT, receive, 1, MPI_INT, 0, comm));
    CASE("nowhere to scatter", MPI_Scatter(send, 1, MPI_INT, NULL, 1, MPI_INT, 0, comm));
    CASE("in place of what is received", MPI_Allreduce(send, MPI_IN_PLACE, 1, MPI_INT, MPI_SUM, comm));
    CASE("aliased all to all", MPI_Alltoall(send, 1, MPI_INT, send, 1, MPI_INT, comm));
    CASE("aliased scan", MPI_Scan(send, send, 1, MPI_INT, MPI_SUM, comm));
    CASE("aliased exscan", MPI_Exscan(send, send, 1, MPI_INT, MPI_SUM, comm));
    CASE("aliased reduce and scatter", MPI_Reduce_scatter_block(send, send, 1, MPI_INT, MPI_SUM, comm));
    CASE("aliased nothing", MPI_Allreduce(send, send, 0, MPI_INT, MPI_SUM, comm));
}

/* Ranks that give different bytes, where plain MPIs of Debian come back and agree on who is told. */
static void unlike(int few, int many) {
    CASE("more than fits", MPI_Bcast(rank ? receive : send, rank ? few : many, MPI_INT, 0, comm));
    CASE("more to scatter", MPI_Scatter(send, many, MPI_INT, receive, rank ? few : many, MPI_INT, 0, comm));
    CASE("more to gather", MPI_Gather(send, rank ? many : few, MPI_INT, receive, few, MPI_INT, 0, comm));
    int each[] = { few, few }, given[] = { many, many }, places[] = { 0, many };
    CASE("more to gather in parts",
         MPI_Gatherv(send, rank ? many : few, MPI_INT, receive, each, places, MPI_INT, 0, comm));
    CASE("more to scatter in parts",
         MPI_Scatterv(send, given, places, MPI_INT, receive, rank ? few : many, MPI_INT, 0, comm));
    CASE("more to reduce", MPI_Reduce(send, receive, rank ? many : few, MPI_INT, MPI_SUM, 0, comm));
}

/* The same with lines alone: whoever hears from another that has other bytes is told, and nobody hangs. */
static void always_told(int few, int many) {
    CASE("fewer than fit", MPI_Bcast(rank ? receive : send, rank ? many : few, MPI_INT, 0, comm));
    CASE("allreduce", MPI_Allreduce(send, receive, rank ? few : many, MPI_INT, MPI_SUM, comm));
    CASE("allgather", MPI_Allgather(send, rank ? few : many, MPI_INT, receive, rank ? few : many, MPI_INT, comm));
    int each[] = { few, few }, places[] = { 0, many };
    CASE("allgather in parts", MPI_Allgatherv(send, rank ? many : few, MPI_INT, receive, each, places, MPI_INT, comm));
    CASE("alltoall", MPI_Alltoall(send, rank ? few : many, MPI_INT, receive, rank ? few : many, MPI_INT, comm));
    CASE("reduce and scatter", MPI_Reduce_scatter_block(send, receive, rank ? few : many, MPI_INT, MPI_SUM, comm));
    CASE("scan", MPI_Scan(send, receive, rank ? few : many, MPI_INT, MPI_SUM, comm));
    CASE("exscan", MPI_Exscan(send, receive, rank ? few : many, MPI_INT, MPI_SUM, comm));
}

/* The first call of a communicator; the next one is right again. */
static void first(int few, int many) {
    MPI_Comm comm;
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
    for (int call = 0; call < 2; call++) {
        int error = MPI_Allreduce(send, receive, rank && !call ? many : few, MPI_INT, MPI_SUM, comm);
        printf("%d call %d: %s\n", rank, call, name(error));
    }
}

/* Whether what is received is there, and nothing beside it. */
static int kept = 1;

/* Whether calls that are right come out right, after one that kept what it should. */
static int right(MPI_Comm comm) {
    static int all[80000];
    int well = kept;
    kept = 1;
    for (int count = 1; count <= 1000; count *= 10) {
        int sum = 0, mine = rank + 1;
        for (int i = 0; i < count; i++) send[i] = rank + count + i;
        well &= !MPI_Allreduce(&mine, &sum, 1, MPI_INT, MPI_SUM, comm) && sum == ranks * (ranks + 1) / 2;
        well &= !MPI_Gather(send, count, MPI_INT, all, count, MPI_INT, 0, comm);
        for (int r = 0; r < ranks && !rank; r++)
            for (int i = 0; i < count; i++) well &= all[r * count + i] == r + count + i;
        well &= !MPI_Bcast(all, count, MPI_INT, 0, comm) && all[count - 1] == count + count - 1;
        well &= !MPI_Scatter(all, count, MPI_INT, receive, count, MPI_INT, 0, comm);
        well &= !MPI_Allgather(send, count, MPI_INT, receive, count, MPI_INT, comm);
        for (int r = 0; r < ranks; r++) well &= receive[r * count] == r + count;
    }
    return well;
}

/* Blocks of this rank and those after it that have room for `many` numbers, each two behind the last: `few` of them
 * have come, and what comes after these is as it was. */
static int holds(int first, int blocks, int few, int many) {
    int well = 1;
    for (int b = 0; b < blocks; b++) {
        int *block = receive + b * (2 * many - 1);
        for (int i = 0; i < many; i++) well &= block[2 * i] == (i < few ? (first + b) * 1000 + i : -1);
        for (int i = 0; i < many - 1; i++) well &= block[2 * i + 1] == -1;
    }
    return well;
}

static void number_all(int few) {
    for (int i = 0; i < 80000; i++) receive[i] = -1;
    for (int r = 0; r < ranks; r++)
        for (int i = 0; i < few; i++) send[r * few + i] = (rank + r) * 1000 + i;
}

static int gathers_fewer(int few, int many, MPI_Datatype wide, MPI_Comm comm) {
    number_all(few);
    int error = MPI_Gather(send, few, MPI_INT, receive, 1, wide, 0, comm);
    kept &= rank || holds(0, ranks, few, many);
    return error;
}

static int gathers_fewer_in_parts(int few, int many, MPI_Datatype wide, MPI_Comm comm) {
    int each[] = { 1, 1, 1 }, places[] = { 0, 1, 2 };
    number_all(few);
    int error = MPI_Gatherv(send, few, MPI_INT, receive, each, places, wide, 0, comm);
    kept &= rank || holds(0, ranks, few, many);
    return error;
}

static int scatters_fewer(int few, int many, MPI_Datatype wide, MPI_Comm comm) {
    number_all(few);
    int error = MPI_Scatter(send, few, MPI_INT, receive, 1, wide, 0, comm);
    kept &= holds(rank, 1, few, many);
    return error;
}

#define THEN_RIGHT(what, ...) \
    do { \
        int error = __VA_ARGS__; \
        printf("%d %s: %s, then %s\n", rank, what, name(error), right(comm) ? "right" : "wrong"); \
        fflush(stdout); \
    } while (0)

/* Wrong calls one after another on one communicator: nothing of them is left to the next one. */
static void then_right(int few, int many) {
    MPI_Comm comm = fresh();
    MPI_Datatype spaced;
    MPI_Type_vector(few, 1, 2, MPI_INT, &spaced);
    MPI_Type_commit(&spaced);
    THEN_RIGHT("root takes fewer", MPI_Gather(send, many, MPI_INT, receive, rank ? many : few, MPI_INT, 0, comm));
    THEN_RIGHT("root takes more", MPI_Gather(send, few, MPI_INT, receive, many, MPI_INT, 0, comm));
    THEN_RIGHT("root gives itself more", MPI_Gather(send, rank ? few : many, MPI_INT, receive, few, MPI_INT, 0, comm));
    THEN_RIGHT("root gives itself fewer", MPI_Gather(send, rank ? many : few, MPI_INT, receive, many, MPI_INT, 0, comm));
    THEN_RIGHT("root takes fewer, spaced", MPI_Gather(send, many, MPI_INT, receive, 1, spaced, 0, comm));
    MPI_Datatype wide;
    MPI_Type_vector(many, 1, 2, MPI_INT, &wide);
    MPI_Type_commit(&wide);
    THEN_RIGHT("root takes more, spaced", gathers_fewer(few, many, wide, comm));
    THEN_RIGHT("root takes more in parts, spaced", gathers_fewer_in_parts(few, many, wide, comm));
    THEN_RIGHT("ranks take more, spaced", scatters_fewer(few, many, wide, comm));
    MPI_Type_free(&wide);
    THEN_RIGHT("givers differ",
               MPI_Gather(send, rank == ranks - 1 ? many : few, MPI_INT, receive, few, MPI_INT, 0, comm));
    THEN_RIGHT("givers of a reduction differ",
               MPI_Reduce(send, receive, rank == ranks - 1 ? many : few, MPI_INT, MPI_SUM, 0, comm));
    THEN_RIGHT("root keeps fewer",
               MPI_Scatter(send, many, MPI_INT, receive, rank ? many : few, MPI_INT, 0, comm));
    THEN_RIGHT("root has room for more",
               MPI_Scatter(send, few, MPI_INT, receive, rank ? few : many, MPI_INT, 0, comm));
    THEN_RIGHT("a rank gives itself more", MPI_Allgather(send, rank ? few : many, MPI_INT, receive, few, MPI_INT, comm));
    THEN_RIGHT("reduced to fewer", MPI_Reduce(send, receive, rank ? many : few, MPI_INT, MPI_SUM, 0, comm));
    THEN_RIGHT("a rank of other bytes",
               MPI_Allreduce(send, receive, rank == 1 ? few : many, MPI_INT, MPI_SUM, comm));
    THEN_RIGHT("a rank beyond all lines",
               MPI_Gather(send, rank ? 20000 : few, MPI_INT, receive, rank ? 20000 : few, MPI_INT, 0, comm));
    MPI_Type_free(&spaced);
}

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    const char *which = argc > 1 ? argv[1] : "";
    if (!strcmp(which, "refused")) refused();
    if (!strcmp(which, "looked for")) looked_for();
    if (!strcmp(which, "unlike")) unlike(1, 10), unlike(1, 100), unlike(10, 1000);
    if (!strcmp(which, "told")) always_told(1, 10), always_told(1, 100), always_told(1, 10000), always_told(10, 20000);
    if (!strcmp(which, "first")) first(1, 10), first(10, 12), first(20, 100);
    if (!strcmp(which, "then right")) then_right(1, 10), then_right(1, 100), then_right(10, 1000);
    if (!strcmp(which, "handler")) {
        MPI_Errhandler own;
        MPI_Comm_create_errhandler(handler, &own);
        MPI_Comm comm = fresh();
        MPI_Comm_set_errhandler(comm, own);
        MPI_Bcast(send, rank ? 1 : 10, MPI_INT, 0, comm);
        printf("%d heard %d\n", rank, heard);
    }
    printf("done %d\n", rank);
    MPI_Finalize();
    return 0;
}
