//! The protocol in virtual time: how long each message is under way, and so how long an access takes.
//!
//! Delays are legs of the way. Reads from memory come out at the latencies that the machine file gives,
//! because the legs are their parts; what other caches deliver comes out as it does.

use super::{Access, Agent, Line, Message, Word};
use crate::coherence::legs::Legs;

/// A part of the way of one message, for explanations.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Leg {
    /// When it left, ns after the access began.
    pub left_ns: f64,
    /// When it arrived.
    pub arrived_ns: f64,
    /// What it said, from whom to whom.
    pub message: Message,
}

/// A line whose messages take time.
#[derive(Clone, Debug)]
pub struct Timed<'a> {
    /// The line.
    pub line: Line<'a>,
    legs: &'a Legs,
    home: u8,
    /// When the home began to read its memory, which it does while it asks caches.
    reading_since: f64,
}

impl<'a> Timed<'a> {
    /// `line`, which is homed at `home`, with delays.
    #[must_use]
    pub const fn new(line: Line<'a>, legs: &'a Legs, home: u8) -> Self {
        Self { line, legs, home, reading_since: 0.0 }
    }

    /// How long `node` waits for an access of one of its cores, ns, and what was said meanwhile.
    pub fn access(&mut self, node: u8, access: Access) -> (f64, Vec<Leg>) {
        self.line.access(node, access);
        let mut now = self.legs.lookup_ns();
        let mut done = now;
        let mut arrivals: Vec<(f64, f64, Message)> = Vec::new();
        let mut trace = Vec::new();
        self.schedule(now, &[], &mut arrivals);
        while !arrivals.is_empty() {
            let next = earliest(&arrivals);
            let (left_ns, arrived_ns, message) = arrivals.remove(next);
            now = arrived_ns;
            trace.push(Leg { left_ns, arrived_ns, message });
            let before = self.line.messages().to_vec();
            let Some(index) = before.iter().position(|other| *other == message) else { break };
            if message.to == Agent::Home && matches!(message.word, Word::Request { .. }) {
                self.reading_since = now;
            }
            let waited = self.line.is_waiting(node);
            self.line.deliver(index);
            if waited && !self.line.is_waiting(node) {
                done = now;
            }
            let mut rest = before;
            rest.remove(index);
            self.schedule(now, &rest, &mut arrivals);
        }
        (done, trace)
    }

    /// Gives every message that is new since `known` its arrival.
    fn schedule(&self, now: f64, known: &[Message], arrivals: &mut Vec<(f64, f64, Message)>) {
        for message in self.line.messages().iter().skip(known.len()) {
            let mut at = now + self.delay(message, now);
            // Ordered messages of one pair do not overtake each other.
            let same = |m: &Message| (m.from, m.to) == (message.from, message.to);
            for (_, earlier, _) in arrivals
                .iter()
                .filter(|(_, _, m)| m.is_ordered() && message.is_ordered() && same(m))
            {
                at = at.max(*earlier);
            }
            arrivals.push((now, at, *message));
        }
    }

    fn delay(&self, message: &Message, now: f64) -> f64 {
        let way = self.legs.way_ns(message.from, message.to, self.home);
        let work = match message.word {
            Word::Data { .. } if message.from == Agent::Home => {
                (self.reading_since + self.legs.memory_ns(self.home) - now).max(0.0)
            }
            Word::Data { .. } | Word::Response { .. } => match message.from {
                Agent::Cache(_) => self.legs.lookup_ns(),
                _ => 0.0,
            },
            _ => 0.0,
        };
        way + work
    }
}

fn earliest(arrivals: &[(f64, f64, Message)]) -> usize {
    let mut best = 0;
    for (index, (_, at, _)) in arrivals.iter().enumerate() {
        if *at < arrivals[best].1 {
            best = index;
        }
    }
    best
}
