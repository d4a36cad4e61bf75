//! What a program wrote, as a number by which two runs are compared: nothing of it is kept.

use std::hash::{DefaultHasher, Hasher};
use std::io::{PipeReader, PipeWriter, Read};
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};

/// How long the end of the output is waited for after the program's end: a process that it left behind may have it.
const PATIENCE: Duration = Duration::from_secs(2);
/// What is taken out of the pipe at once; a pipe holds as much.
const BLOCK_BYTES: usize = 64 << 10;

/// What was written, of any length. Equal digests are equal outputs but by chance (SipHash, 64 bits); of two builds of
/// this program they are not compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Digest {
    /// How many bytes.
    pub bytes: u64,
    /// Their hash.
    pub hash: u64,
}

/// A pipe that is read to its end.
#[derive(Debug)]
pub(super) struct Reading {
    done: Receiver<Option<Digest>>,
}

impl Reading {
    /// Begins to read; what is written goes into the pipe.
    pub(super) fn begin() -> Result<(Self, PipeWriter)> {
        let (pipe, writer) =
            std::io::pipe().context("there is no pipe for the program's output")?;
        let (done, receiver) = channel();
        thread::spawn(move || {
            // Nobody waits any more where this is late.
            let _ = done.send(digest(pipe));
        });
        Ok((Self { done: receiver }, writer))
    }

    /// What was written; nothing where that has not ended.
    pub(super) fn end(self) -> Option<Digest> {
        self.done.recv_timeout(PATIENCE).ok().flatten()
    }
}

fn digest(mut pipe: PipeReader) -> Option<Digest> {
    let (mut hasher, mut bytes) = (DefaultHasher::new(), 0_u64);
    let mut block = vec![0; BLOCK_BYTES];
    loop {
        // Whole blocks: where the writer has paused is not to be seen in the hash.
        let mut filled = 0;
        while filled < block.len() {
            match pipe.read(&mut block[filled..]) {
                Ok(0) => break,
                Ok(more) => filled += more,
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
                Err(_) => return None,
            }
        }
        hasher.write(&block[..filled]);
        bytes += filled as u64;
        if filled < block.len() {
            return Some(Digest { bytes, hash: hasher.finish() });
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    fn of(pieces: &[&[u8]]) -> Digest {
        let (reading, mut pipe) = Reading::begin().unwrap();
        for piece in pieces {
            pipe.write_all(piece).unwrap();
            thread::sleep(Duration::from_millis(2));
        }
        drop(pipe);
        reading.end().expect("the pipe has ended")
    }

    #[test]
    fn equal_outputs_have_one_digest_however_they_are_written() {
        let long = vec![7; 3 * BLOCK_BYTES + 5];
        let (one, other) = long.split_at(BLOCK_BYTES + 77);
        assert_eq!(of(&[&long]), of(&[one, other]));
        assert_eq!(of(&[b"ab", b"c"]), of(&[b"abc"]));
        assert_ne!(of(&[b"abc"]), of(&[b"abd"]));
        assert_ne!(of(&[b"abc"]).bytes, of(&[b"ab"]).bytes);
        assert_eq!(of(&[]).bytes, 0);
    }

    #[test]
    fn an_output_that_does_not_end_has_no_digest() {
        let (reading, _pipe) = Reading::begin().unwrap();
        assert_eq!(reading.end(), None);
    }
}
