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
            None => match one::$name(&world::function) {
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

/// Functions with large counts, `MPI_Bcast_c` and its like: mpi4py calls them wherever an MPI has them. One that has
/// none is asked by its function with small counts.
pub mod large {
    use super::{Buffer, Handle, NO_MPI, c_int, collectives, world};
    use crate::abi::{Large, one};
    use std::sync::OnceLock;

    /// `MPI_ERR_COUNT`, the same in every ABI.
    const COUNT: c_int = 2;

    fn large() -> &'static Large {
        static LARGE: OnceLock<Large> = OnceLock::new();
        LARGE.get_or_init(|| Large::find(&world::function))
    }

    /// Calls the MPI's own function. What it counts comes first, in the order of its arguments.
    macro_rules! mpis {
        ($name:ident ($($count:ident),*) ($($argument:expr),*)) => {{
            if let Some(function) = large().$name {
                // SAFETY: the caller's arguments, as they came.
                return unsafe { function($($argument),*) };
            }
            $( let Ok($count) = c_int::try_from($count) else { return COUNT }; )*
            match one::$name(&world::function) {
                // SAFETY: as above.
                Some(function) => unsafe { function($($argument),*) },
                None => NO_MPI,
            }
        }};
    }

    macro_rules! export {
        ($name:ident $mpi:ident (nothing)) => {};
        ($name:ident $mpi:ident (buffer $root:ident)) => {
            /// The function of MPI of the name that is exported.
            ///
            /// # Safety
            /// As in MPI.
            #[unsafe(export_name = concat!(stringify!($mpi), "_c"))]
            pub unsafe extern "C" fn $name(
                buffer: Buffer,
                count: i64,
                kind: Handle,
                $root: c_int,
                comm: Handle,
            ) -> c_int {
                match collectives::$name(buffer, count, kind, $root, comm) {
                    Some(code) => code,
                    None => mpis!($name (count) (buffer, count, kind, $root, comm)),
                }
            }
        };
        ($name:ident $mpi:ident (elements $($root:ident)?)) => {
            /// The function of MPI of the name that is exported.
            ///
            /// # Safety
            /// As in MPI.
            #[unsafe(export_name = concat!(stringify!($mpi), "_c"))]
            pub unsafe extern "C" fn $name(
                send: Buffer,
                receive: Buffer,
                count: i64,
                kind: Handle,
                operation: Handle,
                $($root: c_int,)?
                comm: Handle,
            ) -> c_int {
                match collectives::$name(send, receive, count, kind, operation, $($root,)? comm) {
                    Some(code) => code,
                    None => mpis!(
                        $name (count) (send, receive, count, kind, operation, $($root,)? comm)
                    ),
                }
            }
        };
        ($name:ident $mpi:ident (blocks $($root:ident)?)) => {
            /// The function of MPI of the name that is exported.
            ///
            /// # Safety
            /// As in MPI.
            #[unsafe(export_name = concat!(stringify!($mpi), "_c"))]
            #[allow(clippy::too_many_arguments, reason = "MPI's")]
            pub unsafe extern "C" fn $name(
                send: Buffer,
                sends: i64,
                sent: Handle,
                receive: Buffer,
                receives: i64,
                received: Handle,
                $($root: c_int,)?
                comm: Handle,
            ) -> c_int {
                let sides = ((send, sends, sent), (receive, receives, received));
                match collectives::$name(sides.0, sides.1, $($root,)? comm) {
                    Some(code) => code,
                    None => mpis!(
                        $name (sends, receives)
                        (send, sends, sent, receive, receives, received, $($root,)? comm)
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
}
