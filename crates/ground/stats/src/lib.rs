//! Numbers with their uncertainty: order statistics, intervals, rank tests, change points,
//! robust fits, clusters, and the seeded randomness that experiments shuffle with.
//!
//! Pure functions over slices, without std, so that the simulator and the decoder below malloc's
//! callers can both use them. Nothing here reads a clock, holds state between calls, or knows
//! what the numbers mean. All transcendental functions come from `libm`, so that one seed gives
//! the same bits on every machine.
//!
//! Two rules hold throughout. A question that has no answer (no values, a value that is not
//! finite, lengths that differ) is answered `None`, never 0. A field that a valid answer cannot
//! fill (the standard deviation of one value) is NaN, which JSON writes as `null`.
//!
//! ```
//! use isochrone_stats::{Summary, bootstrap_ratio_ci, tick_mean};
//!
//! let near = [44.0, 43.5, 44.5, 45.0, 43.0, 44.25, 44.75, 43.25];
//! let far = [55.0, 54.0, 56.5, 55.5, 54.5, 55.25, 56.0, 54.75];
//! assert_eq!(Summary::of(&near).unwrap().median, 44.125);
//!
//! let ratio = bootstrap_ratio_ci(&far, &near, 1000, 0.95, 7).unwrap();
//! assert!(ratio.lo > 1.2 && ratio.hi < 1.3);
//!
//! // A clock that steps by 26 reads 44 as 26 or 52; the mean still tells.
//! let ticked = [52.0, 26.0, 52.0, 52.0, 26.0, 52.0, 26.0, 52.0, 52.0, 52.0, 52.0, 26.0, 52.0];
//! assert_eq!(tick_mean(&ticked, 26.0).unwrap().mean, 44.0);
//! ```

#![no_std]

extern crate alloc;
#[cfg(test)]
extern crate std;

mod bootstrap;
mod changes;
mod cluster;
mod correlation;
mod further;
mod holm;
mod least_squares;
mod location;
mod moments;
mod number;
mod order;
mod random;
mod rank;
mod special;
mod theil_sen;

pub use bootstrap::{Interval, bootstrap_median_ci, bootstrap_paired_ratio_ci, bootstrap_ratio_ci};
pub use changes::{bic_penalty, change_points, change_points_with_sd, noise_sd_from_differences};
pub use cluster::{Clusters, choose_k_1d, kmeans_1d};
pub use correlation::{pearson, pearson_f32, spearman};
pub use further::{further, student_t};
pub use holm::holm;
pub use least_squares::{Fit, least_squares};
pub use location::{MAD_TO_SD, TickMean, mad, tick_mean, unlengthened};
pub use moments::{mean, variance};
pub use order::{Spread, Summary, median, quantile};
pub use random::{Rng, Xoshiro256PlusPlus, below, derive_seed, normal, rng, shuffle, uniform};
pub use rank::{MannWhitney, SignedRank, mann_whitney_u, wilcoxon_signed_rank};
pub use special::student_t_p;
pub use theil_sen::{Line, theil_sen};
