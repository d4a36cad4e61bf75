//! What all commands have in common: places for text, exit codes, manual pages. Nothing is measured.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use isochrone_atlas_store::contents::Contents;
use isochrone_atlas_store::save;
use isochrone_view::fixtures::genoa;
use serde_json::Value;

use crate::support::{folder, isochrone, run};

/// A folder with two atlases that differ, and a program in lines.
fn prepared(name: &str) -> PathBuf {
    let folder = folder(name);
    let mut other = genoa();
    for of in &mut other.bandwidth {
        let cell = &mut of.gb_per_s;
        let numbers = [&mut cell.median, &mut cell.lo, &mut cell.hi, &mut cell.p5, &mut cell.p95];
        numbers.into_iter().for_each(|number| *number *= 3.0);
    }
    for (name, contents) in [("isochrone.atlas", &genoa()), ("other.atlas", &other)] {
        save(contents as &Contents, &folder.join(name)).expect("an atlas");
    }
    let program = include_str!("../../examples/cla/figure1.cla");
    fs::write(folder.join("figure1.cla"), program).expect("a program");
    folder
}

fn only_json(folder: &Path, line: &str) -> Value {
    let words: Vec<&str> = line.split_whitespace().collect();
    let (_, out, err) = run(folder, &words);
    serde_json::from_str(&out).unwrap_or_else(|e| panic!("{line}: {e}\n{out}{err}"))
}

/// Names of fields, or how many entries there are: what a query takes is measured anew each time.
fn form(value: &Value) -> Vec<String> {
    let entries = value.as_array().map_or(0, Vec::len);
    let names = value.as_object().into_iter().flat_map(|fields| fields.keys().cloned());
    names.chain([entries.to_string()]).collect()
}

#[test]
fn figures_on_standard_output_stand_there_alone_and_files_have_the_same() {
    let folder = prepared("line-json");
    for line in [
        "show",
        "diff isochrone.atlas other.atlas",
        "export isochrone.atlas",
        "machine xeon-e5-2660-2s",
        "machine --list",
        "predict bcast --machine xeon-e5-2660-2s --threads 2,4",
        "cla figure1.cla --machine xeon-e5-2660-2s --live 0 --seeds 3",
        "tier check",
    ] {
        let told = only_json(&folder, &format!("{line} --json"));
        assert_eq!(form(&told), form(&only_json(&folder, &format!("{line} --json=-"))), "{line}");
        let words = format!("{line} --json=out.json");
        let (_, _, err) = run(&folder, &words.split_whitespace().collect::<Vec<_>>());
        let text = fs::read_to_string(folder.join("out.json"))
            .unwrap_or_else(|e| panic!("{line}: {e}{err}"));
        let kept: Value = serde_json::from_str(&text).expect("JSON");
        assert_eq!(form(&told), form(&kept), "{line}");
    }
    let (output, out, err) = run(&folder, &["show", "--html"]);
    assert!(output.status.success() && out.contains("core 0"), "{out}{err}");
    let page = fs::read_to_string(folder.join("isochrone.html")).expect("a page");
    let (_, out, _) = run(&folder, &["show", "--html=-"]);
    assert_eq!(out.trim(), page.trim());
}

/// In no line a terminal has to break a word or a number: one that is longer than the terminal is wide is one word.
#[test]
fn words_fit_narrow_terminals() {
    let folder = prepared("narrow");
    let described = "--machine xeon-e5-2660-2s --threads 4";
    let lines = [
        "--help",
        "map --help",
        "export --help",
        "run --help",
        "predict --help",
        "show isochrone.atlas",
        "show isochrone.atlas --query 0:0x1000",
        "diff isochrone.atlas other.atlas",
        "machine",
        "machine --list",
        "machine bullion-s-16s",
        "machine xeon-phi-7285-snc4 --suits",
        &format!("predict bcast {described}"),
        &format!("predict allreduce {described} --simulate"),
        "cla figure1.cla --machine xeon-e5-2660-2s --tree -,0,0,1",
        "tier check",
        "advise",
        "mpa",
        "map --memory 0",
        "map --cores 4095",
        "show no.atlas",
        "show /dev/zero",
        "machine no-such-machine",
        "predict bcast --machine xeon-e5-2660-2s --threads 4 --root 99",
    ];
    for width in [80_usize, 60] {
        for line in lines {
            let words: Vec<&str> = line.split(' ').collect();
            let output = isochrone(&folder)
                .args(words)
                .env("COLUMNS", width.to_string())
                .stdin(Stdio::null())
                .output()
                .expect("it starts");
            for text in [&output.stdout, &output.stderr] {
                let text = String::from_utf8_lossy(text);
                let is_broken =
                    |line: &&str| line.chars().count() > width && line.trim().contains(' ');
                assert_eq!(text.lines().find(is_broken), None, "{line}, {width} columns");
            }
        }
    }
}

/// Short words have too few letters in common for clap, which compares these.
#[test]
fn a_slip_of_the_hand_is_told_the_command() {
    let folder = folder("slip");
    let (output, _, err) = run(&folder, &["mpa"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(err.contains("'map'"), "{err}");
    let (output, _, err) = run(&folder, &["frobnicate"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(!err.contains("similar"), "{err}");
}

#[test]
fn an_atlas_is_replaced_by_no_text() {
    let folder = prepared("line-atlas");
    let before = fs::read(folder.join("other.atlas")).expect("an atlas");
    for line in
        ["show --html other.atlas", "export --csv=other.atlas", "machine --json=other.atlas"]
    {
        let (output, out, err) = run(&folder, &line.split_whitespace().collect::<Vec<_>>());
        assert_eq!(output.status.code(), Some(1), "{line}: {out}");
        assert!(err.contains("other.atlas: is an atlas"), "{line}: {err}");
    }
    assert_eq!(fs::read(folder.join("other.atlas")).expect("an atlas"), before);
}

#[test]
fn what_a_check_finds_has_an_exit_code_of_its_own() {
    let folder = prepared("line-codes");
    for (line, code) in [
        ("diff isochrone.atlas isochrone.atlas --check", 0),
        ("diff isochrone.atlas other.atlas", 0),
        ("diff isochrone.atlas other.atlas --check", 4),
        ("cla figure1.cla --machine xeon-e5-2660-2s --live 0 --seeds 3", 0),
        ("cla figure1.cla --machine xeon-e5-2660-2s --live 0 --seeds 3 --calls 2", 4),
        ("cla figure1.cla --machine xeon-e5-2660-2s --live 0 --seeds 3 --states 2", 1),
        ("show nowhere.atlas", 1),
        ("show --query 0:zz", 2),
        ("shwo", 2),
    ] {
        let (output, out, err) = run(&folder, &line.split_whitespace().collect::<Vec<_>>());
        assert_eq!(output.status.code(), Some(code), "{line}: {out}{err}");
    }
    let (_, help, _) = run(&folder, &["--help"]);
    let help = help.split_whitespace().collect::<Vec<_>>().join(" ");
    for words in ["0 done", "1 failed", "2 wrong usage", "3 interrupted", "4 something was found"] {
        assert!(help.contains(words), "{words}: {help}");
    }
}

#[test]
fn manual_pages_of_all_commands_say_how_they_end_and_what_they_read() {
    let folder = folder("line-man");
    let (output, _, err) = run(&folder, &["man", "--out", "man1"]);
    assert!(output.status.success(), "{err}");
    for name in ["isochrone", "isochrone-map", "isochrone-run", "isochrone-tier-check"] {
        let page = fs::read_to_string(folder.join(format!("man1/{name}.1"))).expect("a page");
        for title in ["EXIT STATUS", "FILES", "ENVIRONMENT"] {
            assert!(page.contains(title), "{name} lacks {title}");
        }
    }
}

#[test]
fn calls_in_a_row_are_compared_with_no_bound_for_one_call() {
    let folder = folder("line-steady");
    for kind in ["bcast", "reduce", "barrier"] {
        for objective in ["isolated", "steady"] {
            for start in ["hot", "memory"] {
                let line = format!(
                    "predict {kind} --machine xeon-e5-2660-2s --threads 4,7,12 --objective {objective} --start {start}"
                );
                for row in only_json(&folder, &format!("{line} --json"))["threads"]
                    .as_array()
                    .expect("rows")
                {
                    let cost = row["objective_ns"].as_f64().expect("a cost");
                    let bound = row["bound_ns"].as_f64();
                    assert!(bound.is_none_or(|bound| bound <= cost + 1e-6), "{line}: {row}");
                    assert!(objective == "isolated" || bound.is_none(), "{line}: {row}");
                }
            }
        }
    }
    let line = "predict bcast --machine xeon-e5-2660-2s --threads 8 --objective steady";
    let (_, out, _) = run(&folder, &line.split_whitespace().collect::<Vec<_>>());
    assert!(!out.contains("gap"), "{out}");
}
