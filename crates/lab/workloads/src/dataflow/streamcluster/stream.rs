//! The stream: chunk after chunk is clustered, and at the end the centres of all chunks are.

use super::search::{Found, Passes, search};
use super::{Parameters, points};
use isochrone_stats::derive_seed;

/// Points in memory that can be loaded anew and summed up.
pub trait Chunk: Passes {
    /// Loads points `first..first + count` of the stream, each of weight 1.
    ///
    /// # Errors
    /// As [`Passes::Error`] says.
    fn load(&mut self, first: usize, count: usize) -> Result<(), Self::Error>;

    /// Loads these centres as points.
    ///
    /// # Errors
    /// As [`Passes::Error`] says.
    fn load_centres(&mut self, centres: &[Centre]) -> Result<(), Self::Error>;

    /// The points of each of `slots` slots joined into one: `None` where a slot has no point.
    ///
    /// # Errors
    /// As [`Passes::Error`] says.
    fn join(&mut self, slots: usize) -> Result<Vec<Option<Centre>>, Self::Error>;
}

/// A centre: where it lies and how many points it stands for.
#[derive(Clone, Debug, PartialEq)]
pub struct Centre {
    /// Its weight.
    pub weight: f32,
    /// Its coordinates.
    pub at: Vec<f32>,
}

/// Adds the points of a block to the sums of their slots: `sums` is `[slot][1 + dimension]`.
pub fn add_to_sums(
    block: &[points::Point],
    coordinates: &[f32],
    dimensions: usize,
    sums: &mut [f64],
) {
    for (point, at) in block.iter().zip(coordinates.chunks_exact(dimensions)) {
        let row = &mut sums[point.slot as usize * (1 + dimensions)..][..=dimensions];
        row[0] += f64::from(point.weight);
        for (sum, x) in row[1..].iter_mut().zip(at) {
            *sum += f64::from(x * point.weight);
        }
    }
}

/// The centres that `[slot][1 + dimension]` sums give.
#[must_use]
#[allow(clippy::cast_possible_truncation, reason = "means of f32 values, as PARSEC keeps them")]
pub fn centres_of(sums: &[f64], dimensions: usize) -> Vec<Option<Centre>> {
    let centre = |row: &[f64]| {
        let at = row[1..].iter().map(|sum| (sum / row[0]) as f32).collect();
        (row[0] > 0.0).then_some(Centre { weight: row[0] as f32, at })
    };
    sums.chunks_exact(1 + dimensions).map(centre).collect()
}

/// Coordinate `dimension` of point `point`: uniform in [0, 1), as PARSEC's synthetic stream.
#[must_use]
#[allow(clippy::cast_precision_loss, reason = "24 bits fit an f32 exactly")]
pub fn coordinate(seed: u64, point: usize, dimension: usize) -> f32 {
    let stream = ((point as u64) << 16) | dimension as u64;
    (derive_seed(seed, stream) >> 40) as f32 / (1 << 24) as f32
}

/// What the stream came to.
#[derive(Clone, Debug, PartialEq)]
pub struct Clustered {
    /// The final centres.
    pub centres: Vec<Centre>,
    /// The cost of each chunk, then that of the intermediate centres.
    pub costs: Vec<f64>,
    /// How often a chunk's points were passed over.
    pub passes: u64,
}

/// Clusters the whole stream.
///
/// # Errors
/// The first error of a pass.
pub fn cluster<C: Chunk>(
    chunk: &mut C,
    parameters: &Parameters,
    seed: u64,
) -> Result<Clustered, C::Error> {
    let &Parameters { k_min, k_max, .. } = parameters;
    let mut between = Vec::new();
    let mut costs = Vec::new();
    let mut passes = 0;
    for (step, first) in (0..parameters.points).step_by(parameters.chunk).enumerate() {
        chunk.load(first, parameters.chunk.min(parameters.points - first))?;
        let found = search(chunk, k_min, k_max, derive_seed(seed, step as u64))?;
        note(&found, &mut costs, &mut passes);
        between.extend(chunk.join(found.centres.len())?.into_iter().flatten());
        between.truncate(parameters.centres);
    }
    chunk.load_centres(&between)?;
    let found = search(chunk, k_min, k_max, derive_seed(seed, u64::MAX))?;
    note(&found, &mut costs, &mut passes);
    let centres = chunk.join(found.centres.len())?.into_iter().flatten().collect();
    Ok(Clustered { centres, costs, passes })
}

fn note(found: &Found, costs: &mut Vec<f64>, passes: &mut u64) {
    costs.push(found.cost);
    *passes += found.passes;
}
