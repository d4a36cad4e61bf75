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

/// Exports a collective by what it takes in the table of collectives.
macro_rules! export {
    ($name:ident $mpi:ident (buffer $root:ident)) => {
        #[doc = concat!("`", stringify!($mpi), "`.")]
        ///
        /// # Safety
        /// As in MPI.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $mpi(
            buffer: Buffer,
            count: c_int,
            kind: Handle,
            $root: c_int,
            comm: Handle,
        ) -> c_int {
            match collectives::$name(buffer, count.into(), kind, $root, comm) {
                Some(code) => code,
                None => mpis!($name(buffer, count, kind, $root, comm)),
            }
        }
    };
    ($name:ident $mpi:ident (nothing)) => {
        #[doc = concat!("`", stringify!($mpi), "`.")]
        ///
        /// # Safety
        /// As in MPI.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $mpi(comm: Handle) -> c_int {
            match collectives::$name(comm) {
                Some(code) => code,
                None => mpis!($name(comm)),
            }
        }
    };
    ($name:ident $mpi:ident (elements $($root:ident)?)) => {
        #[doc = concat!("`", stringify!($mpi), "`.")]
        ///
        /// # Safety
        /// As in MPI.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $mpi(
            send: Buffer,
            receive: Buffer,
            count: c_int,
            kind: Handle,
            operation: Handle,
            $($root: c_int,)?
            comm: Handle,
        ) -> c_int {
            match collectives::$name(send, receive, count.into(), kind, operation, $($root,)? comm) {
                Some(code) => code,
                None => mpis!($name(send, receive, count, kind, operation, $($root,)? comm)),
            }
        }
    };
    ($name:ident $mpi:ident (blocks $($root:ident)?)) => {
        #[doc = concat!("`", stringify!($mpi), "`.")]
        ///
        /// # Safety
        /// As in MPI.
        #[unsafe(no_mangle)]
        #[allow(clippy::too_many_arguments, reason = "MPI's")]
        pub unsafe extern "C" fn $mpi(
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
            match collectives::$name(sides.0, sides.1, $($root,)? comm) {
                Some(code) => code,
                None => mpis!(
                    $name(send, sends, sent, receive, receives, received, $($root,)? comm)
                ),
            }
        }
    };
}

macro_rules! exports {
    ($(
        $(#[$doc:meta])* $kind:ident $(($with:ident))? {
            names: $name:ident $fortran:ident $c:ident $mpi:ident,
            takes: $($takes:ident)+,
            $($rest:tt)*
        }
    )*) => {
        $( export!($name $mpi ($($takes)+)); )*
    };
}
isochrone_cla::each_collective!(exports);

/// `MPI_Finalize`.
///
/// # Safety
/// As in MPI.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn MPI_Finalize() -> c_int {
    world::finish();
    mpis!(finalize())
}
