//! Collectives of a team: a function for each row of the table of collectives.

use crate::status::{Failure, told};
use crate::team::{IsochroneTeam, null, rank, with};
use isochrone_cla::collectives::Amount;
use isochrone_cla::live::{Kind, Reduction, Team};
use isochrone_cla::program::{Combine, Element};
use std::ffi::{c_int, c_void};

/// The elements of a reduction, by their numbers in C.
const ELEMENTS: [Element; 6] =
    [Element::I32, Element::I64, Element::U32, Element::U64, Element::F32, Element::F64];
/// What a reduction does, by its number in C.
const REDUCTIONS: [Reduction; 7] = [
    Reduction::Sum,
    Reduction::Product,
    Reduction::Min,
    Reduction::Max,
    Reduction::And,
    Reduction::Or,
    Reduction::Xor,
];
/// What collectives that combine nothing are given; they never look at it.
const NOTHING: Combine = Combine::Sum(Element::I32);

/// One collective over bytes.
///
/// # Safety
/// As for [`with`], and the buffers are valid for what the collective reads and writes.
#[inline]
unsafe fn call(
    team: *mut IsochroneTeam,
    kind: Kind,
    root: u32,
    bytes: usize,
    combine: Combine,
    send: *const c_void,
    receive: *mut c_void,
) -> c_int {
    let work = |team: &mut Team| {
        let root = rank(root)?;
        let (mut send, mut receive) = (send.cast::<u8>(), receive.cast::<u8>());
        if send.is_null() || receive.is_null() {
            needs_both(kind, bytes, team.rank() == root, (send.is_null(), receive.is_null()))?;
            // What is not touched has some address all the same.
            send = if send.is_null() { receive.cast_const() } else { send };
            receive = if receive.is_null() { send.cast_mut() } else { receive };
            if send.is_null() {
                (send, receive) = (std::ptr::dangling(), std::ptr::dangling_mut());
            }
        }
        // SAFETY: the caller vouches for the buffers.
        Ok(unsafe { team.call(kind, root, bytes, combine, send, receive) }?)
    };
    // SAFETY: the caller vouches for the handle.
    unsafe { with(team, work) }
}

/// Refuses a null pointer where bytes are read or written. `missing` says which of both is null.
#[cold]
fn needs_both(
    kind: Kind,
    bytes: usize,
    at_root: bool,
    missing: (bool, bool),
) -> Result<(), Failure> {
    let touched = kind.touched(at_root);
    let (sends, receives) = (touched.send != Amount::Nothing, touched.receive != Amount::Nothing);
    match missing {
        _ if bytes == 0 => Ok(()),
        (true, _) if sends => Err(null("what is sent")),
        (_, true) if receives => Err(null("where the result goes")),
        _ => Ok(()),
    }
}

/// Bytes and operation of a reduction.
#[inline]
fn reduction(count: usize, element: u32, operation: u32) -> Result<(usize, Combine), Failure> {
    let unknown = |what: &str, number: u32| {
        Failure::argument(format!("{number} is no {what}; isochrone.h names them"))
    };
    let index = |number: u32| usize::try_from(number).unwrap_or(usize::MAX);
    let element =
        *ELEMENTS.get(index(element)).ok_or_else(|| unknown("type of elements", element))?;
    let reduction =
        *REDUCTIONS.get(index(operation)).ok_or_else(|| unknown("reduction", operation))?;
    let combine = reduction.of(element);
    if combine.is_bitwise() && element.is_float() {
        return Err(Failure::argument("a bitwise reduction of floating-point numbers"));
    }
    Ok((count.saturating_mul(element.bytes() as usize), combine))
}

/// Exports a collective by what it takes in the table of collectives.
macro_rules! export {
    ($(#[$doc:meta])* $kind:ident $c:ident (buffer $root:ident)) => {
        $(#[$doc])*
        ///
        /// # Safety
        /// As `isochrone.h` says.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $c(
            team: *mut IsochroneTeam,
            data: *mut c_void,
            bytes: usize,
            $root: u32,
        ) -> c_int {
            // SAFETY: the caller vouches for handle and buffer.
            unsafe { call(team, Kind::$kind, $root, bytes, NOTHING, data, data) }
        }
    };
    ($(#[$doc:meta])* $kind:ident $c:ident (nothing)) => {
        $(#[$doc])*
        ///
        /// # Safety
        /// As `isochrone.h` says.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $c(team: *mut IsochroneTeam) -> c_int {
            let none = std::ptr::dangling_mut::<c_void>();
            // SAFETY: the caller vouches for the handle; no bytes are moved.
            unsafe { call(team, Kind::$kind, 0, 0, NOTHING, none, none) }
        }
    };
    ($(#[$doc:meta])* $kind:ident $c:ident (elements $($root:ident)?)) => {
        $(#[$doc])*
        ///
        /// # Safety
        /// As `isochrone.h` says.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $c(
            team: *mut IsochroneTeam,
            send: *const c_void,
            receive: *mut c_void,
            count: usize,
            element: u32,
            operation: u32,
            $($root: u32,)?
        ) -> c_int {
            let root = 0 $(+ $root)?;
            match reduction(count, element, operation) {
                // SAFETY: the caller vouches for handle and buffers.
                Ok((bytes, combine)) => unsafe {
                    call(team, Kind::$kind, root, bytes, combine, send, receive)
                },
                Err(failure) => told(Err(failure)),
            }
        }
    };
    ($(#[$doc:meta])* $kind:ident $c:ident (blocks $($root:ident)?)) => {
        $(#[$doc])*
        ///
        /// # Safety
        /// As `isochrone.h` says.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $c(
            team: *mut IsochroneTeam,
            send: *const c_void,
            receive: *mut c_void,
            bytes: usize,
            $($root: u32,)?
        ) -> c_int {
            let root = 0 $(+ $root)?;
            // SAFETY: the caller vouches for handle and buffers.
            unsafe { call(team, Kind::$kind, root, bytes, NOTHING, send, receive) }
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
        $( export!($(#[$doc])* $kind $c ($($takes)+)); )*
    };
}
isochrone_cla::each_collective!(exports);
