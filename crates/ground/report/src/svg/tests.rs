//! What holds for every figure, whatever it is given: well-formed XML with a title, finite
//! coordinates and nothing from outside. It knows no figure's meaning.

use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;

use crate::svg::*;

/// Asserts what holds for every figure.
fn assert_sound(text: &str) {
    let tree =
        roxmltree::Document::parse(text).unwrap_or_else(|e| panic!("not well-formed: {e}\n{text}"));
    let root = tree.root_element();
    assert_eq!(root.attribute("role"), Some("img"));
    let names: Vec<_> = root.children().take(2).map(|n| n.tag_name().name()).collect();
    assert_eq!(names, ["title", "desc"]);
    for word in root.attribute("aria-labelledby").unwrap().split(' ') {
        let found = tree.descendants().filter(|n| n.attribute("id") == Some(word)).count();
        assert_eq!(found, 1, "{word}");
    }
    for node in tree.descendants().filter(|n| n.is_element()) {
        for attribute in node.attributes() {
            let value = attribute.value();
            match attribute.name() {
                "x" | "y" | "x1" | "x2" | "y1" | "y2" | "cx" | "cy" => {
                    let number: f64 = value.parse().unwrap();
                    assert!(number.abs() <= 1e6, "{value}");
                }
                "width" | "height" | "r" => {
                    assert!(value.parse::<f64>().unwrap() >= 0.0, "{value}");
                }
                "d" => assert!(!value.contains("NaN") && !value.contains("inf"), "{value}"),
                "href" => assert!(value.starts_with("data:image/png;base64,")),
                _ => {}
            }
        }
    }
}

/// Any number, not only a finite one.
fn number() -> impl Strategy<Value = f64> {
    prop_oneof![3 => -1e3..1e3f64, 1 => any::<f64>()]
}

fn words() -> impl Strategy<Value = String> {
    prop_oneof!["core [0-9]{1,3}", "\\PC{0,12}", any::<String>()]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    #[test]
    fn bars_and_boxes(
        title in words(),
        label in words(),
        values in vec(vec(number(), 0..12), 0..6),
        layers in vec(words(), 0..10),
    ) {
        let hint = label.clone();
        let marks = values.into_iter().flat_map(|values| [
            GroupMark::Stack { hint: hint.clone(), values: values.clone() },
            GroupMark::Box { hint: hint.clone(), values },
        ]);
        let groups = vec![Group { label: label.clone(), marks: marks.collect() }];
        let panels = vec![GroupPanel { label, groups }; 3];
        assert_sound(&grouped(&Grouped { title: title.clone(), unit: title, layers, panels }));
    }

    #[test]
    fn heat_maps(
        title in words(),
        rows in vec(words(), 0..30),
        columns in vec(words(), 0..30),
        cells in vec(option::of(number()), 0..900),
        intervals in vec(option::of((number(), number())), 0..40),
        range in option::of((number(), number())),
    ) {
        let unit = title.clone();
        let map = HeatMap {
            row_title: title.clone(),
            title, unit, rows, columns, cells, intervals, range, ..HeatMap::default()
        };
        assert_sound(&heat_map(&map));
        let plain = crate::term::heat_map(&map, crate::term::Colour::None, 80);
        prop_assert!(!plain.contains("\x1b"), "a colour without being asked");
    }

    #[test]
    fn strips(
        title in words(),
        rows in vec((words(), vec(option::of(number()), 0..70)), 0..15),
    ) {
        let rows =
            rows.into_iter().map(|(label, values)| StripRow { label, values }).collect();
        let data = Strip { index_title: title.clone(), unit: title.clone(), title, rows };
        assert_sound(&strip(&data));
        let coloured = crate::term::strip(&data, crate::term::Colour::TrueColour, 60);
        prop_assert!(!coloured.is_empty());
    }

    #[test]
    fn histograms(
        title in words(),
        panels in vec((words(), vec((words(), vec(number(), 0..60)), 0..4)), 0..4),
    ) {
        let series = |(label, values)| HistogramSeries { label, values };
        let panels = panels
            .into_iter()
            .map(|(label, all)| HistogramPanel {
                label,
                series: all.into_iter().map(series).collect(),
            })
            .collect();
        assert_sound(&histogram(&Histogram { unit: title.clone(), title, panels }));
    }

    #[test]
    fn key_maps(
        title in words(),
        codes in vec(option::of(any::<u16>()), 0..5000),
        pages_per_row in 0usize..200,
        few in any::<bool>(),
    ) {
        let codes = codes.into_iter().map(|c| c.map(|c| if few { c % 3 } else { c })).collect();
        let labels = vec![(1, title.clone())];
        let map = KeyMap { title, codes, pages_per_row, labels, ..KeyMap::default() };
        assert_sound(&key_map(&map));
    }

    #[test]
    fn line_charts(
        title in words(),
        all in vec((words(), vec((number(), option::of(number()), option::of((number(), number()))), 0..40)), 0..4),
        scale in prop_oneof![Just(Scale::Linear), Just(Scale::Log10), Just(Scale::Log2)],
        mark in prop_oneof![Just(Mark::Line), Just(Mark::Steps), Just(Mark::Dots)],
        range in option::of((number(), number())),
        apart in any::<bool>(),
    ) {
        let series = all
            .into_iter()
            .map(|(label, points)| LineSeries {
                label,
                mark,
                points: points.into_iter().map(|(x, y, band)| Point { x, y, band }).collect(),
            })
            .collect();
        let axis = Axis { title: title.clone(), scale, range, ticks: TickText::Bytes };
        let y = Axis { ticks: TickText::Plain, ..axis.clone() };
        assert_sound(&line_chart(&LineChart { title, x: axis, y, series, apart }));
    }

    #[test]
    fn floor_plans(
        title in words(),
        places in vec((words(), any::<bool>(), number(), number(), option::of(number())), 0..30),
        outline in prop_oneof![Just(Outline::Grid), Just(Outline::Ring), Just(Outline::None)],
    ) {
        let place = |(label, core, x, y, value)| Place {
            label,
            kind: if core { PlaceKind::Core } else { PlaceKind::Memory },
            x,
            y,
            value,
        };
        let places = places.into_iter().map(place).collect();
        let verdict = Verdict::Placed {
            outline, places, symmetries: title.clone(), unit: title.clone(),
        };
        assert_sound(&floor_plan(&FloorPlan { title: title.clone(), verdict }));
        let verdict = Verdict::CannotTell { reason: title.clone() };
        assert_sound(&floor_plan(&FloorPlan { title, verdict }));
    }
}
