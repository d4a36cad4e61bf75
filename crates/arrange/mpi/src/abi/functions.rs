//! The functions of an MPI, by their profiling names, found in the running process.
//!
//! No header and no library of an MPI takes part in building this: a handle travels as a machine word,
//! which is what both kinds of MPI pass (Open MPI a pointer, MPICH a C `int` in the low half).

use std::ffi::{CStr, c_char, c_int, c_void};

/// A handle of an MPI object, as it is passed: see [`super::Mpi::handle`].
pub type Handle = usize;
/// A caller's buffer.
pub type Buffer = *mut c_void;
/// Copies an attribute to a duplicate of its communicator.
pub type CopyAttribute = extern "C" fn(Handle, c_int, Buffer, Buffer, Buffer, *mut c_int) -> c_int;
/// Told that an attribute's communicator is freed.
pub type DeleteAttribute = extern "C" fn(Handle, c_int, Buffer, Buffer) -> c_int;

/// Looks a name up: a pointer to the function, or null.
pub(crate) type Lookup<'a> = &'a dyn Fn(&CStr) -> *mut c_void;

macro_rules! functions {
    ($($name:ident = $symbol:literal ( $($argument:ty),* ) ;)*) => {
        /// The functions that are called, by their names without `PMPI_`.
        #[derive(Clone, Copy, Debug)]
        #[expect(missing_docs, reason = "each is the function of the MPI standard of that name")]
        pub struct Functions {
            $( pub $name: unsafe extern "C" fn($($argument),*) -> c_int, )*
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

            $( pub(crate) fn $name(
                lookup: Lookup<'_>,
            ) -> Option<unsafe extern "C" fn($($argument),*) -> c_int> {
                // SAFETY: a function of this name takes these arguments in every MPI that
                // `Flavour` has (MPI 3.0, appendix A.2), handles as words; in any other it is handed
                // what its own caller passed, in the same registers. A null one becomes none.
                unsafe {
                    std::mem::transmute::<
                        *mut c_void,
                        Option<unsafe extern "C" fn($($argument),*) -> c_int>,
                    >(lookup($symbol))
                }
            } )*
        }
    };
}

functions! {
    initialized = c"PMPI_Initialized"(*mut c_int);
    init = c"PMPI_Init"(*mut c_int, *mut c_void);
    finalize = c"PMPI_Finalize"();
    query_thread = c"PMPI_Query_thread"(*mut c_int);
    library_version = c"PMPI_Get_library_version"(*mut c_char, *mut c_int);
    comm_size = c"PMPI_Comm_size"(Handle, *mut c_int);
    comm_rank = c"PMPI_Comm_rank"(Handle, *mut c_int);
    comm_test_inter = c"PMPI_Comm_test_inter"(Handle, *mut c_int);
    comm_split = c"PMPI_Comm_split"(Handle, c_int, c_int, *mut Handle);
    comm_split_type = c"PMPI_Comm_split_type"(Handle, c_int, c_int, Handle, *mut Handle);
    comm_free = c"PMPI_Comm_free"(*mut Handle);
    comm_create_keyval =
        c"PMPI_Comm_create_keyval"(CopyAttribute, DeleteAttribute, *mut c_int, Buffer);
    comm_set_attr = c"PMPI_Comm_set_attr"(Handle, c_int, Buffer);
    comm_call_errhandler = c"PMPI_Comm_call_errhandler"(Handle, c_int);
    add_error_class = c"PMPI_Add_error_class"(*mut c_int);
    add_error_code = c"PMPI_Add_error_code"(c_int, *mut c_int);
    add_error_string = c"PMPI_Add_error_string"(c_int, *const c_char);
    type_size = c"PMPI_Type_size"(Handle, *mut c_int);
    type_get_extent = c"PMPI_Type_get_extent"(Handle, *mut isize, *mut isize);
    type_vector = c"PMPI_Type_vector"(c_int, c_int, c_int, Handle, *mut Handle);
    type_commit = c"PMPI_Type_commit"(*mut Handle);
    type_free = c"PMPI_Type_free"(*mut Handle);
    pack = c"PMPI_Pack"(Buffer, c_int, Handle, Buffer, c_int, *mut c_int, Handle);
    unpack = c"PMPI_Unpack"(Buffer, c_int, *mut c_int, Buffer, c_int, Handle, Handle);
    iprobe = c"PMPI_Iprobe"(c_int, c_int, Handle, *mut c_int, Buffer);
    bcast = c"PMPI_Bcast"(Buffer, c_int, Handle, c_int, Handle);
    barrier = c"PMPI_Barrier"(Handle);
    reduce = c"PMPI_Reduce"(Buffer, Buffer, c_int, Handle, Handle, c_int, Handle);
    allreduce = c"PMPI_Allreduce"(Buffer, Buffer, c_int, Handle, Handle, Handle);
    scatter = c"PMPI_Scatter"(Buffer, c_int, Handle, Buffer, c_int, Handle, c_int, Handle);
    gather = c"PMPI_Gather"(Buffer, c_int, Handle, Buffer, c_int, Handle, c_int, Handle);
    allgather = c"PMPI_Allgather"(Buffer, c_int, Handle, Buffer, c_int, Handle, Handle);
}
