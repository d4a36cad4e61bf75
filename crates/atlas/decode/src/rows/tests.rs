//! Tests of the rows: against the plain filter, and at the ends of what a score can hold.

use super::*;
use isochrone_atlas::{Code, Decoder, Noise, PatternTable, Period};
use std::vec;
use std::vec::Vec;

/// A page as a caller keeps it: all codes until few are left.
struct Page {
    all: Scores,
    few: Option<Shortlist>,
}

impl Page {
    fn new(rows: &Rows<'_>) -> Self {
        Self { all: Scores::new(rows), few: None }
    }

    fn add(&mut self, rows: &Rows<'_>, line: u8, value: f32) {
        match &mut self.few {
            Some(few) => few.view().add(rows, line, value),
            None => self.all.view().add(rows, line, value),
        }
    }

    fn verdict(&mut self, rows: &Rows<'_>) -> Verdict {
        if let Some(few) = &mut self.few {
            return few.view().verdict(rows);
        }
        let mut few = Shortlist::EMPTY;
        let mut all = self.all.view();
        all.prune();
        let listed = all.shorten(&mut few.view());
        let verdict = all.verdict(rows);
        self.few = listed.then_some(few);
        verdict
    }
}

/// A book's rows, with memory of their own.
struct Own {
    head: RowHead,
    cells: Vec<u8>,
}

impl Own {
    fn new(book: &Codebook, step: f32) -> Self {
        Self::counted(book, step, Units::Coarse)
    }

    fn counted(book: &Codebook, step: f32, units: Units) -> Self {
        let mut own =
            Self { head: RowHead::EMPTY, cells: vec![0; RowHead::bytes(book, step, units)] };
        own.head.set(book, step, units, None);
        // In pieces, as a caller does who may not do it at once.
        for first in (0..own.head.buckets()).step_by(7) {
            own.head.fill(book, step, first..first + 7, &mut own.cells);
        }
        own
    }

    fn rows(&self) -> Rows<'_> {
        self.head.with(&self.cells)
    }
}

struct Dice(u64);

impl Dice {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 >> 16
    }

    /// Sum of twelve uniform numbers less six: Gaussian enough, variance 1.
    fn gauss(&mut self) -> f32 {
        let mut unit = || f32::from(u16::try_from(self.next() & 0xffff).unwrap()) / 65536.0;
        (0..12).map(|_| unit()).sum::<f32>() - 6.0
    }
}

fn book(period: Period, classes: usize, seed: u64) -> (PatternTable, Codebook) {
    let mut dice = Dice(seed);
    let patterns: Vec<Vec<f32>> = (0..classes)
        .map(|class| {
            let far = if class % 2 == 1 { 120.0 } else { 0.0 };
            (0..period.lines()).map(|_| 85.0 + far + 11.0 * dice.gauss()).collect()
        })
        .collect();
    let table = PatternTable::new(period, patterns.iter().map(Vec::as_slice)).unwrap();
    let book = Codebook::new(&table, &[], &[], Noise::heavy_tailed(6.0)).unwrap();
    (table, book)
}

#[test]
fn it_decides_as_the_plain_filter_does() {
    for (period, classes) in [(Period::Lines64, 16), (Period::Lines64, 3), (Period::Lines256, 4)] {
        let (table, book) = book(period, classes, 7);
        let own = Own::new(&book, 0.25);
        let rows = own.rows();
        let mut dice = Dice(3);
        let mut right = 0;
        for page in 0..200_u16 {
            let code = Code(page * 37 % u16::try_from(table.codes()).unwrap());
            let (mut plain, mut scores) = (Decoder::new(&book), Page::new(&rows));
            for step in 0..16_u8 {
                let line = step.wrapping_mul(53);
                let value = table.latency_cycles(code, line) + 6.0 * dice.gauss();
                plain.add(&book, line, value);
                scores.add(&rows, line, value);
                if step % 4 == 3 {
                    let (a, b) = (plain.best(&book), scores.verdict(&rows));
                    let close = b.close().iter().any(|(code, _)| *code == a.code);
                    assert!(a.code == b.code || close, "{a:?} {b:?}");
                    assert!((a.error - b.error).abs() < 0.1, "{} {}", a.error, b.error);
                }
            }
            right += u16::from(scores.verdict(&rows).code == code);
        }
        assert!(right >= 196, "{right} of 200");
    }
}

#[test]
fn lines_that_come_in_groups_take_fewer_rows_and_decide_the_same() {
    for (group, arranged) in [(1_usize, 8), (2, 4), (4, 2), (8, 1), (64, 1)] {
        let of = |i: usize| 85.0 + f32::from(u16::try_from(i / group * 29 % 31).unwrap());
        let patterns = [0.0, 7.0].map(|above| (0..64).map(|i| of(i) + above).collect::<Vec<f32>>());
        let table = PatternTable::new(Period::Lines64, patterns.iter().map(Vec::as_slice)).unwrap();
        assert_eq!(arrangements(&table), arranged);
        let keys = table.canonical_keys(0.98).map(u16::from);
        let book = Codebook::new(&table, &keys[..64], &[], Noise::heavy_tailed(6.0)).unwrap();
        let own = Own::counted(&book, 0.25, Units::Fine);
        assert_eq!(own.cells.len() * 8, RowHead::bytes(&book, 0.25, Units::Coarse) * arranged);
        let rows = own.rows();
        let mut dice = Dice(5);
        for page in 0..100_u16 {
            let code = Code(page * 37 % 128);
            let (mut plain, mut scores) = (Decoder::new(&book), Page::new(&rows));
            for step in 0..8_u8 {
                let line = step.wrapping_mul(53);
                let value = table.latency_cycles(code, line) + 6.0 * dice.gauss();
                plain.add(&book, line, value);
                scores.add(&rows, line, value);
            }
            let (a, b) = (plain.best(&book), scores.verdict(&rows));
            assert!((a.error - b.error).abs() < 0.1, "{group}: {} {}", a.error, b.error);
        }
    }
}

#[test]
fn equivalent_codes_and_priors_are_heeded() {
    let eight = [3.0, -4.0, 1.5, 5.0, -4.5, 0.0, -2.0, 1.0_f32];
    let pattern: Vec<f32> = (0..64).map(|i| 44.0 + eight[i % 8]).collect();
    let patterns = [pattern.clone(), pattern.iter().map(|v| v + 1.0).collect()];
    let table = PatternTable::new(Period::Lines64, patterns.iter().map(Vec::as_slice)).unwrap();
    let keys = table.canonical_keys(0.98).map(u16::from);
    let shares: Vec<f32> = (0..128).map(|code| if code < 64 { 99.0 } else { 1.0 }).collect();
    let book = Codebook::new(&table, &keys[..64], &shares, Noise::heavy_tailed(2.0)).unwrap();
    let own = Own::new(&book, 0.5);
    let rows = own.rows();
    let mut scores = Page::new(&rows);
    assert!(scores.verdict(&rows).code.0 < 8, "canonical ones only, the likely class");
    for line in 0..8 {
        scores.add(&rows, line, table.latency_cycles(Code(0o53), line));
    }
    let verdict = scores.verdict(&rows);
    assert_eq!(verdict.code, Code(3));
    assert!(verdict.error < 0.02, "{verdict:?}");
    let mut doubled = 0.0;
    for (code, share) in verdict.close() {
        assert!(*code != Code(3) && *share <= verdict.error);
        doubled += share;
    }
    assert!(doubled <= verdict.error + 1e-6);
}

/// How far the odds of rows are from those of the plain filter after so many loads, nats, on average over pages:
/// flat classes a third of the noise apart, read by a clock that ticks.
fn astray(units: Units) -> f32 {
    let patterns = [351.0_f32, 367.0, 381.0].map(|cycles| [cycles; 64]);
    let table = PatternTable::new(Period::Lines64, patterns.iter().map(<[f32; 64]>::as_slice));
    let keys = [0; 64];
    let book = Codebook::new(&table.unwrap(), &keys, &[], Noise::heavy_tailed(46.0)).unwrap();
    let own = Own::counted(&book, book.penalties().step_cycles, units);
    let rows = own.rows();
    let mut dice = Dice(19);
    let (mut sum, mut pages) = (0.0, 0.0);
    while pages < 100.0 {
        let (mut plain, mut scores) = (Decoder::new(&book), Page::new(&rows));
        for _ in 0..80 {
            let start = 26.0 * (dice.gauss() / 12.0 + 0.5).clamp(0.0, 1.0);
            let value = 26.0 * ((367.0 + 46.0 * dice.gauss() + start) / 26.0).floor();
            plain.add(&book, 9, value);
            scores.add(&rows, 9, value);
        }
        let (a, b) = (plain.best(&book), scores.verdict(&rows));
        if a.code == b.code && (0.001..0.5).contains(&a.error) {
            let odds = |error: f32| (error / (1.0 - error)).ln();
            sum += (odds(a.error) - odds(b.error)).abs();
            pages += 1.0;
        }
    }
    sum / pages
}

#[test]
fn what_is_rounded_does_not_add_up_over_a_hundred_loads() {
    let (coarse, fine) = (astray(Units::Coarse), astray(Units::Fine));
    assert!(fine < 0.2 && fine < coarse / 2.0, "{fine} {coarse}");
}

#[test]
fn any_number_of_samples_and_any_value_is_borne() {
    for units in [Units::Coarse, Units::Fine] {
        bears_anything(units);
    }
}

fn bears_anything(units: Units) {
    let (table, book) = book(Period::Lines64, 2, 5);
    let own = Own::counted(&book, 1.0, units);
    let rows = own.rows();
    let mut scores = Page::new(&rows);
    for value in [f32::NAN, f32::INFINITY, -1e9, 1e9] {
        scores.add(&rows, 9, value);
    }
    for step in 0..4000_u16 {
        let line = step.to_le_bytes()[0];
        scores.add(&rows, line, table.latency_cycles(Code(77), line));
        if step % 50 == 0 {
            scores.verdict(&rows);
        }
    }
    let verdict = scores.verdict(&rows);
    assert_eq!((verdict.code, verdict.count), (Code(77), 0));
}

#[test]
fn readings_that_fit_nothing_make_no_answer_of_what_is_none() {
    // Three classes: the other codes of the table are no answers, however far all that are have fallen behind.
    let (table, book) = book(Period::Lines64, 3, 11);
    let own = Own::new(&book, 1.0);
    let rows = own.rows();
    for samples in 1..400_u16 {
        let mut all = Scores::new(&rows);
        let mut scores = all.view();
        for step in 0..samples {
            scores.add(&rows, step.to_le_bytes()[0], 1e6);
            if step % 7 == 6 {
                scores.prune();
            }
        }
        let verdict = scores.verdict(&rows);
        let codes = verdict.close().iter().map(|(code, _)| *code);
        assert!(codes.chain([verdict.code]).all(|code| usize::from(code.0) < table.codes()));
    }
}
