//! What collectives are called with: each family of arguments once, for the types of functions, the exported names and
//! Fortran's.
//!
//! The types of counts are names that whoever uses a family has in scope: those of [`small`] or of [`large`].

use std::ffi::{c_int, c_void};

/// A handle of an MPI object, as it is passed: see [`super::Mpi::handle`].
pub type Handle = usize;
/// A caller's buffer.
pub type Buffer = *mut c_void;

/// Hands a family's arguments on: `$then!` gets what stands before, the arguments with their types, and with what the
/// function of the same name in `collectives` is called.
macro_rules! arguments {
    ([$then:ident $($before:tt)*] nothing) => {
        $then! {$($before)* [group: Comm] [group] }
    };
    ([$then:ident $($before:tt)*] buffer $root:ident) => {
        $then! {
            $($before)*
            [buffer: Buffer, count: Count, handle: Type, root: Root, group: Comm]
            [buffer, count.into(), handle, root, group]
        }
    };
    ([$then:ident $($before:tt)*] elements $($root:ident)?) => {
        $crate::abi::arguments! {
            @rooted [$then $($before)*] [$($root)?]
            [send: Buffer, receive: Buffer, count: Count, handle: Type, operation: Op]
            [Elements { send, receive, count: count.into(), handle, operation }]
        }
    };
    ([$then:ident $($before:tt)*] blocks $($root:ident)?) => {
        $crate::abi::arguments! {
            @rooted [$then $($before)*] [$($root)?]
            [send: Buffer, sends: Count, sent: Type, receive: Buffer, receives: Count, received: Type]
            [(send, sends.into(), sent), (receive, receives.into(), received)]
        }
    };
    ([$then:ident $($before:tt)*] gathers $($root:ident)?) => {
        $crate::abi::arguments! {
            @rooted [$then $($before)*] [$($root)?]
            [
                send: Buffer, sends: Count, sent: Type,
                receive: Buffer, receives: Counts, places: Places, received: Type
            ]
            [(send, sends.into(), sent), Sides::of(receive, receives, places, received)]
        }
    };
    ([$then:ident $($before:tt)*] scatters $root:ident) => {
        $crate::abi::arguments! {
            @rooted [$then $($before)*] [$root]
            [
                send: Buffer, sends: Counts, places: Places, sent: Type,
                receive: Buffer, receives: Count, received: Type
            ]
            [Sides::of(send, sends, places, sent), (receive, receives.into(), received)]
        }
    };
    ([$then:ident $($before:tt)*] exchanges) => {
        $then! {
            $($before)*
            [
                send: Buffer, sends: Counts, places: Places, sent: Type,
                receive: Buffer, receives: Counts, spaces: Places, received: Type, group: Comm
            ]
            [
                Sides::of(send, sends, places, sent),
                Sides::of(receive, receives, spaces, received),
                group
            ]
        }
    };
    ([$then:ident $($before:tt)*] parts) => {
        $then! {
            $($before)*
            [send: Buffer, receive: Buffer, counts: Counts, handle: Type, operation: Op, group: Comm]
            [Elements { send, receive, count: 0, handle, operation }, counts.into(), group]
        }
    };
    (
        @rooted [$then:ident $($before:tt)*] [$root:ident] [$($arguments:tt)*] [$($given:tt)*]
    ) => {
        $then! {
            $($before)* [$($arguments)*, root: Root, group: Comm] [$($given)*, root, group]
        }
    };
    (@rooted [$then:ident $($before:tt)*] [] [$($arguments:tt)*] [$($given:tt)*]) => {
        $then! {$($before)* [$($arguments)*, group: Comm] [$($given)*, group] }
    };
}
pub(crate) use arguments;

/// Calls the macro `$make` with the collectives whose ranks have different counts, as rows of the table of collectives:
/// each is one of that table to everybody but its callers, and has no function in `isochrone.h`.
macro_rules! each_uneven {
    ($make:ident) => {
        $make! {
            Gather {
                names: gatherv GATHERV none MPI_Gatherv,
                takes: gathers root,
            }
            Scatter {
                names: scatterv SCATTERV none MPI_Scatterv,
                takes: scatters root,
            }
            Allgather {
                names: allgatherv ALLGATHERV none MPI_Allgatherv,
                takes: gathers,
            }
            Alltoall {
                names: alltoallv ALLTOALLV none MPI_Alltoallv,
                takes: exchanges,
            }
            ReduceScatter {
                names: reduce_scatter REDUCE_SCATTER none MPI_Reduce_scatter,
                takes: parts,
            }
        }
    };
}
pub(crate) use each_uneven;

/// What is the same whatever counts are.
pub(crate) mod any {
    use super::{Handle, c_int};

    /// A datatype.
    pub(crate) type Type = Handle;
    /// An operation.
    pub(crate) type Op = Handle;
    /// A communicator.
    pub(crate) type Comm = Handle;
    pub(crate) type Root = c_int;
}

/// Counts of an `int` (MPI 3.0, appendix A.2).
pub(crate) mod small {
    pub(crate) use super::any::*;
    use super::c_int;

    pub(crate) type Count = c_int;
    pub(crate) type Counts = *const c_int;
    /// Places of blocks, in elements.
    pub(crate) type Places = *const c_int;
}

/// Counts of 64 bits (MPI 4.0, appendix A.2).
pub(crate) mod large {
    pub(crate) use super::any::*;

    pub(crate) type Count = i64;
    pub(crate) type Counts = *const i64;
    /// Places of blocks, in elements.
    pub(crate) type Places = *const isize;
}
