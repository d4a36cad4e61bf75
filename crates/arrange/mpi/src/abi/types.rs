//! The named types and operations of both kinds of MPI: what their handles are, and what of them a
//! reduction in lines knows.

use super::functions::{Functions, Handle};
use isochrone_cla::live::Reduction;
use isochrone_cla::program::{Combine, Element};
use std::ffi::{CStr, c_int};

/// What the elements of a type are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Class {
    Signed,
    Unsigned,
    Float,
    /// Bytes that are moved and not combined here.
    Other,
}

/// The named types: Open MPI's object, MPICH's handle (mpi.h of MPICH 4.0.2, the same since the MPICH
/// ABI agreement of 2013), what it holds.
const TYPES: &[(&CStr, Handle, Class)] = &[
    (c"ompi_mpi_byte", 0x4c00_010d, Class::Other),
    (c"ompi_mpi_packed", 0x4c00_010f, Class::Other),
    (c"ompi_mpi_char", 0x4c00_0101, Class::Other),
    (c"ompi_mpi_signed_char", 0x4c00_0118, Class::Other),
    (c"ompi_mpi_unsigned_char", 0x4c00_0102, Class::Other),
    (c"ompi_mpi_wchar", 0x4c00_040e, Class::Other),
    (c"ompi_mpi_short", 0x4c00_0203, Class::Other),
    (c"ompi_mpi_unsigned_short", 0x4c00_0204, Class::Other),
    (c"ompi_mpi_int", 0x4c00_0405, Class::Signed),
    (c"ompi_mpi_unsigned", 0x4c00_0406, Class::Unsigned),
    (c"ompi_mpi_long", 0x4c00_0807, Class::Signed),
    (c"ompi_mpi_unsigned_long", 0x4c00_0808, Class::Unsigned),
    (c"ompi_mpi_long_long_int", 0x4c00_0809, Class::Signed),
    (c"ompi_mpi_unsigned_long_long", 0x4c00_0819, Class::Unsigned),
    (c"ompi_mpi_float", 0x4c00_040a, Class::Float),
    (c"ompi_mpi_double", 0x4c00_080b, Class::Float),
    (c"ompi_mpi_long_double", 0x4c00_100c, Class::Other),
    (c"ompi_mpi_2int", 0x4c00_0816, Class::Other),
    (c"ompi_mpi_character", 0x4c00_011a, Class::Other),
    (c"ompi_mpi_logical", 0x4c00_041d, Class::Other),
    (c"ompi_mpi_integer", 0x4c00_041b, Class::Signed),
    (c"ompi_mpi_integer1", 0x4c00_012d, Class::Other),
    (c"ompi_mpi_integer2", 0x4c00_022f, Class::Other),
    (c"ompi_mpi_integer4", 0x4c00_0430, Class::Signed),
    (c"ompi_mpi_integer8", 0x4c00_0831, Class::Signed),
    (c"ompi_mpi_real", 0x4c00_041c, Class::Float),
    (c"ompi_mpi_real4", 0x4c00_0427, Class::Float),
    (c"ompi_mpi_real8", 0x4c00_0829, Class::Float),
    (c"ompi_mpi_dblprec", 0x4c00_081f, Class::Float),
    (c"ompi_mpi_cplex", 0x4c00_081e, Class::Other),
    (c"ompi_mpi_dblcplex", 0x4c00_1022, Class::Other),
    (c"ompi_mpi_c_float_complex", 0x4c00_0840, Class::Other),
    (c"ompi_mpi_c_double_complex", 0x4c00_1041, Class::Other),
    (c"ompi_mpi_c_bool", 0x4c00_013f, Class::Other),
    (c"ompi_mpi_int8_t", 0x4c00_0137, Class::Other),
    (c"ompi_mpi_int16_t", 0x4c00_0238, Class::Other),
    (c"ompi_mpi_int32_t", 0x4c00_0439, Class::Signed),
    (c"ompi_mpi_int64_t", 0x4c00_083a, Class::Signed),
    (c"ompi_mpi_uint8_t", 0x4c00_013b, Class::Other),
    (c"ompi_mpi_uint16_t", 0x4c00_023c, Class::Other),
    (c"ompi_mpi_uint32_t", 0x4c00_043d, Class::Unsigned),
    (c"ompi_mpi_uint64_t", 0x4c00_083e, Class::Unsigned),
    (c"ompi_mpi_aint", 0x4c00_0843, Class::Signed),
    (c"ompi_mpi_offset", 0x4c00_0844, Class::Signed),
    (c"ompi_mpi_count", 0x4c00_0845, Class::Signed),
];

/// The operations that are done in lines.
const OPERATIONS: &[(&CStr, Handle, Reduction)] = &[
    (c"ompi_mpi_op_max", 0x5800_0001, Reduction::Max),
    (c"ompi_mpi_op_min", 0x5800_0002, Reduction::Min),
    (c"ompi_mpi_op_sum", 0x5800_0003, Reduction::Sum),
    (c"ompi_mpi_op_prod", 0x5800_0004, Reduction::Product),
    (c"ompi_mpi_op_band", 0x5800_0006, Reduction::And),
    (c"ompi_mpi_op_bor", 0x5800_0008, Reduction::Or),
    (c"ompi_mpi_op_bxor", 0x5800_000a, Reduction::Xor),
];

/// How a type lies in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Layout {
    /// Bytes of its signature.
    pub(crate) bytes: usize,
    /// Whether elements lie one behind the other, in the order of the signature.
    pub(crate) plain: bool,
    /// Whether the MPI has it from the beginning.
    pub(crate) named: bool,
    /// What a reduction takes them for, if it takes them at all.
    pub(crate) element: Option<Element>,
}

/// The named types and operations of the running MPI.
#[derive(Debug, Default)]
pub(crate) struct Types {
    /// By handle.
    named: Vec<(Handle, Layout)>,
    operations: Vec<(Handle, Reduction)>,
}

impl Types {
    /// Asks the MPI about each of them. `object` finds Open MPI's objects; none: MPICH's numbers.
    pub(super) fn ask(functions: &Functions, object: Option<&dyn Fn(&CStr) -> Handle>) -> Self {
        let handle = |name: &CStr, number| object.map_or(number, |object| object(name));
        let mut named: Vec<_> = TYPES
            .iter()
            .map(|&(name, number, class)| (handle(name, number), class))
            .filter(|&(handle, _)| handle != 0)
            .filter_map(|(handle, class)| Some((handle, layout(functions, handle, class)?)))
            .collect();
        named.sort_unstable_by_key(|&(handle, _)| handle);
        let operations = OPERATIONS
            .iter()
            .map(|&(name, number, reduction)| (handle(name, number), reduction))
            .filter(|&(handle, _)| handle != 0)
            .collect();
        Self { named, operations }
    }

    /// A named type.
    #[inline]
    pub(crate) fn named(&self, handle: Handle) -> Option<Layout> {
        let at = self.named.binary_search_by_key(&handle, |&(handle, _)| handle).ok()?;
        Some(self.named[at].1)
    }

    /// An operation on elements of a type, if it is done in lines. Equal on all ranks: MPI asks for the
    /// same operation and the same type everywhere.
    #[inline]
    pub(crate) fn combine(&self, operation: Handle, layout: Layout) -> Option<Combine> {
        let element = layout.element?;
        let (_, reduction) = self.operations.iter().find(|(handle, _)| *handle == operation)?;
        let combine = reduction.of(element);
        (!(combine.is_bitwise() && element.is_float())).then_some(combine)
    }
}

fn layout(functions: &Functions, handle: Handle, class: Class) -> Option<Layout> {
    let (mut size, mut first, mut extent): (c_int, isize, isize) = (0, 0, 0);
    // SAFETY: the handle is a named type of this MPI, and the result has room.
    let failed = unsafe { (functions.type_size)(handle, &raw mut size) };
    // SAFETY: as above.
    let no_extent = unsafe { (functions.type_get_extent)(handle, &raw mut first, &raw mut extent) };
    if failed != 0 || no_extent != 0 {
        return None;
    }
    let bytes = usize::try_from(size).ok()?;
    let element = match (class, bytes) {
        (Class::Signed, 4) => Some(Element::I32),
        (Class::Signed, 8) => Some(Element::I64),
        (Class::Unsigned, 4) => Some(Element::U32),
        (Class::Unsigned, 8) => Some(Element::U64),
        (Class::Float, 4) => Some(Element::F32),
        (Class::Float, 8) => Some(Element::F64),
        _ => None,
    };
    let plain = first == 0 && usize::try_from(extent) == Ok(bytes);
    Some(Layout { bytes, plain, named: true, element })
}
