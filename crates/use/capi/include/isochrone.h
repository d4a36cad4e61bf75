/*
 * isochrone.h: the parts of Isochrone for programs in C.
 *
 *   cc program.c $(pkg-config --cflags --libs isochrone)
 *
 * Every function that can fail returns ISOCHRONE_OK or one of the numbers below, and isochrone_error() then
 * says in words what was wrong and what to do. Nothing is printed, and no signal is sent.
 *
 * One section for each part: the atlas; teams and their collectives; tasks; memory larger than fast memory; memory
 * near cores.
 */
#ifndef ISOCHRONE_H
#define ISOCHRONE_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---------------------------------------------------------------- what all parts share ---- */

/* Structs that begin with `size` may grow at their end. It is sizeof of the struct, or 0 for the struct of version 0.1,
   so all zeros do; a program that uses later members sets it. ISOCHRONE_ARGUMENT where a program asks for what this
   library does not know. Structs that are written are given with their size set. All other structs never change. */

/* How a function ended. */
enum {
  ISOCHRONE_OK = 0,
  ISOCHRONE_ARGUMENT = 1, /* an argument makes no sense; nothing was done */
  ISOCHRONE_GONE = 2,     /* a rank has ended or given up; the team is of no use any more */
  ISOCHRONE_LATE = 3,     /* somebody did not come in time */
  ISOCHRONE_MEMORY = 4,   /* no room: shared memory, or what the team was given of it */
  ISOCHRONE_SYSTEM = 5,   /* the system refused something */
  ISOCHRONE_FAILED = 6,   /* a task failed; the words are its own */
  ISOCHRONE_DEADLOCK = 7, /* tasks wait for one another, and nothing can go on */
  ISOCHRONE_STATE = 8,    /* this process, or this kernel, is not as it must be for it: the words say what mends it */
  ISOCHRONE_CANCELLED = 9 /* tasks that had not begun were left out, as somebody asked */
};

/* What was wrong in this thread's last call that failed, and what to do about it; never null. It stays
   until the next call of this thread that fails. */
const char *isochrone_error(void);

/* The version of the library that runs, as in "0.1.0". */
const char *isochrone_version(void);

/* Where a number is from. */
enum {
  ISOCHRONE_UNKNOWN = 0,   /* it is not known, and no number */
  ISOCHRONE_MEASURED = 1,  /* timed on this machine, or on the one of the atlas */
  ISOCHRONE_PREDICTED = 2, /* from an atlas: this pair of cores, or this object, was not timed itself */
  ISOCHRONE_SIMULATED = 3  /* from the atlas of a machine in virtual time */
};

/* -------------------------------------------------------------------------- the atlas ---- */

/*
 * What `isochrone map` has measured, for programs that ask themselves. A handle never changes: threads may share it,
 * and no question takes a lock. The file is mapped, not read: who truncates it while it is open takes it away under
 * the program (isochrone itself only ever replaces it by a new file).
 */
typedef struct isochrone_atlas isochrone_atlas;

/* A number with its 95 % interval. */
typedef struct isochrone_cost {
  double value, lo, hi;
  uint32_t reading;  /* ISOCHRONE_UNKNOWN to ISOCHRONE_SIMULATED */
  uint32_t reserved; /* 0 */
} isochrone_cost;

/* Where a line is when it is timed. */
enum { ISOCHRONE_LLC = 0, ISOCHRONE_DRAM = 1 };

/* What was measured, and how far it may be believed. */
enum {
  ISOCHRONE_BLOCK = 0, /* lines of pages */
  ISOCHRONE_TRANSFER = 1,
  ISOCHRONE_REGION = 2,
  ISOCHRONE_MULTILINE = 3,
  ISOCHRONE_TERMS = 4,
  ISOCHRONE_BANDWIDTH = 5
};
enum { ISOCHRONE_UNUSABLE = 1, ISOCHRONE_DISTURBED = 2, ISOCHRONE_QUIET = 3 };

/* An atlas of whatever machine. */
#define ISOCHRONE_ANY_MACHINE 1u

/* Opens an atlas of this machine: the file at `path`, or where that is null the one that ISOCHRONE_ATLAS names,
   isochrone.atlas in the current folder, or the one in the user's cache folder. ISOCHRONE_SYSTEM where there is none, or
   it cannot be used; isochrone_error() says why. With ISOCHRONE_ANY_MACHINE in `flags` the file at `path` may be of
   another machine. */
int isochrone_atlas_open(const char *path, uint32_t flags, isochrone_atlas **atlas);
void isochrone_atlas_close(isochrone_atlas *atlas);

/* The cores of the atlas: returns how many there are, and writes as many as there is `room` for. */
size_t isochrone_atlas_cores(const isochrone_atlas *atlas, uint32_t *cores, size_t room);

/* Latency of the line at a physical address (of the guest, in a virtual machine) from a core, nanoseconds. Not a
   number where the atlas does not know the page, the core or the level. */
double isochrone_atlas_latency(const isochrone_atlas *atlas, uint32_t core, uint32_t level, uint64_t address);

/* What a line that `owner` has written costs `asker`, nanoseconds. */
int isochrone_atlas_line_transfer(const isochrone_atlas *atlas, uint32_t owner, uint32_t asker, isochrone_cost *cost);

/* Latency of a memory region from a core, nanoseconds; and, where `bandwidth` is not null, what that core alone reads
   and writes of it, 10^9 bytes a second. */
int isochrone_atlas_region(const isochrone_atlas *atlas, uint32_t core, uint32_t region, isochrone_cost *latency,
                           isochrone_cost *bandwidth);

/* The other cores whose lines come soonest to `core`, nearest first: returns of how many that is known, and writes as
   many as there is `room` for. */
size_t isochrone_atlas_nearest_cores(const isochrone_atlas *atlas, uint32_t core, uint32_t *cores, size_t room);

/* The bin of the line at a physical address: lines with one number are equally far, from any one core. -1 where the
   page is not known. */
int32_t isochrone_atlas_line_class(const isochrone_atlas *atlas, uint32_t level, uint64_t address);

/* How far an experiment may be believed: ISOCHRONE_UNUSABLE to ISOCHRONE_QUIET, ISOCHRONE_UNKNOWN where nobody has
   graded it. What is unusable counts as not measured in the functions above, but for lines of pages. */
uint32_t isochrone_atlas_quality(const isochrone_atlas *atlas, uint32_t experiment);

/* Many answers at once, for arrays. */

/* The memory regions of which a latency is known: returns how many there are, and writes as many as there is `room`
   for. */
size_t isochrone_atlas_regions(const isochrone_atlas *atlas, uint32_t *regions, size_t room);

/* isochrone_atlas_line_transfer of all pairs of the n cores that isochrone_atlas_cores has, in their order:
   costs[owner * n + asker]. ISOCHRONE_ARGUMENT where there is `room` for fewer than n * n; then nothing is written. */
int isochrone_atlas_transfers(const isochrone_atlas *atlas, isochrone_cost *costs, size_t room);

/* isochrone_atlas_latency and isochrone_atlas_line_class of `count` addresses: into `ns` and `bins`, which have room
   for as many; what is null is left out. */
int isochrone_atlas_lines(const isochrone_atlas *atlas, uint32_t core, uint32_t level, const uint64_t *addresses,
                          size_t count, double *ns, int32_t *bins);

/* Latency from a core by bin, nanoseconds: returns how many bins the level has, and writes as many as there is `room`
   for. 0 where nothing is known, or lines were measured one by one. */
size_t isochrone_atlas_bins(const isochrone_atlas *atlas, uint32_t core, uint32_t level, double *ns, size_t room);

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
  uint64_t size;
  uint64_t bytes;         /* shared memory for lines; 0: 1.25 MiB and 512 KiB for each rank, 960 KiB among 6 to 8 ranks
                             at most. Where it is used up, ranks meet and have what earlier calls took */
  uint32_t flags;         /* 0, or ISOCHRONE_LOCKED_FLAGS */
  uint32_t reserved_word; /* 0 */
  uint64_t reserved[2];   /* 0 */
} isochrone_team_options;

/* Flags are written by locked instructions, as in the paper; to be measured. */
#define ISOCHRONE_LOCKED_FLAGS 1u

/* Who makes a team of more than two ranks looks, once in a process, for an atlas of this machine: the one that
   ISOCHRONE_ATLAS names, isochrone.atlas in the current folder, or the one in the user's cache folder. By it the team
   chooses how its collectives are done. Where there is none, they are done as without; of one that cannot be used,
   isochrone_error says why. */

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

/* Says that this rank runs on these cores, by their numbers. Where an atlas of this machine is known, the first call
   of a kind has its shape chosen by the distances between the ranks' cores; without this function they are the cores
   that the system lets the rank run on then. It counts for nothing after the first call. */
int isochrone_team_cores(isochrone_team *team, const uint32_t *cores, size_t count);

/* Puts into `words` how the team does such calls of `bytes` bytes: the tree, with each rank's children in brackets,
   or another shape; groups of ranks that have lines of their own; chunks; acknowledgements. The words end with a zero
   and are cut where there is no `room` for all. `collective` is a name: "barrier", "bcast", "reduce", "allreduce",
   "scatter", "gather", "allgather". All ranks ask in the same order as they make calls: the first to ask may wait for
   the one that chooses. */
int isochrone_team_plan(isochrone_team *team, const char *collective, uint32_t root, size_t bytes, char *words,
                        size_t room);

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

/* Gives block r of everybody's `send` (a block for each rank) to rank r, whose `receive` then has a block of each rank.
   A block is `bytes`. `receive` may be `send`. */
int isochrone_alltoall(isochrone_team *team, const void *send, void *receive, size_t bytes);

/* Combines block r of everybody's `send` (`count` elements for each rank) into rank r's `receive`, in the order of
   ranks. `receive` may be `send`, whose first block is written then. */
int isochrone_reduce_scatter(isochrone_team *team, const void *send, void *receive, size_t count, uint32_t element,
                             uint32_t operation);

/* Combines `count` elements of the `send` of ranks 0 to r into rank r's `receive`, which may be `send`. */
int isochrone_scan(isochrone_team *team, const void *send, void *receive, size_t count, uint32_t element,
                   uint32_t operation);

/* The same of ranks 0 to r - 1; rank 0's `receive` stays as it is. */
int isochrone_exscan(isochrone_team *team, const void *send, void *receive, size_t count, uint32_t element,
                     uint32_t operation);

/* ------------------------------------------------------------------------------- tasks ---- */

/*
 * A run has workers, data, and tasks. A task is a kernel (a function, by its number), up to 64 bytes of plain
 * arguments, and byte ranges of data with what it does to each. Who waits for whom follows from the ranges
 * alone: the memory is afterwards as if the tasks had run in the order in which they were registered. Ranges may
 * overlap in any way.
 *
 * The thread that starts a run is its first worker; it alone uses the handle. It runs tasks while it waits. Calls of
 * other threads, and of tasks' functions, are ISOCHRONE_STATE; but isochrone_tasks_cancel is for any thread, and
 * isochrone_tasks_end too, for when the first one is over. A child of fork() has no worker of the run, and its calls are
 * ISOCHRONE_GONE; it may start one of its own.
 *
 * Tasks that wait inside of one another lie on the stack of one thread. Where that is used up, but for 256 KiB or a
 * quarter, a task fails and says so. Workers have stacks as other threads of the program have them.
 *
 * ThreadSanitizer is told which task comes after which, so that it finds kernels that use what they did not declare,
 * where two workers do. With TSAN_OPTIONS=suppressions=FILE and a line called_from_lib:libisochrone.so in the file it
 * leaves the library's own memory alone. It does not allow workers that are processes.
 */
typedef struct isochrone_tasks isochrone_tasks;

/* A task that runs: good inside of its kernel's function, in its thread. */
typedef struct isochrone_task isochrone_task;

/* What a kernel does: `arguments` are 64 bytes, those that the task was registered with and then zeros;
   `ranges` has the address of each range, in the order of registration (null for one that is reduced). The function touches no other data of
   the run, and reads only what is ISOCHRONE_IN. 0: done; anything else: the task failed. It returns: by no exception,
   longjmp or pthread_exit. */
typedef int (*isochrone_kernel_function)(isochrone_task *task, const void *arguments, void *const *ranges);

typedef struct isochrone_kernel {
  const char *name; /* for errors */
  isochrone_kernel_function function;
} isochrone_kernel;

/* How a run is set up; a null pointer stands for all zeros. */
typedef struct isochrone_tasks_options {
  uint64_t size;
  const char *regime; /* "dft", "di", "naft", "isochrone"; null: the last */
  const char *policy; /* "oblivious", "nanos++-0.10.3", "nanos6", "paper", "isochrone", "partition"; null: the
                         regime's own */
  uint32_t workers;   /* 8192 at most; 0: one for each core that this thread may use */
  uint32_t flags;     /* ISOCHRONE_TASKS_... */
  const char *atlas;  /* a file of `isochrone map`, for policies that go by costs: a range costs its latency and the
                         time of its bytes; where the atlas lacks bandwidths, its bytes times the latency. It must
                         be of this machine. Null: the one that ISOCHRONE_ATLAS names, isochrone.atlas in the
                         current folder, or the one in the cache folder; where there is none, or where it cannot
                         be used (isochrone_error says why), its bytes times the firmware's distance */
  uint64_t data_bytes; /* with ISOCHRONE_TASKS_PROCESSES: addresses for all data of the run, of which only what is
                          touched takes memory; 0: 1 TiB, or as much as ulimit -v leaves. Threads take addresses as
                          data come */
  uint64_t reserved[4]; /* 0 */
} isochrone_tasks_options;

/* Workers are processes, forked at the start: then this process must have one thread. What kernels write outside
   of data stays in the worker's process. */
#define ISOCHRONE_TASKS_PROCESSES 1u
/* Workers are not pinned to cores. */
#define ISOCHRONE_TASKS_UNPINNED 2u
/* Where and when each task ran is kept, for isochrone_tasks_trace: up to 2^20 tasks of each worker. */
#define ISOCHRONE_TASKS_TRACED 4u

/* What a task does to a range. */
enum {
  ISOCHRONE_IN = 0,         /* reads */
  ISOCHRONE_OUT = 1,        /* writes, and does not look at what was there */
  ISOCHRONE_INOUT = 2,      /* both */
  ISOCHRONE_COMMUTATIVE = 3, /* both, one task at a time, neighbours that say the same in any order */
  /* Adds to what is there by an operation whose order does not matter. Neighbours that say the same run at once,
     each on values of its own: isochrone_task_reduce gives them. */
  ISOCHRONE_REDUCE_SUM = 4,
  ISOCHRONE_REDUCE_MIN = 5,
  ISOCHRONE_REDUCE_MAX = 6
};

/* Bytes of data that lie together. */
typedef struct isochrone_range {
  uint32_t data;
  uint32_t mode;
  uint64_t start; /* first byte, counted from the beginning of the data */
  uint64_t bytes; /* 1 at least */
} isochrone_range;

/* What a run did. */
typedef struct isochrone_tasks_counts {
  uint64_t size;         /* to be set before the call, as of other structs that are written */
  uint64_t tasks;        /* that ran */
  uint64_t left_out;     /* since another had failed */
  uint64_t busy_ns;      /* of all workers */
  uint64_t local_bytes;  /* of tasks' ranges, in the region of their worker */
  uint64_t remote_bytes; /* in other regions */
  uint64_t steals;       /* tasks taken from other regions */
  uint64_t reserved[2];
} isochrone_tasks_counts;

/* Starts a run whose tasks are of these `count` kernels; a kernel's number is its place there. */
int isochrone_tasks_start(const isochrone_tasks_options *options, const isochrone_kernel *kernels, size_t count,
                          isochrone_tasks **tasks);

/* Waits for all tasks, ends the workers, frees all data and the handle; a null pointer is nothing. The run is over in
   any case; ISOCHRONE_FAILED if a task failed and no call said so before. */
int isochrone_tasks_end(isochrone_tasks *tasks);

/* How many workers there are. */
uint32_t isochrone_tasks_workers(const isochrone_tasks *tasks);

/* Registers `bytes` zeros that nobody has touched: they lie where a task touches them first, or as the regime
   says. `data` gets their number. */
int isochrone_tasks_data(isochrone_tasks *tasks, uint64_t bytes, uint32_t *data);

/* Registers `bytes` bytes of the program's own memory: tasks work on it in place, and its pages stay where they are.
   Nobody else uses it until the data are freed or the run has ended; the program itself by isochrone_tasks_read and
   isochrone_tasks_write. ISOCHRONE_ARGUMENT where some of them are data of the run already, since who waits for whom
   follows from numbers of data, not from addresses; and with ISOCHRONE_TASKS_PROCESSES, whose workers may not have it. */
int isochrone_tasks_adopt(isochrone_tasks *tasks, void *memory, uint64_t bytes, uint32_t *data);

/* Frees data when the tasks that use them are over. */
int isochrone_tasks_free(isochrone_tasks *tasks, uint32_t data);

/* Registers a task. `arguments` and `ranges` are copied, and may be null where there are none.
   Of the ready tasks of a queue those with a larger priority go first, and of one priority who was ready first; 0 is usual,
   less than 0 comes last. A policy has one queue for each region or one for all, and there is no order between queues. A
   priority changes no result and interrupts nothing: what a worker has taken it runs first, up to 32 short tasks at
   once, and so does the task that the last one made ready where the policy lets it follow. It is a task's own: its tasks
   inside have theirs. A policy that follows a schedule ("partition") goes by that alone. */
int isochrone_tasks_spawn(isochrone_tasks *tasks, uint32_t kernel, int32_t priority, const void *arguments,
                          size_t bytes, const isochrone_range *ranges, size_t count);

/* A task with all that may be said of it. */
typedef struct isochrone_submission {
  uint64_t size;
  isochrone_kernel_function function; /* null: that of `kernel` */
  const char *name;      /* in traces and errors; null: the kernel's, or "function". A run has 1024 names and kernels */
  uint32_t kernel;       /* its number, where there is no function */
  int32_t priority;      /* as of isochrone_tasks_spawn */
  const void *arguments; /* of any size; copied, to a multiple of 64. Up to 40 bytes take no memory of the heap */
  uint64_t bytes;
  const isochrone_range *ranges;
  uint64_t count;
  void (*discard)(void *arguments); /* or null: ends what the arguments own, once, when the task has run or was left
                                       out; not where the submission was refused */
  uint64_t reserved[4];  /* 0 */
} isochrone_submission;

/* A task that may be waited for: plain, so that it may be an argument of another. */
typedef struct isochrone_handle {
  uint32_t numbers[2];
} isochrone_handle;

/* Registers a task; `handle` gets what it can be waited for by, or is null. With ISOCHRONE_TASKS_PROCESSES a task has
   a kernel's number and at most 64 bytes of arguments. */
int isochrone_tasks_submit(isochrone_tasks *tasks, const isochrone_submission *submission, isochrone_handle *handle);

/* Waits until one task is over, and its own tasks with it. ISOCHRONE_FAILED as isochrone_tasks_wait: also if another one
   failed meanwhile. */
int isochrone_tasks_wait_for(isochrone_tasks *tasks, isochrone_handle handle);

/* Leaves out all tasks that have not begun; by any thread, as long as the run has not ended. Whoever waits next, for
   whatever, waits for all and is told ISOCHRONE_CANCELLED, once; what those tasks should have written counts as failed.
   Tasks that run go on: they may ask isochrone_task_is_in_vain. Tasks of their own that they go on to register are left
   out as well, and they are told ISOCHRONE_CANCELLED where they wait. Nothing where no task is registered. */
int isochrone_tasks_cancel(isochrone_tasks *tasks);

/* Waits until all tasks are over, or those that write a range. ISOCHRONE_FAILED if one failed, which is said once:
   those that had not begun by then are left out. ISOCHRONE_GONE if a worker that is a process ended.
   What a task should have written that failed or was left out stays failed: isochrone_tasks_wait_on and
   isochrone_tasks_read of it are ISOCHRONE_FAILED each time, and a task that looks at it fails, until a task writes it
   without looking (ISOCHRONE_OUT) or the program has it by isochrone_tasks_write. A task that isochrone_task_wait
   told of a failure of its own tasks answers for what they left: it mends that, or fails. */
int isochrone_tasks_wait(isochrone_tasks *tasks);
int isochrone_tasks_wait_on(isochrone_tasks *tasks, uint32_t data, uint64_t start, uint64_t bytes);

/* Waits until the tasks that write a range (or use it) are over; then the program itself may read (or write) it at
   `address`, until it registers the next task that writes (or uses) it. */
int isochrone_tasks_read(isochrone_tasks *tasks, uint32_t data, uint64_t start, uint64_t bytes,
                         const void **address);
int isochrone_tasks_write(isochrone_tasks *tasks, uint32_t data, uint64_t start, uint64_t bytes,
                          void **address);

/* What the run did so far. */
int isochrone_tasks_report(isochrone_tasks *tasks, isochrone_tasks_counts *counts);

/* Waits until all tasks are over, and writes what ran where and when to a file for chrome://tracing and Perfetto: a
   process for each region, a track for each worker, a slice for each task with its local and remote bytes and the
   region that it was stolen from. */
int isochrone_tasks_trace(isochrone_tasks *tasks, const char *path);

/* Inside of a kernel: registers a task of the running task's own. Its ranges lie inside of those of the running
   task, which does not touch them until it has waited; it is over when all its own are. */
int isochrone_task_spawn(isochrone_task *task, uint32_t kernel, int32_t priority, const void *arguments,
                         size_t bytes, const isochrone_range *ranges, size_t count);
int isochrone_task_wait(isochrone_task *task);

/* Inside of a kernel: as for the program. A task waits for any other but those that wait for itself. */
int isochrone_task_submit(isochrone_task *task, const isochrone_submission *submission, isochrone_handle *handle);
int isochrone_task_wait_for(isochrone_task *task, isochrone_handle handle);

/* Leaves out the tasks beside this one, of the same parent, that have not begun; who waits for them is told
   ISOCHRONE_CANCELLED. And whether what this task does is of no use any more (1), since a task beside or above it
   failed or was cancelled: then it may return at once. */
int isochrone_task_cancel(isochrone_task *task);
int isochrone_task_is_in_vain(const isochrone_task *task);

/* Inside of a kernel: the task's own values for range number `range`, from 0, which it reduces, as elements of a type
   (ISOCHRONE_INT64, ...; the range holds whole ones). They begin with what changes nothing (zero for a sum), and are
   combined with the common ones when the function has returned. It asks once for each range. */
int isochrone_task_reduce(isochrone_task *task, size_t range, uint32_t element, void **own);

/* The number of the worker that runs the task, from 0. */
uint32_t isochrone_task_worker(const isochrone_task *task);

/* The words with which the task fails; returns ISOCHRONE_FAILED, so: return isochrone_task_fail(task, "..."); */
int isochrone_task_fail(isochrone_task *task, const char *words);

/* ---------------------------------------------------- memory larger than fast memory ---- */

/*
 * An area of which only a part is in fast memory at a time; the rest is in a far tier, and pages come and go as
 * workers touch them. Workers are processes with page tables of their own, so that a page that leaves interrupts
 * only those that map it; or, with ISOCHRONE_TIER_THREADS, threads of this process, which share one set.
 *
 * Processes share the area, and what was mapped shared before. Heap and globals are copies from when
 * isochrone_tier_run was called: what one worker writes there no other sees. Pointers into the area mean the same
 * to all. A worker that is a process ends when its function returns, without what exit() does: call fflush() if
 * it printed something.
 *
 * Whoever touches a page that is not in fast memory sleeps until a thread of ours, in the same process and named
 * isochrone-fault, has brought it: that asks nothing of the program's signals. With ISOCHRONE_TIER_SIGBUS the thread
 * itself brings it, several times faster, in a handler of SIGBUS. Then no thread blocks SIGBUS, nobody puts another
 * handler in the place of ours while there is an area, and handlers that touch the area let SIGBUS come; a handler
 * that was there before gets what is not about the area.
 *
 * A system call that is given a page of the area which is not in fast memory fails with EFAULT: isochrone_tier_pin
 * keeps a range there. Without ISOCHRONE_TIER_SIGBUS such a call waits for the page and succeeds where the kernel lets
 * us serve its own faults (root, CAP_SYS_PTRACE, or vm.unprivileged_userfaultfd=1): isochrone_tier_count says whether.
 *
 * A page that cannot be had, because the far tier is full or fails, or something else changed its file, is one line on
 * standard error and a SIGBUS at the access, as with a mapped file.
 */
typedef struct isochrone_tier_options {
  uint64_t size;
  uint64_t area_bytes;  /* of the area */
  uint64_t fast_bytes;  /* of it that may be in fast memory */
  const char *folder;   /* with ISOCHRONE_FAR_FILE: where the file lies, which has no name */
  uint32_t far;         /* where pages go: ISOCHRONE_FAR_MEMORY, ... */
  uint32_t policy;      /* which page leaves: ISOCHRONE_CORE_FIFO, ... */
  uint32_t workers;     /* 0: one */
  uint32_t movers;      /* processes that fetch ahead and keep room free; they want cores of their own */
  uint32_t group_pages; /* pages that come and go together: 1, 2, 4, 8 or 16. 0 chooses: one page, and with it the more of
                           those behind it, up to 32, the longer what is touched follows; random touches bring one */
  uint32_t flags;       /* 0, or ISOCHRONE_TIER_THREADS, ISOCHRONE_TIER_CALLER_WORKS, ISOCHRONE_TIER_SIGBUS, by | */
  uint64_t reserved[4]; /* 0 */
} isochrone_tier_options;

/* Where pages go. */
enum {
  ISOCHRONE_FAR_MEMORY = 0,     /* to another part of memory */
  ISOCHRONE_FAR_FILE = 1,       /* to a file, past the page cache where the file system can */
  ISOCHRONE_FAR_COMPRESSED = 2, /* to memory, compressed by lz4: the faster */
  ISOCHRONE_FAR_ZSTD = 3        /* to memory, compressed by zstd: the smaller */
};

/* Which page leaves when room is needed. */
enum {
  ISOCHRONE_CORE_FIFO = 0, /* the worker's own oldest, before those that others map */
  ISOCHRONE_FIFO = 1,      /* the oldest of all, as in the paper */
  ISOCHRONE_CMCP = 2,      /* one that few workers map */
  ISOCHRONE_SIEVE = 3      /* one that nobody mapped again */
};

/* Workers are threads: one set of page tables for all. */
#define ISOCHRONE_TIER_THREADS 1u
/* Who calls isochrone_tier_run is worker 0 itself: the paper's host side. Parts of a program that are better off
   there are what worker 0 does between two barriers. */
#define ISOCHRONE_TIER_CALLER_WORKS 2u
/* Whoever touches a page that is absent brings it itself, in a handler of SIGBUS: faster, and see above. */
#define ISOCHRONE_TIER_SIGBUS 4u

/* What became of the pages of an area since its team began, or since it was mapped. */
typedef struct isochrone_tier_statistics {
  uint64_t size;
  uint64_t fetched;         /* groups that were absent when somebody touched them */
  uint64_t fetched_bytes;   /* with those that came beside them */
  uint64_t mapped;          /* groups that were in fast memory, and were only mapped */
  uint64_t left;            /* groups that left fast memory */
  uint64_t left_bytes;
  uint64_t left_clean;      /* of these, groups that needed no copy */
  uint64_t prefetched;      /* groups that came before anybody touched them */
  uint64_t came_back;       /* of `fetched`, groups that had just left: fewer groups ago than fast memory holds */
  uint64_t fault_ns;        /* time of all faults together */
  uint64_t wait_ns;         /* time that workers waited for one another, or for a mover */
  uint64_t waits;           /* how often */
  uint64_t longest_wait_ns; /* the time of the worker that waited longest */
  uint32_t longest_waiter;  /* its number */
  uint32_t group_pages;
  uint32_t flags;           /* ISOCHRONE_TIER_SERVES_SYSTEM_CALLS */
  uint32_t reserved_word;   /* 0 */
  uint64_t reserved[4];     /* 0 */
  char advice[256];         /* one line where fast memory does not go far, or "" */
} isochrone_tier_statistics;

/* System calls may be given pages that are not in fast memory. */
#define ISOCHRONE_TIER_SERVES_SYSTEM_CALLS 1u

/* What each worker runs: its number, how many there are, and the argument. */
typedef uint64_t (*isochrone_tier_body)(uint32_t worker, uint32_t workers, void *argument);

/* Runs `body` in every worker of a new team and waits for all. `values` gets what each returned, or is null.
   ISOCHRONE_GONE if a worker did not return: isochrone_error() says which, and how it ended. The process has one
   thread when it calls this if workers are processes or there are movers, and one area at a time. */
int isochrone_tier_run(const isochrone_tier_options *options, isochrone_tier_body body, void *argument,
                       uint64_t *values);

/* The following are called in `body`, by the thread that runs it. */

/* A piece of the area, of zeros: whole groups, at the same address in every worker, for any worker to give
   back. Null if there is no such piece. For arrays, not for small objects. */
void *isochrone_malloc_global(size_t bytes);

/* Gives a piece back; a null pointer is nothing. Its memory and its room in the far tier are free at once, and all
   pins of it end, whoever has them. */
int isochrone_free_global(void *at);

#ifndef ISOCHRONE_NO_SHORT_NAMES
/* As they are called in the paper. */
static inline void *malloc_global(size_t bytes) { return isochrone_malloc_global(bytes); }
static inline int free_global(void *at) { return isochrone_free_global(at); }
#endif

/* What may be said of a range. */
enum {
  ISOCHRONE_WILL_NEED = 0, /* it is fetched now, in large pieces, as far as half of fast memory goes */
  ISOCHRONE_COLD = 1,      /* it leaves now, except what is pinned */
  ISOCHRONE_DISCARD = 2    /* it is worth nothing: whole groups of it that are not pinned are zeros from now on */
};
int isochrone_tier_advise(const void *at, size_t bytes, uint32_t advice);

/* Fetches a range and keeps it in fast memory, mapped and writable, for system calls; and lets the same range
   leave again. Pins are counted, for each worker: where this worker has no pin of all of the range,
   isochrone_tier_unpin is ISOCHRONE_ARGUMENT and unpins nothing. They end with the worker. */
int isochrone_tier_pin(const void *at, size_t bytes);
int isochrone_tier_unpin(const void *at, size_t bytes);

/* Returns when all workers have called it; ISOCHRONE_GONE if one ended and never will. */
int isochrone_tier_barrier(void);

/* What became of the area's pages so far, of all workers and movers together. */
int isochrone_tier_count(isochrone_tier_statistics *statistics);

/* The sum of what all workers give, added in the order of their numbers: the same bits for each. */
int isochrone_tier_sum(double mine, double *sum);

/* One large array for all threads of this process, as by mmap: no team and no movers (`workers`, `movers` and `flags`
   but ISOCHRONE_TIER_SIGBUS are not heeded). The memory is zeros, and nobody may use it once it is unmapped. With
   ISOCHRONE_TIER_SIGBUS the handler of SIGBUS from before is back then.
   A process that is forked while the array is mapped has nothing of it: its first access there ends it by SIGSEGV, and
   calls on the array are ISOCHRONE_GONE, but for isochrone_tier_unmap, after which it may map one of its own. */
typedef struct isochrone_tier_array isochrone_tier_array;
int isochrone_tier_map(const isochrone_tier_options *options, isochrone_tier_array **array, void **at);
void isochrone_tier_unmap(isochrone_tier_array *array);

/* What workers may say of their area, by any thread. */
int isochrone_tier_array_pin(const isochrone_tier_array *array, const void *at, size_t bytes);
int isochrone_tier_array_unpin(const isochrone_tier_array *array, const void *at, size_t bytes);
int isochrone_tier_array_advise(const isochrone_tier_array *array, const void *at, size_t bytes, uint32_t advice);
int isochrone_tier_array_count(const isochrone_tier_array *array, isochrone_tier_statistics *statistics);

/* Objects of any size in one large array, for all threads of this process: an allocator, as memkind's kinds are. The
   options are those of isochrone_tier_map, and the array is the process's one area. Objects of up to 2048 bytes share
   groups; larger ones have whole groups, so group_pages is 0 or small. What is known of objects lies beside the array:
   asking and freeing touch no page of it. Signal handlers call none of these, and a child of fork() has no object; its
   calls fail with ISOCHRONE_GONE. */
typedef struct isochrone_tier_kind isochrone_tier_kind;
int isochrone_tier_kind_create(const isochrone_tier_options *options, isochrone_tier_kind **kind);

/* Takes the array away with all objects; nobody uses one any more. A null pointer is nothing. */
void isochrone_tier_kind_destroy(isochrone_tier_kind *kind);

/* As malloc, calloc, realloc and aligned_alloc (a power of two up to 2 MiB). Null where there is no room, or arguments
   make no sense: isochrone_error() says which. realloc of a null pointer is malloc; an object that cannot be made
   longer stays as it is. Room for 0 bytes is an object, too. */
void *isochrone_tier_kind_malloc(const isochrone_tier_kind *kind, size_t bytes);
void *isochrone_tier_kind_calloc(const isochrone_tier_kind *kind, size_t count, size_t bytes);
void *isochrone_tier_kind_realloc(const isochrone_tier_kind *kind, void *at, size_t bytes);
void *isochrone_tier_kind_memalign(const isochrone_tier_kind *kind, size_t alignment, size_t bytes);

/* Gives an object back, by any thread; a null pointer is nothing. Of one larger than 2048 bytes memory and room in the
   far tier are free at once, and all pins of it end. ISOCHRONE_ARGUMENT for an address at which no object begins, and
   for one that is free already. */
int isochrone_tier_kind_free(const isochrone_tier_kind *kind, void *at);

/* Bytes of an object that may be used, at least those that were asked for; 0 where none begins. */
size_t isochrone_tier_kind_usable(const isochrone_tier_kind *kind, const void *at);

/* The array, for pins, advice and statistics; it is not to be unmapped. Null for a null pointer. */
const isochrone_tier_array *isochrone_tier_kind_array(const isochrone_tier_kind *kind);

/* Memory that the program has already: from here on `fast_bytes` of it, 1 MiB or more, may be in fast memory, and the
   rest is where `far` says. Its address stays, and what it holds; so no code that uses it changes. Of the options
   `fast_bytes`, `far` and `folder` are heeded, and `flags` is 0. Several ranges may be adopted, each with options of
   its own, also while there is an area.

   `at` and `bytes` are whole pages, of memory that is private, without a file, readable and writable: of large arrays
   from malloc or aligned_alloc those pages that lie in them whole. ISOCHRONE_ARGUMENT, and nothing is done, for other
   memory: a part of it is shared, of a file, locked, a stack, not mapped, told by MADV_DONTFORK, or adopted already.
   ISOCHRONE_STATE where system calls could not be given absent pages: it takes Linux 6.8 or newer, and root
   (CAP_SYS_PTRACE), vm.unprivileged_userfaultfd=1, or a user who may open /dev/userfaultfd.

   It may be unmapped and moved until it is released: what is
   unmapped (munmap, free, a mapping over it) is not adopted any more, and what is moved (mremap, realloc) comes whole
   into memory at its new place, beyond the limit if need be, and is not adopted there. isochrone_tier_release, with
   the address that was adopted, gives back what is left. What is given up by madvise (MADV_DONTNEED) reads as zeros,
   wherever it was; with MADV_FREE what is in memory may stay for a while, as without us, and leaves when each thread of
   the program has slept in a call or touched an absent page since. What is locked or may not be touched after all
   (mlock, mprotect) keeps what it holds, and stays in memory as long, beyond the limit if need be.
   Pages that a device is writing to stay. Faults are resolved by threads of ours named isochrone-fault, two to four
   for each range. A child of fork() has none of the memory: its first access there ends it by SIGSEGV. */
int isochrone_tier_adopt(const isochrone_tier_options *options, void *at, size_t bytes);

/* Undoes it: all pages are brought back, and the memory is as any other again. `at` is the address that was adopted.
   ISOCHRONE_MEMORY where not all of it fits into memory, and ISOCHRONE_SYSTEM where the far tier does not give it back:
   then it stays adopted. ISOCHRONE_GONE in a child of fork(). */
int isochrone_tier_release(void *at);

/* ------------------------------------------------------------------ memory near cores ---- */

/*
 * Objects of up to 256 bytes on cache lines that are near the core that asks, or a core that is named, by an atlas
 * of this machine (`isochrone map`). Larger objects, and all objects where nothing is to be gained, are the ordinary
 * allocator's: a placement can always be opened, and isochrone_place_why_not says why it places nothing.
 *
 * Any number of threads use one placement, except that the one which closes it is the last to use it. Signal handlers
 * do not. What a placement hands out is given back to it and never to free(). Memory is learnt while the program
 * runs, in slices of some 50 us inside of allocations, an eighth of one thread's time at most, or before it, by
 * isochrone_place_prepare. In a child of fork() what was placed stays usable, and nothing more is placed.
 */
typedef struct isochrone_placement isochrone_placement;

/* What a placement is asked for; a null pointer stands for all zeros. */
typedef struct isochrone_place_options {
  size_t size;            /* sizeof(isochrone_place_options) */
  const char *atlas;      /* a file of `isochrone map`; null: the one that ISOCHRONE_ATLAS names, isochrone.atlas in the
                             current folder, or the one in the user's cache folder */
  const uint32_t *cores;  /* the cores that will use the memory, by their numbers; null: all that this thread may use */
  size_t cores_count;     /* how many these are */
  uint64_t bytes_max;     /* the most memory to place in, bytes; 0: a quarter of what there is */
  uint64_t prepare_bytes; /* learnt before isochrone_place_open returns, as by isochrone_place_prepare; 0: nothing */
  double prepare_seconds; /* the time that this may take; 0: as long as it takes */
  double near_share;      /* of all lines, how many count as near: above 0, at most 1; 0: a quarter */
  uint32_t mix;           /* by which level lines are ranked: ISOCHRONE_PLACE_BY_USE, ... */
  uint32_t flags;         /* ISOCHRONE_PLACE_FORCE and ISOCHRONE_PLACE_PARTICIPANTS, by | */
  uint64_t reserved[4];   /* 0 */
} isochrone_place_options;

/* By which level's latencies lines are ranked. */
enum {
  ISOCHRONE_PLACE_BY_USE = 0,   /* by both, as accesses reach them when what is live is used evenly */
  ISOCHRONE_PLACE_BY_CACHE = 1, /* by the last-level cache: for objects that stay there */
  ISOCHRONE_PLACE_BY_MEMORY = 2 /* by memory: for objects that are seldom found in a cache */
};

/* Places although the atlas predicts no gain. */
#define ISOCHRONE_PLACE_FORCE 1u
/* Near for a core is what is nearer to it than to any other core on which the program was seen, not a share of all
   lines: for programs that use most cores. */
#define ISOCHRONE_PLACE_PARTICIPANTS 2u

/* Opens a placement. ISOCHRONE_ARGUMENT for options that make no sense; it fails for nothing else, whatever the
   machine and its atlas are. It reads files, and takes some milliseconds. */
int isochrone_place_open(const isochrone_place_options *options, isochrone_placement **placement);

/* Closes it and frees all memory that it placed, in use or not; a null pointer is nothing. What the ordinary allocator
   gave for it stays until it is freed, by free(). */
void isochrone_place_close(isochrone_placement *placement);

/* Why nothing is placed, in one line; null where something is. It may come to that while the program runs (no base of
   the atlas is recognised; a fork), never the other way round. Until one is recognised memory is the ordinary
   allocator's, and this is null. The words are good until the placement is closed. */
const char *isochrone_place_why_not(const isochrone_placement *placement);

/* Learns the memory for objects of `bytes` bytes in all, so that nothing is learnt later; `learnt` gets the share that
   was, or is null. It takes some milliseconds a megabyte, and `seconds` at most unless that is 0. It binds this thread
   to the placement's cores in turn and sets its cores back, and needs 256 KiB of stack. ISOCHRONE_SYSTEM where memory
   cannot be had or timed. */
int isochrone_place_prepare(isochrone_placement *placement, size_t bytes, double seconds, double *learnt);

/* `bytes` bytes at a multiple of `alignment`, a power of two (0: as malloc aligns), near the core that runs this thread,
   or near `core`. Null where there is no memory at all, or the alignment is none: isochrone_error() says which. */
void *isochrone_place_alloc(isochrone_placement *placement, size_t bytes, size_t alignment);
void *isochrone_place_alloc_near(isochrone_placement *placement, uint32_t core, size_t bytes, size_t alignment);

/* Gives memory back, by any thread; a null pointer is nothing. ISOCHRONE_ARGUMENT for an object that is free already and
   for an address inside of its memory at which none begins: nothing was freed. Any other address is handed to free(). */
int isochrone_place_free(isochrone_placement *placement, void *at);

/* How far an object is from a core: a load that finds it in the last-level cache, or in memory, nanoseconds. A level of
   which nothing is known, as of memory that was not learnt yet, is not a number. */
typedef struct isochrone_place_distances {
  double cache_ns;
  double memory_ns;
  uint32_t reading;  /* ISOCHRONE_PREDICTED: no load of this object was timed; or ISOCHRONE_SIMULATED */
  uint32_t reserved; /* 0 */
} isochrone_place_distances;

/* ISOCHRONE_ARGUMENT for memory that this placement did not place, or that was freed, and where nothing is placed any
   more: what was known may not be so now. */
int isochrone_place_distance(const isochrone_placement *placement, const void *at, uint32_t core,
                             isochrone_place_distances *distances);

/* What was done so far. */
typedef struct isochrone_place_counts {
  size_t size;               /* sizeof(isochrone_place_counts), to be set before the call */
  uint64_t placed_objects;   /* freed or not */
  uint64_t placed_bytes;     /* of these, as they were asked for */
  uint64_t freed_objects;    /* placed and freed */
  uint64_t ordinary_objects; /* that the ordinary allocator served while something could be placed: too large, or full */
  uint64_t arena_bytes;      /* of memory to place in */
  double near_share;         /* of what was drawn for a core, the share that was near; not a number before any was */
  uint64_t reserved[4];
} isochrone_place_counts;

int isochrone_place_statistics(const isochrone_placement *placement, isochrone_place_counts *counts);

#ifdef __cplusplus
}
#endif

#endif
