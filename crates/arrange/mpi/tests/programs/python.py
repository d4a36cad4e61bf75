"""Collectives by mpi4py, of objects and of buffers: every result is compared."""
from array import array

from mpi4py import MPI

comm = MPI.COMM_WORLD
rank, size = comm.Get_rank(), comm.Get_size()
for call in range(200):
    got = array("i", [0] * 4)
    comm.Allreduce(array("i", [rank + call] * 4), got)
    assert list(got) == [sum(range(size)) + size * call] * 4
    number = array("d", [3.5 * call if rank == call % size else 0.0])
    comm.Bcast(number, root=call % size)
    assert number[0] == 3.5 * call
    assert comm.allgather(rank * call) == [other * call for other in range(size)]
    assert comm.bcast({"call": call} if rank == 0 else None)["call"] == call
    assert comm.alltoall([rank * 10 + other for other in range(size)]) == [
        other * 10 + rank for other in range(size)
    ]
    squares = [other * other for other in range(size)] if rank == 0 else None
    assert comm.scatter(squares) == rank * rank
    assert comm.reduce(rank) == (sum(range(size)) if rank == 0 else None)
    pairs = array("i", [0] * 2 * size)
    comm.Allgather([array("i", [rank, call]), 2, MPI.INT], [pairs, 2, MPI.INT])
    assert list(pairs) == [word for other in range(size) for word in (other, call)]
    comm.Barrier()
print("done", MPI.Query_thread() == MPI.THREAD_MULTIPLE, flush=True)
