//! Options that commands of both programs take.

mod placement;
mod share;

use std::time::Duration;

use clap::ValueEnum;

pub use placement::{HostArgs, PlacementArgs};
pub use share::{Share, parse_growth, parse_part};

/// When to colour the terminal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ColourChoice {
    /// On a terminal only.
    Auto,
    /// Into files too.
    Always,
    /// Not even on a terminal.
    Never,
}

/// Bytes: `256M`, `2G`, `64k` or plain bytes.
///
/// # Errors
/// In words, where it is no size.
pub fn parse_bytes(text: &str) -> Result<u64, String> {
    let (number, unit) = match text.find(|c: char| !c.is_ascii_digit()) {
        Some(at) => text.split_at(at),
        None => (text, ""),
    };
    let factor: u64 = match unit.trim_end_matches("iB").trim_end_matches('B') {
        "" => 1,
        "k" | "K" => 1 << 10,
        "m" | "M" => 1 << 20,
        "g" | "G" => 1 << 30,
        "t" | "T" => 1 << 40,
        _ => return Err(format!("`{unit}` is no unit: use k, M, G or T")),
    };
    let number: u64 = number.parse().map_err(|_| format!("`{text}` is not a size: try 256M"))?;
    number.checked_mul(factor).ok_or_else(|| format!("`{text}` is too large"))
}

/// A time: `90`, `90s`, `1.5m`, `1h`; more than none, and at most a year.
///
/// # Errors
/// In words, where it is no time.
pub fn parse_time(text: &str) -> Result<Duration, String> {
    let (number, factor) = match text.strip_suffix(['s', 'm', 'h']) {
        Some(number) if text.ends_with('m') => (number, 60.0),
        Some(number) if text.ends_with('h') => (number, 3600.0),
        Some(number) => (number, 1.0),
        None => (text, 1.0),
    };
    let seconds = number.parse::<f64>().map_or(f64::NAN, |number| number * factor);
    let is_sound = seconds > 0.0 && seconds <= 366.0 * 86400.0;
    is_sound
        .then(|| Duration::from_secs_f64(seconds))
        .ok_or_else(|| format!("`{text}` is not a time: try 60s or 5m"))
}

/// Cores: `0,2-5` as numbers, ascending, each once.
///
/// # Errors
/// In words, where it is no list of cores.
pub fn parse_cores(text: &str) -> Result<Vec<u16>, String> {
    let mut cores = Vec::new();
    for part in text.split(',') {
        let (from, to) = part.split_once('-').unwrap_or((part, part));
        let number = |t: &str| {
            t.trim().parse::<u16>().map_err(|_| format!("`{t}` in `{text}` is not a core number"))
        };
        let (from, to) = (number(from)?, number(to)?);
        if from > to {
            return Err(format!("`{part}` runs backwards"));
        }
        cores.extend(from..=to);
    }
    cores.sort_unstable();
    cores.dedup();
    Ok(cores)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes() {
        assert_eq!(parse_bytes("100M"), Ok(100 << 20));
        assert_eq!(parse_bytes("2GiB"), Ok(2 << 30));
        assert_eq!(parse_bytes("4096"), Ok(4096));
        assert!(parse_bytes("12parsecs").is_err());
        assert!(parse_bytes("99999999999999999999G").is_err());
    }

    #[test]
    fn times() {
        for text in ["90", "90s", "1.5m", "0.025h"] {
            assert_eq!(parse_time(text), Ok(Duration::from_secs(90)), "{text}");
        }
        for text in ["", "s", "0", "-5s", "nan", "inf", "1e300", "5 parsecs", "9999999h"] {
            assert!(parse_time(text).is_err(), "{text}");
        }
    }

    #[test]
    fn core_lists() {
        assert_eq!(parse_cores("0,2-4,3"), Ok(vec![0, 2, 3, 4]));
        assert!(parse_cores("4-2").is_err());
        assert!(parse_cores("a").is_err());
    }
}
