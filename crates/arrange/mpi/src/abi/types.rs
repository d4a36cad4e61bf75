//! The named types and operations of both kinds of MPI: what their handles are, and what of them a
//! reduction in lines knows.

use super::arguments::Handle;
use super::functions::Functions;
use isochrone_cla::live::Reduction;
use isochrone_cla::program::{Combine, Element};
use std::ffi::{CStr, c_int};

/// What the elements of a type are (MPI 3.1, section 5.9.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Class {
    /// C's integers, and its `char`, with which both MPIs compute.
    Signed,
    Unsigned,
    /// Fortran's integers: they are no truths.
    Fortran,
    /// Addresses and counts, of both languages.
    Address,
    Byte,
    Float,
    Complex,
    Logical,
    /// A value and where it is.
    Pair,
    /// Moved and not combined.
    Other,
}

/// The named types: Open MPI's object, MPICH's handle (mpi.h of MPICH 4.0.2, the same since the MPICH
/// ABI agreement of 2013), what it holds.
const TYPES: &[(&CStr, Handle, Class)] = &[
    (c"ompi_mpi_byte", 0x4c00_010d, Class::Byte),
    (c"ompi_mpi_packed", 0x4c00_010f, Class::Other),
    (c"ompi_mpi_char", 0x4c00_0101, Class::Signed),
    (c"ompi_mpi_signed_char", 0x4c00_0118, Class::Signed),
    (c"ompi_mpi_unsigned_char", 0x4c00_0102, Class::Unsigned),
    (c"ompi_mpi_wchar", 0x4c00_040e, Class::Other),
    (c"ompi_mpi_short", 0x4c00_0203, Class::Signed),
    (c"ompi_mpi_unsigned_short", 0x4c00_0204, Class::Unsigned),
    (c"ompi_mpi_int", 0x4c00_0405, Class::Signed),
    (c"ompi_mpi_unsigned", 0x4c00_0406, Class::Unsigned),
    (c"ompi_mpi_long", 0x4c00_0807, Class::Signed),
    (c"ompi_mpi_unsigned_long", 0x4c00_0808, Class::Unsigned),
    (c"ompi_mpi_long_long_int", 0x4c00_0809, Class::Signed),
    (c"ompi_mpi_unsigned_long_long", 0x4c00_0819, Class::Unsigned),
    (c"ompi_mpi_float", 0x4c00_040a, Class::Float),
    (c"ompi_mpi_double", 0x4c00_080b, Class::Float),
    (c"ompi_mpi_long_double", 0x4c00_100c, Class::Float),
    (c"ompi_mpi_2int", 0x4c00_0816, Class::Pair),
    (c"ompi_mpi_character", 0x4c00_011a, Class::Other),
    (c"ompi_mpi_logical", 0x4c00_041d, Class::Logical),
    (c"ompi_mpi_integer", 0x4c00_041b, Class::Fortran),
    (c"ompi_mpi_integer1", 0x4c00_012d, Class::Fortran),
    (c"ompi_mpi_integer2", 0x4c00_022f, Class::Fortran),
    (c"ompi_mpi_integer4", 0x4c00_0430, Class::Fortran),
    (c"ompi_mpi_integer8", 0x4c00_0831, Class::Fortran),
    (c"ompi_mpi_real", 0x4c00_041c, Class::Float),
    (c"ompi_mpi_real4", 0x4c00_0427, Class::Float),
    (c"ompi_mpi_real8", 0x4c00_0829, Class::Float),
    (c"ompi_mpi_dblprec", 0x4c00_081f, Class::Float),
    (c"ompi_mpi_cplex", 0x4c00_081e, Class::Complex),
    (c"ompi_mpi_dblcplex", 0x4c00_1022, Class::Complex),
    (c"ompi_mpi_c_float_complex", 0x4c00_0840, Class::Complex),
    (c"ompi_mpi_c_double_complex", 0x4c00_1041, Class::Complex),
    (c"ompi_mpi_c_bool", 0x4c00_013f, Class::Logical),
    (c"ompi_mpi_int8_t", 0x4c00_0137, Class::Signed),
    (c"ompi_mpi_int16_t", 0x4c00_0238, Class::Signed),
    (c"ompi_mpi_int32_t", 0x4c00_0439, Class::Signed),
    (c"ompi_mpi_int64_t", 0x4c00_083a, Class::Signed),
    (c"ompi_mpi_uint8_t", 0x4c00_013b, Class::Unsigned),
    (c"ompi_mpi_uint16_t", 0x4c00_023c, Class::Unsigned),
    (c"ompi_mpi_uint32_t", 0x4c00_043d, Class::Unsigned),
    (c"ompi_mpi_uint64_t", 0x4c00_083e, Class::Unsigned),
    (c"ompi_mpi_aint", 0x4c00_0843, Class::Address),
    (c"ompi_mpi_offset", 0x4c00_0844, Class::Address),
    (c"ompi_mpi_count", 0x4c00_0845, Class::Address),
    (c"ompi_mpi_real16", 0x4c00_102b, Class::Float),
    (c"ompi_mpi_complex8", 0x4c00_0828, Class::Complex),
    (c"ompi_mpi_complex16", 0x4c00_102a, Class::Complex),
    (c"ompi_mpi_complex32", 0x4c00_202c, Class::Complex),
    (c"ompi_mpi_c_long_double_complex", 0x4c00_2042, Class::Complex),
    (c"ompi_mpi_cxx_bool", 0x4c00_0133, Class::Logical),
    (c"ompi_mpi_cxx_cplex", 0x4c00_0834, Class::Complex),
    (c"ompi_mpi_cxx_dblcplex", 0x4c00_1035, Class::Complex),
    (c"ompi_mpi_cxx_ldblcplex", 0x4c00_2036, Class::Complex),
    (c"ompi_mpi_2integer", 0x4c00_0820, Class::Pair),
    (c"ompi_mpi_2real", 0x4c00_0821, Class::Pair),
    (c"ompi_mpi_2dblprec", 0x4c00_1023, Class::Pair),
    (c"ompi_mpi_float_int", 0x8c00_0000, Class::Pair),
    (c"ompi_mpi_double_int", 0x8c00_0001, Class::Pair),
    (c"ompi_mpi_long_int", 0x8c00_0002, Class::Pair),
    (c"ompi_mpi_short_int", 0x8c00_0003, Class::Pair),
    (c"ompi_mpi_longdbl_int", 0x8c00_0004, Class::Pair),
];

/// What a named operation does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Named {
    /// In lines, where they know the elements.
    Lines(Reduction),
    /// Finds where the least or the largest is.
    Place,
    /// Nothing that a reduction may be asked for.
    Never,
}

/// The named operations.
const OPERATIONS: &[(&CStr, Handle, Named)] = &[
    (c"ompi_mpi_op_max", 0x5800_0001, Named::Lines(Reduction::Max)),
    (c"ompi_mpi_op_min", 0x5800_0002, Named::Lines(Reduction::Min)),
    (c"ompi_mpi_op_sum", 0x5800_0003, Named::Lines(Reduction::Sum)),
    (c"ompi_mpi_op_prod", 0x5800_0004, Named::Lines(Reduction::Product)),
    (c"ompi_mpi_op_land", 0x5800_0005, Named::Lines(Reduction::Both)),
    (c"ompi_mpi_op_band", 0x5800_0006, Named::Lines(Reduction::And)),
    (c"ompi_mpi_op_lor", 0x5800_0007, Named::Lines(Reduction::Either)),
    (c"ompi_mpi_op_bor", 0x5800_0008, Named::Lines(Reduction::Or)),
    (c"ompi_mpi_op_lxor", 0x5800_0009, Named::Lines(Reduction::OneOf)),
    (c"ompi_mpi_op_bxor", 0x5800_000a, Named::Lines(Reduction::Xor)),
    (c"ompi_mpi_op_minloc", 0x5800_000b, Named::Place),
    (c"ompi_mpi_op_maxloc", 0x5800_000c, Named::Place),
    (c"ompi_mpi_op_replace", 0x5800_000d, Named::Never),
    (c"ompi_mpi_op_no_op", 0x5800_000e, Named::Never),
    (c"ompi_mpi_op_null", 0x1800_0000, Named::Never),
];

impl Named {
    /// Whether MPI has it for such elements (MPI 3.1, section 5.9.2).
    const fn takes(self, class: Class) -> bool {
        use Class::{Address, Byte, Complex, Float, Fortran, Logical, Pair, Signed, Unsigned};
        let number = matches!(class, Signed | Unsigned | Fortran | Address | Float);
        match self {
            Self::Lines(Reduction::Max | Reduction::Min) => number,
            Self::Lines(Reduction::Sum | Reduction::Product) => number || matches!(class, Complex),
            Self::Lines(Reduction::And | Reduction::Or | Reduction::Xor) => {
                matches!(class, Signed | Unsigned | Fortran | Address | Byte)
            }
            Self::Lines(Reduction::Both | Reduction::Either | Reduction::OneOf) => {
                matches!(class, Signed | Unsigned | Logical)
            }
            Self::Place => matches!(class, Pair),
            Self::Never => false,
        }
    }
}

/// How a reduction is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum How {
    /// Element by element as it goes through the lines.
    Lines(Combine),
    /// By the MPI, on the operands of all ranks, which go through the lines: elements that lines do not know, and
    /// operations of the program's own.
    Local,
}

/// How a type lies in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Layout {
    /// Bytes of its signature.
    pub(crate) bytes: usize,
    /// Whether elements lie one behind the other, in the order of the signature.
    pub(crate) plain: bool,
    /// Whether the MPI has it from the beginning.
    pub(crate) named: bool,
    /// What a reduction in lines takes them for, if it takes them at all.
    pub(crate) element: Option<Element>,
    pub(crate) class: Class,
}

/// The named types and operations of the running MPI.
#[derive(Debug, Default)]
pub(crate) struct Types {
    /// By handle.
    named: Vec<(Handle, Layout)>,
    operations: Vec<(Handle, Named)>,
}

impl Types {
    /// Asks the MPI about each of them. `object` finds Open MPI's objects; none: MPICH's numbers.
    pub(super) fn ask(functions: &Functions, object: Option<&dyn Fn(&CStr) -> Handle>) -> Self {
        let handle = |name: &CStr, number| object.map_or(number, |object| object(name));
        let mut named: Vec<_> = TYPES
            .iter()
            .map(|&(name, number, class)| (name, handle(name, number), class))
            .filter(|&(_, handle, _)| handle != 0)
            .filter_map(|(name, handle, class)| {
                Some((handle, layout(functions, name, handle, class)?))
            })
            .collect();
        named.sort_unstable_by_key(|&(handle, _)| handle);
        let operations = OPERATIONS
            .iter()
            .map(|&(name, number, named)| (handle(name, number), named))
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

    /// How an operation on elements of a type is done, if it goes through the lines; `of_a_program` says whether a
    /// handle that is none of the named ones is an operation all the same. Equal on all ranks: MPI asks for the same
    /// named operation and the same type everywhere, or for operations of the program's own.
    #[inline]
    pub(crate) fn how(
        &self,
        operation: Handle,
        layout: Layout,
        of_a_program: impl Fn(Handle) -> bool,
    ) -> Option<How> {
        let named = self.operations.iter().find(|(handle, _)| *handle == operation);
        let Some(&(_, named)) = named else {
            return of_a_program(operation).then_some(How::Local);
        };
        if !(layout.named && named.takes(layout.class)) {
            return None;
        }
        match (named, layout.element) {
            (Named::Lines(reduction), Some(element)) => Some(How::Lines(reduction.of(element))),
            _ => Some(How::Local),
        }
    }
}

fn layout(functions: &Functions, name: &CStr, handle: Handle, class: Class) -> Option<Layout> {
    let (mut size, mut first, mut extent): (c_int, isize, isize) = (0, 0, 0);
    // SAFETY: the handle is a named type of this MPI, and the result has room.
    let failed = unsafe { (functions.type_size)(handle, &raw mut size) };
    // SAFETY: as above.
    let no_extent = unsafe { (functions.type_get_extent)(handle, &raw mut first, &raw mut extent) };
    if failed != 0 || no_extent != 0 {
        return None;
    }
    let bytes = usize::try_from(size).ok()?;
    let of_c = |name: &CStr| !name.to_bytes().ends_with(b"logical");
    let element = match (class, bytes) {
        (Class::Signed | Class::Fortran | Class::Address, 1) => Some(Element::I8),
        (Class::Signed | Class::Fortran | Class::Address, 2) => Some(Element::I16),
        (Class::Signed | Class::Fortran | Class::Address, 4) => Some(Element::I32),
        (Class::Signed | Class::Fortran | Class::Address, 8) => Some(Element::I64),
        (Class::Unsigned | Class::Byte, 1) => Some(Element::U8),
        // What is true in Fortran its compiler says.
        (Class::Logical, 1) if of_c(name) => Some(Element::U8),
        (Class::Unsigned, 2) => Some(Element::U16),
        (Class::Unsigned, 4) => Some(Element::U32),
        (Class::Unsigned, 8) => Some(Element::U64),
        (Class::Float, 4) => Some(Element::F32),
        (Class::Float, 8) => Some(Element::F64),
        _ => None,
    };
    let plain = first == 0 && usize::try_from(extent) == Ok(bytes);
    Some(Layout { bytes, plain, named: true, element, class })
}
