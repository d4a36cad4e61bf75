//! The machines of the papers, compiled into the library, so that an installed program has them
//! without a data directory. A name that is not among them is taken for a path.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use isochrone_machine::Machine;

use crate::file::{MAX_FILE_BYTES, MachineFileError, machine_from_toml};
use crate::hwloc::{MAX_XML_BYTES, machine_from_hwloc};

/// With what every atlas begins. This floor knows nothing else of atlases; a test of the command holds it against the
/// format.
const ATLAS: &[u8] = b"\x89ISO\r\n\x1a\n";

macro_rules! machines {
    ($($name:literal),+ $(,)?) => {
        /// Name of the file and its text.
        const MACHINES: &[(&str, &str)] =
            &[$(($name, include_str!(concat!("../machines/", $name, ".toml")))),+];
    };
}

machines![
    "bullion-s-16s",
    "epyc-7702-2s-nps4",
    "xeon-e5-2660-2s",
    "xeon-phi-5110p",
    "xeon-phi-7285-all2all",
    "xeon-phi-7285-quadrant",
    "xeon-phi-7285-snc4",
    "xeon-phi-preproduction",
];

/// Names of the machines that come with the program.
pub fn bundled_names() -> impl Iterator<Item = &'static str> {
    MACHINES.iter().map(|(name, _)| *name)
}

/// The machines that come with the program, in the order of their names.
///
/// # Errors
/// None in a released program: a test reads them all.
pub fn bundled_machines() -> Result<Vec<Machine>, MachineFileError> {
    MACHINES.iter().map(|(name, text)| machine_from_toml(text, &format!("{name}.toml"))).collect()
}

/// The machine with this name, or described by the file at this path: a topology of hwloc where its
/// name ends with `.xml`, else a description in TOML.
///
/// # Errors
/// The name is neither a bundled machine nor a readable file, or the file is wrong.
pub fn find_machine(name_or_path: &str) -> Result<Machine, MachineFileError> {
    if let Some((name, text)) = MACHINES.iter().find(|(name, _)| *name == name_or_path) {
        return machine_from_toml(text, &format!("{name}.toml"));
    }
    let known = bundled_names().collect::<Vec<_>>().join(", ");
    let path = Path::new(name_or_path);
    let known_end = path.extension().is_some_and(|end| end == "toml" || end == "xml");
    let looks_like_path = name_or_path.contains('/') || known_end;
    if !looks_like_path && !path.is_file() {
        return Err(MachineFileError::NoSuchMachine { name: name_or_path.to_owned(), known });
    }
    if path.extension().is_some_and(|end| end == "xml") {
        return read_hwloc(path);
    }
    let unreadable = |error: io::Error| MachineFileError::Unreadable {
        file: name_or_path.to_owned(),
        why: error.to_string(),
        known,
    };
    let bytes = read(path, MAX_FILE_BYTES).map_err(unreadable)?;
    machine_from_toml(&text(bytes, name_or_path)?, name_or_path)
}

/// The machine of a topology that hwloc wrote, from a file of any name.
///
/// # Errors
/// The file cannot be read, or is wrong.
pub fn read_hwloc(path: &Path) -> Result<Machine, MachineFileError> {
    let file = path.display().to_string();
    let bytes = read(path, MAX_XML_BYTES).map_err(|error| MachineFileError::NoTopology {
        file: file.clone(),
        why: error.to_string(),
    })?;
    machine_from_hwloc(&text(bytes, &file)?, &file)
}

fn read(path: &Path, most: usize) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    // One byte more than a file may have, so that a larger one is named as too large.
    File::open(path)?.take(most as u64 + 1).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// The text of a file.
fn text(bytes: Vec<u8>, file: &str) -> Result<String, MachineFileError> {
    let file = file.to_owned();
    if bytes.starts_with(ATLAS) {
        return Err(MachineFileError::Atlas { file });
    }
    String::from_utf8(bytes).map_err(|_| MachineFileError::NoText { file })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_bundled_name_is_the_name_in_its_file() {
        let machines = bundled_machines().expect("bundled descriptions are right");
        let names: Vec<&str> = machines.iter().map(|machine| machine.name.as_str()).collect();
        assert_eq!(names, bundled_names().collect::<Vec<_>>());
        assert!(names.is_sorted());
    }

    #[test]
    fn who_names_a_file_of_hwloc_is_told_of_files_and_not_of_machines() {
        let missing = read_hwloc(Path::new("nosuch")).expect_err("no such file").to_string();
        assert!(missing.contains("lstopo") && !missing.contains("bullion"), "{missing}");
        let folder = tempfile::tempdir().expect("a temporary folder");
        let path = folder.path().join("a.toml");
        std::fs::write(&path, b"\xff\xfe").expect("written");
        let binary = find_machine(path.to_str().expect("UTF-8")).expect_err("no text").to_string();
        assert!(binary.contains("is no text") && binary.contains(".xml"), "{binary}");
    }

    #[test]
    fn a_name_a_path_and_neither() {
        assert!(find_machine("xeon-phi-5110p").is_ok());
        let unknown = find_machine("xeon-phi").expect_err("no such machine").to_string();
        assert!(unknown.contains("xeon-phi-5110p"), "{unknown}");
        let missing = find_machine("/nowhere/a.toml").expect_err("no such file").to_string();
        assert!(missing.contains("/nowhere/a.toml") && missing.contains("bullion"), "{missing}");
        let folder = tempfile::tempdir().expect("a temporary folder");
        let path = folder.path().join("m.toml");
        std::fs::write(&path, MACHINES[0].1).expect("written");
        let read = find_machine(path.to_str().expect("UTF-8")).expect("right");
        assert_eq!(read.name, MACHINES[0].0);
        std::fs::write(&path, " ".repeat(MAX_FILE_BYTES + 5)).expect("written");
        let large = find_machine(path.to_str().expect("UTF-8"));
        assert!(matches!(large, Err(MachineFileError::TooLarge { .. })), "{large:?}");
    }
}
