//! What is measured on a machine that is lent for a while: commands as values, each with its share of the time.

/// One of the two programs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Program {
    Command,
    Laboratory,
}

impl Program {
    pub(super) const fn file(self) -> &'static str {
        match self {
            Self::Command => "isochrone",
            Self::Laboratory => "isochrone-lab",
        }
    }
}

/// A command of the battery.
#[derive(Clone, Copy, Debug)]
pub(super) struct Part {
    /// Also the name of its files.
    pub(super) name: &'static str,
    pub(super) program: Program,
    /// Words, with `{json}`, `{out}` for files beside it, `{s}` for seconds and `{atlas}` for the option with this
    /// machine's atlas, where there is one.
    words: &'static str,
    /// Its share of the time, as a part of the sum of all that are still to be done.
    pub(super) weight: f64,
}

const fn part(name: &'static str, program: Program, weight: f64, words: &'static str) -> Part {
    Part { name, program, words, weight }
}

use Program::{Command, Laboratory};

/// All parts in their order. What others stand on comes first: a quick map, in case that nothing else comes to an
/// end, then the map that benchmarks go by.
pub(super) const PARTS: &[Part] = &[
    part("machine", Command, 0.2, "machine --json={json}"),
    part(
        "quick",
        Command,
        1.0,
        "map --quick --force --out {out}quick.atlas --html={out}quick.html --json={json}",
    ),
    part(
        "map",
        Command,
        12.0,
        "map --budget {s}s --force --out {out}map.atlas --html={out}map.html --json={json}",
    ),
    part(
        "transfers",
        Command,
        4.0,
        "map --only transfer --budget {s}s --force --out {out}transfers.atlas \
         --html={out}transfers.html --json={json}",
    ),
    part("chase", Laboratory, 4.0, "bench chase --budget {s}s {atlas} --json={json}"),
    part("coll", Laboratory, 4.0, "bench coll --budget {s}s {atlas} --json={json}"),
    part("malloc", Laboratory, 4.0, "bench malloc --budget {s}s {atlas} --json={json}"),
    part("structures", Laboratory, 4.0, "bench structures --budget {s}s {atlas} --json={json}"),
    part("jacobi", Laboratory, 2.0, "bench jacobi --budget {s}s {atlas} --json={json}"),
    part("cholesky", Laboratory, 2.0, "bench cholesky --budget {s}s {atlas} --json={json}"),
    part("taskbench", Laboratory, 4.0, "bench taskbench --budget {s}s {atlas} --json={json}"),
    part("tier", Laboratory, 4.0, "bench tier --budget {s}s {atlas} --json={json}"),
    part("model", Laboratory, 1.0, "verify model {atlas} --json={json}"),
];

/// The atlases that parts leave, the best first.
pub(super) const ATLASES: [&str; 2] = ["map.atlas", "quick.atlas"];

/// What the places in a part's words stand for.
#[derive(Clone, Debug)]
pub(super) struct Places {
    /// The folder of results, absolute.
    pub(super) out: String,
    /// Where the figures go.
    pub(super) json: String,
    /// This machine's atlas, once there is one.
    pub(super) atlas: Option<String>,
    /// Seconds that the command is told.
    pub(super) budget_s: u64,
}

impl Part {
    /// The command's words. A folder may have blanks in its name: places are put into words that were split before.
    pub(super) fn words(&self, places: &Places) -> Vec<String> {
        let one = |word: &str| match (word, &places.atlas) {
            ("{atlas}", None) => Vec::new(),
            ("{atlas}", Some(atlas)) => vec!["--atlas".to_owned(), atlas.clone()],
            (word, _) => vec![
                word.replace("{json}", &places.json)
                    .replace("{out}", &format!("{}/", places.out))
                    .replace("{s}", &places.budget_s.to_string()),
            ],
        };
        self.words.split_whitespace().flat_map(one).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_part_writes_its_figures_and_its_words_are_filled_in() {
        let places = Places {
            out: "/a b".to_owned(),
            json: "/a b/x.json.part".to_owned(),
            atlas: Some("/a b/map.atlas".to_owned()),
            budget_s: 17,
        };
        for part in PARTS {
            let words = part.words(&places);
            assert!(words.contains(&"--json=/a b/x.json.part".to_owned()), "{words:?}");
            assert!(words.iter().all(|word| !word.contains('{')), "{words:?}");
            assert_eq!(PARTS.iter().filter(|other| other.name == part.name).count(), 1);
            assert!(part.weight > 0.0);
        }
        let map = PARTS.iter().find(|part| part.name == "map").expect("a map");
        assert!(map.words(&places).contains(&"/a b/map.atlas".to_owned()));
        assert!(map.words(&places).contains(&"17s".to_owned()));
        let chase = PARTS.iter().find(|part| part.name == "chase").expect("a chase");
        let bare = Places { atlas: None, ..places.clone() };
        assert!(chase.words(&places).contains(&"--atlas".to_owned()));
        assert!(!chase.words(&bare).contains(&"--atlas".to_owned()));
    }

    #[test]
    fn an_atlas_is_there_before_who_goes_by_it() {
        let at = |name: &str| PARTS.iter().position(|part| part.name == name);
        for atlas in ATLASES {
            assert!(at(atlas.trim_end_matches(".atlas")) < at("chase"), "{atlas}");
        }
    }
}
