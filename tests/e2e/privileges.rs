//! Without root: what is missing is named in one line, and the rest is measured.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::process::Command;

use crate::support::{json, machine, tool};

#[test]
fn an_ordinary_user_gets_a_map_without_frames() {
    if !rustix::process::geteuid().is_root() {
        // Then every other test has shown it already.
        return;
    }
    let Some(setpriv) = tool("setpriv") else { return };
    // The build folder may lie where only root may go.
    let scratch = tempfile::tempdir().expect("a folder");
    let folder = scratch.path();
    fs::set_permissions(folder, fs::Permissions::from_mode(0o777)).expect("its mode");
    let binary = folder.join("isochrone");
    fs::copy(crate::command(), &binary).expect("a copy");
    let _machine = machine();
    let output = Command::new(setpriv)
        .args(["--reuid=65534", "--regid=65534", "--clear-groups", "--bounding-set=-all"])
        .arg(&binary)
        .args(["map", "--quick", "--only", "block,transfer", "--memory", "16M", "--json", "-"])
        .current_dir(folder)
        .output()
        .expect("setpriv starts");
    let err = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{err}");
    let figures = json(&String::from_utf8_lossy(&output.stdout));
    let missing = figures["missing"].to_string();
    assert!(missing.contains("frames"), "{missing}");
    assert!(figures["atlas_bytes_per_page"].is_null(), "no pages without frames");
    // Beside other tests a quick map may have no time left for a level; it says so then.
    let is_known = figures["block"]["llc"]["mean_ns"].is_number();
    assert!(is_known || missing.contains("block latency (llc)"), "{missing}");
}
