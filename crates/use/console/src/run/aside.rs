//! An atlas by which the library steps aside in any process: what that costs can then be measured everywhere.
//!
//! It is this machine's, but for its bases, which no core has: one line of eight is a hundred times farther than the
//! others. The library looks for them as for any base, recognises none, and leaves everything to the next allocator.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use isochrone_atlas_store::contents::{Contents, Form};
use isochrone_atlas_store::save;

/// Lines of which one is far.
const LINES: u8 = 8;
/// Cycles of the others, and of that one.
const CYCLES: [f32; 2] = [40.0, 4000.0];

/// Saves it in a folder.
///
/// # Errors
/// It cannot be written there, or the atlas has no distances of lines that could be strange.
pub fn atlas(contents: &Contents, folder: &Path) -> Result<PathBuf> {
    let path = folder.join("strange.atlas");
    let strange = strange(contents).context("the atlas does not say how far lines are")?;
    save(&strange, &path).with_context(|| path.display().to_string())?;
    Ok(path)
}

fn strange(contents: &Contents) -> Option<Contents> {
    let mut strange = contents.clone();
    strange.pages.clear();
    for level in &mut strange.levels {
        let far = |line: usize| CYCLES[usize::from(line.is_multiple_of(usize::from(LINES)))];
        level.form = Form::Pattern;
        level.canonical_key = (0..level.period).map(|key| key.to_le_bytes()[0] % LINES).collect();
        level.probe_lines = (0..LINES).collect();
        level.penalties = None;
        for pattern in level.bases.iter_mut().flat_map(|base| &mut base.patterns) {
            for (line, cycles) in pattern.iter_mut().enumerate() {
                *cycles = far(line);
            }
        }
        for (code, share) in level.code_share.iter_mut().enumerate() {
            *share = if code < usize::from(LINES) { 1.0 / f32::from(LINES) } else { 0.0 };
        }
    }
    let has_bases = strange.levels.iter().any(|level| !level.bases.is_empty());
    has_bases.then_some(strange)
}

#[cfg(test)]
mod tests {
    use isochrone_atlas_store::contents::{Base, Clock, LevelMap};
    use isochrone_machine::{Core, Machine};
    use isochrone_units::Reading;

    use super::*;

    #[test]
    fn it_is_an_atlas_of_the_same_machine_whose_bases_no_core_has() {
        let level = |level: &str| LevelMap {
            level: level.to_owned(),
            form: Form::Pattern,
            reason: "made for a test".to_owned(),
            method: "none".to_owned(),
            period: 64,
            classes: 1,
            canonical_key: (0..64).collect(),
            bases: vec![Base { core: 0, patterns: vec![vec![40.0; 64]], rounds: 1 }],
            core_base: vec![Some(0)],
            probe_lines: vec![0, 1],
            noise_cycles: 1.0,
            code_share: vec![1.0 / 64.0; 64],
            quality: Vec::new(),
            lines: Vec::new(),
            penalties: None,
        };
        let machine = Machine {
            name: "made".to_owned(),
            cores: vec![Core { id: 0, ..Core::default() }],
            ..Machine::default()
        };
        let clock = Clock { hz: 1e9, tick_cycles: 1, overhead_cycles: 0.0 };
        let none = Contents::begun(Reading::Simulated, machine, clock);
        let folder = tempfile::tempdir().unwrap();
        assert!(atlas(&none, folder.path()).is_err(), "there is nothing to be strange");
        let some = Contents { complete: true, levels: vec![level("llc"), level("dram")], ..none };
        let path = atlas(&some, folder.path()).unwrap();
        let strange = isochrone_atlas_store::load(&path).unwrap();
        assert_eq!(strange.machine, some.machine);
        for level in &strange.levels {
            let pattern = &level.bases[0].patterns[0];
            assert_eq!(pattern.iter().filter(|cycles| **cycles > 1000.0).count(), 8, "{pattern:?}");
        }
    }
}
