//! The rules of the house that a compiler does not check: which crate may stand on which, what stands in which room,
//! how a file begins, how long a line is, which files take from each other, and that the picture of the house and the
//! code in CONTRIBUTING.md are true.

mod arrows;
mod bare;
mod circles;
mod code;
mod files;
mod members;
mod modules;
mod picture;
mod quotes;
mod rooms;
mod tuples;

use std::path::Path;

use anyhow::{Result, bail};

/// Checks every rule and reports all breaches at once; before that, `--draw` draws the picture of the floors.
pub(crate) fn run(root: &Path, mut words: impl Iterator<Item = String>) -> Result<()> {
    let members = members::of(root)?;
    match words.next().as_deref() {
        Some("--draw") => picture::draw(root, &members)?,
        None => {}
        Some(other) => bail!("unknown word {other:?}: cargo xtask tidy [--draw]"),
    }
    let mut breaches = Vec::new();
    arrows::check(&members, &mut breaches);
    bare::check(root, &members, &mut breaches)?;
    picture::check(root, &members, &mut breaches)?;
    quotes::check(root, &mut breaches)?;
    circles::check(root, &members, &mut breaches)?;
    let sources = files::sources(root)?;
    for source in &sources {
        files::check(source, &mut breaches);
    }
    rooms::check(&sources, &mut breaches);
    tuples::check(&sources, &mut breaches);
    crate::readings::check(root, &mut breaches)?;
    if breaches.is_empty() { Ok(()) } else { bail!("tidy:\n{}", breaches.join("\n")) }
}
