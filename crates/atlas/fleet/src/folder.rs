//! A folder of atlases, one for each node, as `isochrone map --fleet` leaves it. What cannot be read is named with the
//! reason and skipped; nothing is written.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use isochrone_atlas_store::contents::Contents;
use isochrone_atlas_store::load;

use crate::figures::Skipped;
use crate::node::Node;

/// What the file of an atlas ends with.
const ATLAS: &str = ".atlas";
/// What the file of one ends with whose map did not come to its end.
pub const PARTIAL: &str = ".atlas.partial";
/// What the file ends with that says how far a node has come.
const STATE: &str = ".state";
/// A file of a state has one line.
const STATE_BYTES: u64 = 4096;

/// How far a node has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StateWord {
    /// It measures, or ended amid it.
    Begun,
    /// Its atlas is there.
    Done,
    /// It could not be measured, or its atlas could not be kept.
    Failed,
}

impl StateWord {
    const ALL: [Self; 3] = [Self::Begun, Self::Done, Self::Failed];

    const fn as_str(self) -> &'static str {
        match self {
            Self::Begun => "begun",
            Self::Done => "done",
            Self::Failed => "failed",
        }
    }
}

/// What the ranks of a node tell one another, and whoever looks at the folder: a line of text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct State {
    /// How far it has come.
    pub word: StateWord,
    /// The job that it is part of, as a hash; 0 where nobody said.
    pub run: u64,
    /// Which boot of which machine, as a hash.
    pub boot: u64,
    /// Which network namespace of it, as a hash.
    pub space: u64,
    /// Ranks that have begun in this job.
    pub tries: u32,
}

impl State {
    /// The file of a node's state.
    #[must_use]
    pub fn path(folder: &Path, node: &str) -> PathBuf {
        folder.join(format!("{node}{STATE}"))
    }

    /// What is said of a node; `None` where nothing is, or nothing that can be read.
    #[must_use]
    pub fn read(folder: &Path, node: &str) -> Option<Self> {
        let path = Self::path(folder, node);
        let found = fs::metadata(&path).ok()?;
        let is_line = found.is_file() && found.len() <= STATE_BYTES;
        is_line.then(|| fs::read_to_string(path).ok()?.parse().ok()).flatten()
    }
}

impl std::fmt::Display for State {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { word, run, boot, space, tries } = self;
        writeln!(f, "isochrone-fleet {} {run:x} {boot:x} {space:x} {tries}", word.as_str())
    }
}

impl FromStr for State {
    type Err = ();

    fn from_str(line: &str) -> Result<Self, ()> {
        let words: Vec<&str> = line.split_whitespace().collect();
        let ["isochrone-fleet", word, run, boot, space, tries] = words[..] else { return Err(()) };
        let word = StateWord::ALL.into_iter().find(|known| known.as_str() == word).ok_or(())?;
        let hash = |text| u64::from_str_radix(text, 16).map_err(drop);
        let (run, boot, space) = (hash(run)?, hash(boot)?, hash(space)?);
        Ok(Self { word, run, boot, space, tries: tries.parse().map_err(drop)? })
    }
}

/// What a folder holds.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Folder {
    /// The nodes, by name.
    pub nodes: Vec<Node>,
    /// What was left out, and why.
    pub skipped: Vec<Skipped>,
}

impl Folder {
    /// Reads all atlases of a folder. Of a node that has none, what its last map left.
    ///
    /// # Errors
    /// Where the folder cannot be read.
    pub fn read(path: &Path) -> io::Result<Self> {
        let files = Files::of(path)?;
        let mut folder = Self::default();
        for (name, (file, state)) in files.nodes {
            let left_out = |why: String| Skipped { node: shown(&name), why };
            match file.as_deref().map(read) {
                Some(Ok(contents)) => {
                    let mut node = Node::of(&shown(&name), &contents);
                    node.made.boot = state.map(|state| state.boot);
                    folder.nodes.push(node);
                }
                Some(Err(why)) => folder.skipped.push(left_out(why)),
                None => {}
            }
            let words = match (state.map(|state| state.word), file) {
                (Some(StateWord::Begun), None) => {
                    "its map began and left nothing: it is under way, or the node died"
                }
                (Some(StateWord::Begun), Some(_)) => {
                    "its last map began and has not ended: what is shown is from before, or partial"
                }
                (Some(StateWord::Failed), _) => "its last map failed: see what the job printed",
                _ => continue,
            };
            folder.skipped.push(left_out(words.to_owned()));
        }
        Ok(folder)
    }

    /// The atlas of one node, whole.
    ///
    /// # Errors
    /// Why there is none, in a line.
    pub fn atlas(path: &Path, node: &str) -> Result<Contents, String> {
        let places = [ATLAS, PARTIAL].map(|end| path.join(format!("{node}{end}")));
        let there = places.iter().find(|place| place.exists());
        there.map_or_else(|| Err(format!("{}: no atlas of {node}", path.display())), |it| read(it))
    }
}

/// Names of nodes with the file that is gone by, and the state.
struct Files {
    nodes: BTreeMap<String, (Option<PathBuf>, Option<State>)>,
}

impl Files {
    fn of(folder: &Path) -> io::Result<Self> {
        let mut nodes: BTreeMap<String, (Option<PathBuf>, Option<State>)> = BTreeMap::new();
        for entry in fs::read_dir(folder)? {
            let entry = entry?;
            let name = entry.file_name().to_string_lossy().into_owned();
            // A whole atlas goes before a partial one, in whichever order the system names them.
            if let Some(node) = name.strip_suffix(ATLAS) {
                nodes.entry(node.to_owned()).or_default().0 = Some(entry.path());
            } else if let Some(node) = name.strip_suffix(PARTIAL) {
                let file = &mut nodes.entry(node.to_owned()).or_default().0;
                *file = file.take().or_else(|| Some(entry.path()));
            } else if let Some(node) = name.strip_suffix(STATE) {
                let state = State::read(folder, node);
                let entry = nodes.entry(node.to_owned()).or_default();
                entry.1 = state;
            }
        }
        nodes.retain(|name, (file, state)| !name.is_empty() && (file.is_some() || state.is_some()));
        Ok(Self { nodes })
    }
}

/// Reads a file that may be anything.
fn read(path: &Path) -> Result<Contents, String> {
    // To open a pipe waits for whoever writes into it.
    match fs::metadata(path) {
        Ok(found) if !found.is_file() => Err(format!("{}: is no regular file", path.display())),
        Ok(_) => load(path).map_err(|error| error.to_string()),
        Err(error) => Err(format!("{}: {error}", path.display())),
    }
}

/// A name as a terminal may be given it.
fn shown(name: &str) -> String {
    name.chars().map(|c| if c.is_control() { '?' } else { c }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use isochrone_atlas_store::save;
    use isochrone_view::fixtures::genoa;

    #[test]
    fn a_state_comes_back_as_it_was_written_and_nothing_else_is_one() {
        for word in StateWord::ALL {
            let state = State { word, run: u64::MAX, boot: 1, space: 0, tries: 2 };
            assert_eq!(state.to_string().parse(), Ok(state));
        }
        for text in
            ["", "isochrone-fleet begun 1 2 3", "isochrone-fleet over 1 2 3 4", "a b c d e f"]
        {
            assert_eq!(text.parse::<State>(), Err(()), "{text}");
        }
    }

    #[test]
    fn what_cannot_be_read_is_named_and_the_rest_is_read() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        save(&genoa(), &at("n1.atlas")).unwrap();
        let half = Contents { complete: false, bandwidth: Vec::new(), ..genoa() };
        save(&half, &at("n2.atlas.partial")).unwrap();
        save(&half, &at("n1.atlas.partial")).unwrap();
        fs::write(at("n3.atlas"), "words").unwrap();
        fs::create_dir(at("n4.atlas")).unwrap();
        let future =
            concat!(env!("CARGO_MANIFEST_DIR"), "/../../../fuzz/corpus/atlas_reader/future-major");
        fs::copy(future, at("n5.atlas")).unwrap();
        let begun = State { word: StateWord::Begun, run: 0, boot: 0, space: 0, tries: 1 };
        fs::write(at("n6.state"), begun.to_string()).unwrap();
        fs::write(at("notes.txt"), "not looked at").unwrap();
        let found = Folder::read(folder.path()).unwrap();
        let names: Vec<_> = found.nodes.iter().map(|n| (n.name.as_str(), n.complete)).collect();
        assert_eq!(names, [("n1", true), ("n2", false)], "a whole atlas goes before a partial one");
        let skipped: Vec<_> = found.skipped.iter().map(|it| it.node.as_str()).collect();
        assert_eq!(skipped, ["n3", "n4", "n5", "n6"]);
        for (at, word) in ["atlas", "regular file", "update", "died"].into_iter().enumerate() {
            assert!(found.skipped[at].why.contains(word), "{:?}", found.skipped[at]);
        }
        assert!(Folder::read(&at("no such")).is_err());
        assert!(Folder::atlas(folder.path(), "n2").is_ok_and(|atlas| !atlas.complete));
        assert!(Folder::atlas(folder.path(), "n9").is_err());
    }
}
