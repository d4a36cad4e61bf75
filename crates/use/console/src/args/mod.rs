//! Options that commands of both programs take.

mod cores;
mod experiments;
mod placement;
mod share;
mod written;

use std::time::Duration;

use clap::ValueEnum;
use isochrone_units::{SizeError, parse_size};

pub use cores::{CoreList, parse_core_list, parse_cores};
pub use experiments::experiments;
pub use placement::{HostArgs, PlacementArgs};
pub use share::{Share, parse_growth, parse_part};
pub use written::{Asked, HtmlArg, JsonArg, ManArgs, REPORT, STDOUT, asked, behind_equals};

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

/// Bytes: `256M`, `2G`, `37.5 MiB`, `64k` or plain bytes.
///
/// # Errors
/// In words, where it is no size.
pub fn parse_bytes(text: &str) -> Result<u64, String> {
    parse_size(text).map_err(|error| match error {
        SizeError::Number => format!("`{text}` is not a size: try 256M or 37.5M"),
        SizeError::Unit => format!("`{text}` has no unit that is known: use k, M, G or T"),
        SizeError::TooLarge => format!("`{text}` is too large"),
    })
}

/// The same for what must be there: more than 0 bytes.
///
/// # Errors
/// In words, where it is no size, or none that anything fits into.
pub fn parse_some_bytes(text: &str) -> Result<u64, String> {
    match parse_bytes(text)? {
        0 => Err(format!("`{text}` is nothing: try 256M")),
        bytes => Ok(bytes),
    }
}

/// MiB that something takes: above 0, at most a million (a TiB).
///
/// # Errors
/// In words, where it is no such number.
pub fn parse_mib(text: &str) -> Result<f64, String> {
    let number = text.trim().parse::<f64>().unwrap_or(f64::NAN);
    let is_sound = number > 0.0 && number <= 1e6;
    is_sound.then_some(number).ok_or_else(|| format!("`{text}` is no number of MiB: try 2.5"))
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes() {
        assert_eq!(parse_bytes("100M"), Ok(100 << 20));
        assert_eq!(parse_bytes("2GiB"), Ok(2 << 30));
        assert_eq!(parse_bytes("4096"), Ok(4096));
        assert_eq!(parse_bytes("37.5 MiB"), Ok(75 << 19));
        for (text, why) in [
            ("", "not a size"),
            ("12parsecs", "use k, M, G or T"),
            ("-5M", "use k, M, G or T"),
            ("99999999999999999999G", "too large"),
        ] {
            assert!(parse_bytes(text).unwrap_err().contains(why), "{text}");
        }
        assert_eq!(parse_some_bytes("1"), Ok(1));
        assert!(parse_some_bytes("0").is_err() && parse_some_bytes("0.0G").is_err());
    }

    #[test]
    fn numbers_of_mib() {
        assert_eq!(parse_mib("2.5"), Ok(2.5));
        for text in ["", "0", "-1", "nan", "inf", "1e300", "many"] {
            assert!(parse_mib(text).is_err(), "{text}");
        }
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
}
