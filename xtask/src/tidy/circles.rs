//! Circles of files, of which there are none.
//!
//! The rule: a file takes from another file of its crate when a path in it leads there. A path begins with `crate`,
//! `super`, `self`, a module or an imported name, in a `use` or in the code, also where a macro is called. It leads to
//! the file that declares the thing: whoever only shows it further (`pub use`) is passed through. A file lies in a
//! circle when, from one file to the next, it takes from itself. Tests are left out, and so are methods of traits,
//! which no path names.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use anyhow::Result;

use super::members::Member;
use super::modules::{Modules, Ties};

/// Checks every crate.
pub(super) fn check(root: &Path, members: &[Member], breaches: &mut Vec<String>) -> Result<()> {
    for member in members {
        breaches.extend(judged(&member.name, &found(root, member)?));
    }
    Ok(())
}

/// A circle: its files, and the ties between them.
#[derive(Debug, PartialEq, Eq)]
struct Circle {
    files: BTreeSet<PathBuf>,
    ties: Ties,
}

fn judged(name: &str, circles: &[Circle]) -> Option<String> {
    let files: usize = circles.iter().map(|circle| circle.files.len()).sum();
    (files > 0).then(|| format!("{name}: {files} files lie in circles: {}", words(circles)))
}

fn words(circles: &[Circle]) -> String {
    let mut text = format!("{} circles", circles.len());
    for circle in circles {
        text.push_str(&format!("\n  of {} files", circle.files.len()));
        for ((from, to), names) in &circle.ties {
            let names: Vec<&str> = names.iter().map(String::as_str).collect();
            text.push_str(&format!(
                "\n    {} takes from {}: {}",
                from.display(),
                to.display(),
                names.join(", ")
            ));
        }
    }
    text
}

/// The circles of a crate.
fn found(root: &Path, member: &Member) -> Result<Vec<Circle>> {
    let mut ties = Ties::new();
    for entry in ["src/lib.rs", "src/main.rs"] {
        let entry = root.join(&member.folder).join(entry);
        if entry.is_file() {
            ties.extend(Modules::of(&entry)?.ties());
        }
    }
    let within = |path: PathBuf| path.strip_prefix(root).map_or(path.clone(), Path::to_path_buf);
    let ties = ties.into_iter().map(|((from, to), names)| ((within(from), within(to)), names));
    Ok(circles(&ties.collect()))
}

/// Files that reach each other are in one circle.
fn circles(ties: &Ties) -> Vec<Circle> {
    let mut next: BTreeMap<&Path, BTreeSet<&Path>> = BTreeMap::new();
    for (from, to) in ties.keys() {
        next.entry(from).or_default().insert(to);
    }
    let reached = |from: &Path| {
        let mut seen = BTreeSet::new();
        let mut ahead: Vec<&Path> = next.get(from).into_iter().flatten().copied().collect();
        while let Some(file) = ahead.pop() {
            if seen.insert(file) {
                ahead.extend(next.get(file).into_iter().flatten());
            }
        }
        seen
    };
    let all: BTreeMap<&Path, BTreeSet<&Path>> =
        next.keys().map(|file| (*file, reached(file))).collect();
    let back = |file: &Path, to: &Path| all.get(file).is_some_and(|seen| seen.contains(to));
    let mut found: Vec<Circle> = Vec::new();
    for (file, seen) in &all {
        let known = found.iter().any(|circle| circle.files.contains(*file));
        if known || !seen.contains(file) {
            continue;
        }
        let files: BTreeSet<PathBuf> =
            seen.iter().filter(|to| back(to, file)).map(|to| to.to_path_buf()).collect();
        let inside = |(from, to): &(PathBuf, PathBuf)| files.contains(from) && files.contains(to);
        let ties = ties.iter().filter(|(tie, _)| inside(tie));
        found.push(Circle { ties: ties.map(|(t, n)| (t.clone(), n.clone())).collect(), files });
    }
    found
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    /// The circles of a crate of these files, as names of files.
    fn told(files: &[(&str, &str)]) -> Vec<Vec<String>> {
        let tree = tempfile::tempdir().unwrap();
        for (name, text) in files {
            let file = tree.path().join("src").join(name);
            fs::create_dir_all(file.parent().unwrap()).unwrap();
            fs::write(file, text).unwrap();
        }
        let member = Member {
            name: "a".to_owned(),
            folder: PathBuf::new(),
            stands_on: BTreeSet::new(),
            tested_with: BTreeSet::new(),
        };
        let name = |file: &PathBuf| file.strip_prefix("src").unwrap().display().to_string();
        let circles = found(tree.path(), &member).unwrap();
        circles.iter().map(|circle| circle.files.iter().map(name).collect()).collect()
    }

    #[test]
    fn files_that_take_from_each_other_lie_in_a_circle() {
        let lib = ("lib.rs", "mod a; mod b; mod c;");
        let c = ("c.rs", "pub struct C;");
        let pair = [["a.rs".to_owned(), "b.rs".to_owned()].to_vec()];
        let b = ("b.rs", "use super::a::A; use crate::c::C; pub struct B(A, C);");
        assert_eq!(told(&[lib, c, b, ("a.rs", "use crate::b::B; pub struct A(B);")]), pair);
        assert_eq!(told(&[lib, c, b, ("a.rs", "pub struct A(super::b::B);")]), pair);
        assert_eq!(
            told(&[lib, c, b, ("a.rs", "pub struct A; fn f() { say!(crate::b::B) }")]),
            pair
        );
        for none in [
            "pub struct A; #[cfg(test)] mod tests { use crate::b::B; }",
            "pub struct A; impl A { #[cfg(test)] fn f(_: crate::b::B) {} }",
            "pub struct A; #[cfg(all(test, loom))] use crate::b::B;",
            "pub struct A; // use crate::b::B;",
            "use other::b::B; pub struct A(B);",
            "pub struct A; pub(in crate::b) struct Inner; fn f(b: u8) -> u8 { b }",
        ] {
            assert_eq!(told(&[lib, c, b, ("a.rs", none)]), Vec::<Vec<String>>::new(), "{none}");
        }
    }

    #[test]
    fn who_shows_something_further_is_passed_through() {
        let lib = ("lib.rs", "mod room;");
        let a = ("room/a.rs", "use super::B; pub struct A(B);");
        let facade = "mod a; mod b; pub use a::A; pub use b::*;";
        let none = Vec::<Vec<String>>::new();
        assert_eq!(told(&[lib, a, ("room/mod.rs", facade), ("room/b.rs", "pub struct B;")]), none);
        let two = [["room/a.rs".to_owned(), "room/b.rs".to_owned()].to_vec()];
        let back = ("room/b.rs", "use crate::room; pub struct B; fn f(_: room::A) {}");
        assert_eq!(told(&[lib, a, ("room/mod.rs", facade), back]), two);
        // A room that uses what it shows is itself in the circle, where the shown needs the room.
        let user = "mod a; mod b; pub use a::A; pub use b::B; pub struct C(A);";
        let a = ("room/a.rs", "use super::C; pub struct A(Box<C>);");
        let room = [["room/a.rs".to_owned(), "room/mod.rs".to_owned()].to_vec()];
        assert_eq!(told(&[lib, a, ("room/mod.rs", user), ("room/b.rs", "pub struct B;")]), room);
    }

    #[test]
    fn a_circle_is_told_with_what_ties_it() {
        let path = |name: &str| PathBuf::from(name);
        let ties: Ties = [("a", "b"), ("b", "a"), ("b", "c"), ("d", "d2"), ("d2", "d")]
            .map(|(from, to)| ((path(from), path(to)), BTreeSet::from(["X".to_owned()])))
            .into();
        let found = circles(&ties);
        assert_eq!(found.len(), 2, "{found:?}");
        let told = judged("x", &found).unwrap();
        assert!(told.starts_with("x: 4 files lie in circles: 2 circles"), "{told}");
        assert!(told.contains("a takes from b: X") && !told.contains("from c"), "{told}");
        assert_eq!(judged("x", &[]), None);
    }
}
