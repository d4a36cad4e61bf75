//! Functions with large counts, `MPI_Bcast_c` and its like: mpi4py calls them wherever an MPI has them. One that has
//! none is asked by its function with small counts.

use crate::abi::large::*;
use crate::abi::{Buffer, arguments, each_uneven, one, profiling};
use crate::collectives::{self, Elements, Sides};
use crate::world::{self, NO_MPI};
use std::ffi::{c_int, c_void};
use std::sync::OnceLock;

/// `MPI_ERR_COUNT`, the same in every ABI.
const COUNT: c_int = 2;

/// Numbers for a function with small counts.
enum Narrow {
    Numbers(Vec<c_int>),
    /// An address at which nobody looks.
    AsItCame(*const c_int),
}

impl Narrow {
    /// `ranks` numbers, if they are small.
    fn of<T: Copy + TryInto<c_int>>(first: *const T, ranks: usize) -> Option<Self> {
        if first.is_null() || ranks == 0 {
            return Some(Self::AsItCame(first.cast()));
        }
        // SAFETY: MPI asks for a number for each rank.
        let number = |rank| unsafe { first.wrapping_add(rank).read() }.try_into().ok();
        Some(Self::Numbers((0..ranks).map(number).collect::<Option<_>>()?))
    }

    fn first(&self) -> *const c_int {
        match self {
            Self::Numbers(numbers) => numbers.as_ptr(),
            Self::AsItCame(first) => *first,
        }
    }
}

/// How many numbers a list of a call on `group` has: at other ranks than the root nobody looks at it.
fn listed(group: Comm, root: Option<c_int>) -> usize {
    let ask = |function: Option<unsafe extern "C" fn(Comm, *mut c_int) -> c_int>| {
        let mut answer = 0;
        // SAFETY: the caller's communicator, which its MPI checks, and a place for the answer.
        let failed =
            function.is_none_or(|function| unsafe { function(group, &raw mut answer) } != 0);
        if failed { 0 } else { answer }
    };
    let rank = ask(one::comm_rank(&world::function));
    if root.is_some_and(|root| root != rank) {
        return 0;
    }
    usize::try_from(ask(one::comm_size(&world::function))).unwrap_or(0)
}

/// How many numbers lists have, by the last arguments.
macro_rules! listed {
    ([$($all:tt)*]) => {
        listed!($($all)*)
    };
    ($root:ident: Root, $group:ident: Comm) => { listed($group, Some($root)) };
    ($group:ident: Comm) => { listed($group, None) };
    ($first:ident: $type:ident, $($rest:tt)*) => { listed!($($rest)*) };
}

/// Makes a large argument a small one, or ends with an error.
macro_rules! narrow {
    (Count $argument:ident $all:tt) => {
        let Ok($argument) = c_int::try_from($argument) else { return COUNT };
    };
    (Counts $argument:ident $all:tt) => {
        let Some($argument) = Narrow::of($argument, listed!($all)) else { return COUNT };
    };
    (Places $argument:ident $all:tt) => { narrow!(Counts $argument $all) };
    ($other:ident $argument:ident $all:tt) => {};
}

/// What is passed of it.
macro_rules! narrowed {
    (Counts $argument:ident) => {
        $argument.first()
    };
    (Places $argument:ident) => {
        $argument.first()
    };
    ($other:ident $argument:ident) => {
        $argument
    };
}

macro_rules! export {
    // It counts nothing.
    ($name:ident $mpi:ident [group: Comm] $given:tt) => {};
    ($name:ident $mpi:ident $all:tt $given:tt) => {
        export! { @with $all $name $mpi $all $given }
    };
    (
        @with $all:tt $name:ident $mpi:ident [$($argument:ident: $type:ident),*] [$($given:tt)*]
    ) => {
        /// The function of MPI of the name that is exported.
        ///
        /// # Safety
        /// As in MPI.
        #[unsafe(export_name = concat!(stringify!($mpi), "_c"))]
        #[allow(clippy::too_many_arguments, reason = "MPI's")]
        pub unsafe extern "C" fn $name($($argument: $type),*) -> c_int {
            type Own = unsafe extern "C" fn($($type),*) -> c_int;
            static OWN: OnceLock<Option<Own>> = OnceLock::new();
            if let Some(code) = collectives::$name($($given)*) {
                return code;
            }
            let own = OWN.get_or_init(|| {
                let found = world::function(profiling(concat!("P", stringify!($mpi), "_c\0")));
                // SAFETY: a function of this name takes these arguments in every MPI (MPI 4.0, appendix A.2), handles
                // as words. A null one becomes none.
                unsafe { std::mem::transmute::<*mut c_void, Option<Own>>(found) }
            });
            if let Some(own) = own {
                // SAFETY: the caller's arguments, as they came.
                return unsafe { own($($argument),*) };
            }
            $( narrow!($type $argument $all); )*
            match one::$name(&world::function) {
                // SAFETY: as above.
                Some(own) => unsafe { own($(narrowed!($type $argument)),*) },
                None => NO_MPI,
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
