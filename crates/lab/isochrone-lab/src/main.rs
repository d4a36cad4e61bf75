//! The laboratory's program. All of it is in the library beside, where tests reach the definition of its command line.

use std::process::ExitCode;

fn main() -> ExitCode {
    isochrone_lab::main()
}
