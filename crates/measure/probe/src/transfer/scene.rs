//! What several cores do together with lines: acts in steps, and the stage that plays them.
//!
//! A scene is pure data. Each core has one act a step; all cores end a step before any begins the
//! next. So a scene says which states lines go through without saying how, and the same scene
//! runs on threads or on a model of a machine. It never says how often: that is the plan's part.

use std::collections::BTreeSet;

use isochrone_units::{CoreId, Cycles, LineAddr};

use crate::target::{TargetClock, TargetError};

/// What a timed act does to a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    /// A plain load.
    Load,
    /// A read for ownership: a locked addition of 1.
    Rfo,
}

/// What one core does in one step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Act {
    /// It does nothing.
    Rest,
    /// Writes 0 into each line, which makes it modified here and invalid elsewhere.
    Write(Vec<LineAddr>),
    /// Puts each line out of every cache, then reads it, which makes it exclusive here.
    Own(Vec<LineAddr>),
    /// Reads each line, which makes it shared with whoever had it.
    Read(Vec<LineAddr>),
    /// Times one operation on each line, in an order shuffled anew every time: one sample a line.
    Time(Operation, Vec<LineAddr>),
    /// As [`Act::Time`], of lines that this core has used before: what it pays depends on what others
    /// have done with them since.
    Again(Operation, Vec<LineAddr>),
    /// Times loads of all the lines, none of which waits for another: one sample.
    Sweep(Vec<LineAddr>),
    /// Times the copy of `count` consecutive lines from `first` into memory of its own: one
    /// sample.
    Copy {
        /// First line.
        first: LineAddr,
        /// How many.
        count: u32,
    },
    /// Polls a line until its value (the number of additions since it was written) is this.
    Poll {
        /// The line.
        line: LineAddr,
        /// The value.
        value: u64,
    },
    /// Times `trips` round trips of compare-and-swap over each line: one sample a line.
    Ping {
        /// The lines, each at 0.
        lines: Vec<LineAddr>,
        /// Round trips over each.
        trips: u32,
    },
    /// Answers [`Act::Ping`].
    Pong {
        /// The same lines.
        lines: Vec<LineAddr>,
        /// As many round trips.
        trips: u32,
    },
}

impl Act {
    /// Samples that the act yields each time.
    #[must_use]
    pub fn samples(&self) -> usize {
        match self {
            Self::Time(_, lines) | Self::Again(_, lines) | Self::Ping { lines, .. } => lines.len(),
            Self::Copy { .. } | Self::Sweep(_) => 1,
            _ => 0,
        }
    }

    /// Every line that the act touches.
    pub fn lines(&self) -> impl Iterator<Item = LineAddr> + '_ {
        let (listed, first, count): (&[LineAddr], LineAddr, u64) = match self {
            Self::Rest => (&[], LineAddr(0), 0),
            Self::Write(lines)
            | Self::Own(lines)
            | Self::Read(lines)
            | Self::Time(_, lines)
            | Self::Again(_, lines)
            | Self::Sweep(lines)
            | Self::Ping { lines, .. }
            | Self::Pong { lines, .. } => (lines, LineAddr(0), 0),
            Self::Copy { first, count } => (&[], *first, u64::from(*count)),
            Self::Poll { line, .. } => (&[], *line, 1),
        };
        let run = (0..count).map(move |k| LineAddr(first.0 + k));
        listed.iter().copied().chain(run)
    }
}

/// One core's acts, one a step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Part {
    /// The core.
    pub core: CoreId,
    /// Its acts.
    pub acts: Vec<Act>,
}

/// What some cores do together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Scene {
    /// One part a core; every part has as many acts.
    pub parts: Vec<Part>,
}

/// The samples of one core in one scene.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Samples {
    /// Samples in one repeat.
    pub per_repeat: usize,
    /// Raw times, repeat by repeat; in a repeat in the order in which the acts list the lines.
    pub raw: Vec<Cycles>,
    /// What timing nothing took meanwhile, in cycles, where that was measured in between: it
    /// wanders with the core's clock by more than the cells resolve. Otherwise the stage's clock
    /// has it.
    pub overhead: Option<f64>,
    /// Seconds that each repeat took, from its first step to its last.
    pub took_s: Vec<f64>,
}

impl Samples {
    /// The samples of the `index`-th timed thing, one a repeat.
    pub fn of(&self, index: usize) -> impl Iterator<Item = Cycles> + '_ {
        self.raw.iter().skip(index).step_by(self.per_repeat.max(1)).copied()
    }

    /// The repeats that took at most so long.
    #[must_use]
    pub fn within(&self, seconds: f64) -> Self {
        let each = self.raw.chunks(self.per_repeat.max(1)).zip(&self.took_s);
        let kept: Vec<_> = each.filter(|(_, took_s)| **took_s <= seconds).collect();
        Self {
            raw: kept.iter().flat_map(|(raw, _)| *raw).copied().collect(),
            took_s: kept.iter().map(|(_, took_s)| **took_s).collect(),
            ..*self
        }
    }

    /// All but the first `repeats`.
    #[must_use]
    pub fn after(&self, repeats: usize) -> Self {
        let raw = self.raw.iter().skip(repeats * self.per_repeat).copied().collect();
        let took_s = self.took_s.iter().skip(repeats).copied().collect();
        Self { raw, took_s, ..*self }
    }
}

/// A machine, real or modelled, on which cores play scenes.
pub trait Stage {
    /// The cores that can take part, in ascending order.
    fn cores(&self) -> &[CoreId];

    /// Lines in the arena; a scene may use `LineAddr(0..lines)`.
    fn lines(&self) -> u64;

    /// The clock behind the samples. Its overhead is included in the sample of a timed operation.
    fn clock(&self) -> TargetClock;

    /// Plays all `scenes` at once, each `repeats` times by itself; no core may be in two of them.
    /// The result has one entry a scene, and in it one a part.
    ///
    /// # Errors
    /// [`TargetError::Moved`] when a thread did not stay on its core (nothing may be used then);
    /// [`TargetError::Unsupported`] for a scene that makes no sense here; [`TargetError::System`]
    /// when a core does not answer in time.
    fn play(&mut self, scenes: &[Scene], repeats: u32) -> Result<Vec<Vec<Samples>>, TargetError>;

    /// The same as long as it is wanted: where it takes long, `ends` is asked now and then, and told
    /// the stage's seconds. A model plays at once, and asks nobody.
    ///
    /// # Errors
    /// As [`Self::play`], and [`TargetError::Stopped`] once `ends` has said yes.
    fn play_until(
        &mut self,
        scenes: &[Scene],
        repeats: u32,
        _ends: &mut dyn FnMut(f64) -> bool,
    ) -> Result<Vec<Vec<Samples>>, TargetError> {
        self.play(scenes, repeats)
    }

    /// Seconds since the stage was made (virtual for a modelled one).
    fn seconds(&mut self) -> f64;
}

/// Checks what every stage asks of its scenes: cores that exist (`cores` ascend) and play once, parts of equal
/// length, lines of the arena.
///
/// # Errors
/// [`TargetError::Unsupported`] with what is wrong.
pub fn check(scenes: &[Scene], cores: &[CoreId], lines: u64) -> Result<(), TargetError> {
    let mut seen: BTreeSet<CoreId> = BTreeSet::new();
    for scene in scenes {
        let steps = scene.parts.first().map_or(0, |part| part.acts.len());
        for part in &scene.parts {
            if cores.binary_search(&part.core).is_err() {
                return Err(wrong(format!("{} is not on this stage", part.core)));
            }
            if !seen.insert(part.core) {
                return Err(wrong(format!("{} is asked to play twice at once", part.core)));
            }
            if part.acts.len() != steps {
                return Err(wrong(format!(
                    "{} has {} acts, not {steps}",
                    part.core,
                    part.acts.len()
                )));
            }
            if let Some(line) = part.acts.iter().flat_map(Act::lines).find(|l| l.0 >= lines) {
                return Err(wrong(format!("line {} is beyond the arena of {lines} lines", line.0)));
            }
        }
    }
    Ok(())
}

fn wrong(why: String) -> TargetError {
    TargetError::Unsupported(format!("{why}; plan the scene for this stage"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn part(core: u16, acts: Vec<Act>) -> Part {
        Part { core: CoreId(core), acts }
    }

    #[test]
    fn a_scene_that_cannot_be_played_is_refused_with_the_reason() {
        let cores = [CoreId(0), CoreId(1)];
        let bad = [
            (vec![part(2, vec![Act::Rest])], "core 2 is not on this stage"),
            (vec![part(0, vec![]), part(0, vec![])], "twice at once"),
            (vec![part(0, vec![Act::Rest]), part(1, vec![])], "0 acts, not 1"),
            (vec![part(0, vec![Act::Read(vec![LineAddr(8)])])], "line 8 is beyond"),
            (vec![part(0, vec![Act::Copy { first: LineAddr(6), count: 3 }])], "line 8 is beyond"),
        ];
        for (parts, reason) in bad {
            let error = check(&[Scene { parts }], &cores, 8).unwrap_err().to_string();
            assert!(error.contains(reason), "{error}");
        }
    }

    #[test]
    fn samples_of_one_line_are_picked_from_every_repeat() {
        let raw = (0..6).map(Cycles).collect();
        let samples = Samples { per_repeat: 3, raw, overhead: None, took_s: vec![7.0, 2.0] };
        assert_eq!(samples.of(1).collect::<Vec<_>>(), [Cycles(1), Cycles(4)]);
        assert_eq!(samples.within(5.0).of(1).collect::<Vec<_>>(), [Cycles(4)]);
        assert_eq!(samples.after(1), samples.within(5.0));
        assert_eq!(samples.within(1.0).raw, []);
    }
}
