//! A caller's data as bytes: as they lie where they lie together, packed by the MPI where not.
//!
//! A derived type may exist on one rank alone (a column at the root, plain numbers elsewhere), so it is
//! never a reason to leave a call to the MPI: what all ranks share is the bytes of the signature.

use crate::abi::{Buffer, Class, Handle, Layout, Mpi};
use std::ffi::c_int;

/// Room for packed data, kept from call to call.
#[derive(Debug, Default)]
pub(crate) struct Scratch {
    pub(crate) send: Vec<u8>,
    pub(crate) receive: Vec<u8>,
    /// One block, packed.
    pub(crate) packed: Vec<u8>,
    /// Two operands of a reduction, as they lie in memory.
    pub(crate) operands: [Vec<u128>; 2],
}

/// The MPI cannot pack what a caller named.
#[derive(Clone, Copy, Debug)]
pub(crate) struct NotPacked;

/// What a caller named: so many elements of a type, in a buffer.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Data {
    pub(crate) buffer: Buffer,
    pub(crate) count: usize,
    pub(crate) handle: Handle,
    pub(crate) layout: Layout,
    pub(crate) comm: Handle,
}

impl Data {
    /// Bytes of the signature.
    #[inline]
    pub(crate) const fn bytes(&self) -> usize {
        self.count.saturating_mul(self.layout.bytes)
    }

    /// The same with `blocks` times as many elements.
    pub(crate) const fn times(self, blocks: usize) -> Self {
        Self { count: self.count.saturating_mul(blocks), ..self }
    }

    /// Block `index` of a buffer that holds several of these.
    #[inline]
    pub(crate) fn block(self, mpi: &Mpi, index: usize) -> Self {
        let elements = index.saturating_mul(self.count).cast_signed();
        let offset = elements.saturating_mul(self.extent(mpi));
        Self { buffer: self.buffer.wrapping_byte_offset(offset), ..self }
    }

    /// So many of its elements, from this one on.
    pub(crate) fn part(self, mpi: &Mpi, first: usize, count: usize) -> Self {
        let offset = first.cast_signed().saturating_mul(self.extent(mpi));
        Self { buffer: self.buffer.wrapping_byte_offset(offset), count, ..self }
    }

    /// From one element to the next, bytes.
    pub(crate) fn extent(&self, mpi: &Mpi) -> isize {
        let (mut first, mut extent): (isize, isize) = (0, self.layout.bytes.cast_signed());
        if !self.layout.plain {
            let place = (&raw mut first, &raw mut extent);
            // SAFETY: the caller's type, which its MPI checks, and places for the answers.
            unsafe { (mpi.functions().type_get_extent)(self.handle, place.0, place.1) };
        }
        extent
    }

    /// The data as bytes; `room` is where they are packed if they have to be. What the MPI cannot pack it is asked to
    /// send itself, so that it says what is wrong.
    #[inline]
    pub(crate) fn read(&self, mpi: &Mpi, room: &mut Vec<u8>) -> Result<*const u8, NotPacked> {
        if self.layout.plain {
            return Ok(self.place().cast_const());
        }
        let bytes = self.bytes();
        room.resize(bytes, 0);
        let mut end: c_int = 0;
        let (count, limit) = (small(self.count), small(bytes));
        let first = room.as_mut_ptr().cast();
        // SAFETY: the caller's data, as its MPI would read them, into room for their bytes.
        let failed = unsafe {
            (mpi.functions().pack)(
                self.buffer,
                count,
                self.handle,
                first,
                limit,
                &raw mut end,
                self.comm,
            )
        };
        if failed == 0 { Ok(room.as_ptr()) } else { Err(NotPacked) }
    }

    /// Puts bytes that have come to where the data is, as far as both go: a block of another size than the caller said
    /// it would be.
    ///
    /// # Safety
    /// There are so many `bytes` at `from`, which may be the data itself.
    pub(crate) unsafe fn fill(
        &self,
        mpi: &Mpi,
        from: *const u8,
        bytes: usize,
    ) -> Result<(), c_int> {
        let fits = bytes.min(self.bytes());
        if fits == 0 {
            return Ok(());
        }
        if self.layout.plain {
            // SAFETY: the caller vouches for the bytes, and the data have room.
            unsafe { std::ptr::copy(from, self.place(), fits) };
            return Ok(());
        }
        // The last one of these elements may have come in part.
        let some = Self { count: fits.div_ceil(self.layout.bytes), ..*self };
        let mut packed = vec![0; some.bytes()];
        // SAFETY: the caller vouches for the bytes.
        packed[..fits].copy_from_slice(unsafe { std::slice::from_raw_parts(from, fits) });
        some.keep(mpi, &mut packed, fits)?;
        some.unpack_from(mpi, &mut packed)
    }

    /// Puts behind the first `came` of the data's packed bytes those that are there now: fewer came than there is room
    /// for, and what comes after them is to stay.
    pub(crate) fn keep(&self, mpi: &Mpi, packed: &mut [u8], came: usize) -> Result<(), c_int> {
        if self.layout.plain || came >= packed.len() {
            return Ok(());
        }
        let mut now = Vec::new();
        self.read(mpi, &mut now).map_err(|NotPacked| mpi.other_error())?;
        packed[came..].copy_from_slice(&now[came..]);
        Ok(())
    }

    /// The caller's buffer; some address where it holds nothing, since nothing may have none.
    #[inline]
    pub(crate) fn place(&self) -> *mut u8 {
        if self.buffer.is_null() { std::ptr::dangling_mut() } else { self.buffer.cast() }
    }

    /// Where bytes go that are to become the data; `room` is where they wait to be unpacked.
    #[inline]
    pub(crate) fn room(&self, room: &mut Vec<u8>) -> *mut u8 {
        if self.layout.plain {
            return self.place();
        }
        room.resize(self.bytes(), 0);
        room.as_mut_ptr()
    }

    /// The bytes in `room` have come: they become the data.
    #[inline]
    pub(crate) fn unpack(&self, mpi: &Mpi, room: &mut [u8]) -> Result<(), c_int> {
        if self.layout.plain {
            return Ok(());
        }
        self.unpack_from(mpi, room)
    }

    /// Bytes that have come become the data, however these lie.
    pub(crate) fn unpack_from(&self, mpi: &Mpi, bytes: &mut [u8]) -> Result<(), c_int> {
        let mut end: c_int = 0;
        let (count, limit) = (small(self.count), small(bytes.len()));
        let first = bytes.as_mut_ptr().cast();
        // SAFETY: packed bytes of this very signature, into a buffer for it.
        let failed = unsafe {
            (mpi.functions().unpack)(
                first,
                limit,
                &raw mut end,
                self.buffer,
                count,
                self.handle,
                self.comm,
            )
        };
        if failed == 0 { Ok(()) } else { Err(failed) }
    }
}

/// A number that was checked against a limit far below; more than that MPI itself would refuse.
fn small(number: usize) -> c_int {
    c_int::try_from(number).unwrap_or(c_int::MAX)
}

/// Whether packed data are the bytes of the elements and nothing else: two numbers with a gap are packed and looked at.
pub(crate) fn packs(mpi: &Mpi) -> bool {
    let f = mpi.functions();
    let mut spaced: Handle = 0;
    // SAFETY: a new type of two ints, two apart; the result has room for either kind of handle.
    let failed = unsafe { (f.type_vector)(2, 1, 2, mpi.int(), &raw mut spaced) } != 0
        // SAFETY: the type just made.
        || unsafe { (f.type_commit)(&raw mut spaced) } != 0;
    let numbers = [1_i32, 2, 3];
    let data = Data {
        buffer: (&raw const numbers).cast_mut().cast(),
        count: 1,
        handle: spaced,
        layout: Layout { bytes: 8, plain: false, named: false, element: None, class: Class::Other },
        comm: mpi.own(),
    };
    let mut room = Vec::new();
    let packed = !failed && data.read(mpi, &mut room).is_ok();
    if !failed {
        // SAFETY: the type made above, which nobody uses any more.
        unsafe { (f.type_free)(&raw mut spaced) };
    }
    packed && room == [1_i32.to_ne_bytes(), 3_i32.to_ne_bytes()].concat()
}
