//! What a terminal is shown of matrices, strips and curves, at several widths, with colour and without.

use super::*;
use crate::svg::StripRow;

fn matrix(n: usize) -> HeatMap {
    let names: Vec<String> = (0..n).map(|i| format!("core {i}")).collect();
    HeatMap {
        title: "Pairs".into(),
        unit: "ns".into(),
        rows: names.clone(),
        columns: names,
        cells: (0..n * n).map(|i| (i / n != i % n).then_some((i % n) as f64)).collect(),
        ..HeatMap::default()
    }
}

/// Text as it looks, without colour sequences.
fn seen(text: &str) -> String {
    let mut parts = text.split('\x1b');
    let first = parts.next().unwrap_or("").to_owned();
    parts.fold(first, |seen, part| seen + part.split_once('m').map_or("", |p| p.1))
}

#[test]
fn small_matrices_have_their_numbers() {
    let text = heat_map(&matrix(3), Colour::None, 80);
    assert!(text.is_ascii(), "{text}");
    let row = text.lines().find(|l| l.starts_with("core 1")).unwrap();
    assert!(row.contains("0.00.") && row.contains("2.00@") && row.contains(HATCH), "{row}");
}

#[test]
fn colour_changes_nothing_but_colour_in_width() {
    for colour in [Colour::Ansi256, Colour::TrueColour] {
        for n in [3, 30, 300] {
            let text = heat_map(&matrix(n), colour, 100);
            assert!(text.contains("\x1b["));
            assert!(seen(&text).lines().all(|l| l.chars().count() <= 100), "{n}");
        }
    }
}

#[test]
fn a_matrix_wider_than_the_terminal_is_averaged_and_says_so() {
    let text = heat_map(&matrix(288), Colour::None, 80);
    assert!(text.is_ascii());
    assert!(text.lines().all(|l| l.len() <= 80));
    assert!(text.contains("each mark is the mean of 5 x 5 cells"), "{text}");
}

fn clustered(cells: &[usize]) -> Vec<Cluster> {
    let label = |nth| format!("cluster {nth}");
    cells
        .iter()
        .enumerate()
        .map(|(nth, cells)| Cluster { label: label(nth), cells: *cells })
        .collect()
}

#[test]
fn what_has_clusters_is_pooled_by_them_and_says_so() {
    let levels = vec![clustered(&[4; 72]), clustered(&[36; 8]), clustered(&[144, 144])];
    let map = HeatMap { row_clusters: levels.clone(), column_clusters: levels, ..matrix(288) };
    let text = heat_map(&map, Colour::None, 80);
    assert!(text.lines().all(|line| line.len() <= 80), "{text}");
    assert_eq!(text.lines().filter(|line| line.starts_with("cluster ")).count(), 8, "{text}");
    assert!(text.contains("over all that its row and column name"), "{text}");
    let wide = heat_map(&map, Colour::None, 200);
    assert_eq!(wide.lines().filter(|line| line.starts_with("cluster ")).count(), 8, "rows too");
}

#[test]
fn rows_that_have_no_clusters_stand_for_themselves() {
    let mut map = matrix(288);
    map.rows = (0..16).map(|region| format!("region {region}")).collect();
    map.column_clusters = vec![clustered(&[36; 8])];
    map.cells.truncate(16 * 288);
    let text = heat_map(&map, Colour::None, 100);
    assert_eq!(text.lines().filter(|line| line.starts_with("region ")).count(), 16, "{text}");
    map.column_clusters.clear();
    let text = heat_map(&map, Colour::None, 100);
    assert_eq!(text.lines().filter(|line| line.starts_with("region ")).count(), 16, "{text}");
    assert!(text.contains("each mark is the mean of 1 x "), "{text}");
}

#[test]
fn a_few_narrow_columns_have_their_numbers() {
    let mut map = matrix(288);
    map.columns = (0..16).map(|region| format!("region {region}")).collect();
    map.row_clusters = vec![clustered(&[12; 24])];
    map.cells.truncate(288 * 16);
    let text = heat_map(&map, Colour::None, 80);
    assert!(text.contains("  0  1  2  3") && text.contains(" 15  region"), "{text}");
    assert_eq!(text.lines().filter(|line| line.starts_with("cluster ")).count(), 24, "{text}");
}

#[test]
fn strips_have_a_mark_a_line() {
    let row = StripRow {
        label: "core 0".into(),
        values: (0..64).map(|i| (i != 5).then(|| f64::from(i % 8))).collect(),
    };
    let data =
        Strip { title: "Base".into(), unit: "cycles".into(), rows: vec![row], ..Strip::default() };
    let plain = strip(&data, Colour::None, 120);
    assert!(plain.is_ascii());
    let line = plain.lines().nth(1).unwrap();
    assert_eq!(&line[7..15], ".:-=+/#@");
    assert!(line.ends_with("mean 3.48, nearest quarter 0.500"), "{line}");
    let coloured = seen(&strip(&data, Colour::TrueColour, 40));
    assert!(coloured.contains("mean of 2 lines"));
    assert!(coloured.lines().all(|l| l.chars().count() <= 60));
}

#[test]
fn bars_fill_by_their_share() {
    assert_eq!(bar(Some(0.5), 10, Colour::None), "#####.....");
    assert_eq!(bar(Some(7.0), 4, Colour::None), "####");
    assert_eq!(bar(None, 4, Colour::TrueColour), "////");
    assert_eq!(seen(&bar(Some(0.3125), 4, Colour::TrueColour)), "█▎  ");
}

#[test]
fn names_cannot_steer_the_terminal() {
    let mut map = matrix(2);
    map.title = "x\x1b[2J".into();
    map.rows[0] = "\x1b]0;y\x07".into();
    assert!(!heat_map(&map, Colour::None, 80).contains('\x1b'));
}
