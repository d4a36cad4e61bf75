//! What the kernel writes behind the registers of a signal: records, each with a kind and a size
//! (arch/arm64/include/uapi/asm/sigcontext.h). Here only the syndrome of an access that failed is read.

/// Bytes of all records (`__reserved`).
const ROOM: usize = 4096;
/// `ESR_MAGIC`: the exception syndrome register.
const SYNDROME: u32 = 0x4553_5201;
/// ESR_EL1.EC of a data abort from a program (Arm ARM, D19.2.37).
const DATA_ABORT: u64 = 0b10_0100;
/// ESR_EL1.WnR of a data abort: the access was a write.
const WRITE: u64 = 1 << 6;

/// The head of a record, and the first word behind it.
#[repr(C, align(8))]
#[derive(Clone, Copy)]
struct Record {
    kind: u32,
    bytes: u32,
    word: u64,
}

/// Whether the access was a write; `None` where no record tells.
///
/// # Safety
/// The kernel has written records from `first` on, in [`ROOM`] bytes that may be read.
pub(super) unsafe fn was_write(first: *const u8) -> Option<bool> {
    let mut at = 0;
    while at + size_of::<Record>() <= ROOM {
        // SAFETY: inside of the room that the caller vouches for; records are aligned to 16 bytes.
        let record = unsafe { first.wrapping_add(at).cast::<Record>().read() };
        if record.kind == SYNDROME {
            return is_write(record.word);
        }
        // The last one has neither.
        if record.bytes == 0 {
            return None;
        }
        at = at.checked_add(usize::try_from(record.bytes).ok()?)?;
    }
    None
}

fn is_write(syndrome: u64) -> Option<bool> {
    (syndrome >> 26 & 0x3f == DATA_ABORT).then_some(syndrome & WRITE != 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[repr(C, align(16))]
    struct Room([u32; ROOM / 4]);

    #[test]
    fn the_syndrome_is_found_among_the_records() {
        let told = |records: &[&[u32]]| {
            let mut room = Room([0; ROOM / 4]);
            let all = records.iter().flat_map(|record| record.iter());
            room.0.iter_mut().zip(all).for_each(|(to, from)| *to = *from);
            // SAFETY: the room is as large as it has to be, and ends with zeros.
            unsafe { was_write((&raw const room).cast()) }
        };
        let other: [u32; 8] = [0x4650_8001, 32, 1, 2, 3, 4, 5, 6];
        let syndrome = |low: u32| [SYNDROME, 16, low, 0];
        assert_eq!(told(&[&other, &syndrome(0x9200_0047)]), Some(true));
        assert_eq!(told(&[&syndrome(0x9200_0007), &other]), Some(false));
        assert_eq!(told(&[&syndrome(0x8200_0047)]), None, "an instruction was fetched");
        assert_eq!(told(&[&other]), None);
        assert_eq!(told(&[&[1, 8192, 0, 0]]), None, "beyond the room");
    }
}
