//! What was inferred, in full: the record for the atlas with the fits behind it, the shape that
//! lost, and the figures that decided.

use super::controllers::ControllerFit;
use super::fit::Fit;
use super::observations::Observations;
use super::space::Shape;
use isochrone_atlas_store::contents::Placement;

/// A link and what the fit says of it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Residual {
    /// Index of the core (the first of its tile).
    pub core: usize,
    /// Index of the other core, or of the memory column where only columns were measured.
    pub other: usize,
    /// What was measured (where only columns were: less the mean of the column).
    pub latency: f64,
    /// What the fit says.
    pub fitted: f64,
}

/// One shape, fitted.
#[derive(Clone, Debug, PartialEq)]
pub struct ShapeFit {
    /// Shape and size.
    pub shape: Shape,
    /// The cell of each core: the stop of a ring, `row * columns + column` of a grid.
    pub cell_of_core: Vec<usize>,
    /// The cell of each memory column, where only columns were measured.
    pub cell_of_column: Vec<usize>,
    /// Fitted latency at distance 0, `None` where each column has its own.
    pub base: Option<f64>,
    /// Cost of a hop along the ring or from left to right.
    pub hop_x: f64,
    /// Cost of a hop from top to bottom; on a ring equal to `hop_x`.
    pub hop_y: f64,
    /// Share of the variance explained.
    pub r2: f64,
    /// Share of the variance explained of links that were hidden while the cores were placed.
    pub heldout_r2: f64,
    /// Spearman correlation between fitted distances and latencies.
    pub rank_correlation: Option<f64>,
    /// Standard deviation of the residuals.
    pub residual: f64,
    /// Ways to turn and mirror the shape that no latency can tell apart.
    pub images: usize,
    /// Every link, in the order of the cores.
    pub residuals: Vec<Residual>,
}

/// Everything that was inferred.
#[derive(Clone, Debug, PartialEq)]
pub struct Findings {
    /// The record for the atlas.
    pub placement: Placement,
    /// Cores that share a place, by index; every core is in one.
    pub tiles: Vec<Vec<usize>>,
    /// The better shape, whether or not it was believed.
    pub best: Option<ShapeFit>,
    /// The other one.
    pub runner_up: Option<ShapeFit>,
    /// Share of the variance that a hierarchy of groups without geometry explains.
    pub hierarchy_r2: Option<f64>,
    /// Probability that latencies without geometry fit the better shape as well.
    pub p_value: Option<f64>,
    /// Where each memory column's controller is, for columns that were given.
    pub controllers: Vec<ControllerFit>,
}

/// The image of a fit that puts the first items first: of all that no latency can tell apart, one
/// must be drawn, and always the same.
pub(super) fn canonical(mut fit: Fit) -> Fit {
    let images = fit.space.shape.images(fit.space.turnable());
    let renamed = |cells: &[usize], image: &[usize]| -> Vec<usize> {
        cells.iter().map(|&cell| image[cell]).collect()
    };
    if let Some(image) = images.iter().min_by_key(|image| renamed(&fit.cells, image)) {
        fit.cells = renamed(&fit.cells, image);
        fit.column_cells = renamed(&fit.column_cells, image);
    }
    fit
}

impl ShapeFit {
    /// Spells a fit out for the cores of each tile.
    pub(super) fn new(
        fit: &Fit,
        observations: &Observations,
        tiles: &[Vec<usize>],
        heldout_r2: f64,
    ) -> Self {
        let cores = tiles.iter().map(Vec::len).sum();
        let mut cell_of_core = vec![0; cores];
        for (tile, &cell) in tiles.iter().zip(&fit.cells) {
            tile.iter().for_each(|&core| cell_of_core[core] = cell);
        }
        let links = &observations.links;
        let distances: Vec<f64> = links.iter().map(|link| fit.distance(link)).collect();
        let other = |b: usize| if observations.columns.is_some() { b } else { tiles[b][0] };
        let turnable = fit.space.turnable();
        Self {
            shape: fit.space.shape,
            cell_of_core,
            cell_of_column: fit.column_cells.clone(),
            base: observations.columns.is_none().then(|| fit.bases[0]),
            hop_x: fit.hop,
            hop_y: fit.hop * fit.space.y_over_x,
            r2: fit.r2,
            heldout_r2,
            rank_correlation: isochrone_stats::spearman(&distances, &observations.latencies()),
            residual: (fit.sse / links.len().max(1) as f64).sqrt(),
            images: fit.space.shape.images(turnable).len(),
            residuals: links
                .iter()
                .map(|link| Residual {
                    core: tiles[link.a][0],
                    other: other(link.b),
                    latency: link.latency,
                    fitted: fit.predict(link),
                })
                .collect(),
        }
    }

    /// What turning and mirroring leave open, in words.
    pub(super) fn symmetries(&self) -> String {
        match self.shape {
            Shape::Ring { stops } => format!(
                "any rotation and the mirror image fit as well ({} images of {stops} stops)",
                self.images
            ),
            Shape::Grid { .. } if self.images == 8 => {
                "quarter turns and mirror images fit as well (8 images)".to_owned()
            }
            Shape::Grid { .. } => {
                "left and right, top and bottom may be exchanged (4 images)".to_owned()
            }
        }
    }
}
