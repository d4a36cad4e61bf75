//! Link arguments of the shared library, which Cargo cannot be told otherwise.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    // A thread may end, and run our key's destructor, after somebody closed the library: it must
    // stay mapped. `now` resolves every symbol at load, so that no first call runs the linker. The ends of a section
    // are no names for programs.
    for argument in ["nodelete", "now", "start-stop-visibility=hidden"] {
        println!("cargo::rustc-cdylib-link-arg=-Wl,-z,{argument}");
    }
}
