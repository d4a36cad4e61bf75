//! A moment as people write it, without a time zone's tables: UTC only.

/// Seconds of a day.
const DAY_S: u64 = 86_400;
/// Days from 0000-03-01 to 1970-01-01.
const DAYS_BEFORE_EPOCH: u64 = 719_468;
/// Days of 400 years.
const ERA_DAYS: u64 = 146_097;

/// `2026-11-20 14:08 UTC`; `None` for 0, which is how a record says "not known".
#[must_use]
pub fn utc(unix_s: u64) -> Option<String> {
    if unix_s == 0 {
        return None;
    }
    // Howard Hinnant, "chrono-compatible low-level date algorithms", civil_from_days.
    let days = unix_s / DAY_S + DAYS_BEFORE_EPOCH;
    let (era, of_era) = (days / ERA_DAYS, days % ERA_DAYS);
    let year_of_era = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    // Months count from March, so that a leap day ends the year.
    let from_march = (5 * of_year + 2) / 153;
    let day = of_year - (153 * from_march + 2) / 5 + 1;
    let month = if from_march < 10 { from_march + 3 } else { from_march - 9 };
    let year = year_of_era + era * 400 + u64::from(month <= 2);
    let (hour, minute) = (unix_s % DAY_S / 3600, unix_s % 3600 / 60);
    Some(format!("{year}-{month:02}-{day:02} {hour:02}:{minute:02} UTC"))
}

#[cfg(test)]
mod tests {
    use super::utc;

    #[test]
    fn known_moments_have_their_dates() {
        let dates = [
            (1, "1970-01-01 00:00 UTC"),
            (951_782_400, "2000-02-29 00:00 UTC"),
            (1_709_251_199, "2024-02-29 23:59 UTC"),
            (1_795_183_684, "2026-11-20 14:08 UTC"),
            (4_107_542_400, "2100-03-01 00:00 UTC"),
        ];
        for (unix_s, date) in dates {
            assert_eq!(utc(unix_s).as_deref(), Some(date));
        }
        assert_eq!(utc(0), None);
    }
}
