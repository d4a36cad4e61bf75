/* Calls of which it is known how many there are of each size; barriers are as many as the second word says, or 50000.
   With "killed" rank 1 kills itself behind them, and nobody waits for it. */
#include <mpi.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char bytes[1 << 18], others[1 << 18];

static void least(void *in, void *out, int *count, MPI_Datatype *type) {
  (void)type;
  for (int at = 0; at < *count; at++)
    if (((int *)in)[at] < ((int *)out)[at]) ((int *)out)[at] = ((int *)in)[at];
}

int main(int argc, char **argv) {
  int rank, ranks, wrong = 0, barriers = argc > 2 ? atoi(argv[2]) : 50000;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  MPI_Comm world = MPI_COMM_WORLD;
  for (int call = 0; call < 100; call++) MPI_Bcast(bytes, 2, MPI_INT, 0, world);
  for (int call = 0; call < 7; call++) MPI_Bcast(bytes, 1000, MPI_BYTE, call % ranks, world);
  for (int call = 0; call < 3; call++) MPI_Bcast(bytes, 100000, MPI_CHAR, 0, world);
  for (int call = 0; call < barriers; call++) MPI_Barrier(world);
  for (int call = 0; call < 20; call++) {
    double one = rank + 1, sum = 0;
    MPI_Allreduce(&one, &sum, 1, MPI_DOUBLE, MPI_SUM, world);
    wrong += sum != ranks * (ranks + 1) / 2;
  }
  int *counts = calloc(ranks, sizeof *counts), *places = calloc(ranks, sizeof *places);
  for (int other = 0, place = 0; other < ranks; other++) {
    counts[other] = 20 * (other + 1);
    places[other] = place;
    place += counts[other];
  }
  /* 40 numbers at most from one of two ranks: 160 bytes. */
  for (int call = 0; call < 5; call++)
    MPI_Allgatherv(bytes, counts[rank], MPI_INT, others, counts, places, MPI_INT, world);
  for (int call = 0; call < 4; call++)
    MPI_Gatherv(bytes, counts[rank], MPI_INT, others, counts, places, MPI_INT, 0, world);
  MPI_Op own;
  MPI_Op_create(least, 1, &own);
  for (int call = 0; call < 2; call++) {
    int mine = 7 - rank, all = 0;
    MPI_Allreduce(&mine, &all, 1, MPI_INT, own, world);
    wrong += all != 8 - ranks;
  }
  MPI_Op_free(&own);
  MPI_Comm twin;
  MPI_Comm_dup(world, &twin);
  for (int call = 0; call < 1000; call++) MPI_Barrier(twin);
  MPI_Comm_free(&twin);
  if (argc > 1 && strcmp(argv[1], "killed") == 0) {
    if (rank == 1) kill(getpid(), SIGKILL);
    _exit(0);
  }
  if (wrong == 0) printf("done %d\n", rank);
  MPI_Finalize();
  return wrong != 0;
}
