//! Clocks of cores by how many of their socket are active: what turbo does to rates.

/// Clocks of a core, and whether what it computes goes with them.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Clocks {
    /// Active cores of a socket, ascending, and the clock of each of them, GHz.
    pub table: Vec<(u16, f64)>,
    /// The clock at which the rates of the description hold, GHz.
    pub of_rates: Option<f64>,
    /// Whether rates go with the clock; else they hold as they are.
    pub turbo: bool,
}

impl Clocks {
    /// The clock with so many active cores in a socket, GHz: on straight lines between entries, and that of the
    /// nearest entry beside them.
    fn at(&self, active: f64) -> Option<f64> {
        let cores = |entry: &(u16, f64)| f64::from(entry.0);
        let after = self.table.partition_point(|entry| cores(entry) <= active);
        let (below, above) = (after.checked_sub(1), self.table.get(after));
        match (below.map(|at| &self.table[at]), above) {
            (Some(below), Some(above)) => {
                let part = (active - cores(below)) / (cores(above) - cores(below));
                Some(below.1 + part * (above.1 - below.1))
            }
            (Some(only), None) | (None, Some(only)) => Some(only.1),
            (None, None) => None,
        }
    }

    /// How many times as fast as in the description a core computes.
    #[must_use]
    pub fn speed(&self, active: f64) -> f64 {
        let both = self.at(active).zip(self.of_rates).filter(|_| self.turbo);
        both.map_or(1.0, |(clock, of_rates)| clock / of_rates)
    }

    /// Why rates cannot go with these clocks, though they are to.
    pub(super) fn check(&self) -> Result<(), String> {
        if !self.turbo {
            return Ok(());
        }
        let positive = |ghz: &f64| *ghz > 0.0 && ghz.is_finite();
        if self.table.is_empty() || !self.of_rates.as_ref().is_some_and(positive) {
            return Err("turbo needs clocks; add `rate clock` and, for some numbers N of active \
                        cores of a socket, `turbo N` under [[costs]], in GHz"
                .into());
        }
        match self.table.iter().find(|entry| !positive(&entry.1)) {
            Some((cores, ghz)) => Err(format!("`turbo {cores}` is {ghz} GHz; give it more than 0")),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn clocks(table: &[(u16, f64)]) -> Clocks {
        Clocks { table: table.to_vec(), of_rates: Some(2.1), turbo: true }
    }

    #[test]
    fn clocks_lie_on_straight_lines_and_rates_go_with_them() {
        let clocks = clocks(&[(1, 3.3), (18, 2.5)]);
        for (active, ghz) in [(0.0, 3.3), (1.0, 3.3), (9.5, 2.9), (18.0, 2.5), (64.0, 2.5)] {
            assert!((clocks.speed(active) - ghz / 2.1).abs() < 1e-12, "{active}");
        }
        let off = Clocks { turbo: false, ..clocks };
        assert!((off.speed(1.0) - 1.0).abs() < f64::EPSILON);
    }

    #[test]
    fn turbo_without_clocks_is_refused_with_the_way_out() {
        let none = clocks(&[]).check().expect_err("no table");
        assert!(none.contains("`turbo N` under [[costs]]"), "{none}");
        let no_base = Clocks { of_rates: None, ..clocks(&[(1, 3.3)]) };
        assert!(no_base.check().is_err());
        assert!(clocks(&[(1, 0.0)]).check().expect_err("no clock").contains("`turbo 1`"));
        assert_eq!(clocks(&[(1, 3.3)]).check(), Ok(()));
        assert_eq!(Clocks::default().check(), Ok(()), "nothing is asked where it is off");
    }
}
