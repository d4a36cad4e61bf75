/* An MPI of one rank that has every function by both names. It ends the program when any but the caller's own
   call comes with a handle: its handles are none that another library knows. VERSION is what it says of itself,
   ABI the version of the standard ABI that it says. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define WORLD ((void *)0x101)

static int calls;

#define BOTH(name, arguments, body) \
    int PMPI_##name arguments body \
    int MPI_##name arguments body

#define TOUCHED(name) \
    BOTH(name, (void), { fprintf(stderr, "MPI_" #name " was called\n"); abort(); })

BOTH(Get_library_version, (char *text, int *length), { *length = (int)strlen(strcpy(text, VERSION)); return 0; })
#ifdef ABI
BOTH(Abi_get_version, (int *major, int *minor), { *major = ABI; *minor = 0; return 0; })
#endif
BOTH(Initialized, (int *flag), { *flag = 1; return 0; })
BOTH(Init, (int *count, void *words), { (void)count; (void)words; return 0; })
BOTH(Finalize, (void), { printf("done after %d\n", calls); return 0; })
BOTH(Bcast, (void *buffer, int count, void *type, int root, void *comm),
     { if (comm != WORLD) abort(); (void)buffer; (void)type; calls += count + root; return 0; })
BOTH(Barrier, (void *comm), { if (comm != WORLD) abort(); calls++; return 0; })
TOUCHED(Query_thread)
TOUCHED(Comm_size) TOUCHED(Comm_rank) TOUCHED(Comm_test_inter) TOUCHED(Comm_split) TOUCHED(Comm_split_type)
TOUCHED(Comm_free) TOUCHED(Comm_create_keyval) TOUCHED(Comm_set_attr) TOUCHED(Comm_call_errhandler)
TOUCHED(Add_error_class) TOUCHED(Add_error_code) TOUCHED(Add_error_string)
TOUCHED(Type_size) TOUCHED(Type_get_extent) TOUCHED(Type_vector) TOUCHED(Type_commit) TOUCHED(Type_free)
TOUCHED(Type_get_true_extent) TOUCHED(Reduce_local) TOUCHED(Pack) TOUCHED(Unpack) TOUCHED(Iprobe)
TOUCHED(Reduce) TOUCHED(Allreduce) TOUCHED(Scatter) TOUCHED(Gather) TOUCHED(Allgather)
TOUCHED(Alltoall) TOUCHED(Reduce_scatter_block) TOUCHED(Scan) TOUCHED(Exscan)
TOUCHED(Gatherv) TOUCHED(Scatterv) TOUCHED(Allgatherv) TOUCHED(Alltoallv) TOUCHED(Reduce_scatter)
