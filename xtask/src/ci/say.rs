//! Where the gate's words go.

#[allow(clippy::print_stdout, reason = "the gate's log is its output")]
pub(crate) fn say(line: &str) {
    println!("{line}");
}
