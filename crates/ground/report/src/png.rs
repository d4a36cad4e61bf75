//! Pictures with a dot a number, for matrices and page maps too large for one SVG element a
//! cell: indexed PNG (ISO/IEC 15948), with 1, 2 or 4 bits a dot where the palette allows. It never reads one.

use data_encoding::BASE64;
use png::{BitDepth, ColorType, Compression, Encoder, EncodingError};

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

impl Indexed<'_> {
    /// The picture as a `data:` address, or `None` where it has no dot or too many.
    pub(crate) fn data_uri(&self) -> Option<String> {
        let columns = u32::try_from(self.columns).ok()?;
        let rows = u32::try_from(self.rows).ok()?;
        if columns == 0 || rows == 0 || self.dots.len() != self.columns.checked_mul(self.rows)? {
            return None;
        }
        let file = self.file(columns, rows).ok()?;
        Some(format!("data:image/png;base64,{}", BASE64.encode(&file)))
    }

    fn file(&self, columns: u32, rows: u32) -> Result<Vec<u8>, EncodingError> {
        let mut palette = vec![0, 0, 0];
        for colour in self.palette.iter().take(255) {
            palette.extend([colour.0, colour.1, colour.2]);
        }
        let depth = self.depth();
        let mut file = Vec::new();
        let mut encoder = Encoder::new(&mut file, columns, rows);
        encoder.set_color(ColorType::Indexed);
        encoder.set_depth(depth);
        encoder.set_palette(palette);
        encoder.set_trns(&[0][..]);
        encoder.set_compression(Compression::High);
        encoder.write_header()?.write_image_data(&self.packed(depth as u8))?;
        Ok(file)
    }

    fn depth(&self) -> BitDepth {
        match self.palette.len() + 1 {
            0..=2 => BitDepth::One,
            3..=4 => BitDepth::Two,
            5..=16 => BitDepth::Four,
            _ => BitDepth::Eight,
        }
    }

    /// Rows of dots of so many bits, each from a whole byte on.
    fn packed(&self, bits: u8) -> Vec<u8> {
        let per_byte = usize::from(8 / bits);
        let mut bytes = Vec::with_capacity(self.rows * self.columns.div_ceil(per_byte));
        for row in self.dots.chunks(self.columns) {
            for group in row.chunks(per_byte) {
                let packed = group.iter().fold(0u8, |byte, dot| (byte << (bits % 8)) | dot);
                let unused = per_byte - group.len();
                bytes.push(packed << (unused * usize::from(bits % 8)));
            }
        }
        bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::colour::Rgb;

    #[test]
    fn dots_are_packed_by_the_size_of_the_palette() {
        let grey = [Rgb(9, 9, 9); 20];
        let dots = [1, 0, 1, 1, 0, 1];
        let picture =
            |colours| Indexed { columns: 3, rows: 2, palette: &grey[..colours], dots: &dots };
        assert_eq!(picture(1).packed(1), [0b1010_0000, 0b1010_0000]);
        assert_eq!(picture(3).packed(2), [0b0100_0100, 0b0100_0100]);
        assert_eq!(picture(9).packed(4), [0x10, 0x10, 0x10, 0x10]);
        assert_eq!(picture(20).packed(8), [1, 0, 1, 1, 0, 1]);
        assert_eq!([1, 3, 9, 20].map(|n| picture(n).depth() as u8), [1, 2, 4, 8]);
    }

    #[test]
    fn every_dot_is_there_in_its_colour() {
        let palette: Vec<Rgb> = (0..200).map(|i| Rgb(i, 255 - i, 7)).collect();
        let dots: Vec<u8> = (0..300 * 70_u32).map(|i| (i * 7 % 201) as u8).collect();
        let picture = Indexed { columns: 300, rows: 70, palette: &palette, dots: &dots };
        let address = picture.data_uri().expect("a picture");
        let text = address.strip_prefix("data:image/png;base64,").expect("an address");
        let file = BASE64.decode(text.as_bytes()).expect("base64");
        assert!(file.len() < dots.len(), "it is compressed");
        let decoder = png::Decoder::new(std::io::Cursor::new(&file));
        let mut reader = decoder.read_info().expect("a picture");
        let (colours, clear) = {
            let info = reader.info();
            (info.palette.clone().expect("a palette"), info.trns.clone().expect("clear dots"))
        };
        assert_eq!((clear.as_ref(), &colours[3..6]), (&[0][..], &[0, 255, 7][..]));
        let mut read = vec![0; reader.output_buffer_size().expect("a size")];
        reader.next_frame(&mut read).expect("dots");
        assert_eq!(read, dots);
    }

    #[test]
    fn a_picture_without_dots_is_refused() {
        assert!(Indexed { columns: 0, rows: 4, palette: &[], dots: &[] }.data_uri().is_none());
        assert!(Indexed { columns: 2, rows: 2, palette: &[], dots: &[0] }.data_uri().is_none());
    }
}
