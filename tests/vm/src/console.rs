//! The first console: the way out of the machine for words.

/// A line on it.
#[allow(clippy::print_stdout, reason = "the console is the way out of the machine")]
pub(crate) fn say(line: &str) {
    println!("{line}");
}
