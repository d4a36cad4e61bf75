//! Pictures with a dot a number, for matrices and page maps too large for one SVG element a
//! cell. It writes indexed PNG (ISO/IEC 15948) with stored, uncompressed blocks, and packs 1, 2
//! or 4 bits a dot where the palette allows. It never reads one.

/// An indexed picture; dot 0 of the palette is fully transparent, so that missing numbers show
/// what lies beneath.
#[derive(Debug)]
pub(crate) struct Indexed<'a> {
    pub(crate) columns: usize,
    pub(crate) rows: usize,
    /// Colours of index 1 and up; at most 255.
    pub(crate) palette: &'a [crate::colour::Rgb],
    /// Row-major indices, 0 for transparent.
    pub(crate) dots: &'a [u8],
}

/// Largest payload of one stored block (RFC 1951, 3.2.4).
const STORED_BLOCK_BYTES: usize = 65_535;

impl Indexed<'_> {
    /// The picture as a `data:` address, or `None` where it has no dot or too many.
    pub(crate) fn data_uri(&self) -> Option<String> {
        let columns = u32::try_from(self.columns).ok()?;
        let rows = u32::try_from(self.rows).ok()?;
        if columns == 0 || rows == 0 || self.dots.len() != self.columns.checked_mul(self.rows)? {
            return None;
        }
        Some(format!("data:image/png;base64,{}", base64(&self.file(columns, rows))))
    }

    fn file(&self, columns: u32, rows: u32) -> Vec<u8> {
        let bits = self.bits();
        let mut header = Vec::with_capacity(13);
        header.extend(columns.to_be_bytes());
        header.extend(rows.to_be_bytes());
        // Bit depth, colour type 3 (indexed), deflate, adaptive filters, not interlaced.
        header.extend([bits, 3, 0, 0, 0]);
        let mut palette = vec![0, 0, 0];
        for colour in self.palette.iter().take(255) {
            palette.extend([colour.0, colour.1, colour.2]);
        }
        let mut file = b"\x89PNG\r\n\x1a\n".to_vec();
        chunk(&mut file, *b"IHDR", &header);
        chunk(&mut file, *b"PLTE", &palette);
        chunk(&mut file, *b"tRNS", &[0]);
        chunk(&mut file, *b"IDAT", &zlib_stored(&self.packed(bits)));
        chunk(&mut file, *b"IEND", &[]);
        file
    }

    /// Bits a dot.
    fn bits(&self) -> u8 {
        match self.palette.len() + 1 {
            0..=2 => 1,
            3..=4 => 2,
            5..=16 => 4,
            _ => 8,
        }
    }

    /// Rows of packed dots, each opened by filter type 0 (none).
    fn packed(&self, bits: u8) -> Vec<u8> {
        let per_byte = usize::from(8 / bits);
        let mut bytes = Vec::with_capacity(self.rows * (self.columns.div_ceil(per_byte) + 1));
        for row in self.dots.chunks(self.columns) {
            bytes.push(0);
            for group in row.chunks(per_byte) {
                let packed = group.iter().fold(0u8, |byte, dot| (byte << (bits % 8)) | dot);
                let unused = per_byte - group.len();
                bytes.push(packed << (unused * usize::from(bits % 8)));
            }
        }
        bytes
    }
}

fn chunk(file: &mut Vec<u8>, kind: [u8; 4], data: &[u8]) {
    file.extend(u32::try_from(data.len()).unwrap_or(u32::MAX).to_be_bytes());
    let start = file.len();
    file.extend(kind);
    file.extend(data);
    let crc = crc32(&file[start..]);
    file.extend(crc.to_be_bytes());
}

fn zlib_stored(data: &[u8]) -> Vec<u8> {
    // 0x7801: deflate with a 32 KiB window, fastest level (RFC 1950, 2.2).
    let mut stream = vec![0x78, 0x01];
    let blocks = data.len().div_ceil(STORED_BLOCK_BYTES).max(1);
    for (i, block) in data.chunks(STORED_BLOCK_BYTES).enumerate() {
        stream.push(u8::from(i + 1 == blocks));
        let length = u16::try_from(block.len()).unwrap_or(u16::MAX);
        stream.extend(length.to_le_bytes());
        stream.extend((!length).to_le_bytes());
        stream.extend(block);
    }
    stream.extend(adler32(data).to_be_bytes());
    stream
}

/// CRC-32 of ISO/IEC 15948, annex D.
fn crc32(data: &[u8]) -> u32 {
    !data.iter().fold(u32::MAX, |crc, byte| {
        (0..8).fold(crc ^ u32::from(*byte), |c, _| {
            if c & 1 == 1 { 0xedb8_8320 ^ (c >> 1) } else { c >> 1 }
        })
    })
}

/// Adler-32 (RFC 1950, section 9).
fn adler32(data: &[u8]) -> u32 {
    let (a, b) = data.iter().fold((1u32, 0u32), |(a, b), byte| {
        let a = (a + u32::from(*byte)) % 65_521;
        (a, (b + a) % 65_521)
    });
    (b << 16) | a
}

/// RFC 4648, section 4.
fn base64(data: &[u8]) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::with_capacity(data.len().div_ceil(3) * 4);
    for group in data.chunks(3) {
        let byte = |i: usize| u32::from(group.get(i).copied().unwrap_or(0));
        let word = (byte(0) << 16) | (byte(1) << 8) | byte(2);
        for digit in 0..4 {
            if digit <= group.len() {
                let at = (word >> (18 - 6 * digit)) & 63;
                text.push(char::from(DIGITS[usize::try_from(at).unwrap_or(0)]));
            } else {
                text.push('=');
            }
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::colour::Rgb;

    #[test]
    fn checksums_and_base64_give_the_published_values() {
        // Check value of CRC-32/ISO-HDLC, the Wikipedia example of Adler-32, RFC 4648 section 10.
        assert_eq!(crc32(b"123456789"), 0xcbf4_3926);
        assert_eq!(adler32(b"Wikipedia"), 0x11e6_0398);
        let words = ["", "Zg==", "Zm8=", "Zm9v", "Zm9vYg==", "Zm9vYmE=", "Zm9vYmFy"];
        for (length, expected) in words.into_iter().enumerate() {
            assert_eq!(base64(&b"foobar"[..length]), expected);
        }
    }

    #[test]
    fn dots_are_packed_by_the_size_of_the_palette() {
        let grey = [Rgb(9, 9, 9); 20];
        let dots = [1, 0, 1, 1, 0, 1];
        let picture =
            |colours| Indexed { columns: 3, rows: 2, palette: &grey[..colours], dots: &dots };
        assert_eq!(picture(1).packed(1), [0, 0b1010_0000, 0, 0b1010_0000]);
        assert_eq!(picture(3).packed(2), [0, 0b0100_0100, 0, 0b0100_0100]);
        assert_eq!(picture(9).packed(4), [0, 0x10, 0x10, 0, 0x10, 0x10]);
        assert_eq!(picture(20).packed(8), [0, 1, 0, 1, 0, 1, 0, 1]);
        assert_eq!([1, 3, 9, 20].map(|n| picture(n).bits()), [1, 2, 4, 8]);
    }

    #[test]
    fn long_pictures_use_several_blocks() {
        let data = vec![7u8; STORED_BLOCK_BYTES + 10];
        let stream = zlib_stored(&data);
        assert_eq!(stream.len(), 2 + 2 * 5 + data.len() + 4);
        assert_eq!(stream[2], 0, "the first block is not the last");
        assert_eq!(stream[2 + 5 + STORED_BLOCK_BYTES], 1, "the second block is the last");
    }

    #[test]
    fn a_picture_without_dots_is_refused() {
        assert!(Indexed { columns: 0, rows: 4, palette: &[], dots: &[] }.data_uri().is_none());
        assert!(Indexed { columns: 2, rows: 2, palette: &[], dots: &[0] }.data_uri().is_none());
    }
}
