//! The names that C programs call.

use crate::abi::small::*;
use crate::abi::{Buffer, arguments, each_uneven, one};
use crate::collectives::{self, Elements, Sides};
use crate::world::{self, NO_MPI};
use std::ffi::c_int;

/// Calls the function that comes after this one: a tool's that was preloaded as well, or the MPI's own. Of an MPI that
/// is not known always its own.
macro_rules! mpis {
    ($name:ident ( $($argument:expr),* )) => {
        match world::mpi() {
            // SAFETY: the caller's arguments, as they came.
            Some(mpi) => unsafe { (mpi.next().$name)($($argument),*) },
            None => match one::$name(&world::function) {
                // SAFETY: as above.
                Some(function) => unsafe { function($($argument),*) },
                None => NO_MPI,
            },
        }
    };
}

/// Exports a collective under its name.
macro_rules! export {
    ($name:ident $mpi:ident [$($argument:ident: $type:ty),*] [$($given:tt)*]) => {
        #[doc = concat!("`", stringify!($mpi), "`.")]
        ///
        /// # Safety
        /// As in MPI.
        #[unsafe(no_mangle)]
        #[allow(clippy::too_many_arguments, reason = "MPI's")]
        pub unsafe extern "C" fn $mpi($($argument: $type),*) -> c_int {
            match collectives::$name($($given)*) {
                Some(code) => code,
                None => mpis!($name($($argument),*)),
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
        $( arguments!([export $name $mpi] $($takes)+); )*
    };
}
isochrone_cla::each_collective!(exports);
each_uneven!(exports);

/// `MPI_Finalize`.
///
/// # Safety
/// As in MPI.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn MPI_Finalize() -> c_int {
    world::finish();
    mpis!(finalize())
}
