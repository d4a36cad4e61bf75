//! Every state that a line can reach, by breadth-first search over all orders in which cores act,
//! entries are evicted and messages arrive.

use std::collections::{HashSet, VecDeque};
use std::hash::{Hash, Hasher};

use super::{Access, Line, Message, Violation};

/// What an exploration found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Explored {
    /// Different states.
    pub states: usize,
    /// Steps between them.
    pub steps: usize,
    /// Most messages under way at once.
    pub most_messages: usize,
}

/// One step of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// A message arrived.
    Arrived(Message),
    /// A core used the line.
    Used(u8, Access),
    /// A cache dropped it.
    Evicted(u8),
    /// The switch dropped its entry.
    EntryEvicted,
}

/// A way to a state that must not be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Broken {
    /// What does not hold there.
    pub violation: Violation,
    /// The shortest way there.
    pub steps: Vec<Step>,
}

/// Explores all states from `start`, with cores of all nodes reading, writing and evicting and the switch
/// evicting its entry at any time. Nodes begin nothing while `at_once` of them wait; with as many as there
/// are nodes nothing is left out.
///
/// # Errors
/// The first violation, with the steps that lead to it.
pub fn explore(start: &Line<'_>, at_once: usize) -> Result<Explored, Broken> {
    let mut seen = HashSet::from([start.key()]);
    let mut frontier = VecDeque::from([(start.clone(), 0)]);
    let mut ways: Vec<(usize, Option<Step>)> = vec![(0, None)];
    let mut explored = Explored { states: 1, steps: 0, most_messages: 0 };
    while let Some((line, way)) = frontier.pop_front() {
        for (step, next) in line.successors(at_once) {
            explored.steps += 1;
            if let Err(violation) = next.check() {
                return Err(Broken { violation, steps: steps(&ways, way, step) });
            }
            explored.most_messages = explored.most_messages.max(next.net.len());
            if seen.insert(next.key()) {
                explored.states += 1;
                ways.push((way, Some(step)));
                frontier.push_back((next, ways.len() - 1));
            }
        }
    }
    Ok(explored)
}

fn steps(ways: &[(usize, Option<Step>)], mut way: usize, last: Step) -> Vec<Step> {
    let mut steps = vec![last];
    while let (parent, Some(step)) = ways[way] {
        steps.push(step);
        way = parent;
    }
    steps.reverse();
    steps
}

impl<'a> Line<'a> {
    /// Every state one step on.
    fn successors(&self, at_once: usize) -> Vec<(Step, Line<'a>)> {
        let mut all = Vec::new();
        let mut attempt = |step: Step, act: &mut dyn FnMut(&mut Line<'a>) -> bool| {
            let mut next = self.clone();
            if act(&mut next) {
                all.push((step, next));
            }
        };
        for index in self.deliverable() {
            attempt(Step::Arrived(self.net[index]), &mut |line| {
                line.deliver(index);
                true
            });
        }
        let nodes = 0..self.topology.nodes();
        let waiting = nodes.clone().filter(|node| self.is_waiting(*node)).count();
        for node in nodes.filter(|_| waiting < at_once) {
            for access in [Access::Read, Access::Write] {
                attempt(Step::Used(node, access), &mut |line| line.access(node, access));
            }
            attempt(Step::Evicted(node), &mut |line| line.evict(node));
        }
        attempt(Step::EntryEvicted, &mut Line::evict_entry);
        all
    }

    /// What two states must share to be the same, everything but counts, as 128 bits: among ten million
    /// states two different ones have the same with a chance of 10^-25.
    fn key(&self) -> u128 {
        let mut net: Vec<&Message> = self.net.iter().collect();
        // Ordered messages of one pair keep their order; everything else has none.
        net.sort_by_key(|m| (m.from, m.to, m.is_ordered(), (!m.is_ordered()).then_some(m.word)));
        let mut print = Print(0x9e37_79b9_7f4a_7c15, 0xc2b2_ae3d_27d4_eb4f);
        (&self.caches, &self.home, &self.switch, net).hash(&mut print);
        u128::from(print.0) << 64 | u128::from(print.1)
    }
}

/// Two streams of 64 bits that mix what they are fed.
struct Print(u64, u64);

impl Hasher for Print {
    fn write(&mut self, bytes: &[u8]) {
        for chunk in bytes.chunks(8) {
            let mut word = [0; 8];
            word[..chunk.len()].copy_from_slice(chunk);
            let word = u64::from_le_bytes(word) ^ (chunk.len() as u64) << 56;
            self.0 = (self.0 ^ word).wrapping_mul(0xff51_afd7_ed55_8ccd).rotate_left(31);
            self.1 = (self.1.rotate_left(27) ^ word).wrapping_mul(0xc4ce_b9fe_1a85_ec53);
            self.1 ^= self.1 >> 33;
        }
    }

    fn finish(&self) -> u64 {
        self.0
    }
}
