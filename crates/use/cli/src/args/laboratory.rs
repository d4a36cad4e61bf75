//! Commands of the laboratory, which is a program of its own: named here, so that help and completions list them, and
//! handed on as they were typed.

use std::ffi::OsString;

use clap::{Args, Subcommand};

/// Those commands.
#[derive(Clone, Debug, Subcommand)]
pub(crate) enum LaboratoryCommand {
    /// Laboratory: measure on this machine what each part gains and costs, beside others that do the same.
    #[command(disable_help_flag = true, after_help = elsewhere("bench"))]
    Bench(Passed),
    /// Laboratory: print a paper's figures beside ours.
    #[command(disable_help_flag = true, after_help = elsewhere("reproduce"))]
    Reproduce(Passed),
    /// Laboratory: run task benchmarks on a large machine in virtual time, every coherence message counted.
    #[command(disable_help_flag = true, after_help = elsewhere("sim"))]
    Sim(Passed),
    /// Laboratory: make a whole map of a synthetic machine of hundreds of cores, in virtual time.
    #[command(disable_help_flag = true, after_help = elsewhere("scale"))]
    Scale(Passed),
    /// Laboratory: is the model right? Against live calls here, or against published figures.
    #[command(disable_help_flag = true, after_help = elsewhere("verify"))]
    Verify(Passed),
}

/// Where the help of such a command is.
fn elsewhere(name: &str) -> String {
    format!(
        "A command of the laboratory, isochrone-lab: `isochrone {name} --help` has its own help, and \
         isochrone-lab-{name}(1) is its manual page."
    )
}

/// What the laboratory is given.
#[derive(Clone, Debug, Args)]
pub(crate) struct Passed {
    /// Arguments of the laboratory's command.
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, value_name = "ARGUMENTS")]
    arguments: Vec<OsString>,
}
