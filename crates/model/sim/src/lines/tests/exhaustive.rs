//! Every order of messages and of the cores' wishes, for few cores and one line.
//!
//! A write makes every other value stale, so values are folded to 1 (what was last written) and 0
//! (anything older): a protocol that never looks at data treats all stale values alike. The states that
//! are left are finite, and all of them are visited.

use std::collections::{HashSet, VecDeque};
use std::hash::{DefaultHasher, Hash, Hasher};

use crate::lines::copies::Asked;
use crate::lines::line::LineState;
use crate::lines::message::{Change, Core, Effect, Kind, Message, State};
use crate::lines::rules::{Lookup, Protocol, Rules};

const FRESH: u64 = 1;

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
struct Everything {
    line: LineState,
    /// On their way, in no order; kept sorted.
    messages: Vec<Message>,
    /// A core has read a stale word.
    stale: bool,
}

impl Everything {
    fn start() -> Self {
        let mut line = LineState::default();
        line.map_values(|_| FRESH);
        Self { line, messages: Vec::new(), stale: false }
    }

    /// All states that one step leads to.
    fn next(&self, rules: &Rules, drops: bool) -> Vec<Self> {
        let mut next = Vec::new();
        for core in cores(rules) {
            if self.line.copies.is_pending(core) {
                continue;
            }
            next.push(self.after(|line, out| {
                line.read(core, out);
                None
            }));
            next.push(self.after(|line, out| match line.write(core, Change::Set(FRESH), out) {
                Asked::Hit(_) => Some(Effect::Wrote { core }),
                _ => None,
            }));
            if drops {
                next.push(self.after(|line, out| {
                    line.evict(core, out);
                    None
                }));
            }
        }
        for (at, message) in self.messages.iter().enumerate() {
            let mut without = self.clone();
            without.messages.remove(at);
            next.push(without.after(|line, out| line.deliver(rules, *message, out)));
        }
        next
    }

    /// The state after one step.
    fn after(
        &self,
        step: impl FnOnce(&mut LineState, &mut Vec<Message>) -> Option<Effect>,
    ) -> Self {
        let mut after = self.clone();
        let effect = step(&mut after.line, &mut after.messages);
        match effect {
            Some(Effect::Wrote { core }) => after.only_fresh(core),
            Some(Effect::Read { value, .. }) => after.stale |= value != FRESH,
            _ => {}
        }
        after.line.copies.tidy();
        after.messages.sort_unstable();
        after
    }

    /// `core` has just written: whatever is stored or on its way elsewhere is stale.
    fn only_fresh(&mut self, core: Core) {
        self.line.map_values(|_| 0);
        for message in &mut self.messages {
            message.kind = match message.kind {
                Kind::Data { grade, .. } => Kind::Data { value: 0, grade },
                Kind::Response { held, supplied, dirty: Some(_) } => {
                    Kind::Response { held, supplied, dirty: Some(0) }
                }
                Kind::Grant { value: Some(_), data } => Kind::Grant { value: Some(0), data },
                Kind::PutData(Some(_)) => Kind::PutData(Some(0)),
                other => other,
            };
        }
        self.line.copies.place(core, State::Modified, FRESH);
    }

    /// The same state with the cores numbered otherwise, the smallest of all numberings that change no
    /// core's socket: cores of a socket are alike.
    fn canonical(self, numberings: &[Vec<Core>]) -> Self {
        let renamed = |names: &Vec<Core>| {
            let name = |core: Core| names[usize::from(core)];
            let mut other = self.clone();
            other.line.copies.rename(name);
            other.line.home.rename(name);
            for message in &mut other.messages {
                message.requester = name(message.requester);
                message.peer = name(message.peer);
            }
            other.messages.sort_unstable();
            other
        };
        numberings.iter().map(renamed).min().unwrap_or(self)
    }

    /// What is wrong with this state.
    fn fault(&self, rules: &Rules) -> Option<String> {
        if self.stale {
            return Some("a core has read a stale word".into());
        }
        let copies: Vec<_> = self.line.copies.valid().collect();
        for &(core, state, value) in &copies {
            if value != FRESH {
                return Some(format!("core {core} would read a stale word"));
            }
            if matches!(state, State::Exclusive | State::Modified) && copies.len() > 1 {
                return Some(format!("core {core} is not alone with its line"));
            }
            if rules.protocol == Protocol::Mesi && state == State::Forward {
                return Some(format!("core {core} has a state that MESI lacks"));
            }
        }
        if copies.iter().filter(|(_, state, _)| *state == State::Forward).count() > 1 {
            return Some("two cores answer for one line".into());
        }
        if !self.messages.is_empty() {
            return None;
        }
        if let Some(core) = cores(rules).find(|&core| self.line.copies.is_pending(core)) {
            return Some(format!("core {core} waits for ever"));
        }
        if !self.line.home.is_at_rest() {
            return Some("the home waits for ever".into());
        }
        let forgotten = copies.iter().find(|(core, _, _)| !self.line.home.knows(*core));
        forgotten.map(|(core, _, _)| format!("core {core} is forgotten"))
    }
}

fn cores(rules: &Rules) -> impl Iterator<Item = Core> + use<> {
    0..Core::try_from(rules.cores()).expect("few cores")
}

/// All numberings of the cores that leave each in its socket. A home that asks one core for each socket
/// does not treat them alike, so there every core keeps its number.
fn numberings(rules: &Rules) -> Vec<Vec<Core>> {
    let mut all = vec![Vec::new()];
    for core in cores(rules) {
        let longer = |names: &Vec<Core>| -> Vec<Vec<Core>> {
            let alike = |name: &Core| match rules.lookup {
                Lookup::Directory => rules.socket(*name) == rules.socket(core),
                Lookup::HomeSnoop => *name == core,
            };
            let open = cores(rules).filter(|name| !names.contains(name)).filter(alike);
            open.map(|name| names.iter().copied().chain([name]).collect()).collect()
        };
        all = all.iter().flat_map(longer).collect();
    }
    all
}

/// Visits every state that can be reached; how many there are. What has been seen is kept as 128 bits of
/// each state, so that two of them are confused once in 10^24 runs of this size.
fn explore(rules: &Rules, drops: bool) -> usize {
    let numberings = numberings(rules);
    let mut seen = HashSet::from([fingerprint(&Everything::start())]);
    let mut open = VecDeque::from([Everything::start()]);
    while let Some(state) = open.pop_front() {
        if let Some(fault) = state.fault(rules) {
            panic!("{rules:?}: {fault}\n{}", way_to(rules, drops, &state));
        }
        for next in state.next(rules, drops) {
            let next = next.canonical(&numberings);
            if seen.insert(fingerprint(&next)) {
                open.push_back(next);
            }
        }
    }
    seen.len()
}

fn fingerprint(state: &Everything) -> (u64, u64) {
    let half = |salt: u8| {
        let mut hasher = DefaultHasher::new();
        (salt, state).hash(&mut hasher);
        hasher.finish()
    };
    (half(0), half(1))
}

/// The states on a shortest way from the start: the search again, with everything kept.
fn way_to(rules: &Rules, drops: bool, bad: &Everything) -> String {
    let numberings = numberings(rules);
    let mut order = vec![(Everything::start(), 0)];
    let mut seen = HashSet::from([fingerprint(&Everything::start())]);
    let mut at = 0;
    while order[at].0 != *bad {
        for next in order[at].0.next(rules, drops) {
            let next = next.canonical(&numberings);
            if seen.insert(fingerprint(&next)) {
                order.push((next, at));
            }
        }
        at += 1;
    }
    let mut way = vec![at];
    while at > 0 {
        at = order[at].1;
        way.push(at);
    }
    way.iter().rev().map(|&at| format!("{:?}\n", order[at].0)).collect()
}

fn all_of(sockets: &[u16], drops: bool) -> Vec<usize> {
    let one = |protocol, lookup| explore(&Rules::new(protocol, lookup, sockets.to_vec()), drops);
    vec![
        one(Protocol::Mesi, Lookup::Directory),
        one(Protocol::Mesif, Lookup::Directory),
        one(Protocol::Mesi, Lookup::HomeSnoop),
        one(Protocol::Mesif, Lookup::HomeSnoop),
    ]
}

#[test]
fn two_caches() {
    for sockets in [[0, 0], [0, 1]] {
        let states = all_of(&sockets, true);
        assert!(states.iter().all(|&states| states > 500), "{states:?}");
    }
}

#[test]
fn three_caches_of_one_socket() {
    let states = all_of(&[0, 0, 0], false);
    assert!(states.iter().all(|&states| states > 1000), "{states:?}");
    explore(&Rules::new(Protocol::Mesi, Lookup::Directory, vec![0; 3]), true);
}

#[test]
fn three_caches_of_two_sockets() {
    let states = all_of(&[0, 0, 1], false);
    assert!(states.iter().all(|&states| states > 1000), "{states:?}");
}

#[test]
#[ignore = "half a minute optimised: three caches that also drop their copies"]
fn three_caches_that_drop_copies() {
    let states = all_of(&[0, 0, 1], true);
    assert!(states.iter().all(|&states| states > 10_000), "{states:?}");
}

#[test]
#[ignore = "half a minute optimised: four caches"]
fn four_caches() {
    for protocol in [Protocol::Mesi, Protocol::Mesif] {
        let states = explore(&Rules::new(protocol, Lookup::Directory, vec![0; 4]), false);
        assert!(states > 10_000, "{states}");
    }
}
