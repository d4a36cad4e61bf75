//! Records of what was advised, kept below the cache folder: the last ones.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use anyhow::{Context, Result};
use isochrone_atlas_store::Destination;
use isochrone_console::output::{self, Terminal};
use isochrone_report::json::{self, Format};
use serde::Serialize;

/// Records that are kept; the oldest go.
const KEPT: usize = 64;

/// Keeps the record below the cache folder; where that cannot be, a line says so.
pub(super) fn keep<T: Serialize>(program: &str, format: Format, figures: &T, terminal: &Terminal) {
    let Some(folder) = output::cache_folder() else { return };
    match kept(program, format, figures, &folder.join("isochrone").join("advice")) {
        Ok(path) => {
            terminal.complain(&format!("isochrone: the record is kept as {}", path.display()))
        }
        Err(error) => {
            terminal.complain(&format!(
                "isochrone: the record cannot be kept: {}; XDG_CACHE_HOME names another folder",
                output::words(&error)
            ));
        }
    }
}

fn kept<T: Serialize>(
    program: &str,
    format: Format,
    figures: &T,
    folder: &Path,
) -> Result<PathBuf> {
    fs::create_dir_all(folder).with_context(|| folder.display().to_string())?;
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_millis();
    let plain = |c: char| if c.is_ascii_alphanumeric() || "-_.".contains(c) { c } else { '_' };
    let program: String = program.chars().take(40).map(plain).collect();
    let path = folder.join(format!("{now:013}-{program}.json"));
    let text = json::pretty(format, figures)? + "\n";
    Destination::text(&path)?.write(text.as_bytes())?;
    forget(folder);
    Ok(path)
}

/// Removes the oldest records beyond those that are kept; their names begin with their time.
fn forget(folder: &Path) {
    let Ok(entries) = fs::read_dir(folder) else { return };
    let is_ours = |path: &PathBuf| {
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        let (time, rest) = name.split_at_checked(13).unwrap_or_default();
        time.bytes().all(|byte| byte.is_ascii_digit())
            && rest.starts_with('-')
            && rest.ends_with(".json")
    };
    let mut records: Vec<PathBuf> =
        entries.filter_map(|entry| Some(entry.ok()?.path())).filter(is_ours).collect();
    records.sort();
    let many = records.len().saturating_sub(KEPT);
    for old in &records[..many] {
        // Another trial may have removed it.
        let _ = fs::remove_file(old);
    }
}
