/*
 * isochrone.h: the parts of Isochrone for programs in C.
 *
 *   cc program.c $(pkg-config --cflags --libs isochrone)
 *
 * Every function that can fail returns ISOCHRONE_OK or one of the numbers below, and isochrone_error() then
 * says in words what was wrong and what to do. Nothing is printed, and no signal is sent.
 *
 * One section for each part: teams and their collectives.
 */
#ifndef ISOCHRONE_H
#define ISOCHRONE_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---------------------------------------------------------------- what all parts share ---- */

/* How a function ended. */
enum {
  ISOCHRONE_OK = 0,
  ISOCHRONE_ARGUMENT = 1, /* an argument makes no sense; nothing was done */
  ISOCHRONE_GONE = 2,     /* a rank has ended or given up; the team is of no use any more */
  ISOCHRONE_LATE = 3,     /* somebody did not come in time */
  ISOCHRONE_MEMORY = 4,   /* no room: shared memory, or what the team was given of it */
  ISOCHRONE_SYSTEM = 5    /* the system refused something */
};

/* What was wrong in this thread's last call that failed, and what to do about it; never null. It stays
   until the next call of this thread that fails. */
const char *isochrone_error(void);

/* The version of the library that runs, as in "0.1.0". */
const char *isochrone_version(void);

/* ------------------------------------------------------------------------------- teams ---- */

/*
 * A team is some ranks, threads or processes of one machine, that share an area of cache lines. A handle is
 * one rank's; it is used by one thread at a time. All ranks make the same calls in the same order, with the
 * same root, bytes, count, element and operation, as in MPI.
 *
 * A rank that ends, in whatever way, gives the others ISOCHRONE_GONE within about 50 ms. Then the team can
 * only be freed. Who forks after it joined a team keeps its place taken until the child ends or calls exec.
 */
typedef struct isochrone_team isochrone_team;

/* Where other processes find a team: plain numbers that may travel by a pipe or an argument. */
typedef struct isochrone_place {
  uint32_t process;
  uint32_t descriptor;
} isochrone_place;

/* How a team is set up; a null pointer stands for all zeros. All ranks must give the same. */
typedef struct isochrone_team_options {
  uint64_t bytes;    /* shared memory for lines; 0: 1 MiB and 512 KiB for each rank */
  uint32_t flags;    /* 0, or ISOCHRONE_LOCKED_FLAGS */
  uint32_t reserved; /* 0 */
} isochrone_team_options;

/* Flags are written by locked instructions, as in the paper; to be measured. */
#define ISOCHRONE_LOCKED_FLAGS 1u

/* A team of threads of this process: writes `ranks` handles (1 to 1024), rank 0 first, to `teams`. */
int isochrone_team_threads(uint32_t ranks, const isochrone_team_options *options, isochrone_team **teams);

/* Makes a team and joins it as `rank`. The others join at `place`, which is good as long as this handle is. */
int isochrone_team_found(uint32_t ranks, uint32_t rank, const isochrone_team_options *options,
                         isochrone_team **team, isochrone_place *place);

/* Joins a team of another process of the same user as `rank`. */
int isochrone_team_join(isochrone_place place, uint32_t rank, const isochrone_team_options *options,
                        isochrone_team **team);

/* Waits until all ranks have joined; ISOCHRONE_LATE after so many seconds. Collectives may also be called at
   once: they wait as long as it takes. */
int isochrone_team_await(isochrone_team *team, double seconds);

/* This handle's rank, and how many there are. */
uint32_t isochrone_team_rank(const isochrone_team *team);
uint32_t isochrone_team_ranks(const isochrone_team *team);

/* Tells all ranks that this one gives up: their calls end with ISOCHRONE_GONE. */
int isochrone_team_stop(isochrone_team *team);

/* Leaves the team and frees the handle; a null pointer is nothing. */
void isochrone_team_free(isochrone_team *team);

/* ------------------------------------------------------------------------- collectives ---- */

/*
 * Buffers are private to each rank and do not overlap, except where it says so. A buffer that a rank does not
 * need (marked "at the root") may be null elsewhere. A call moves at most 1 GiB over all ranks.
 */

/* What a reduction combines; integers wrap. */
enum {
  ISOCHRONE_INT32 = 0,
  ISOCHRONE_INT64 = 1,
  ISOCHRONE_UINT32 = 2,
  ISOCHRONE_UINT64 = 3,
  ISOCHRONE_FLOAT = 4,
  ISOCHRONE_DOUBLE = 5
};

/* What a reduction does with two elements; the last three take integers only. The order of operands depends on
   the number of ranks and the root only: equal calls give equal bits, and an allreduce all ranks the same. */
enum {
  ISOCHRONE_SUM = 0,
  ISOCHRONE_PRODUCT = 1,
  ISOCHRONE_MIN = 2,
  ISOCHRONE_MAX = 3,
  ISOCHRONE_AND = 4,
  ISOCHRONE_OR = 5,
  ISOCHRONE_XOR = 6
};

/* Returns when all ranks have called it. */
int isochrone_barrier(isochrone_team *team);

/* Copies `bytes` bytes of the root's `data` to everybody's. */
int isochrone_broadcast(isochrone_team *team, void *data, size_t bytes, uint32_t root);

/* Combines `count` elements of everybody's `send` into `receive` (at the root), which may be `send`. */
int isochrone_reduce(isochrone_team *team, const void *send, void *receive, size_t count, uint32_t element,
                     uint32_t operation, uint32_t root);

/* Combines `count` elements of everybody's `send` into everybody's `receive`, which may be `send`. */
int isochrone_allreduce(isochrone_team *team, const void *send, void *receive, size_t count, uint32_t element,
                        uint32_t operation);

/* Gives block r of `send` (at the root: a block for each rank) to rank r's `receive`. A block is `bytes`. */
int isochrone_scatter(isochrone_team *team, const void *send, void *receive, size_t bytes, uint32_t root);

/* Puts everybody's `send`, `bytes` long, into `receive` (at the root: a block for each rank). */
int isochrone_gather(isochrone_team *team, const void *send, void *receive, size_t bytes, uint32_t root);

/* Puts everybody's `send`, `bytes` long, into everybody's `receive`, a block for each rank. `send` may be this
   rank's own block of `receive`. */
int isochrone_allgather(isochrone_team *team, const void *send, void *receive, size_t bytes);

#ifdef __cplusplus
}
#endif

#endif
