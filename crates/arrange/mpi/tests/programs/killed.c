/* The last rank is killed in the middle. The others get an error, not a hang, and say after how long. */
#include "check.h"
#include <signal.h>
#include <time.h>
#include <unistd.h>

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec + t.tv_nsec * 1e-9;
}

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    for (int call = 0; call < 100; call++) MPI_Barrier(MPI_COMM_WORLD);
    if (rank == ranks - 1) raise(SIGKILL);
    const double begin = now();
    int code = MPI_SUCCESS;
    while (code == MPI_SUCCESS) code = MPI_Barrier(MPI_COMM_WORLD);
    char words[MPI_MAX_ERROR_STRING];
    int length = 0;
    MPI_Error_string(code, words, &length);
    FILE *out = fopen(argv[1], "w");
    fprintf(out, "%.3f %s\n", now() - begin, words);
    fclose(out);
    _exit(0);
}
