//! What the command and the laboratory both need: they alone print, exit or read the environment, and they do
//! it by this crate.
//!
//! `output` and `progress` are where words go, `written` are the files that options name, `args` are options that both
//! take, `line` reads the words of a command line, `codes` are exit codes, `pages` are manuals and completions,
//! `partner` finds and starts the other program of
//! the same build, `run` starts programs under a library and reads what they leave, `turns` compares arms that take
//! turns, and `line_costs` has what lines cost by a machine file or an atlas.

pub mod args;
pub mod codes;
mod ignored;
pub mod line;
pub mod line_costs;
pub mod output;
pub mod pages;
pub mod partner;
pub mod progress;
pub mod run;
pub mod stack;
pub mod turns;
pub mod written;
mod wrong;
