//! Programs that are right, programs that are wrong, and the stored corpus of the fuzz target.

use std::path::Path;

use super::{Program, Setting, parse};
use crate::check::{FaultKind, STATES_MAX, check};
use crate::collectives::{Figure1, Tree};
use crate::program::{Buffer, Compare, Line, Operation, Rank, Recorded, Span, record};

const FIGURE_1: &str = include_str!("../../../../../examples/cla/figure1.cla");
const AGAIN: &str = include_str!("../../../../../examples/cla/broadcast.cla");
const DISSEMINATION: &str = include_str!("../../../../../examples/cla/barrier.cla");
const DEADLOCK: &str = include_str!("../../../../../fuzz/corpus/cla_program/valid-deadlock.cla");

fn program(text: &str) -> Program {
    parse("test.cla", text).unwrap_or_else(|error| panic!("{error}"))
}

fn with(tree: Tree, values: &[(&str, i64)]) -> Setting {
    let values = values.iter().map(|&(name, value)| (name.to_owned(), value)).collect();
    Setting { tree, values }
}

fn calls(program: &Program, setting: &Setting, count: u64) -> Vec<Recorded> {
    let call = |n| program.record(setting, n, n + 1).unwrap_or_else(|error| panic!("{error}"));
    (0..count).map(call).collect()
}

/// Lines renamed: the text hands them out array by array, the Rust program rank by rank.
fn renamed(recorded: &Recorded, name: impl Fn(u32) -> u32) -> Recorded {
    let mut recorded = recorded.clone();
    let line = |l: Line| Line(name(l.0));
    let span = |s: Span| match s.place {
        crate::program::Place::Shared(l) => line(l).whole(s.bytes),
        crate::program::Place::Private(_) => s,
    };
    for operation in recorded.ranks.iter_mut().flat_map(|r| &mut r.operations) {
        *operation = match *operation {
            Operation::Copy { src, dst } => Operation::Copy { src: span(src), dst: span(dst) },
            Operation::Wait { line: l, compare, value } => {
                Operation::Wait { line: line(l), compare, value }
            }
            Operation::Write { line: l, value } => Operation::Write { line: line(l), value },
            Operation::Add { line: l, value } => Operation::Add { line: line(l), value },
            other => other,
        };
    }
    recorded
}

#[test]
fn figure_1_as_printed_is_the_program_in_rust() {
    for tree in [Tree::flat(4, Rank(0)), Tree::regular(6, Rank(2), 2)] {
        let ranks = u32::from(tree.ranks());
        let text = program(FIGURE_1);
        assert_eq!(
            (text.name(), text.takes_tree(), text.counts_calls()),
            ("OneLineBroadcast", true, false)
        );
        let from_text = &calls(&text, &with(tree.clone(), &[]), 1)[0];
        let rust = record(tree.ranks(), |l, me| Figure1 { tree: &tree, bytes: 64 }.run(l, me));
        // pflag, data, sflag as they are named, against pflag, sflag, data of each rank.
        let renamed = renamed(&rust, |l| [0, 2, 1][(l % 3) as usize] * ranks + l / 3);
        assert_eq!(*from_text, renamed);
    }
}

#[test]
fn figure_1_cannot_be_called_twice_and_the_other_can() {
    let setting = with(Tree::regular(4, Rank(0), 2), &[]);
    let fault = check(&calls(&program(FIGURE_1), &setting, 2), STATES_MAX).unwrap_err();
    assert!(fault.to_string().starts_with("reuse: "), "{fault}");
    let checked = check(&calls(&program(AGAIN), &setting, 3), STATES_MAX).unwrap();
    assert_eq!(checked.delivered.len(), 3);
    assert!(checked.delivered.iter().all(|d| d.from == "rank 0's Send, byte 0, call 3"));
}

#[test]
fn rounds_of_a_barrier_need_their_number() {
    let barrier = program(DISSEMINATION);
    assert_eq!(barrier.values(), ["rounds"]);
    let missing = barrier.record(&with(Tree::flat(4, Rank(0)), &[]), 0, 1).unwrap_err();
    assert!(missing.to_string().contains("--set rounds=NUMBER"), "{missing}");
    let setting = with(Tree::flat(4, Rank(0)), &[("rounds", 2)]);
    check(&calls(&barrier, &setting, 2), STATES_MAX).unwrap();
    let first = calls(&barrier, &setting, 1)[0].ranks[3].operations[0];
    assert_eq!(first, Operation::Write { line: Line(0), value: 1 });
}

#[test]
fn a_deadlock_in_a_text_is_found() {
    let setting = with(Tree::flat(2, Rank(0)), &[]);
    let fault = check(&calls(&program(DEADLOCK), &setting, 1), STATES_MAX).unwrap_err();
    assert!(matches!(fault.kind, FaultKind::Deadlock { .. }), "{fault}");
}

#[test]
fn two_buffers_are_what_is_given_and_got() {
    let text = "lines f[1]\nFunction F(int me, cl_t * a, cl_t * b)\n  cl_copy(a[2], b, 1)\n  \
        cl_wait(f, 0, eq)\n";
    let recorded = &calls(&program(text), &with(Tree::flat(1, Rank(0)), &[]), 1)[0];
    let src = Span::of(Buffer::Send, 128, 64);
    let dst = Span::of(Buffer::Receive, 0, 64);
    let wait = Operation::Wait { line: Line(0), compare: Compare::Equal, value: 0 };
    assert_eq!(recorded.ranks[0].operations, [Operation::Copy { src, dst }, wait]);
}

/// The place and a part of the message of every wrong text.
#[test]
fn errors_name_place_and_what_was_expected() {
    let cases = [
        ("", (1, 1), "expected `Function Name(...)`"),
        ("Function F(int me", (1, 18), "expected `,`, the line ends"),
        ("Function F(long me)", (1, 12), "`int`, `tree_t` or `cl_t *`, found `long`"),
        (
            "Function F(int me)\n  cl_wait(flag[me], 1)",
            (2, 11),
            "`flag` is not known; known here: me",
        ),
        ("lines f[2]\nFunction F(int me)\n  cl_wait(f[me] 1)", (3, 17), "expected `,`, found 1"),
        (
            "lines f[2]\nFunction F()\n  cl_wait(f[0], 1, gt)",
            (3, 20),
            "expected `eq` or `ge`, found `gt`",
        ),
        ("Function F(int me)\n  if me == 0\n    x = 1", (2, 13), "expected `then`, the line ends"),
        (
            "Function F(int me)\n  x = 1\n    y = 2",
            (3, 5),
            "begins in column 5, its block in column 3",
        ),
        ("Function F()\n\tx = 1", (2, 1), "indent with spaces"),
        ("Function F()\n  cl_send(x, 1)", (2, 3), "expected a statement: cl_copy"),
        ("Function F(tree_t t)\n  x = t.pflag", (2, 9), "`parent`, `nsons`, `root` or `son[...]`"),
        ("Function F(tree_t t)\n  cl_write(t.f, 1)", (2, 15), "expected `[` and a rank"),
        ("Function F(cl_t * d)\n  d = 1", (2, 3), "`d` is no number"),
        ("Function F()\n  x = 1 +", (2, 10), "expected a number or a name, the line ends"),
        ("Function F()\nFunction G()", (2, 1), "a program is one function"),
    ];
    for (text, (line, column), part) in cases {
        let error = parse("wrong.cla", text).expect_err(text);
        assert_eq!((error.line, error.column), (line, column), "{text:?}: {error}");
        assert!(error.message.contains(part), "{text:?}: {error}");
        assert!(error.to_string().starts_with(&format!("wrong.cla:{line}:{column}: ")), "{error}");
    }
    let shown = parse("f", "Function F()\n  x = é").expect_err("é").to_string();
    assert!(shown.ends_with("\n    x = é\n        ^"), "{shown}");
}

#[test]
fn what_cannot_be_done_is_told_with_its_place() {
    let at = |text: &str| {
        let error = program(text).record(&with(Tree::flat(2, Rank(0)), &[]), 0, 1).unwrap_err();
        (error.line, error.message)
    };
    let (line, message) = at("lines f[1]\nFunction F(int me)\n  cl_write(f[me], 1)");
    assert_eq!((line, message.as_str()), (3, "rank 1: line 1 of `f`, which has 1"));
    let (_, message) = at("Function F()\n  x = 1\n  while x do\n    x = 1");
    assert!(message.contains("a loop without an end?"), "{message}");
    let (_, message) = at("Function F()\n  x = 1 / 0");
    assert!(message.contains("1 / 0 is no number"), "{message}");
    let (_, message) = at("lines f[4]\nFunction F()\n  cl_copy(f[0], f[1], 2)");
    assert!(message.contains("overlap"), "{message}");
    let (_, message) = at("Function F(int me)\n  if me == 1 then\n    y = 1\n  x = y");
    assert!(message.contains("rank 0: `y` has no value here"), "{message}");
    let (_, message) = at("lines f[9223372036854775807]\nFunction F()");
    assert!(message.contains("more than"), "{message}");
}

/// Files of the corpus begin with what must happen to them; the examples are valid.
#[test]
fn the_corpus_of_the_fuzz_target_and_the_examples_are_replayed() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../..");
    let mut seen = [0, 0];
    for folder in ["fuzz/corpus/cla_program", "examples/cla"] {
        for entry in std::fs::read_dir(root.join(folder)).expect("the folder is there") {
            let path = entry.expect("readable").path();
            let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            let valid = name.starts_with("valid-") || folder == "examples/cla";
            let bytes = std::fs::read(&path).expect("readable");
            match parse(&name, &String::from_utf8_lossy(&bytes)) {
                Ok(program) => {
                    assert!(valid, "{name} is read");
                    let values: Vec<_> = program.values().into_iter().map(|n| (n, 2)).collect();
                    let setting = with(Tree::regular(3, Rank(0), 1), &values);
                    if let Err(error) = program.record(&setting, 0, 2) {
                        assert!(error.to_string().starts_with(&name), "{error}");
                    }
                    seen[0] += 1;
                }
                Err(error) => {
                    assert!(!valid, "{error}");
                    seen[1] += 1;
                }
            }
        }
    }
    assert!(seen[0] >= 8 && seen[1] >= 10, "{seen:?}");
}
