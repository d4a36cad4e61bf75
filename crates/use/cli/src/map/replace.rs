//! What a new atlas may replace: one of this machine that has no more, and nothing of a better grade. Anything else
//! stays, and the new one goes beside it.

use std::path::{Path, PathBuf};

use isochrone_atlas::AtlasError;
use isochrone_atlas_store::contents::{Contents, Graded};
use isochrone_atlas_store::{Experiment, LoadError, load};
use isochrone_host::first_difference;
use isochrone_machine::spans;

/// Ends the name of an atlas that would have replaced one that has more, or that is not whole yet.
const PARTIAL: &str = ".partial";
/// So many of them lie beside an atlas at most. Each has something that the others lack.
const PARTIALS_MOST: u32 = 9;

/// Why a file stays.
#[derive(Debug, PartialEq)]
enum Obstacle {
    OtherMachine(String),
    HasMore(String),
}

/// Where a new atlas goes that was to go to `path`, and, where that is another place, why in one line. An atlas
/// that has more stays, and the new one is called `*.partial` (see [`beside`]). An atlas of another
/// machine stays, and the new one is called by its own machine's number.
pub(super) fn place_for(path: &Path, new: &Contents) -> (PathBuf, Option<String>) {
    let (place, why) = match obstacle(path, new) {
        None => return (path.to_owned(), None),
        Some(Obstacle::HasMore(why)) => (beside(path, new), why),
        Some(Obstacle::OtherMachine(why)) => {
            let own = own(path, new);
            match obstacle(&own, new) {
                None => (own, why),
                Some(_) => (beside(&own, new), format!("{why}, and {} has more", own.display())),
            }
        }
    };
    let line = format!(
        "{} stays: {why}; the new atlas is {} (--force replaces the old one)",
        path.display(),
        place.display()
    );
    (place, Some(line))
}

/// Why the file there stays; `None` where there is none, or none that can be used.
fn obstacle(path: &Path, new: &Contents) -> Option<Obstacle> {
    match load(path) {
        Ok(old) => match first_difference(&old.fingerprint.words, &new.fingerprint.words) {
            Some((theirs, ours)) => Some(Obstacle::OtherMachine(format!(
                "it is of another machine (`{theirs}`, here `{ours}`)"
            ))),
            None => lacks(&old, new).map(Obstacle::HasMore),
        },
        Err(LoadError::Refused { source: AtlasError::Future { .. }, .. }) => {
            Some(Obstacle::HasMore("a later version of isochrone wrote it".to_owned()))
        }
        Err(_) => None,
    }
}

/// What the old atlas has and the new one lacks, in words.
fn lacks(old: &Contents, new: &Contents) -> Option<String> {
    let mut lacks = Vec::new();
    let cores = |contents: &Contents| contents.machine.cores.iter().map(|core| core.id).collect();
    let (old_cores, new_cores): (Vec<u16>, Vec<u16>) = (cores(old), cores(new));
    let fewer: Vec<u16> = old_cores.into_iter().filter(|id| !new_cores.contains(id)).collect();
    if !fewer.is_empty() {
        let what = if fewer.len() == 1 { "core" } else { "cores" };
        lacks.push(format!("{what} {}", spans(&fewer)));
    }
    let measured = new.measured();
    lacks.extend(old.measured().into_iter().filter(|name| !measured.contains(name)));
    let worse = |(experiment, old): (&Experiment, &Graded)| {
        let new = new.quality.get(experiment)?;
        (new.grade < old.grade).then(|| format!("{} that are {}", experiment.title(), old.grade))
    };
    lacks.extend(old.quality.iter().filter_map(worse));
    match (old.complete && !new.complete, lacks.is_empty()) {
        (false, true) => None,
        (true, true) => Some("it is complete, and the new one was interrupted".to_owned()),
        (false, false) => Some(format!("the new one lacks {}", lacks.join(", "))),
        (true, false) => {
            Some(format!("the new one was interrupted and lacks {}", lacks.join(", ")))
        }
    }
}

/// Where a new atlas goes that may not replace the one at `path`: to `*.partial`, or where that has what the new one
/// lacks to `*.partial.2`, and so on. Neither the one that was there first wins nor the one that comes: what has more
/// stays. A run that begins anew after a crash has less than the crashed one for a while, and could end as that did.
/// Where none of all may be replaced, the last one is.
pub(super) fn beside(path: &Path, new: &Contents) -> PathBuf {
    let mut places = (1..PARTIALS_MOST).map(|number| partial(path, number));
    let free = places.find(|place| obstacle(place, new).is_none());
    free.unwrap_or_else(|| partial(path, PARTIALS_MOST))
}

/// `isochrone.atlas.partial`, `isochrone.atlas.partial.2`
fn partial(path: &Path, number: u32) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(PARTIAL);
    if number > 1 {
        name.push(format!(".{number}"));
    }
    name.into()
}

/// `isochrone-0123456789abcdef.atlas`
fn own(path: &Path, new: &Contents) -> PathBuf {
    let mut name = path.file_stem().unwrap_or_default().to_owned();
    name.push(format!("-{:016x}", new.fingerprint.hash));
    if let Some(extension) = path.extension() {
        name.push(".");
        name.push(extension);
    }
    path.with_file_name(name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use isochrone_atlas_store::save;
    use isochrone_units::Grade;
    use isochrone_view::fixtures::genoa;

    /// What becomes of the second where the first lies, by the name that it gets.
    fn beside(first: &Contents, second: &Contents) -> (String, Option<String>) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.atlas");
        save(first, &path).unwrap();
        let (place, why) = place_for(&path, second);
        assert_eq!(place.parent(), path.parent());
        (place.file_name().unwrap().to_str().unwrap().to_owned(), why)
    }

    #[test]
    fn as_much_replaces_and_more_too() {
        let whole = genoa();
        assert_eq!(beside(&whole, &whole), ("a.atlas".to_owned(), None));
        let part = Contents { terms: Vec::new(), complete: false, ..whole.clone() };
        assert_eq!(beside(&part, &whole), ("a.atlas".to_owned(), None));
    }

    #[test]
    fn less_goes_beside() {
        let whole = genoa();
        let stopped = Contents { complete: false, ..whole.clone() };
        let (name, why) = beside(&whole, &stopped);
        assert_eq!(name, "a.atlas.partial");
        assert!(why.is_some_and(|why| why.contains("interrupted") && why.contains("--force")));
        let fewer = Contents { bandwidth: Vec::new(), ..whole.clone() };
        let (name, why) = beside(&whole, &fewer);
        assert_eq!(name, "a.atlas.partial");
        assert!(why.is_some_and(|why| why.contains("the new one lacks bandwidth")));
        let mut one_core = whole.clone();
        one_core.machine.cores.truncate(1);
        // How many cores were used is part of what a machine is known by.
        one_core.fingerprint.words.push("cores: 1".to_owned());
        one_core.fingerprint.hash = 7;
        let (name, why) = beside(&whole, &one_core);
        assert_eq!(name, "a.atlas.partial");
        assert!(why.is_some_and(|why| why.contains("core 1") && !why.contains("cores 1")));
    }

    #[test]
    fn of_those_that_are_not_whole_each_has_something_that_others_lack() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.atlas");
        let name = |new: &Contents| {
            let place = super::beside(&path, new);
            save(new, &place).unwrap();
            place.file_name().unwrap().to_str().unwrap().to_owned()
        };
        let part = Contents { complete: false, ..genoa() };
        let without_terms = Contents { terms: Vec::new(), ..part.clone() };
        let without_bandwidth = Contents { bandwidth: Vec::new(), ..part.clone() };
        assert_eq!(name(&without_terms), "a.atlas.partial");
        assert_eq!(name(&without_bandwidth), "a.atlas.partial.2");
        assert_eq!(name(&without_terms), "a.atlas.partial", "as much replaces");
        assert_eq!(name(&part), "a.atlas.partial", "and more too");
        for number in 1..=PARTIALS_MOST {
            save(&part, &partial(&path, number)).unwrap();
        }
        assert_eq!(name(&without_terms), "a.atlas.partial.9", "there is an end to it");
    }

    #[test]
    fn what_was_measured_alone_stays_where_the_new_one_was_disturbed() {
        let graded = |grade| {
            let mut contents = genoa();
            let reason = "made for a test".to_owned();
            contents.quality.insert(Experiment::Transfer, Graded { grade, reason });
            contents
        };
        let (quiet, disturbed) = (graded(Grade::Quiet), graded(Grade::Disturbed));
        let (name, why) = beside(&quiet, &disturbed);
        assert_eq!(name, "a.atlas.partial");
        assert!(why.is_some_and(|why| why.contains("line transfers that are quiet")));
        assert_eq!(beside(&disturbed, &quiet), ("a.atlas".to_owned(), None));
        assert_eq!(beside(&disturbed, &disturbed), ("a.atlas".to_owned(), None));
    }

    #[test]
    fn another_machine_gets_a_file_of_its_own() {
        let whole = genoa();
        let mut other = whole.clone();
        other.fingerprint.words = vec!["cpu: another".to_owned()];
        other.fingerprint.hash = 0x1234;
        let (name, why) = beside(&whole, &other);
        assert_eq!(name, "a-0000000000001234.atlas");
        assert!(why.is_some_and(|why| why.contains("another machine")));
        // The second time, what it has itself stays.
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.atlas");
        save(&whole, &path).unwrap();
        save(&other, &place_for(&path, &other).0).unwrap();
        assert_eq!(place_for(&path, &other).0, folder.path().join("a-0000000000001234.atlas"));
        let less = Contents { complete: false, ..other };
        let beside = folder.path().join("a-0000000000001234.atlas.partial");
        assert_eq!(place_for(&path, &less).0, beside);
    }

    #[test]
    fn what_is_no_usable_atlas_is_replaced_and_a_later_versions_is_not() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.atlas");
        let place = |bytes: &[u8]| {
            std::fs::write(&path, bytes).unwrap();
            place_for(&path, &genoa()).0
        };
        let bytes = isochrone_atlas_store::encode(&genoa()).unwrap();
        assert_eq!(place(b""), path);
        assert_eq!(place(b"words"), path);
        assert_eq!(place(&bytes[..bytes.len() / 2]), path);
        let corpus = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../fuzz/corpus/atlas_reader");
        let future = std::fs::read(format!("{corpus}/future-major")).unwrap();
        assert_eq!(place(&future), folder.path().join("a.atlas.partial"));
    }
}
