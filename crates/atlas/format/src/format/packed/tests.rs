//! What packed cells keep of cells, and what they refuse.

use super::*;

const SCALE: Scale = Scale { octaves: [4, -8, -8, -6, -6, -6] };

fn unpacked(values: [f64; 6]) -> [f64; 6] {
    match SCALE.unpack(SCALE.pack(&values).expect("it fits")) {
        Packed::Values(values) => values,
        other => panic!("{other:?}"),
    }
}

#[test]
fn heads_and_exact_cells_come_back_as_they_went() {
    let head = PackedHeader {
        kind: 1,
        tag: 3,
        rows: 384,
        columns: 16,
        flags: 6,
        counts: 3,
        scale: Scale { octaves: [-3, 2, -9, 0, 1, -128] },
        exact: 77,
    };
    assert_eq!(PackedHeader::from_bytes(&head.to_bytes()), head);
    let exact = ExactRecord { place: 9, n: 64, values: [1.5, 1.0, 2.0, 0.1, 1e9, 0.3] };
    assert_eq!(ExactRecord::from_bytes(&exact.to_bytes()), exact);
    let lines = HistogramHeader { level: 1, place: 383, lines: 4096 };
    assert_eq!(HistogramHeader::from_bytes(&lines.to_bytes()), lines);
}

#[test]
fn a_cell_takes_47_bits_and_its_count_at_most_four() {
    assert_eq!(CELL_BITS, 47);
    let width = |counts| {
        let scale = Scale::default();
        let (kind, tag, flags) = (0, 0, PackedHeader::PACKED);
        PackedHeader { kind, tag, rows: 1, columns: 1, flags, counts, scale, exact: 0 }.width()
    };
    assert_eq!([0, 1, 2, 3, 16].map(width), [47, 47, 48, 49, 51]);
}

#[test]
fn the_triangle_has_a_place_for_each_pair() {
    let head = PackedHeader {
        kind: 1,
        tag: 3,
        rows: 5,
        columns: 5,
        flags: PackedHeader::SYMMETRIC,
        counts: 1,
        scale: Scale::default(),
        exact: 0,
    };
    let mut next = 0;
    for row in 0..5 {
        for column in row..5 {
            assert_eq!((head.place(row, column), head.place(column, row)), (next, next));
            next += 1;
        }
    }
    assert_eq!(head.cells(), Some(next));
    assert_eq!(PackedHeader { columns: 4, ..head }.cells(), None);
}

#[test]
fn a_median_below_the_least_octave_is_not_packed() {
    // With the ends that it would come back with, nothing else tells the two apart.
    for median in [1.0, 15.9] {
        assert_eq!(SCALE.pack(&[median, 15.0, 17.0, 15.0, 17.0, f64::NAN]), None, "{median}");
    }
    assert!(SCALE.pack(&[16.0, 15.0, 17.0, 15.0, 17.0, f64::NAN]).is_some());
}

#[test]
fn medians_stay_and_intervals_only_widen() {
    for step in 0..4000 {
        let median = 20.0 + 0.37 * f64::from(step);
        let share = 0.004 + 0.9 * f64::from(step % 97) / 97.0;
        let values = [
            median,
            median * (1.0 - share * 0.3),
            median * (1.0 + share),
            median * (1.0 - share * 0.5),
            median * (1.0 + share * 1.1),
            median * (1.0 - share * 0.7),
        ];
        let seen = unpacked(values);
        assert!((seen[0] / median - 1.0).abs() <= 1.0 / 4096.0, "{values:?} {seen:?}");
        let rounding = median * 2.0 * ROUNDING;
        assert!(seen[1] <= values[1] + rounding && seen[2] >= values[2] - rounding);
        assert_eq!(unpacked(seen), seen, "what was packed once is packed again as it is");
        for at in 1..6 {
            let most = (values[at] - median).abs() / 16.0 + median * (1.0 / 64.0 + 1.0 / 2048.0);
            assert!((seen[at] - values[at]).abs() <= most, "{values:?} {seen:?}");
        }
    }
}

#[test]
fn what_has_no_spread_has_none_afterwards() {
    let seen = unpacked([64.0, 64.0, 64.0, 64.0, 64.0, f64::NAN]);
    assert_eq!(seen[..5], [64.0; 5]);
    assert!(seen[5].is_nan(), "no fastest line");
}

#[test]
fn what_would_not_come_back_is_not_packed() {
    let good = [100.0, 99.0, 101.0, 95.0, 110.0, 94.0];
    assert!(SCALE.pack(&good).is_some());
    let with = |at: usize, value| {
        let mut values = good;
        values[at] = value;
        SCALE.pack(&values)
    };
    for (at, value) in [
        (0, -3.0),
        (0, 0.0),
        (0, 1e-3),
        (0, 1e9),
        (0, f64::NAN),
        (1, f64::NEG_INFINITY),
        (1, 102.0),
        (1, -200.0),
        (2, 98.0),
        (2, 5000.0),
        (3, 107.0),
        (4, 90.0),
        (4, 5000.0),
        (5, 120.0),
    ] {
        assert_eq!(with(at, value), None, "{at} {value}");
    }
    assert_eq!(SCALE.unpack(Scale::MISSING), Packed::Missing);
    assert_eq!(SCALE.unpack(Scale::EXACT | 7 << 20), Packed::Exact);
}

#[test]
fn any_bits_say_something() {
    let mut word = 0x9e37_79b9_7f4a_7c15_u64;
    for octaves in [[i8::MIN; 6], [i8::MAX; 6], SCALE.octaves] {
        for _ in 0..2000 {
            word = word.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(1);
            let _ = Scale { octaves }.unpack(word);
        }
    }
}
