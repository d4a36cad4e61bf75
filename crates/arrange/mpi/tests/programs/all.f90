! Fortran's entry points, by the old module: in place, derived types, all roots.
program all
  use mpi
  implicit none
  integer :: rank, ranks, error, round, root, i
  integer :: numbers(40), total(40), row
  double precision :: mine, most
  integer, allocatable :: everybody(:), parts(:), places(:), mine_of(:)
  call MPI_Init(error)
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, error)
  call MPI_Comm_size(MPI_COMM_WORLD, ranks, error)
  allocate (everybody(40 * ranks), parts(ranks), places(ranks), mine_of(ranks))
  call MPI_Type_vector(20, 1, 2, MPI_INTEGER, row, error)
  call MPI_Type_commit(row, error)
  do round = 1, 20
    do root = 0, ranks - 1
      numbers = merge(round * 100 + root, 0, rank == root)
      call MPI_Bcast(numbers, 40, MPI_INTEGER, root, MPI_COMM_WORLD, error)
      if (any(numbers /= round * 100 + root)) call MPI_Abort(MPI_COMM_WORLD, 2, error)
      numbers = rank + 1
      if (rank == root) then
        call MPI_Reduce(MPI_IN_PLACE, numbers, 40, MPI_INTEGER, MPI_SUM, root, MPI_COMM_WORLD, error)
        if (any(numbers /= ranks * (ranks + 1) / 2)) call MPI_Abort(MPI_COMM_WORLD, 3, error)
      else
        call MPI_Reduce(numbers, total, 40, MPI_INTEGER, MPI_SUM, root, MPI_COMM_WORLD, error)
      end if
      numbers = -1
      if (rank == root) numbers = [(i, i=1, 40)]
      if (rank == root) then
        call MPI_Bcast(numbers, 1, row, root, MPI_COMM_WORLD, error)
      else
        call MPI_Bcast(numbers, 20, MPI_INTEGER, root, MPI_COMM_WORLD, error)
        if (any(numbers(1:20) /= [(2 * i - 1, i=1, 20)])) call MPI_Abort(MPI_COMM_WORLD, 4, error)
      end if
      everybody = 0
      call MPI_Gather(rank, 1, MPI_INTEGER, everybody, 1, MPI_INTEGER, root, MPI_COMM_WORLD, error)
      if (rank == root .and. any(everybody(1:ranks) /= [(i, i=0, ranks - 1)])) &
        call MPI_Abort(MPI_COMM_WORLD, 5, error)
      call MPI_Scatter(everybody, 1, MPI_INTEGER, i, 1, MPI_INTEGER, root, MPI_COMM_WORLD, error)
      if (i /= rank) call MPI_Abort(MPI_COMM_WORLD, 6, error)
    end do
    mine = rank
    call MPI_Allreduce(mine, most, 1, MPI_DOUBLE_PRECISION, MPI_MAX, MPI_COMM_WORLD, error)
    if (most /= ranks - 1) call MPI_Abort(MPI_COMM_WORLD, 7, error)
    call MPI_Allreduce(MPI_IN_PLACE, mine, 1, MPI_REAL8, MPI_SUM, MPI_COMM_WORLD, error)
    if (mine /= ranks * (ranks - 1) / 2) call MPI_Abort(MPI_COMM_WORLD, 8, error)
    call MPI_Allgather(rank, 1, MPI_INTEGER, everybody, 1, MPI_INTEGER, MPI_COMM_WORLD, error)
    if (any(everybody(1:ranks) /= [(i, i=0, ranks - 1)])) call MPI_Abort(MPI_COMM_WORLD, 9, error)
    call MPI_Alltoall(spread(rank, 1, ranks), 1, MPI_INTEGER, everybody, 1, MPI_INTEGER, MPI_COMM_WORLD, error)
    if (any(everybody(1:ranks) /= [(i, i=0, ranks - 1)])) call MPI_Abort(MPI_COMM_WORLD, 10, error)
    call MPI_Scan(1, i, 1, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD, error)
    if (i /= rank + 1) call MPI_Abort(MPI_COMM_WORLD, 11, error)
    i = 1
    call MPI_Exscan(MPI_IN_PLACE, i, 1, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD, error)
    if (i /= max(rank, 1)) call MPI_Abort(MPI_COMM_WORLD, 12, error)
    call MPI_Reduce_scatter_block(everybody, i, 1, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD, error)
    if (i /= ranks * rank) call MPI_Abort(MPI_COMM_WORLD, 13, error)
    ! Rank r has r + 1 elements, one behind another.
    parts = [(i, i=1, ranks)]
    places = [(i * (i + 1) / 2, i=0, ranks - 1)]
    numbers = rank
    do root = 0, ranks - 1
      everybody = -1
      call MPI_Gatherv(numbers, rank + 1, MPI_INTEGER, everybody, parts, places, MPI_INTEGER, root, MPI_COMM_WORLD, error)
      do i = 1, ranks
        if (rank == root .and. any(everybody(places(i) + 1:places(i) + i) /= i - 1)) &
          call MPI_Abort(MPI_COMM_WORLD, 14, error)
      end do
      total = -1
      call MPI_Scatterv(everybody, parts, places, MPI_INTEGER, total, rank + 1, MPI_INTEGER, root, MPI_COMM_WORLD, error)
      if (any(total(1:rank + 1) /= rank)) call MPI_Abort(MPI_COMM_WORLD, 15, error)
    end do
    everybody = -1
    everybody(places(rank + 1) + 1:places(rank + 1) + rank + 1) = rank
    call MPI_Allgatherv(MPI_IN_PLACE, 0, MPI_INTEGER, everybody, parts, places, MPI_INTEGER, MPI_COMM_WORLD, error)
    do i = 1, ranks
      if (any(everybody(places(i) + 1:places(i) + i) /= i - 1)) call MPI_Abort(MPI_COMM_WORLD, 16, error)
    end do
    call MPI_Reduce_scatter(everybody, total, parts, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD, error)
    if (any(total(1:rank + 1) /= ranks * rank)) call MPI_Abort(MPI_COMM_WORLD, 17, error)
    numbers = rank
    mine_of = rank + 1
    call MPI_Alltoallv(numbers, parts, places, MPI_INTEGER, everybody, mine_of, mine_of * [(i, i=0, ranks - 1)], &
                       MPI_INTEGER, MPI_COMM_WORLD, error)
    do i = 0, ranks - 1
      if (any(everybody(i * (rank + 1) + 1:(i + 1) * (rank + 1)) /= i)) call MPI_Abort(MPI_COMM_WORLD, 18, error)
    end do
    call MPI_Barrier(MPI_COMM_WORLD, error)
  end do
  print '(a,i0)', 'done ', rank
  call MPI_Finalize(error)
end program all
