//! The handles of the standard ABI (MPI 5.0, chapter 20 and appendix A.1.2): numbers, by the names that Open MPI's
//! objects have.

use super::functions::Handle;
use std::ffi::CStr;

/// Each handle that is used.
const HANDLES: &[(&CStr, Handle)] = &[
    (c"ompi_mpi_op_sum", 0x021),
    (c"ompi_mpi_op_min", 0x022),
    (c"ompi_mpi_op_max", 0x023),
    (c"ompi_mpi_op_prod", 0x024),
    (c"ompi_mpi_op_band", 0x028),
    (c"ompi_mpi_op_bor", 0x029),
    (c"ompi_mpi_op_bxor", 0x02a),
    (c"ompi_mpi_comm_null", 0x100),
    (c"ompi_mpi_comm_world", 0x101),
    (c"ompi_mpi_comm_self", 0x102),
    (c"ompi_mpi_info_null", 0x130),
    (c"ompi_mpi_datatype_null", 0x200),
    (c"ompi_mpi_aint", 0x201),
    (c"ompi_mpi_count", 0x202),
    (c"ompi_mpi_offset", 0x203),
    (c"ompi_mpi_packed", 0x207),
    (c"ompi_mpi_short", 0x208),
    (c"ompi_mpi_int", 0x209),
    (c"ompi_mpi_long", 0x20a),
    (c"ompi_mpi_long_long_int", 0x20b),
    (c"ompi_mpi_unsigned_short", 0x20c),
    (c"ompi_mpi_unsigned", 0x20d),
    (c"ompi_mpi_unsigned_long", 0x20e),
    (c"ompi_mpi_unsigned_long_long", 0x20f),
    (c"ompi_mpi_float", 0x210),
    (c"ompi_mpi_c_float_complex", 0x212),
    (c"ompi_mpi_double", 0x214),
    (c"ompi_mpi_c_double_complex", 0x216),
    (c"ompi_mpi_logical", 0x218),
    (c"ompi_mpi_integer", 0x219),
    (c"ompi_mpi_real", 0x21a),
    (c"ompi_mpi_cplex", 0x21b),
    (c"ompi_mpi_dblprec", 0x21c),
    (c"ompi_mpi_dblcplex", 0x21d),
    (c"ompi_mpi_character", 0x21e),
    (c"ompi_mpi_long_double", 0x220),
    (c"ompi_mpi_2int", 0x22b),
    (c"ompi_mpi_c_bool", 0x238),
    (c"ompi_mpi_wchar", 0x23c),
    (c"ompi_mpi_int8_t", 0x240),
    (c"ompi_mpi_uint8_t", 0x241),
    (c"ompi_mpi_char", 0x243),
    (c"ompi_mpi_signed_char", 0x244),
    (c"ompi_mpi_unsigned_char", 0x245),
    (c"ompi_mpi_byte", 0x247),
    (c"ompi_mpi_int16_t", 0x248),
    (c"ompi_mpi_uint16_t", 0x249),
    (c"ompi_mpi_int32_t", 0x250),
    (c"ompi_mpi_uint32_t", 0x251),
    (c"ompi_mpi_int64_t", 0x258),
    (c"ompi_mpi_uint64_t", 0x259),
    (c"ompi_mpi_integer1", 0x2c1),
    (c"ompi_mpi_integer2", 0x2c9),
    (c"ompi_mpi_integer4", 0x2d1),
    (c"ompi_mpi_real4", 0x2d2),
    (c"ompi_mpi_integer8", 0x2d9),
    (c"ompi_mpi_real8", 0x2da),
];

/// The handle of this name; 0, which no handle of the ABI is, where it is not used.
pub(super) fn handle(name: &CStr) -> Handle {
    HANDLES.iter().find(|(known, _)| *known == name).map_or(0, |&(_, handle)| handle)
}
