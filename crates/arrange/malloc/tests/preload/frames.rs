//! How much stack the library takes below `malloc` and `free`, found in its machine code: the frames along all paths
//! of calls, those that no run here takes as well.
//!
//! Stacks of coroutines have 4 KiB. What the library calls of the C library is listed; the next allocator's own
//! frames come on top and are left out, as is what runs on the stack of the library's own, to which it changes.

use std::collections::{BTreeMap, BTreeSet};
use std::process::Command;

use crate::support::library;

/// The most that may be taken below a function of the family, bytes.
const MOST: u64 = 2048;
/// What a return address takes.
const WORD: u64 = 8;
/// Functions of the C library that may be called on the program's stack, with bytes that they take at most: frames of
/// glibc 2.36, rounded up. None but the last allocates, which does for keys beyond the thirty-second alone.
const KNOWN: &[(&str, u64)] = &[
    ("__errno_location", 16),
    ("abort", 0), // the process ends there
    ("bcmp", 64),
    ("clock_gettime", 128),
    ("memcpy", 64),
    ("memmove", 64),
    ("memset", 64),
    ("pthread_sigmask", 64),
    ("sched_getcpu", 64),
    ("sigfillset", 32),
    ("strlen", 64),
    ("sysconf", 256),
    ("write", 64),
    ("dlsym", 0), // looks up the next allocator before it is known, at load
    ("pthread_setspecific", 128),
];
/// Parts of names of functions that call through memory: the next allocator's functions.
const LEAD_ON: &[&str] = &["5front", "3abi", "4next"];

/// The exported functions that are held to the bound.
const FAMILY: [&str; 16] = [
    "__libc_free",
    "__libc_realloc",
    "aligned_alloc",
    "calloc",
    "cfree",
    "free",
    "free_aligned_sized",
    "free_sized",
    "malloc",
    "malloc_usable_size",
    "memalign",
    "posix_memalign",
    "pvalloc",
    "realloc",
    "reallocarray",
    "valloc",
];

/// What may stand before an instruction.
const PREFIXES: [&str; 7] = ["lock ", "rep ", "repz ", "repnz ", "notrack ", "bnd ", "data16 "];
/// Instructions between the load of an entry of a jump table and the jump, at most.
const TABLE_STEPS: usize = 6;

/// Where a call leads.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum To {
    Inside(u64),
    Outside(String),
    Anywhere,
}

/// A call, with what the caller has on the stack by then.
#[derive(Debug)]
struct Call {
    to: To,
    /// The return address included.
    below: u64,
}

/// One function: the most that it has on the stack itself, and its calls on the stack that it was called on.
#[derive(Debug, Default)]
struct Frame {
    name: String,
    most: u64,
    calls: Vec<Call>,
}

/// The instructions of a function.
struct Function {
    name: String,
    steps: Vec<Step>,
}

struct Step {
    at: u64,
    operation: String,
    operand: String,
    /// What the disassembler says of an address: the symbol there.
    note: String,
}

fn objdump(arguments: &[&str]) -> String {
    let output = Command::new("objdump").args(arguments).arg(library()).output();
    let output = output.expect("binutils come with the C compiler");
    assert!(output.status.success());
    String::from_utf8(output.stdout).expect("names in ASCII")
}

fn hex(text: &str) -> Option<u64> {
    u64::from_str_radix(text.trim_start_matches("0x"), 16).ok()
}

/// Exported functions and where they begin; several names may share a place.
fn exported() -> BTreeMap<String, u64> {
    let symbols = objdump(&["-T"]);
    let of = |line: &str| {
        let words: Vec<&str> = line.split_whitespace().collect();
        let name = words.last()?.to_string();
        words.contains(&"isochrone_called").then(|| hex(words[0]))?.map(|at| (name, at))
    };
    symbols.lines().filter_map(of).collect()
}

/// All functions, by where they begin.
fn functions() -> BTreeMap<u64, Function> {
    let text = objdump(&["-d", "--no-show-raw-insn", "-M", "suffix"]);
    let mut functions = BTreeMap::new();
    let (mut begin, mut name, mut steps) = (0, String::new(), Vec::new());
    for line in text.lines().chain(["0 <end>:"]) {
        if let Some((at, rest)) = line.strip_suffix(">:").and_then(|line| line.split_once(" <")) {
            if !steps.is_empty() {
                functions.insert(begin, Function { name, steps });
            }
            (begin, name) = (hex(at).expect("an address"), rest.to_owned());
            steps = Vec::new();
        } else if let Some((at, rest)) = line.split_once(":\t") {
            let (step, note) = rest.split_once('#').unwrap_or((rest, ""));
            let prefixed = |step: &str| PREFIXES.iter().any(|prefix| step.starts_with(prefix));
            let mut step = step.trim();
            while prefixed(step) {
                step = step.split_once(' ').map_or("", |(_, rest)| rest.trim_start());
            }
            let (operation, operand) = step.split_once(' ').unwrap_or((step, ""));
            steps.push(Step {
                at: hex(at.trim()).expect("an address"),
                operation: operation.to_owned(),
                operand: operand.trim().to_owned(),
                note: note.trim().to_owned(),
            });
        }
    }
    functions
}

impl Frame {
    /// Follows all ways through a function.
    fn of(name: &str, steps: &[Step]) -> Self {
        let places: BTreeMap<u64, usize> = steps.iter().map(|s| s.at).zip(0..).collect();
        let mut frame = Self { name: name.to_owned(), most: WORD, calls: Vec::new() };
        // What is on the stack before a step, and whether it is another one.
        let mut seen: BTreeMap<usize, (u64, bool)> = BTreeMap::new();
        let mut ahead = vec![(0, WORD, false)];
        while let Some((place, before, away)) = ahead.pop() {
            let Some(step) = steps.get(place) else { continue };
            if seen.get(&place).is_some_and(|known| known.0 >= before && known.1 == away) {
                continue;
            }
            assert!(before < 1 << 20, "the stack of {name} grows in a loop at {:x}", step.at);
            seen.insert(place, (before, away));
            let after = step.after(name, before);
            frame.most = frame.most.max(if away { 0 } else { after });
            let changes = step.operation.starts_with("mov") && step.operand.ends_with(",%rsp");
            let next = (place + 1, after, away != changes);
            match step.operation.trim_end_matches('q') {
                "ret" | "ud2" | "hlt" | "ud2a" => {}
                "call" if away => ahead.push(next),
                "call" => {
                    for to in step.targets(steps) {
                        frame.calls.push(Call { to, below: after });
                    }
                    ahead.push(next);
                }
                "jmp" if step.target() == To::Anywhere && jumps_by_table(steps, place) => {
                    // Anything that nothing else falls into.
                    let ends = |step: &Step| {
                        let operation = step.operation.trim_end_matches('q');
                        ["jmp", "ret", "ud2"].contains(&operation)
                    };
                    let begins = (1..steps.len()).filter(|&place| ends(&steps[place - 1]));
                    ahead.extend(begins.map(|place| (place, after, away)));
                }
                jump if jump.starts_with('j') => {
                    let within = match step.target() {
                        To::Inside(at) => places.get(&at).copied(),
                        _ => None,
                    };
                    match within {
                        Some(to) => ahead.push((to, after, away)),
                        // In place of a return: what is called finds the same return address.
                        None => {
                            let calls = step.targets(steps).into_iter();
                            let below = after - WORD;
                            frame.calls.extend(calls.map(|to| Call { to, below }));
                        }
                    }
                    if jump != "jmp" {
                        ahead.push(next);
                    }
                }
                _ => ahead.push(next),
            }
        }
        frame
    }
}

/// Whether a jump goes by a table of the function's own: an entry was just loaded.
fn jumps_by_table(steps: &[Step], place: usize) -> bool {
    let before = &steps[place.saturating_sub(TABLE_STEPS)..place];
    before.iter().any(|step| step.operation == "movslq" && step.operand.contains(",4)"))
}

impl Step {
    /// What is on the stack after it.
    fn after(&self, name: &str, before: u64) -> u64 {
        let number = |text: &str| text.strip_prefix("$").and_then(hex);
        let operand = self.operand.strip_suffix(",%rsp");
        match (self.operation.trim_end_matches('q'), operand) {
            ("push" | "pushf", _) => before + WORD,
            ("pop" | "popf", _) => before.saturating_sub(WORD),
            ("sub", Some(by)) => before.wrapping_add(number(by).expect("a constant")),
            ("add", Some(by)) => before.wrapping_sub(number(by).expect("a constant")),
            ("and", Some(_)) => before + 64,
            ("lea", Some(from)) => {
                let by = from.strip_suffix("(%rsp)").unwrap_or_else(|| panic!("{name}: {from}"));
                match by.strip_prefix('-') {
                    Some(by) => before + hex(by).expect("a constant"),
                    None => before.saturating_sub(hex(by).expect("a constant")),
                }
            }
            _ => before,
        }
    }

    /// Where a call or jump leads; by a register, to any function of the C library that the function loads into it.
    fn targets(&self, steps: &[Self]) -> Vec<To> {
        let Some(register) = self.operand.strip_prefix("*%") else { return vec![self.target()] };
        let loads = |step: &&Self| {
            let into = step.operand.strip_suffix(register).is_some_and(|rest| rest.ends_with(",%"));
            into && step.operation.starts_with("mov")
        };
        let symbols = steps.iter().filter(loads).map(|step| match step.symbol() {
            Some(name) => To::Outside(name.to_owned()),
            None => To::Anywhere,
        });
        let found: Vec<To> = symbols.filter(|to| *to != To::Anywhere).collect();
        if found.is_empty() { vec![To::Anywhere] } else { found }
    }

    /// The symbol of the C library whose address it takes.
    fn symbol(&self) -> Option<&str> {
        Some(self.note.split_once('<')?.1.split_once('@')?.0)
    }

    /// Where a call or jump leads: an address in the library, a symbol beyond it, or what a register holds.
    fn target(&self) -> To {
        if !self.operand.starts_with('*') {
            let (at, _) = self.operand.split_once(" <").unwrap_or((&self.operand, ""));
            return hex(at).map_or(To::Anywhere, To::Inside);
        }
        self.symbol().map_or(To::Anywhere, |name| To::Outside(name.to_owned()))
    }
}

/// Walks down from functions, and keeps what it has found.
struct Walk<'f> {
    functions: &'f BTreeMap<u64, Function>,
    /// What was found, with the way on which it is so much.
    found: BTreeMap<u64, (u64, Vec<String>)>,
    on_the_way: Vec<u64>,
    wrong: BTreeSet<String>,
}

impl Walk<'_> {
    /// The most that a function and what it calls have on the stack, and on which way.
    fn below(&mut self, at: u64) -> (u64, Vec<String>) {
        if let Some(found) = self.found.get(&at) {
            return found.clone();
        }
        let Some(Function { name, steps }) = self.functions.get(&at) else {
            self.wrong.insert(format!("nothing is known of {at:x}"));
            return (0, Vec::new());
        };
        if let Some(stubbed) = name.strip_suffix("@plt") {
            return (self.known(stubbed, "the linkage table"), vec![name.clone()]);
        }
        if self.on_the_way.contains(&at) {
            self.wrong.insert(format!("{name} calls itself"));
            return (0, Vec::new());
        }
        let frame = Frame::of(name, steps);
        self.on_the_way.push(at);
        let mut most = (frame.most, vec![frame.name.clone()]);
        for call in &frame.calls {
            let (below, way) = match &call.to {
                To::Inside(to) => self.below(*to),
                To::Outside(name) => (self.known(name, &frame.name), vec![name.clone()]),
                To::Anywhere => {
                    let exported = FAMILY.contains(&frame.name.as_str());
                    if !exported && !LEAD_ON.iter().any(|part| frame.name.contains(part)) {
                        self.wrong.insert(format!("{} calls what a register says", frame.name));
                    }
                    (0, Vec::new())
                }
            };
            if call.below + below > most.0 {
                let mut whole = vec![frame.name.clone()];
                whole.extend(way);
                most = (call.below + below, whole);
            }
        }
        self.on_the_way.pop();
        self.found.insert(at, most.clone());
        most
    }

    fn known(&mut self, name: &str, by: &str) -> u64 {
        let known = KNOWN.iter().find(|(known, _)| *known == name);
        if known.is_none() {
            self.wrong.insert(format!("{by} calls {name}, of which it is not known what it takes"));
        }
        known.map_or(0, |(_, bytes)| *bytes)
    }
}

#[test]
fn little_stack_is_taken_below_the_family() {
    let functions = functions();
    let exported = exported();
    let mut walk = Walk {
        functions: &functions,
        found: BTreeMap::new(),
        on_the_way: Vec::new(),
        wrong: BTreeSet::new(),
    };
    let mut too_much = Vec::new();
    let family = FAMILY.map(|name| (name.to_owned(), exported[name]));
    // Those to which the family leads while something is placed.
    let placing = functions
        .iter()
        .filter(|(_, function)| function.name.contains("abi") && function.name.contains("place_"));
    let placing: Vec<_> = placing.map(|(at, function)| (function.name.clone(), *at)).collect();
    assert!(
        placing.len() >= 5,
        "free, realloc, malloc, calloc and one for alignments: {placing:?}"
    );
    for (name, at) in family.into_iter().chain(placing) {
        let (bytes, way) = walk.below(at);
        assert!(bytes >= WORD, "{name}");
        if bytes > MOST {
            too_much.push(format!("{name}: {bytes} bytes by {way:#?}"));
        }
    }
    assert!(walk.wrong.is_empty(), "{:#?}", walk.wrong);
    assert!(too_much.is_empty(), "{}", too_much.join("\n"));
}

#[test]
fn a_call_that_is_led_on_is_one_jump() {
    let text = objdump(&["-d", "--no-show-raw-insn"]);
    let looks = ["malloc_usable_size", "posix_memalign", "reallocarray"];
    for (name, at) in exported() {
        if !FAMILY.contains(&name.as_str()) || looks.contains(&name.as_str()) {
            continue;
        }
        let begin = format!("{at:016x} <");
        let body = text.lines().skip_while(|line| !line.starts_with(&begin)).skip(1);
        let steps: Vec<&str> = body
            .map_while(|line| line.split_once(":\t"))
            .map(|(_, step)| step.trim())
            .take_while(|step| !step.starts_with("int3"))
            .collect();
        // What stands between functions is not of them.
        let ends = steps.iter().position(|step| step.starts_with("jmp")).expect("it jumps");
        assert_eq!(ends, 0, "{name}: {steps:#?}");
        assert!(steps[0].contains("(%rip)"), "{name}: by a word, and not to a place: {steps:#?}");
    }
}
