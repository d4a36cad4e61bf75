//! The names that Fortran programs call.
//!
//! MPICH's Fortran library calls the C names, which are ours already, so there its own functions are
//! called. Open MPI's calls the profiling names past us, so its arguments are made C's here: handles by
//! `MPI_Comm_f2c` and its like, `MPI_IN_PLACE` and `MPI_BOTTOM` by the addresses of their common blocks.
//! Its module `mpi_f08` calls `ompi_bcast_f` and the like, which are exported too.

use crate::abi::{Flavour, Handle, Mpi, arguments, each_uneven};
use crate::{exports, world};
use std::ffi::{CStr, c_int, c_void};
use std::ptr::null_mut;
use std::sync::OnceLock;

/// Any argument of Fortran: all are addresses.
type Place = *mut c_void;
/// A Fortran `INTEGER`.
type Integer = c_int;

/// What turns Fortran's arguments into C's, in Open MPI.
struct Translation {
    comm: unsafe extern "C" fn(Integer) -> Handle,
    kind: unsafe extern "C" fn(Integer) -> Handle,
    operation: unsafe extern "C" fn(Integer) -> Handle,
    in_place: Vec<usize>,
    bottom: Vec<usize>,
}

impl Translation {
    fn of(mpi: &Mpi) -> Option<Self> {
        let convert = |name: &CStr| {
            let found = mpi.symbol(name);
            // SAFETY: a function of this name takes a Fortran integer and returns a handle, which is a
            // pointer in Open MPI (MPI 3.0, section 17.2.4); a null one becomes none.
            unsafe {
                std::mem::transmute::<Place, Option<unsafe extern "C" fn(Integer) -> Handle>>(found)
            }
        };
        let blocks = |names: [&CStr; 4]| {
            names
                .iter()
                .map(|name| mpi.symbol(name).expose_provenance())
                .filter(|place| *place != 0)
                .collect()
        };
        Some(Self {
            comm: convert(c"PMPI_Comm_f2c")?,
            kind: convert(c"PMPI_Type_f2c")?,
            operation: convert(c"PMPI_Op_f2c")?,
            in_place: blocks([
                c"mpi_fortran_in_place_",
                c"mpi_fortran_in_place",
                c"mpi_fortran_in_place__",
                c"MPI_FORTRAN_IN_PLACE",
            ]),
            bottom: blocks([
                c"mpi_fortran_bottom_",
                c"mpi_fortran_bottom",
                c"mpi_fortran_bottom__",
                c"MPI_FORTRAN_BOTTOM",
            ]),
        })
    }

    fn buffer(&self, mpi: &Mpi, place: Place) -> Place {
        let address = place.addr();
        if self.in_place.contains(&address) {
            mpi.in_place()
        } else if self.bottom.contains(&address) {
            std::ptr::null_mut()
        } else {
            place
        }
    }
}

/// The translation, where it is this library that has to translate.
fn translation() -> Option<(&'static Mpi, &'static Translation)> {
    static TRANSLATION: OnceLock<Option<Translation>> = OnceLock::new();
    let mpi = world::mpi()?;
    let here = || Translation::of(mpi).filter(|_| mpi.flavour() == Flavour::OpenMpi);
    Some((mpi, TRANSLATION.get_or_init(here).as_ref()?))
}

/// The function of this name in the MPI's own Fortran library.
fn next(name: &CStr) -> Place {
    // SAFETY: looks through the libraries after this one.
    unsafe { libc::dlsym(libc::RTLD_NEXT, name.as_ptr()) }
}

/// An integer that Fortran passes.
///
/// # Safety
/// `place` is a Fortran `INTEGER`.
unsafe fn integer(place: Place) -> Integer {
    // SAFETY: the caller vouches for it.
    unsafe { place.cast::<Integer>().read() }
}

/// Exports one function under the names that Fortran compilers give it and the one that Open MPI's
/// `mpi_f08` calls. It is named in small letters and in capitals; the last part is Open MPI's call in C.
macro_rules! fortran {
    (
        $name:ident $capitals:ident, $arguments:tt, |$mpi:ident, $with:ident| $body:expr
    ) => {
        mod $name {
            #[allow(clippy::wildcard_imports, reason = "the body is written in the module above")]
            use super::*;

            fortran!(
                @call concat!("mpi_", stringify!($name), "_\0"), $arguments, |$mpi, $with| $body
            );
            fortran!(@export bare, concat!("mpi_", stringify!($name)), $arguments);
            fortran!(@export one_line, concat!("mpi_", stringify!($name), "_"), $arguments);
            fortran!(@export two_lines, concat!("mpi_", stringify!($name), "__"), $arguments);
            fortran!(@export capitals, concat!("MPI_", stringify!($capitals)), $arguments);
            fortran!(@export open_mpi, concat!("ompi_", stringify!($name), "_f"), $arguments);
        }
    };
    (@call $original:expr, ($($argument:ident),*), |$mpi:ident, $with:ident| $body:expr) => {
        /// # Safety
        /// As in MPI.
        #[allow(clippy::too_many_arguments, unused_variables, reason = "MPI's; none needs both")]
        unsafe fn call($($argument: Place,)* error: Place) {
            let Some(($mpi, $with)) = translation() else {
                type Function = unsafe extern "C" fn($(fortran!(@place $argument),)* Place);
                let found = CStr::from_bytes_with_nul($original.as_bytes()).map_or(null_mut(), next);
                // SAFETY: a function of this name takes these arguments, all by address.
                let function = unsafe { std::mem::transmute::<Place, Option<Function>>(found) };
                if let Some(function) = function {
                    // SAFETY: the caller's arguments, as they came.
                    unsafe { function($($argument,)* error) };
                }
                return;
            };
            #[allow(clippy::multiple_unsafe_ops_per_block, reason = "one call with its arguments")]
            // SAFETY: the caller's arguments as Fortran passes them (MPI 3.0, appendix A.4).
            let code: c_int = unsafe { $body };
            answer(error, code);
        }
    };
    (@export $function:ident, $export:expr, ($($argument:ident),*)) => {
        /// The function of MPI of the name that is exported.
        ///
        /// # Safety
        /// As in MPI.
        #[unsafe(export_name = $export)]
        #[allow(clippy::too_many_arguments, reason = "MPI's")]
        unsafe extern "C" fn $function($($argument: Place,)* error: Place) {
            // SAFETY: the caller's arguments, as they came.
            unsafe { call($($argument,)* error) };
        }
    };
    (@place $argument:ident) => { Place };
}

/// An argument of C from the one of Fortran.
macro_rules! argument {
    ($mpi:ident $with:ident $place:ident Buffer) => {
        $with.buffer($mpi, $place)
    };
    ($mpi:ident $with:ident $place:ident Count) => {
        integer($place)
    };
    ($mpi:ident $with:ident $place:ident Root) => {
        integer($place)
    };
    ($mpi:ident $with:ident $place:ident Counts) => {
        $place.cast::<Integer>().cast_const()
    };
    ($mpi:ident $with:ident $place:ident Places) => {
        $place.cast::<Integer>().cast_const()
    };
    ($mpi:ident $with:ident $place:ident Type) => {
        ($with.kind)(integer($place))
    };
    ($mpi:ident $with:ident $place:ident Op) => {
        ($with.operation)(integer($place))
    };
    ($mpi:ident $with:ident $place:ident Comm) => {
        ($with.comm)(integer($place))
    };
}

/// The same for a collective.
macro_rules! collective {
    ($name:ident $capitals:ident $mpi:ident [$($argument:ident: $type:ident),*] $given:tt) => {
        fortran!(
            $name $capitals,
            ($($argument),*),
            |mpi, with| exports::$mpi($( argument!(mpi with $argument $type) ),*)
        );
    };
}

macro_rules! collectives {
    ($(
        $(#[$doc:meta])* $kind:ident $(($with:ident))? {
            names: $name:ident $capitals:ident $c:ident $mpi:ident,
            takes: $($takes:ident)+,
            $($rest:tt)*
        }
    )*) => {
        $( arguments!([collective $name $capitals $mpi] $($takes)+); )*
    };
}
isochrone_cla::each_collective!(collectives);
each_uneven!(collectives);

fortran!(finalize FINALIZE, (), |mpi, with| exports::MPI_Finalize());

/// `MPI_Barrier` of the module `mpi_f08`: a handle is a structure of one integer. MPICH's calls the
/// profiling name past us, unlike its other collectives.
///
/// # Safety
/// As in MPI.
#[unsafe(no_mangle)]
unsafe extern "C" fn mpi_barrier_f08_(group: Place, error: Place) {
    if world::mpi().is_none() {
        type Function = unsafe extern "C" fn(Place, Place);
        let found = next(c"mpi_barrier_f08_");
        // SAFETY: a function of this name takes these arguments, both by address.
        let function = unsafe { std::mem::transmute::<Place, Option<Function>>(found) };
        if let Some(function) = function {
            // SAFETY: the caller's arguments, as they came.
            unsafe { function(group, error) };
        }
        return;
    }
    // SAFETY: the structure's only member.
    let number = unsafe { integer(group) };
    let group = match translation() {
        // SAFETY: the MPI checks the handle.
        Some((_, with)) => unsafe { (with.comm)(number) },
        None => usize::from_ne_bytes(i64::from(number).to_ne_bytes()),
    };
    // SAFETY: the caller's communicator.
    answer(error, unsafe { exports::MPI_Barrier(group) });
}

/// `MPI_Finalize` of the module `mpi_f08`.
///
/// # Safety
/// As in MPI.
#[unsafe(no_mangle)]
unsafe extern "C" fn mpi_finalize_f08_(error: Place) {
    // SAFETY: as the caller asks.
    answer(error, unsafe { exports::MPI_Finalize() });
}

/// Gives an error code to whoever wants it.
fn answer(error: Place, code: c_int) {
    if !error.is_null() {
        // SAFETY: a Fortran integer for the answer; `mpi_f08` passes null where it is left out.
        unsafe { error.cast::<Integer>().write(code) };
    }
}
