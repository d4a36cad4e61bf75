//! Command lines as a careless or a hostile user types them, made from the definition of a command line by a seed: for
//! the tests of both programs. Half of the words are such as belong there, so that lines get past the parser.

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::panic::{AssertUnwindSafe, catch_unwind};

use clap::{Arg, Command};

/// Values that belong somewhere: numbers, lists, sizes, files that are there and places for others.
const USUAL: [&str; 32] = [
    "0",
    "1",
    "2",
    "3",
    "4",
    "8",
    "12",
    "0,1",
    "2..4",
    "0-1",
    "64k",
    "16M",
    "37.5 MiB",
    "1/4",
    "25%",
    "60s",
    "1.5",
    "0:0x1a2b3c40",
    "-,0,0,1",
    "flat",
    "a=1",
    "rounds=3",
    "rfo-sharer=9",
    "measured",
    "xeon-e5-2660-2s",
    "one.toml",
    "isochrone.atlas",
    "other.atlas",
    "figure1.cla",
    "words",
    "out",
    "-",
];

/// Values that belong nowhere, or only just.
const HOSTILE: [&str; 44] = [
    "",
    " ",
    "0",
    "-1",
    "+1",
    "-0.0",
    "1e308",
    "1e-320",
    "NaN",
    "inf",
    "-inf",
    "0x10",
    "255",
    "256",
    "65535",
    "65536",
    "4294967295",
    "4294967296",
    "18446744073709551615",
    "18446744073709551616",
    "99999999999999999999999999",
    "0-65535",
    "0-4294967295",
    "5-2",
    "4..2",
    "2..1024",
    "0..",
    "..",
    ",",
    "1,,2",
    "0:zz",
    "65536:0",
    ":",
    "=",
    "a=",
    "-",
    "--",
    "./",
    "/dev/zero",
    "/dev/full",
    "no/such/file",
    "naïve \u{1f980}",
    "16777216T",
    "0.000000000001k",
];

/// A source of lines.
pub(crate) struct Words {
    state: u64,
}

impl Words {
    /// One seed gives the same lines on every machine.
    pub(crate) fn new(seed: u64) -> Self {
        Self { state: seed }
    }

    /// The next number below `end` (splitmix64, Steele and others, OOPSLA 2014).
    fn below(&mut self, end: usize) -> usize {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.state;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^= mixed >> 31;
        usize::try_from(mixed % u64::try_from(end.max(1)).expect("small")).expect("small")
    }

    fn one_in(&mut self, many: usize) -> bool {
        self.below(many) == 0
    }

    /// A line of the program that `root` defines, its name first: one of `commands` with arguments, or any where none
    /// are named. `root` is built.
    pub(crate) fn line(&mut self, root: &Command, commands: &[&str]) -> Vec<OsString> {
        let mut line = vec![OsString::from(root.get_name())];
        let mut command = root;
        while command.has_subcommands() && !self.one_in(50) {
            let wanted = |below: &&Command| {
                line.len() > 1 || commands.is_empty() || commands.contains(&below.get_name())
            };
            let below: Vec<&Command> = command.get_subcommands().filter(wanted).collect();
            command = below[self.below(below.len())];
            line.push(command.get_name().into());
        }
        let args: Vec<&Arg> = command.get_arguments().collect();
        for arg in args.iter().filter(|arg| arg.is_required_set() || arg.is_positional()) {
            if !self.one_in(8) {
                self.put(arg, &mut line);
            }
        }
        for _ in 0..self.below(5) {
            if args.is_empty() || self.one_in(40) {
                let stray = self.value(None);
                line.push(stray);
            } else {
                let arg = args[self.below(args.len())];
                self.put(arg, &mut line);
            }
        }
        line
    }

    /// An option in one of its forms, or a value where it has no name.
    fn put(&mut self, arg: &Arg, line: &mut Vec<OsString>) {
        let Some(long) = arg.get_long() else {
            let value = self.value(Some(arg));
            line.push(value);
            return;
        };
        let takes = arg.get_num_args().is_some_and(|count| count.takes_values());
        let alone = if takes { self.one_in(12) } else { !self.one_in(12) };
        let mut word = OsString::from(format!("--{long}"));
        if alone {
            return line.push(word);
        }
        let value = self.value(Some(arg));
        if takes && self.one_in(2) {
            return line.extend([word, value]);
        }
        word.push("=");
        word.push(value);
        line.push(word);
    }

    fn value(&mut self, arg: Option<&Arg>) -> OsString {
        let possible = arg.map(Arg::get_possible_values).unwrap_or_default();
        let usual = arg.map(Arg::get_default_values).unwrap_or_default();
        match self.below(10) {
            0..=3 if !possible.is_empty() => possible[self.below(possible.len())].get_name().into(),
            0..=2 if !usual.is_empty() => usual[self.below(usual.len())].to_os_string(),
            0..=5 => USUAL[self.below(USUAL.len())].into(),
            6 if self.one_in(4) => self.long_list(),
            6 if self.one_in(4) => OsString::from_vec(vec![b'a', 0xff, 0xfe]),
            _ => HOSTILE[self.below(HOSTILE.len())].into(),
        }
    }

    /// As many parts as fit into a word of 64 KiB.
    fn long_list(&mut self) -> OsString {
        let part = ["0-65535,", "2..1024,", "1,", "a,", "0"][self.below(5)];
        let list = part.repeat((64 << 10) / part.len());
        list.trim_end_matches(',').into()
    }
}

/// Reads so many lines; none of them may end the program.
pub(crate) fn read_all(
    mut root: Command,
    read: fn(Vec<OsString>) -> Result<(), clap::Error>,
    lines: usize,
) {
    root.build();
    let mut words = Words::new(1);
    let mut read_well = 0;
    for _ in 0..lines {
        let line = words.line(&root, &[]);
        let shown = format!("{line:?}");
        match catch_unwind(AssertUnwindSafe(|| read(line))) {
            Ok(Ok(())) => read_well += 1,
            // Help is no error; else the words of a refusal are made when they are shown.
            Ok(Err(error)) => assert!(matches!(error.exit_code(), 0 | 2), "{shown}: {error}"),
            Err(_) => panic!("a panic while this is read: {:.2000}", shown),
        }
    }
    assert!(read_well * 50 > lines, "{read_well} of {lines} get past the parser");
}
