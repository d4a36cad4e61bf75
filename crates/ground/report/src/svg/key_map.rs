//! Which code (page class and key) each page of memory has: one dot a page, in address order.
//! Few codes are told apart by category colours; many by the continuous ramp with their shares
//! as bars. Pages without a code are hatched.

use std::collections::BTreeMap;

use super::canvas::{Anchor, Canvas, Paint};
use super::legend;
use crate::colour::{Rgb, ramp};
use crate::fmt::{bytes, count, percent, significant};
use crate::png::Indexed;
use crate::scale::{Extent, Scale};

/// Up to this many different codes are told apart by category colours.
const CATEGORIES: usize = 8;
/// Up to this many codes have a bar with their share.
const BARS: usize = 256;
/// Colours of a picture beside the transparent one.
const PALETTE: usize = 255;
/// Up to this many pages each is an element that says its code when pointed at.
const ELEMENT_PAGES: usize = 4096;
const GRID_WIDTH: f64 = 800.0;
const GRID_HEIGHT: f64 = 640.0;
const LEFT: f64 = 70.0;
const SHARES_HEIGHT: f64 = 60.0;

/// Category colours that read on a light and on a dark page (dots of a picture cannot follow the
/// theme). The first three are close to Tol's high-contrast set.
const CATEGORY: [Rgb; CATEGORIES] = [
    Rgb(0x3f, 0x6f, 0xa8),
    Rgb(0xdd, 0xaa, 0x33),
    Rgb(0xbb, 0x55, 0x66),
    Rgb(0x4f, 0x9d, 0x69),
    Rgb(0x8a, 0x63, 0xa8),
    Rgb(0x5f, 0xb3, 0xc6),
    Rgb(0xb9, 0x8b, 0x5e),
    Rgb(0x8f, 0x97, 0x9e),
];

/// A map of the pages' codes.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct KeyMap {
    /// What is shown.
    pub title: String,
    /// One code a page in address order; `None` where it is not known.
    pub codes: Vec<Option<u16>>,
    /// Pages in one row of the map; 0 lets the figure choose a power of two.
    pub pages_per_row: usize,
    /// Bytes of one page, for the addresses beside the rows; 4096 if 0.
    pub page_bytes: u64,
    /// What a code is called: `"class 1"`; codes not listed are called by their number.
    pub labels: Vec<(u16, String)>,
    /// Why codes are missing; `"not decoded"` if empty.
    pub missing: String,
}

impl KeyMap {
    fn missing_words(&self) -> &str {
        if self.missing.is_empty() { "not decoded" } else { &self.missing }
    }

    fn label(&self, code: u16) -> String {
        let named = self.labels.iter().find(|(c, _)| *c == code);
        named.map_or_else(|| format!("code {code}"), |(_, label)| label.clone())
    }

    /// The codes that occur, ascending, with their share of the pages that have one.
    fn shares(&self) -> Vec<(u16, f64)> {
        let mut counts = BTreeMap::<u16, u32>::new();
        for code in self.codes.iter().flatten() {
            *counts.entry(*code).or_default() += 1;
        }
        let total = f64::from(counts.values().sum::<u32>().max(1));
        counts.into_iter().map(|(code, n)| (code, f64::from(n) / total)).collect()
    }

    fn columns(&self) -> usize {
        if self.pages_per_row > 0 {
            return self.pages_per_row;
        }
        // About square in pages, and every row a power of two of bytes.
        let mut columns = 64;
        while columns * columns < self.codes.len() && columns < 512 {
            columns *= 2;
        }
        columns
    }

    fn describe(&self, shares: &[(u16, f64)]) -> String {
        let known = self.codes.iter().flatten().count();
        let mut words = format!(
            "Map of {} pages, {} without a code ({}). {} different codes",
            count(self.codes.len() as u64),
            count((self.codes.len() - known) as u64),
            self.missing_words(),
            count(shares.len() as u64)
        );
        for (code, share) in shares.iter().take(CATEGORIES) {
            words.push_str(&format!("; {}: {}", self.label(*code), percent(*share)));
        }
        words.push('.');
        words
    }
}

/// The colour of each code that occurs.
fn colours(shares: &[(u16, f64)]) -> Vec<Rgb> {
    let last = shares.len().saturating_sub(1).max(1) as f64;
    let colour = |i: usize| {
        if shares.len() <= CATEGORIES { CATEGORY[i] } else { ramp(i as f64 / last) }
    };
    (0..shares.len()).map(colour).collect()
}

/// At most as many colours as a picture has, evenly chosen.
fn thinned(colours: &[Rgb]) -> Vec<Rgb> {
    let count = colours.len().min(PALETTE);
    (0..count).map(|i| colours[i * colours.len() / count]).collect()
}

/// The dot of the `i`-th of `codes` codes; 0 is for what is not known.
fn dot(i: usize, codes: usize, colours: usize) -> u8 {
    u8::try_from(i * colours / codes.max(1) + 1).unwrap_or(u8::MAX)
}

/// Draws a map of the pages' codes.
#[must_use]
pub fn key_map(map: &KeyMap) -> String {
    let mut canvas = Canvas::new();
    let columns = map.columns();
    let rows = map.codes.len().div_ceil(columns).max(1);
    let row_bytes = page_bytes(map) * columns as u64;
    let note = format!("one dot a page, {columns} pages ({}) a row", bytes(row_bytes));
    let top = canvas.heading(&map.title, &note) + 18.0;
    // Whole pixels keep the dots free of moire.
    let whole = |side: f64| if side >= 1.0 { side.floor() } else { side };
    let width = whole((GRID_WIDTH / columns as f64).min(12.0));
    let cell = (width, whole(width.min(GRID_HEIGHT / rows as f64)));
    let grid = Grid { top, columns, rows, cell };
    let shares = map.shares();
    let colours = colours(&shares);
    grid.axes(&mut canvas, row_bytes);
    if map.codes.len() <= ELEMENT_PAGES {
        grid.elements(&mut canvas, map, &shares, &colours);
    } else {
        grid.picture(&mut canvas, map, &shares, &colours);
    }
    let mut y = top + rows as f64 * grid.cell.1 + 18.0;
    let missing = map.codes.iter().any(Option::is_none) || map.codes.is_empty();
    if shares.len() <= CATEGORIES {
        let named = shares.iter().zip(&colours).map(|((code, share), colour)| {
            (Paint::Fill(*colour), format!("{} ({})", map.label(*code), percent(*share)))
        });
        let missing = missing.then(|| (Paint::Hatch, map.missing_words().to_owned()));
        let entries: Vec<_> = named.chain(missing).collect();
        y += legend::swatches(&mut canvas, LEFT, y, &entries);
    } else {
        if shares.len() <= BARS {
            y += share_bars(&mut canvas, LEFT, y, map, &shares, &colours);
        }
        if missing {
            let entries = [(Paint::Hatch, map.missing_words().to_owned())];
            y += legend::swatches(&mut canvas, LEFT, y, &entries);
        }
    }
    canvas.finish(y + 4.0, &map.title, &map.describe(&shares))
}

fn page_bytes(map: &KeyMap) -> u64 {
    if map.page_bytes == 0 { 4096 } else { map.page_bytes }
}

/// Many codes: the share of each as a bar in its colour, which is the legend too.
fn share_bars(
    canvas: &mut Canvas,
    left: f64,
    top: f64,
    map: &KeyMap,
    shares: &[(u16, f64)],
    colours: &[Rgb],
) -> f64 {
    let most = shares.iter().map(|s| s.1).fold(0.0, f64::max);
    let axis = Extent::new(0.0, 100.0 * most, Scale::Linear);
    let base = top + 16.0 + SHARES_HEIGHT;
    canvas.text(left, top + 8.0, "m", Anchor::Start, "share of pages by code");
    for (value, label) in axis.ticks(3) {
        let y = base - SHARES_HEIGHT * axis.share(value);
        canvas.line((left, y), (left + GRID_WIDTH, y), "grid");
        canvas.text(left - 8.0, y + 4.0, "x", Anchor::End, &format!("{label} %"));
    }
    let width = (GRID_WIDTH / shares.len() as f64).min(16.0);
    let every = super::canvas::thinning(width, 22.0);
    for (i, ((code, share), colour)) in shares.iter().zip(colours).enumerate() {
        let height = SHARES_HEIGHT * axis.share(100.0 * share);
        let x = left + i as f64 * width;
        let hint = format!("{}: {}", map.label(*code), percent(*share));
        canvas.rect(
            (x, base - height),
            ((width - 1.0).max(width / 2.0), height),
            Paint::Fill(*colour),
            &hint,
        );
        if i % every == 0 {
            let middle = x + width / 2.0;
            canvas.text(middle, base + 14.0, "x", Anchor::Middle, &code.to_string());
        }
    }
    SHARES_HEIGHT + 40.0
}

/// Where the pages lie.
struct Grid {
    top: f64,
    columns: usize,
    rows: usize,
    cell: (f64, f64),
}

impl Grid {
    /// Offsets of rows at the left, page numbers above.
    fn axes(&self, canvas: &mut Canvas, row_bytes: u64) {
        let every = super::canvas::thinning(self.cell.1, 18.0);
        for row in (0..self.rows).step_by(every) {
            let y = self.top + (row as f64 + 0.5) * self.cell.1 + 4.0;
            canvas.text(LEFT - 8.0, y, "x", Anchor::End, &bytes(row as u64 * row_bytes));
        }
        let every = super::canvas::thinning(self.cell.0, 90.0);
        for column in (0..self.columns).step_by(every) {
            let x = LEFT + column as f64 * self.cell.0;
            let words = if column == 0 { "page 0".to_owned() } else { column.to_string() };
            canvas.text(x, self.top - 6.0, "x", Anchor::Start, &words);
        }
    }

    fn elements(&self, canvas: &mut Canvas, map: &KeyMap, shares: &[(u16, f64)], colours: &[Rgb]) {
        let gap = if self.cell.0.min(self.cell.1) >= 6.0 { 1.0 } else { 0.0 };
        let size = (self.cell.0 - gap, self.cell.1 - gap);
        for (page, code) in map.codes.iter().enumerate() {
            let (row, column) = (page / self.columns, page % self.columns);
            let at = (LEFT + column as f64 * self.cell.0, self.top + row as f64 * self.cell.1);
            let known = code.and_then(|c| shares.iter().position(|s| s.0 == c).map(|i| (c, i)));
            match known {
                Some((code, i)) => {
                    let hint = format!("page {page}: {}", map.label(code));
                    canvas.rect(at, size, Paint::Fill(colours[i]), &hint);
                }
                None => {
                    let hint = format!("page {page}: {}", map.missing_words());
                    canvas.rect(at, size, Paint::Hatch, &hint);
                }
            }
        }
    }

    fn picture(&self, canvas: &mut Canvas, map: &KeyMap, shares: &[(u16, f64)], colours: &[Rgb]) {
        // 255 colours at most beside the transparent one: neighbours share one where codes are more.
        let palette = thinned(colours);
        let dot_of: BTreeMap<u16, u8> = (0..)
            .zip(shares)
            .map(|(i, (code, _))| (*code, dot(i, shares.len(), palette.len())))
            .collect();
        let mut dots: Vec<u8> = map
            .codes
            .iter()
            .map(|code| code.and_then(|c| dot_of.get(&c).copied()).unwrap_or(0))
            .collect();
        let at = (LEFT, self.top);
        let size = (self.columns as f64 * self.cell.0, self.rows as f64 * self.cell.1);
        let missing = dots.iter().filter(|d| **d == 0).count();
        if missing > 0 {
            let share = missing as f64 / dots.len() as f64;
            let part = significant(share * 100.0, 3);
            canvas.rect(
                at,
                size,
                Paint::Hatch,
                &format!("{part} % hatched: {}", map.missing_words()),
            );
        }
        dots.resize(self.columns * self.rows, 0);
        let picture =
            Indexed { columns: self.columns, rows: self.rows, palette: &palette, dots: &dots };
        if let Some(address) = picture.data_uri() {
            canvas.image(at, size, &address);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn map(pages: usize, codes: usize) -> KeyMap {
        let code = |i: usize| u16::try_from(i * 7 % codes).ok();
        KeyMap { title: "Keys".into(), codes: (0..pages).map(code).collect(), ..KeyMap::default() }
    }

    #[test]
    fn few_codes_are_categories_with_shares() {
        let mut map = map(400, 4);
        map.labels = vec![(2, "class 2".into())];
        map.codes[5] = None;
        let text = key_map(&map);
        let tree = roxmltree::Document::parse(&text).unwrap();
        let pages = tree.descendants().filter(|n| n.has_tag_name("rect") && n.has_children());
        assert_eq!(pages.count(), 400);
        assert!(text.contains("class 2 (25.1 %)"));
        assert!(text.contains("code 0 (25.1 %)"));
        assert_eq!(text.matches("class=\"missing\"").count(), 2, "one page and the legend");
    }

    #[test]
    fn many_codes_are_a_ramp_with_bars() {
        let text = key_map(&map(4096, 64));
        assert_eq!(text.matches(": 1.56 %</title>").count(), 64);
        assert!(text.contains(&format!("fill=\"{}\"><title>page 0: code 0", ramp(0.0).hex())));
    }

    #[test]
    fn a_gigabyte_is_a_picture_of_reasonable_size() {
        let few = key_map(&map(262_144, 3));
        let many = key_map(&map(262_144, 256));
        assert_eq!(few.matches("<image ").count(), 1);
        assert!(few.len() < 110_000, "{} bytes", few.len());
        assert!(many.len() < 420_000, "{} bytes", many.len());
        roxmltree::Document::parse(&many).unwrap();
        let most = key_map(&map(262_144, 1024));
        assert!(most.len() < 420_000, "{} bytes", most.len());
        let words = format!("{} different codes", count(1024));
        assert!(most.contains(&words), "{words}");
    }

    #[test]
    fn shares_count_known_pages_only() {
        let map = KeyMap { codes: vec![Some(1), None, Some(1), Some(9)], ..KeyMap::default() };
        assert_eq!(map.shares(), [(1, 2.0 / 3.0), (9, 1.0 / 3.0)]);
    }
}
