//! What is measured is saved as it comes, beside where it is to go: a crash, a kill or a power cut loses no more than
//! the experiment that was under way.

use std::fs;
use std::path::{Path, PathBuf};

use isochrone_atlas_store::contents::Contents;
use isochrone_atlas_store::{SaveError, save};

use super::replace::beside;

/// The atlas so far.
#[derive(Debug)]
pub(super) struct SoFar {
    /// Where the whole one is to go. What is there stays until then.
    wanted: PathBuf,
    /// Where what there is so far was saved last.
    own: Option<PathBuf>,
    /// Why the last time failed.
    failed: Option<SaveError>,
}

impl SoFar {
    /// Of an atlas that is to go there.
    pub(super) fn new(wanted: &Path) -> Self {
        Self { wanted: wanted.to_owned(), own: None, failed: None }
    }

    /// Saves what there is. Where that cannot be, the map goes on, and it is said at the end.
    pub(super) fn keep(&mut self, so_far: &Contents) {
        if !so_far.measured().is_empty() {
            self.failed = self.save(so_far).err();
        }
    }

    fn save(&mut self, so_far: &Contents) -> Result<(), SaveError> {
        let place = beside(&self.wanted, so_far);
        save(so_far, &place)?;
        self.remove_but(&place);
        self.own = Some(place);
        Ok(())
    }

    /// Removes what this run saved, unless it is this file.
    fn remove_but(&mut self, kept: &Path) {
        if let Some(own) = self.own.take().filter(|own| own != kept) {
            // What cannot be removed is an atlas of this machine, and harms nobody.
            let _ = fs::remove_file(own);
        }
    }

    /// The run is over and the atlas lies there: nothing else is needed.
    pub(super) fn end(&mut self, saved: &Path) {
        self.remove_but(saved);
    }

    /// Where something was saved, where that is all there is.
    pub(super) fn place(&self) -> Option<&Path> {
        self.own.as_deref()
    }

    /// One line where the last time failed.
    pub(super) fn complaint(&self) -> Option<String> {
        let why = self.failed.as_ref()?;
        Some(format!("what was measured could not be saved as it came: {why}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use isochrone_atlas_store::load;
    use isochrone_view::fixtures::genoa;

    fn names(folder: &Path) -> Vec<String> {
        let entries = fs::read_dir(folder).unwrap();
        let mut names: Vec<String> =
            entries.map(|e| e.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    /// What there is after the first experiment, after the second, and so on.
    fn steps() -> [Contents; 3] {
        let whole = Contents { complete: false, ..genoa() };
        let second = Contents { regions: Vec::new(), bandwidth: Vec::new(), ..whole.clone() };
        let none = Vec::new();
        let first = Contents { terms: Vec::new(), transfers: none, ..second.clone() };
        [first, second, whole]
    }

    #[test]
    fn each_step_replaces_the_one_before_and_the_end_removes_it() {
        let folder = tempfile::tempdir().unwrap();
        let wanted = folder.path().join("a.atlas");
        let mut so_far = SoFar::new(&wanted);
        so_far.keep(&Contents { levels: Vec::new(), ..Contents::clone(&steps()[0]) });
        for step in &steps() {
            so_far.keep(step);
            assert_eq!(names(folder.path()), ["a.atlas.partial"]);
            assert_eq!(load(so_far.place().unwrap()).unwrap().measured(), step.measured());
        }
        save(&genoa(), &wanted).unwrap();
        so_far.end(&wanted);
        assert_eq!(names(folder.path()), ["a.atlas"]);
        assert_eq!(so_far.complaint(), None);
    }

    #[test]
    fn an_older_one_that_has_more_stays_until_this_one_has_as_much() {
        let folder = tempfile::tempdir().unwrap();
        let wanted = folder.path().join("a.atlas");
        let older = folder.path().join("a.atlas.partial");
        let [first, second, whole] = steps();
        save(&second, &older).unwrap();
        let mut so_far = SoFar::new(&wanted);
        so_far.keep(&first);
        assert_eq!(names(folder.path()), ["a.atlas.partial", "a.atlas.partial.2"]);
        assert_eq!(load(&older).unwrap().measured(), second.measured());
        so_far.keep(&second);
        assert_eq!(names(folder.path()), ["a.atlas.partial"]);
        so_far.keep(&whole);
        assert_eq!(load(&older).unwrap().measured(), whole.measured());
    }

    #[test]
    fn where_it_cannot_be_saved_that_is_said_at_the_end() {
        let folder = tempfile::tempdir().unwrap();
        let mut so_far = SoFar::new(&folder.path().join("gone/a.atlas"));
        so_far.keep(&genoa());
        assert_eq!(so_far.place(), None);
        assert!(so_far.complaint().is_some_and(|why| why.contains("there is no directory")));
        fs::create_dir(folder.path().join("gone")).unwrap();
        so_far.keep(&genoa());
        assert_eq!(so_far.complaint(), None);
    }
}
