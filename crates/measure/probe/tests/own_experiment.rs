//! An experiment that `map` does not have: the example of CONTRIBUTING.md, word for word.
//!
//! It is built with the tests, so that what is written there compiles and does what it says.

#[cfg(test)]
mod tests {
    use isochrone_probe::target::TargetError;
    use isochrone_stats::{Xoshiro256PlusPlus, derive_seed, median, normal, rng, shuffle};
    use isochrone_units::CoreId;

    /// What is done: pure data.
    struct FaultPlan {
        cores: Vec<CoreId>,
        rounds: u32,
        seed: u64,
    }

    /// What is measured: this machine, or a model whose truth is known.
    trait FaultTarget {
        /// Nanoseconds that a core's first touch of a page takes.
        fn fault_ns(&mut self, core: CoreId) -> Result<f64, TargetError>;
    }

    /// A median for each core, in the order of the plan; none where nothing was measured. `stop` is asked before every
    /// touch, and what was measured is kept.
    fn run(
        target: &mut dyn FaultTarget,
        plan: &FaultPlan,
        stop: &mut dyn FnMut() -> bool,
    ) -> Result<Vec<Option<f64>>, TargetError> {
        let mut ns: Vec<Vec<f64>> = vec![Vec::new(); plan.cores.len()];
        'rounds: for round in 0..plan.rounds {
            let mut order: Vec<usize> = (0..plan.cores.len()).collect();
            shuffle(&mut order, &mut rng(derive_seed(plan.seed, u64::from(round))));
            for at in order {
                if stop() {
                    break 'rounds;
                }
                ns[at].push(target.fault_ns(plan.cores[at])?);
            }
        }
        Ok(ns.iter().map(|ns| median(ns)).collect())
    }

    /// A machine whose cores take 100 ns each, and a tenth more by their number.
    struct Model(Xoshiro256PlusPlus);

    fn truth_ns(core: CoreId) -> f64 {
        100.0 * (1.0 + f64::from(core.0) / 10.0)
    }

    impl FaultTarget for Model {
        fn fault_ns(&mut self, core: CoreId) -> Result<f64, TargetError> {
            Ok(truth_ns(core) + 5.0 * normal(&mut self.0))
        }
    }

    fn plan() -> FaultPlan {
        FaultPlan { cores: [0, 1, 2].map(CoreId).to_vec(), rounds: 100, seed: 7 }
    }

    #[test]
    fn medians_are_the_truth_of_the_model() {
        let found = run(&mut Model(rng(1)), &plan(), &mut || false).unwrap();
        for (core, ns) in plan().cores.into_iter().zip(found) {
            // Five times the standard error of a median of 100 values with a deviation of 5.
            assert!((ns.unwrap() - truth_ns(core)).abs() < 3.1, "{core}: {ns:?}");
        }
    }

    #[test]
    fn stopped_half_way_it_keeps_what_it_has_and_makes_nothing_up() {
        let mut left = 2;
        let mut stop = || {
            left -= 1;
            left < 0
        };
        let found = run(&mut Model(rng(1)), &plan(), &mut stop).unwrap();
        assert_eq!(found.iter().flatten().count(), 2, "{found:?}");
        assert!(run(&mut Model(rng(1)), &plan(), &mut || true).unwrap() == [None; 3]);
    }
}
