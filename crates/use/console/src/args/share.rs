//! Shares as people write them: `1/4`, `25%` or `0.25`.

/// A share between 0 and some limit that the option sets.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Share(pub f32);

/// A share of something whole: above 0, at most 1.
pub fn parse_part(text: &str) -> Result<Share, String> {
    let share = parse(text)?;
    if share > 0.0 && share <= 1.0 {
        return Ok(Share(share));
    }
    Err(format!("`{text}` is no part of a whole: try 1/4"))
}

/// A share by which something may grow: 0 or more.
pub fn parse_growth(text: &str) -> Result<Share, String> {
    let share = parse(text)?;
    if (0.0..=100.0).contains(&share) {
        return Ok(Share(share));
    }
    Err(format!("`{text}` is no growth between 0% and 10000%: try 25%"))
}

fn parse(text: &str) -> Result<f32, String> {
    let wrong = || format!("`{text}` is not a share: try 1/4, 25% or 0.25");
    let number = |t: &str| t.trim().parse::<f32>().map_err(|_| wrong());
    let share = if let Some((part, whole)) = text.split_once('/') {
        number(part)? / number(whole)?
    } else if let Some(percent) = text.strip_suffix('%') {
        number(percent)? / 100.0
    } else {
        number(text)?
    };
    if share.is_finite() { Ok(share) } else { Err(wrong()) }
}

impl std::fmt::Display for Share {
    /// `1/4` where the share is one over a whole number, else percent.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let over = 1.0 / self.0;
        if self.0 > 0.0 && self.0 < 1.0 && (over - over.round()).abs() < 1e-4 {
            return write!(f, "1/{}", over.round());
        }
        write!(f, "{}%", self.0 * 100.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn three_ways_to_write_a_quarter() {
        for text in ["1/4", "25%", "0.25", " 2 / 8"] {
            assert_eq!(parse_part(text), Ok(Share(0.25)), "{text}");
        }
        assert_eq!(Share(0.25).to_string(), "1/4");
        assert_eq!(Share(0.375).to_string(), "37.5%");
        assert_eq!(Share(1.0).to_string(), "100%");
    }

    #[test]
    fn what_is_no_share_is_refused() {
        for text in ["", "x", "1/0", "1/", "NaN", "inf", "5/4", "0", "-1/4"] {
            assert!(parse_part(text).is_err(), "{text}");
        }
        assert_eq!(parse_growth("0"), Ok(Share(0.0)));
        assert_eq!(parse_growth("150%"), Ok(Share(1.5)));
        assert!(parse_growth("-25%").is_err());
    }
}
