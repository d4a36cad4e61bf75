! The same by the module of Fortran 2008.
program module
  use mpi_f08
  implicit none
  integer :: rank, ranks, round, value
  double precision :: sum
  call MPI_Init()
  call MPI_Comm_rank(MPI_COMM_WORLD, rank)
  call MPI_Comm_size(MPI_COMM_WORLD, ranks)
  do round = 1, 20
    value = merge(round, 0, rank == ranks - 1)
    call MPI_Bcast(value, 1, MPI_INTEGER, ranks - 1, MPI_COMM_WORLD)
    if (value /= round) call MPI_Abort(MPI_COMM_WORLD, 2)
    sum = rank + 1
    call MPI_Allreduce(MPI_IN_PLACE, sum, 1, MPI_DOUBLE_PRECISION, MPI_SUM, MPI_COMM_WORLD)
    if (sum /= ranks * (ranks + 1) / 2) call MPI_Abort(MPI_COMM_WORLD, 3)
    call MPI_Barrier(MPI_COMM_WORLD)
  end do
  print '(a,i0)', 'done ', rank
  call MPI_Finalize()
end program module
