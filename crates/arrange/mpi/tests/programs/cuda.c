/* Stands for libcuda.so.1 and for an MPI that knows memory of devices: such memory cannot be touched but within the
   MPI's own functions. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <mpi.h>
#include <stddef.h>
#include <sys/mman.h>

enum { MOST = 64 };
static struct { char *first; size_t bytes; } made[MOST];
static int count, asked;

void device_open(void) {
    for (int i = 0; i < count; i++) mprotect(made[i].first, made[i].bytes, PROT_READ | PROT_WRITE);
}

void device_close(void) {
    for (int i = 0; i < count; i++) mprotect(made[i].first, made[i].bytes, PROT_NONE);
}

void *device_make(size_t bytes) {
    void *first = mmap(NULL, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    made[count].first = first, made[count].bytes = bytes, count++;
    return first;
}

void device_end(void) {
    while (count) count--, munmap(made[count].first, made[count].bytes);
}

int device_asked(void) { return asked; }

int cuPointerGetAttribute(void *data, int attribute, unsigned long long address) {
    asked++;
    for (int i = 0; i < count; i++)
        if (address - (unsigned long long)made[i].first < made[i].bytes && attribute == 2)
            return *(unsigned *)data = 2, 0;
    return 1;
}

#define KNOWS(name, takes, gives) \
    int name takes { \
        int (*next) takes = dlsym(RTLD_NEXT, #name), code; \
        device_open(); \
        code = next gives; \
        device_close(); \
        return code; \
    }

/* Calls that are left to the MPI go by the names that programs call, since tools may stand between. */
#define BOTH(name, takes, gives) KNOWS(name, takes, gives) KNOWS(P##name, takes, gives)

KNOWS(PMPI_Pack, (const void *a, int n, MPI_Datatype t, void *b, int size, int *at, MPI_Comm c),
      (a, n, t, b, size, at, c))
KNOWS(PMPI_Unpack, (const void *a, int size, int *at, void *b, int n, MPI_Datatype t, MPI_Comm c),
      (a, size, at, b, n, t, c))
BOTH(MPI_Bcast, (void *b, int n, MPI_Datatype t, int root, MPI_Comm c), (b, n, t, root, c))
BOTH(MPI_Scatter, (const void *a, int n, MPI_Datatype t, void *b, int m, MPI_Datatype u, int root, MPI_Comm c),
      (a, n, t, b, m, u, root, c))
BOTH(MPI_Gather, (const void *a, int n, MPI_Datatype t, void *b, int m, MPI_Datatype u, int root, MPI_Comm c),
      (a, n, t, b, m, u, root, c))
BOTH(MPI_Allgather, (const void *a, int n, MPI_Datatype t, void *b, int m, MPI_Datatype u, MPI_Comm c),
      (a, n, t, b, m, u, c))
BOTH(MPI_Alltoall, (const void *a, int n, MPI_Datatype t, void *b, int m, MPI_Datatype u, MPI_Comm c),
      (a, n, t, b, m, u, c))
BOTH(MPI_Reduce, (const void *a, void *b, int n, MPI_Datatype t, MPI_Op o, int root, MPI_Comm c),
      (a, b, n, t, o, root, c))
BOTH(MPI_Allreduce, (const void *a, void *b, int n, MPI_Datatype t, MPI_Op o, MPI_Comm c), (a, b, n, t, o, c))
BOTH(MPI_Scan, (const void *a, void *b, int n, MPI_Datatype t, MPI_Op o, MPI_Comm c), (a, b, n, t, o, c))
BOTH(MPI_Exscan, (const void *a, void *b, int n, MPI_Datatype t, MPI_Op o, MPI_Comm c), (a, b, n, t, o, c))
BOTH(MPI_Reduce_scatter_block, (const void *a, void *b, int n, MPI_Datatype t, MPI_Op o, MPI_Comm c),
      (a, b, n, t, o, c))
BOTH(MPI_Reduce_scatter, (const void *a, void *b, const int *n, MPI_Datatype t, MPI_Op o, MPI_Comm c),
      (a, b, n, t, o, c))
BOTH(MPI_Gatherv,
      (const void *a, int n, MPI_Datatype t, void *b, const int *m, const int *p, MPI_Datatype u, int root, MPI_Comm c),
      (a, n, t, b, m, p, u, root, c))
BOTH(MPI_Alltoallv,
      (const void *a, const int *n, const int *q, MPI_Datatype t, void *b, const int *m, const int *p, MPI_Datatype u,
       MPI_Comm c),
      (a, n, q, t, b, m, p, u, c))
