//! Ranks that say different things of a call, on every interleaving: whoever has to hear of it does, whoever waits in
//! vain is not left there, and lines that all have met for are clean for all.

use super::super::super::assembly::{Assembly, Attends, Found};
use super::super::super::differing::{Differing, come, differing, differs};
use super::super::super::kind::Kind;
use super::super::super::lines::{Heard, Hears};
use super::super::super::said::{Said, Tag, Told};
use super::super::super::sync::AtomicU32;
use super::super::super::waits::{has_stopped, stop_by};
use super::super::super::word::Word;
use super::super::{Memory, Modelled};
use super::{Loomed, plan};
use crate::collectives::{Collective, Plan};
use crate::program::{Combine, Compare, Element, Gone, Line, Lines, Rank, Span};
use loom::sync::Arc;
use std::convert::Infallible;

const ZERO: Rank = Rank(0);
const ONE: Rank = Rank(1);

/// What a rank says of its first call.
fn first(kind: Kind, bytes: usize) -> Said {
    Said::new(1, kind, ZERO, Told::of(bytes))
}

fn rest() {
    loom::thread::yield_now();
}

/// Both ranks at once, on all interleavings with a few forced switches; what each returns.
fn both<S, A, B>(shared: fn() -> S, zero: fn(&S) -> A, one: fn(&S) -> B, then: fn(A, B))
where
    S: 'static,
    A: 'static,
    B: 'static,
{
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(3);
    builder.max_branches = 20_000;
    builder.check(move || {
        let shared = Arc::new(shared());
        let other = {
            let shared = Arc::clone(&shared);
            loom::thread::spawn(move || one(&shared))
        };
        let mine = zero(&shared);
        then(mine, other.join().unwrap());
    });
}

/// What two ranks have said of their first call, a flag, and whether somebody gave up.
struct Board {
    said: [Word; 2],
    flag: Word,
    stopped: AtomicU32,
}

impl Board {
    fn new() -> Self {
        let said = std::array::from_fn(|_| Word::new());
        Self { said, flag: Word::new(), stopped: AtomicU32::new(0) }
    }

    fn say(&self, me: Rank, said: Said) {
        self.said[me.index()].store(said.word());
    }

    /// What the other one is found to have said.
    fn other(&self, me: Rank, mine: Said) -> Differing {
        let other = Rank(1 - me.0);
        differing(mine, me, std::iter::once((other, &self.said[other.index()])))
    }
}

const FEW: usize = 8;
const MANY: usize = 16;

/// The second rank says that it has more bytes than the first one, and sends a message of them.
fn says_and_sends(board: &Board) {
    let mine = first(Kind::Allreduce, MANY);
    board.say(ONE, mine);
    board.flag.store(Heard::new(Tag::of(mine), Hears::Tells).flag(1));
}

fn sends_and_says(board: &Board) {
    let mine = first(Kind::Allreduce, MANY);
    board.flag.store(Heard::new(Tag::of(mine), Hears::Tells).flag(1));
    board.say(ONE, mine);
}

/// The first one reads the message, sees by its tag that it is not of its own bytes, and looks what was said.
fn reads(board: &Board) {
    let mine = first(Kind::Allreduce, FEW);
    board.say(ZERO, mine);
    while board.flag.load() < Heard::least(1) {
        rest();
    }
    assert_ne!(Tag::in_flag(board.flag.load()), Tag::of(mine));
    assert_eq!(board.other(ZERO, mine), Differing::Goes(Told::of(MANY)), "it was said before");
}

#[test]
fn whoever_reads_a_message_of_other_bytes_finds_what_was_said_of_it() {
    both(Board::new, reads, says_and_sends, |(), ()| ());
}

#[test]
#[should_panic(expected = "it was said before")]
fn where_it_is_said_after_the_message_it_is_not_found() {
    both(Board::new, reads, sends_and_says, |(), ()| ());
}

/// A rank that makes another call than the other one finds that, and gives up for both.
fn says_and_stops(board: &Board) {
    board.say(ONE, first(Kind::Barrier, 0));
    stop_by(&board.stopped, None);
}

fn stops_and_says(board: &Board) {
    stop_by(&board.stopped, None);
    board.say(ONE, first(Kind::Barrier, 0));
}

/// The other one is told why its wait is over.
fn is_stopped(board: &Board) {
    let mine = first(Kind::Allreduce, FEW);
    board.say(ZERO, mine);
    while has_stopped(&board.stopped).is_ok() {
        rest();
    }
    let theirs = Differing::Astray(first(Kind::Barrier, 0));
    assert_eq!(board.other(ZERO, mine), theirs, "it knows why");
}

#[test]
fn whoever_is_stopped_finds_why() {
    both(Board::new, is_stopped, says_and_stops, |(), ()| ());
}

#[test]
#[should_panic(expected = "it knows why")]
fn where_a_rank_stops_others_before_it_says_why_they_do_not_find_it() {
    both(Board::new, is_stopped, stops_and_says, |(), ()| ());
}

/// A rank waits in lines for a message that does not come, and now and then looks what the other one said.
fn waits_in_lines(board: &Board) -> bool {
    let mine = first(Kind::Allreduce, FEW);
    board.say(ZERO, mine);
    loop {
        if let Differing::Astray(_) = board.other(ZERO, mine) {
            return true;
        }
        rest();
    }
}

/// The other one does the call by other means, and waits until the first has come to it.
fn by_other_means(board: &Board) -> bool {
    let mine = Said::new(1, Kind::Allreduce, ZERO, Told::NONE);
    board.say(ONE, mine);
    loop {
        if let Some(said) = come(&board.said[0], mine) {
            return said.is_some_and(|said| differs(mine, ONE, ZERO, said));
        }
        rest();
    }
}

fn by_other_means_at_once(board: &Board) -> bool {
    let mine = Said::new(1, Kind::Allreduce, ZERO, Told::NONE);
    board.say(ONE, mine);
    let said = come(&board.said[0], mine).flatten();
    said.is_some_and(|said| differs(mine, ONE, ZERO, said))
}

fn both_find(lines: bool, other: bool) {
    assert!(lines && other, "both find that they differ");
}

#[test]
fn a_rank_in_lines_and_one_by_other_means_find_each_other() {
    both(Board::new, waits_in_lines, by_other_means, both_find);
}

#[test]
#[should_panic(expected = "both find that they differ")]
fn where_it_does_not_wait_for_the_other_it_goes_alone() {
    both(Board::new, waits_in_lines, by_other_means_at_once, both_find);
}

/// Lines of which the first rank clears one and the second the other.
struct Met {
    assembly: Assembly,
    lines: Loomed,
}

impl Met {
    fn new() -> Self {
        Self { assembly: Assembly::new(), lines: Loomed::new(2) }
    }
}

/// A rank where all meet.
struct Attending<'a> {
    met: &'a Met,
    me: Rank,
    came: u64,
    /// At which of its comings it waits for nobody; 0: at none.
    hurries_at: u64,
}

impl<'a> Attending<'a> {
    const fn new(met: &'a Met, me: Rank, hurries_at: u64) -> Self {
        Self { met, me, came: 0, hurries_at }
    }
}

impl Attends for Attending<'_> {
    type Error = Infallible;

    fn all_come(&mut self, came: &Word) -> Result<(), Infallible> {
        came.add(1);
        self.came += 1;
        while self.came != self.hurries_at && came.load() < 2 * self.came {
            rest();
        }
        Ok(())
    }

    fn clear(&mut self) -> Result<(), Infallible> {
        let line = Line(self.me.0.into());
        self.met.lines.store(line, 0);
        self.met.lines.write(line, 1, 0);
        Ok(())
    }
}

/// The first rank could not take what the second gave in call 1, and asks all to meet in call 2. There it reads what
/// the second gives in the same line.
fn asks(met: &Met, hurries_at: u64) {
    met.assembly.unsound_since(1);
    let found = met.assembly.meet(&mut Attending::new(met, ZERO, hurries_at), 2, false, 0);
    assert_eq!(found, Ok(Found::Anew(1)));
    while met.lines.load(Line(0)) < 2 {
        rest();
    }
    assert_eq!(met.lines.read(Line(0), 1), 2, "what was given in call 2");
}

/// The second one has given in call 1 and gone on to call 2, where it waits in vain until it is asked.
fn gives_and_is_asked(met: &Met) {
    let (one, two) = (first(Kind::Gather, FEW), Said::new(2, Kind::Gather, ZERO, Told::of(FEW)));
    met.lines.write(Line(0), 1, 1);
    met.lines.store(Line(0), 1);
    while !met.assembly.asks(two, 0) {
        rest();
    }
    assert!(met.assembly.asks(one, 0), "in that call itself it waits in vain as well");
    let found = met.assembly.meet(&mut Attending::new(met, ONE, 0), 2, false, 0);
    assert_eq!(found, Ok(Found::Anew(1)));
    assert!(!met.assembly.asks(two, 1), "it has met");
    met.lines.write(Line(0), 1, 2);
    met.lines.store(Line(0), 2);
}

#[test]
fn ranks_that_meet_have_clean_lines() {
    both(Met::new, |met| asks(met, 0), gives_and_is_asked, |(), ()| ());
}

#[test]
#[should_panic(expected = "Causality violation")]
fn where_one_clears_before_all_have_come_it_clears_what_is_used() {
    both(Met::new, |met| asks(met, 1), gives_and_is_asked, |(), ()| ());
}

/// As [`gives_and_is_asked`], but goes on when it has cleared its own lines.
fn gives_and_hurries(met: &Met) {
    met.lines.write(Line(0), 1, 1);
    met.lines.store(Line(0), 1);
    let found = met.assembly.meet(&mut Attending::new(met, ONE, 2), 2, false, 0);
    assert_eq!(found, Ok(Found::Anew(1)));
    met.lines.write(Line(0), 1, 2);
    met.lines.store(Line(0), 2);
}

#[test]
#[should_panic(expected = "Causality violation")]
fn where_one_goes_on_before_all_have_cleared_its_message_is_cleared() {
    both(Met::new, |met| asks(met, 0), gives_and_hurries, |(), ()| ());
}

/// One of them has lost what it gives, and tells so.
fn loses(met: &Met) -> Found {
    met.assembly.unsound_since(1);
    met.assembly.meet(&mut Attending::new(met, ZERO, 0), 2, true, 0).expect("nobody ends")
}

fn begins_anew(met: &Met) -> Found {
    met.assembly.meet(&mut Attending::new(met, ONE, 0), 2, false, 0).expect("nobody ends")
}

/// Decides before all have come.
fn decides_alone(met: &Met) -> Found {
    met.assembly.tell(2, false);
    let found = met.assembly.found(2, 0);
    begins_anew(met);
    found
}

fn alike(zero: Found, one: Found) {
    assert_eq!((zero, one), (Found::Behind, Found::Behind), "both find it alike");
}

#[test]
fn ranks_find_alike_whether_a_call_begins_anew() {
    both(Met::new, loses, begins_anew, alike);
}

#[test]
#[should_panic(expected = "both find it alike")]
fn where_one_decides_before_all_have_come_they_do_not() {
    both(Met::new, loses, decides_alone, alike);
}

/// Lines of two ranks, and what they said of their calls.
struct Calls {
    lines: Loomed,
    said: [[Word; 2]; 2],
}

impl Calls {
    fn new() -> Self {
        let said = std::array::from_fn(|_| std::array::from_fn(|_| Word::new()));
        Self { lines: Loomed::new(broadcasts().lines()), said }
    }
}

/// Of one chunk and up to a line.
fn broadcasts() -> Plan {
    plan(Collective::Broadcast, 2, false)
}

/// Lines whose flags have tags, as those that run live.
struct Tagged<'a> {
    inner: Modelled<'a, Loomed>,
    heard: Heard,
    mine: Tag,
    /// Whether it leaves the call at a message of other bytes.
    follows: bool,
}

impl Lines for Tagged<'_> {
    fn copy(&mut self, src: Span, dst: Span) {
        self.inner.copy(src, dst);
    }

    fn wait(&mut self, line: Line, compare: Compare, value: u64) -> Result<(), Gone> {
        self.inner.wait(line, compare, Heard::least(value))
    }

    fn came(&mut self, line: Line) -> Result<(), Gone> {
        let theirs = Tag::in_flag(self.inner.memory.load(line));
        if theirs == self.mine || !self.follows { Ok(()) } else { Err(Gone::Stopped) }
    }

    fn write(&mut self, line: Line, value: u64) {
        self.inner.write(line, self.heard.flag(value));
    }

    fn add(&mut self, line: Line, value: u64) {
        self.inner.add(line, Heard::least(value));
    }

    fn claim(&mut self, _line: Line, _lines: u32) {}

    fn reduce(&mut self, _combine: Combine, _src: Span, _dst: Span) {}
}

/// One broadcast of so many bytes, whatever was said of it; the words that came.
fn broadcast(
    calls: &Calls,
    me: Rank,
    said: Said,
    call: u64,
    bytes: usize,
    follows: bool,
) -> Result<Vec<u64>, Gone> {
    let words = bytes / 8;
    let send = vec![call * 10; if me == ZERO { words } else { 0 }];
    let receive = vec![0; words];
    let tag = Tag::of(said);
    let inner = Modelled { memory: &calls.lines, send, receive };
    let mut lines = Tagged { inner, heard: Heard::new(tag, Hears::Follows), mine: tag, follows };
    let any = Combine::Sum(Element::I64);
    let bytes = u32::try_from(bytes).expect("few");
    broadcasts().member(me).call(&mut lines, call - 1, bytes, any)?;
    Ok(lines.inner.receive)
}

fn of_call(call: u64, bytes: usize) -> Said {
    Said::new(call, Kind::Broadcast, ZERO, Told::of(bytes))
}

/// The root has fewer bytes than the other rank in the first call, and as many in the second.
fn decides(calls: &Calls) {
    for (call, bytes) in [(1, FEW), (2, MANY)] {
        let said = of_call(call, bytes);
        calls.said[0][said.place() % 2].store(said.word());
        broadcast(calls, ZERO, said, call, bytes, true).expect("nobody ends");
    }
}

fn follows(calls: &Calls, leaves: bool) {
    for call in [1, 2] {
        let mine = of_call(call, MANY);
        calls.said[1][mine.place() % 2].store(mine.word());
        let came = broadcast(calls, ONE, mine, call, MANY, leaves).or_else(|_| {
            let word = &calls.said[0][mine.place() % 2];
            let Differing::Astray(theirs) = differing(mine, ONE, std::iter::once((ZERO, word)))
            else {
                panic!("the root said it before");
            };
            let bytes = theirs.told().bytes().expect("few") as usize;
            broadcast(calls, ONE, theirs, call, bytes, leaves)
        });
        let came = came.expect("nobody ends");
        let given = if call == 1 { FEW } else { MANY };
        assert_eq!(came, vec![call * 10; given / 8], "what the root gave");
    }
}

#[test]
fn a_rank_follows_a_root_of_other_bytes_and_takes_the_next_call_as_well() {
    both(Calls::new, decides, |calls| follows(calls, true), |(), ()| ());
}

#[test]
#[should_panic(expected = "what the root gave")]
fn where_it_does_not_leave_its_call_it_takes_what_was_not_given() {
    both(Calls::new, decides, |calls| follows(calls, false), |(), ()| ());
}
