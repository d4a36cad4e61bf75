//! The name under which programs ask for the library: one for each binary interface.

/// Raised with every change that a linked program would notice.
const INTERFACE: u32 = 0;

#[allow(clippy::print_stdout, reason = "how cargo is told")]
fn main() {
    println!("cargo:rustc-cdylib-link-arg=-Wl,-soname,libisochrone.so.{INTERFACE}");
    println!("cargo:rerun-if-changed=build.rs");
}
