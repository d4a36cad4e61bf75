//! Events in the order in which they take place.

use super::world::Event;

/// The turn of an event among those of its moment, and where it is.
type Entry = (u64, u32);

/// Events that are to take place, by moments. Costs are few numbers, so there are few moments at a time, and nearly
/// half of all events take place at the one at which they are caused.
#[derive(Clone, Debug, Default)]
pub(super) struct Queue {
    /// The moment of the event that was taken last.
    now: Option<u64>,
    /// What else takes place at that moment, the next one last.
    at_once: Vec<Entry>,
    /// Later moments, the next one last, each with its events in no order.
    later: Vec<(u64, Vec<Entry>)>,
    /// Lists of moments that are over.
    spare: Vec<Vec<Entry>>,
    events: Vec<Event>,
    /// Places of events that were taken.
    free: Vec<u32>,
}

impl Queue {
    pub(super) fn clear(&mut self) {
        self.now = None;
        self.at_once.clear();
        self.later.clear();
        self.events.clear();
        self.free.clear();
    }

    /// Adds an event, not earlier than the one that was taken last; `order` is its turn among those of its moment.
    pub(super) fn push(&mut self, time: u64, order: u64, event: Event) {
        let at = match self.free.pop() {
            Some(at) => {
                self.events[at as usize] = event;
                at
            }
            None => {
                self.events.push(event);
                u32::try_from(self.events.len() - 1).unwrap_or(u32::MAX)
            }
        };
        if self.now == Some(time) {
            let place = self.at_once.partition_point(|other| other.0 > order);
            self.at_once.insert(place, (order, at));
            return;
        }
        let place = self.later.partition_point(|moment| moment.0 > time);
        match self.later.get_mut(place) {
            Some((moment, events)) if *moment == time => events.push((order, at)),
            _ => {
                let mut events = self.spare.pop().unwrap_or_default();
                events.push((order, at));
                self.later.insert(place, (time, events));
            }
        }
    }

    /// Takes the next event, with its moment.
    pub(super) fn pop(&mut self) -> Option<(u64, Event)> {
        if self.at_once.is_empty() {
            let (time, events) = self.later.pop()?;
            self.now = Some(time);
            self.spare.push(std::mem::replace(&mut self.at_once, events));
            self.at_once.sort_unstable_by_key(|entry| std::cmp::Reverse(entry.0));
        }
        let (_, at) = self.at_once.pop()?;
        self.free.push(at);
        Some((self.now?, self.events[at as usize]))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_come_by_time_and_those_of_one_moment_by_their_turn() {
        let event = |time: u64, order: u64| Event::Begin(u16::try_from(time * 10 + order).unwrap());
        let mut queue = Queue::default();
        let put = |queue: &mut Queue, all: &[(u64, u64)]| {
            all.iter().for_each(|&(time, order)| queue.push(time, order, event(time, order)));
        };
        put(&mut queue, &[(5, 3), (0, 7), (9, 0), (5, 1)]);
        let mut seen = Vec::new();
        while let Some((time, taken)) = queue.pop() {
            if taken == event(5, 1) {
                // At once, before and after what is there already, and later.
                put(&mut queue, &[(5, 4), (6, 0), (5, 2)]);
            }
            seen.push((time, taken));
        }
        let order = [(0, 7), (5, 1), (5, 2), (5, 3), (5, 4), (6, 0), (9, 0)];
        assert_eq!(seen, order.map(|(time, order)| (time, event(time, order))));
    }
}
