//! The names that C programs call.

use crate::abi::{Buffer, Handle, one};
use crate::{collectives, world};
use std::ffi::c_int;

/// What is returned where a process has no MPI at all and calls one of its functions all the same: every MPI
/// has a code of this number, and none takes it for success.
const NO_MPI: c_int = 16;

/// Calls the MPI's own function, of one that is not known as well.
macro_rules! mpis {
    ($name:ident ( $($argument:expr),* )) => {
        match world::mpi() {
            // SAFETY: the caller's arguments, as they came.
            Some(mpi) => unsafe { (mpi.functions().$name)($($argument),*) },
            None => match one::$name(&world::of_a_stranger) {
                // SAFETY: as above.
                Some(function) => unsafe { function($($argument),*) },
                None => NO_MPI,
            },
        }
    };
}

/// `MPI_Bcast`.
///
/// # Safety
/// As in MPI.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn MPI_Bcast(
    buffer: Buffer,
    count: c_int,
    kind: Handle,
    root: c_int,
    comm: Handle,
) -> c_int {
    match collectives::bcast(buffer, count.into(), kind, root, comm) {
        Some(code) => code,
        None => mpis!(bcast(buffer, count, kind, root, comm)),
    }
}

/// `MPI_Barrier`.
///
/// # Safety
/// As in MPI.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn MPI_Barrier(comm: Handle) -> c_int {
    match collectives::barrier(comm) {
        Some(code) => code,
        None => mpis!(barrier(comm)),
    }
}

/// `MPI_Reduce`.
///
/// # Safety
/// As in MPI.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn MPI_Reduce(
    send: Buffer,
    receive: Buffer,
    count: c_int,
    kind: Handle,
    operation: Handle,
    root: c_int,
    comm: Handle,
) -> c_int {
    match collectives::reduce(send, receive, count.into(), (kind, operation), root, comm) {
        Some(code) => code,
        None => mpis!(reduce(send, receive, count, kind, operation, root, comm)),
    }
}

/// `MPI_Allreduce`.
///
/// # Safety
/// As in MPI.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn MPI_Allreduce(
    send: Buffer,
    receive: Buffer,
    count: c_int,
    kind: Handle,
    operation: Handle,
    comm: Handle,
) -> c_int {
    match collectives::allreduce(send, receive, count.into(), (kind, operation), comm) {
        Some(code) => code,
        None => mpis!(allreduce(send, receive, count, kind, operation, comm)),
    }
}

/// Exports a collective that moves blocks, with a root or without.
macro_rules! blocks {
    ($name:ident, $function:ident $(, $root:ident)?) => {
        #[doc = concat!("`", stringify!($name), "`.")]
        ///
        /// # Safety
        /// As in MPI.
        #[unsafe(no_mangle)]
        #[allow(clippy::too_many_arguments, reason = "MPI's")]
        pub unsafe extern "C" fn $name(
            send: Buffer,
            sends: c_int,
            sent: Handle,
            receive: Buffer,
            receives: c_int,
            received: Handle,
            $($root: c_int,)?
            comm: Handle,
        ) -> c_int {
            let sides = ((send, sends.into(), sent), (receive, receives.into(), received));
            match collectives::$function(sides.0, sides.1, $($root,)? comm) {
                Some(code) => code,
                None => mpis!(
                    $function(send, sends, sent, receive, receives, received, $($root,)? comm)
                ),
            }
        }
    };
}

blocks!(MPI_Scatter, scatter, root);
blocks!(MPI_Gather, gather, root);
blocks!(MPI_Allgather, allgather);

/// `MPI_Finalize`.
///
/// # Safety
/// As in MPI.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn MPI_Finalize() -> c_int {
    world::finish();
    mpis!(finalize())
}
