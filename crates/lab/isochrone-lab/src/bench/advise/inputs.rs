//! What the programs read, made here: the same bytes on every machine, of a fixed seed.

use std::fmt::Write as _;

use isochrone_stats::{Xoshiro256PlusPlus, below, rng};

/// The seed of all inputs. The order of runs has another one.
const SEED: u64 = 25;
/// Words of a text.
const WORDS: u64 = 4096;

/// A number below `bound`.
fn draw(rng: &mut Xoshiro256PlusPlus, bound: u64) -> usize {
    usize::try_from(below(rng, bound)).unwrap_or(0)
}

/// One word.
fn word(rng: &mut Xoshiro256PlusPlus) -> String {
    let letters = 2 + draw(rng, 9);
    (0..letters).map(|_| char::from(b"etaoinshrdlucmfwypvbgkqjxz"[draw(rng, 26)])).collect()
}

/// Lines of words of which few are frequent, as in a language: at least so many bytes.
pub(super) fn text(bytes: usize) -> String {
    let mut rng = rng(SEED);
    let words: Vec<String> = (0..WORDS).map(|_| word(&mut rng)).collect();
    let mut text = String::with_capacity(bytes + 16);
    while text.len() < bytes {
        let at = draw(&mut rng, WORDS) * draw(&mut rng, WORDS) / words.len();
        text.push_str(&words[at]);
        text.push(if below(&mut rng, 12) == 0 { '\n' } else { ' ' });
    }
    text.push('\n');
    text
}

/// So many lines in no order.
pub(super) fn lines(many: usize) -> String {
    let mut rng = rng(SEED);
    let mut text = String::new();
    for _ in 0..many {
        let (first, number) = (word(&mut rng), below(&mut rng, 1 << 40));
        // A string takes whatever is written to it.
        let _ = writeln!(text, "{first} {number}");
    }
    text
}

/// A C file of so many functions, each with something for an optimiser to do.
pub(super) fn source(functions: usize) -> String {
    let mut rng = rng(SEED);
    let mut text = String::from("typedef unsigned long word;\n");
    for number in 0..functions {
        let [a, b, c] = [0; 3].map(|_: u64| below(&mut rng, 1 << 20) | 1);
        let _ = writeln!(
            text,
            "word f{number}(word *of, word many) {{\n  word sum = {a};\n  for (word i = 0; i < many; i++) {{\n    \
             switch ((of[i] ^ {b}) % 7) {{\n      case 0: sum += of[i] * {c}; break;\n      \
             case 3: sum ^= of[(i * {a}) % many] >> 3; break;\n      case 5: of[i] = sum / ({b} + i); break;\n      \
             default: sum = (sum << 5) - sum + i;\n    }}\n    \
             for (word k = i & 3; k < 9; k++) sum += of[k] * (k + {c});\n  }}\n  return sum;\n}}"
        );
    }
    text
}

/// A stream for `git fast-import`: so many commits, each of which changes two of twenty files.
pub(super) fn history(commits: usize) -> String {
    let mut rng = rng(SEED);
    let mut files: Vec<Vec<String>> = (0..20)
        .map(|_| (0..300).map(|_| format!("{} {}\n", word(&mut rng), word(&mut rng))).collect())
        .collect();
    let mut stream = String::new();
    for commit in 0..commits {
        let changed: Vec<usize> = if commit == 0 {
            (0..20).collect()
        } else {
            (0..2).map(|_| draw(&mut rng, 20)).collect()
        };
        let _ = write!(
            stream,
            "commit refs/heads/main\ncommitter A <a@example.org> {} +0000\ndata 1\nx\n",
            1_700_000_000 + commit
        );
        for file in changed {
            for _ in 0..8 {
                let at = draw(&mut rng, 300);
                files[file][at] = format!("{} {}\n", word(&mut rng), word(&mut rng));
            }
            let bytes = files[file].concat();
            let _ = write!(stream, "M 100644 inline file{file}\ndata {}\n{bytes}\n", bytes.len());
        }
    }
    stream.push_str("done\n");
    stream
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn inputs_are_the_same_each_time_and_as_large_as_asked_for() {
        assert!(text(5000) == text(5000) && (5000..5020).contains(&text(5000).len()));
        assert_eq!(lines(100).lines().count(), 100);
        assert_eq!(source(5).matches("return sum").count(), 5);
        let history = history(3);
        assert_eq!(history.matches("commit refs").count(), 3);
        assert_eq!(history.matches("M 100644").count(), 20 + 2 + 2);
        // Frequent words make a text that can be packed, as texts are.
        let of = text(50_000);
        let most = of
            .split_whitespace()
            .filter(|word| *word == of.split_whitespace().next().unwrap())
            .count();
        assert!(most < of.split_whitespace().count() / 4, "it is not one word");
    }
}
