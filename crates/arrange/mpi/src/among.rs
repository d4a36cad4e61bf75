//! What the ranks of a communicator say to one another by the MPI, and how one of our own is given back.

use crate::abi::{Handle, Mpi};
use std::ffi::c_int;

/// The smallest of what all ranks of `comm` say, number by number.
pub(crate) fn least<const N: usize>(
    mpi: &Mpi,
    comm: Handle,
    mine: [c_int; N],
) -> Option<[c_int; N]> {
    let mut all = [0; N];
    let (mine, place) = ((&raw const mine).cast_mut().cast(), (&raw mut all).cast());
    let count = c_int::try_from(N).unwrap_or(0);
    let allreduce = mpi.functions().allreduce;
    // SAFETY: so many ints each, of a communicator on which all ranks make this call now.
    let failed = unsafe { allreduce(mine, place, count, mpi.int(), mpi.min(), comm) };
    (failed == 0).then_some(all)
}

/// Whether all ranks of `comm` say yes.
pub(crate) fn all(mpi: &Mpi, comm: Handle, mine: bool) -> bool {
    least(mpi, comm, [c_int::from(mine)]) == Some([1])
}

/// Gives back a communicator of our own.
pub(crate) fn free(mpi: &Mpi, comm: &mut Handle) {
    // SAFETY: a communicator of our own, which nobody uses any more; all its ranks free it.
    let _freed = unsafe { (mpi.functions().comm_free)(comm) };
}
