//! Both decoders of a level, as long as they are compared: that which the allocator decodes by, and the one
//! decoder that is to take its place.

use super::classifier::Decoding;
use super::level::LevelModel;
use super::notes::Notes;
use super::one::OneStream;
use super::stream::{Decoded, Judge, Step, Stream};
use super::timing::Timing;
use isochrone_os::OsError;

#[derive(Debug)]
#[allow(clippy::large_enum_variant, reason = "nothing below malloc allocates, so no box")]
pub(super) enum Arm {
    New(OneStream),
    Old(Stream),
}

macro_rules! each {
    ($self:ident, $stream:ident => $what:expr) => {
        match $self {
            Arm::New($stream) => $what,
            Arm::Old($stream) => $what,
        }
    };
}

impl Arm {
    pub(super) fn new(
        model: &LevelModel,
        pages_max: usize,
        seed: u64,
        Decoding { window, engine }: Decoding,
    ) -> Result<Self, OsError> {
        Ok(if engine {
            Self::New(OneStream::new(model, pages_max, (seed, window))?)
        } else {
            Self::Old(Stream::new(model, pages_max, seed, Decoding { window, engine })?)
        })
    }

    pub(super) fn decode_again(&mut self, first: u32) {
        each!(self, stream => stream.decode_again(first));
    }

    pub(super) fn has_work(&self, notes: &Notes) -> bool {
        each!(self, stream => stream.has_work(notes))
    }

    pub(super) fn start_over(&mut self) {
        each!(self, stream => stream.start_over());
    }

    pub(super) fn loads(&self) -> u64 {
        each!(self, stream => stream.loads())
    }

    pub(super) fn stated(&self) -> f64 {
        each!(self, stream => stream.stated())
    }

    pub(super) fn pop(&mut self) -> Option<Decoded> {
        each!(self, stream => stream.pop())
    }

    pub(super) fn advance(
        &mut self,
        timing: &mut impl Timing,
        known: (&LevelModel, &Notes),
        judge: Judge,
        until_ns: u64,
    ) -> Result<Step, OsError> {
        each!(self, stream => stream.advance(timing, known, judge, until_ns))
    }
}
