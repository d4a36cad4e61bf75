//! The functions of an MPI, by their profiling names, found in the running process.
//!
//! No header and no library of an MPI takes part in building this: a handle travels as a machine word,
//! which is what both kinds of MPI pass (Open MPI a pointer, MPICH a C `int` in the low half).

use super::arguments::arguments;
use super::arguments::small::*;
use super::arguments::{Buffer, Handle};
use std::ffi::{CStr, c_char, c_int, c_void};

/// Copies an attribute to a duplicate of its communicator.
pub type CopyAttribute = extern "C" fn(Handle, c_int, Buffer, Buffer, Buffer, *mut c_int) -> c_int;
/// Told that an attribute's communicator is freed.
pub type DeleteAttribute = extern "C" fn(Handle, c_int, Buffer, Buffer) -> c_int;

/// Looks a name up: a pointer to the function, or null.
pub(crate) type Lookup<'a> = &'a dyn Fn(&CStr) -> *mut c_void;

/// The type of a function with these arguments.
macro_rules! signature {
    ([$($argument:ident: $type:ty),*] $given:tt) => { unsafe extern "C" fn($($type),*) -> c_int };
}

/// The table: each function with its profiling name and its type.
macro_rules! functions {
    ($($name:ident = $symbol:expr, $type:ty;)*) => {
        /// The functions that are called, by their names without `PMPI_`.
        #[derive(Clone, Copy, Debug)]
        #[expect(missing_docs, reason = "each is the function of the MPI standard of that name")]
        pub struct Functions {
            $( pub $name: $type, )*
        }

        impl Functions {
            /// All of them, or the name of one that is missing.
            pub(super) fn find(lookup: Lookup<'_>) -> Result<Self, &'static str> {
                Ok(Self { $( $name: one::$name(lookup).ok_or(stringify!($name))?, )* })
            }
        }

        /// Each of them by itself, where it is there.
        pub(crate) mod one {
            use super::*;

            $( pub(crate) fn $name(lookup: Lookup<'_>) -> Option<$type> {
                // SAFETY: a function of this name takes these arguments in every MPI that
                // `Flavour` has (MPI 3.0, appendix A.2), handles as words; in any other it is handed
                // what its own caller passed, in the same registers. A null one becomes none.
                unsafe { std::mem::transmute::<*mut c_void, Option<$type>>(lookup($symbol)) }
            } )*
        }
    };
}

/// What else is called, and the collectives of the table.
macro_rules! with_others {
    ($(
        $(#[$doc:meta])* $kind:ident $(($with:ident))? {
            names: $name:ident $fortran:ident $c:ident $mpi:ident,
            takes: $($takes:ident)+,
            $($rest:tt)*
        }
    )*) => {
        functions! {
            initialized = c"PMPI_Initialized", unsafe extern "C" fn(*mut c_int) -> c_int;
            init = c"PMPI_Init", unsafe extern "C" fn(*mut c_int, *mut c_void) -> c_int;
            finalize = c"PMPI_Finalize", unsafe extern "C" fn() -> c_int;
            query_thread = c"PMPI_Query_thread", unsafe extern "C" fn(*mut c_int) -> c_int;
            library_version = c"PMPI_Get_library_version",
                unsafe extern "C" fn(*mut c_char, *mut c_int) -> c_int;
            comm_size = c"PMPI_Comm_size", unsafe extern "C" fn(Handle, *mut c_int) -> c_int;
            comm_rank = c"PMPI_Comm_rank", unsafe extern "C" fn(Handle, *mut c_int) -> c_int;
            comm_test_inter = c"PMPI_Comm_test_inter",
                unsafe extern "C" fn(Handle, *mut c_int) -> c_int;
            comm_split = c"PMPI_Comm_split",
                unsafe extern "C" fn(Handle, c_int, c_int, *mut Handle) -> c_int;
            comm_split_type = c"PMPI_Comm_split_type",
                unsafe extern "C" fn(Handle, c_int, c_int, Handle, *mut Handle) -> c_int;
            comm_free = c"PMPI_Comm_free", unsafe extern "C" fn(*mut Handle) -> c_int;
            comm_create_keyval = c"PMPI_Comm_create_keyval",
                unsafe extern "C" fn(CopyAttribute, DeleteAttribute, *mut c_int, Buffer) -> c_int;
            comm_set_attr = c"PMPI_Comm_set_attr",
                unsafe extern "C" fn(Handle, c_int, Buffer) -> c_int;
            comm_call_errhandler = c"PMPI_Comm_call_errhandler",
                unsafe extern "C" fn(Handle, c_int) -> c_int;
            add_error_class = c"PMPI_Add_error_class", unsafe extern "C" fn(*mut c_int) -> c_int;
            add_error_code = c"PMPI_Add_error_code",
                unsafe extern "C" fn(c_int, *mut c_int) -> c_int;
            add_error_string = c"PMPI_Add_error_string",
                unsafe extern "C" fn(c_int, *const c_char) -> c_int;
            type_size = c"PMPI_Type_size", unsafe extern "C" fn(Handle, *mut c_int) -> c_int;
            type_get_extent = c"PMPI_Type_get_extent",
                unsafe extern "C" fn(Handle, *mut isize, *mut isize) -> c_int;
            type_vector = c"PMPI_Type_vector",
                unsafe extern "C" fn(c_int, c_int, c_int, Handle, *mut Handle) -> c_int;
            type_commit = c"PMPI_Type_commit", unsafe extern "C" fn(*mut Handle) -> c_int;
            type_free = c"PMPI_Type_free", unsafe extern "C" fn(*mut Handle) -> c_int;
            type_get_true_extent = c"PMPI_Type_get_true_extent",
                unsafe extern "C" fn(Handle, *mut isize, *mut isize) -> c_int;
            reduce_local = c"PMPI_Reduce_local",
                unsafe extern "C" fn(Buffer, Buffer, c_int, Handle, Handle) -> c_int;
            pack = c"PMPI_Pack",
                unsafe extern "C" fn(Buffer, c_int, Handle, Buffer, c_int, *mut c_int, Handle) -> c_int;
            unpack = c"PMPI_Unpack",
                unsafe extern "C" fn(Buffer, c_int, *mut c_int, Buffer, c_int, Handle, Handle) -> c_int;
            iprobe = c"PMPI_Iprobe",
                unsafe extern "C" fn(c_int, c_int, Handle, *mut c_int, Buffer) -> c_int;
            gatherv = c"PMPI_Gatherv", arguments!([signature] gathers root);
            scatterv = c"PMPI_Scatterv", arguments!([signature] scatters root);
            allgatherv = c"PMPI_Allgatherv", arguments!([signature] gathers);
            alltoallv = c"PMPI_Alltoallv", arguments!([signature] exchanges);
            reduce_scatter = c"PMPI_Reduce_scatter", arguments!([signature] parts);
            $( $name = profiling(concat!("P", stringify!($mpi), "\0")), arguments!([signature] $($takes)+); )*
        }
    };
}

/// A name that ends with a zero byte.
pub(crate) const fn profiling(name: &'static str) -> &'static CStr {
    match CStr::from_bytes_with_nul(name.as_bytes()) {
        Ok(name) => name,
        Err(_) => panic!("made by `concat!` with one zero byte, at the end"),
    }
}

isochrone_cla::each_collective!(with_others);
