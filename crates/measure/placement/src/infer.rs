//! The decision: which shape, if any, the latencies show. Every way to "cannot tell" is here.

use super::controllers::{ControllerFit, locate, locate_on_ring};
use super::error::PlacementError;
use super::evidence;
use super::findings::{Findings, ShapeFit, canonical};
use super::fit::Fit;
use super::latencies::{ColumnLatencies, PairLatencies};
use super::line;
use super::means::Means;
use super::observations::Observations;
use super::sample;
use super::shapes;
use super::space::Shape;
use super::tiles::tiles;
use isochrone_atlas_store::contents::Placement;

/// Fewest places that can have a shape.
const FEWEST_ITEMS: usize = 4;

/// Fewest memory columns from which cores can be placed on a plane: two circles meet twice.
const FEWEST_COLUMNS: usize = 3;

/// Fewest latencies of a place: with fewer it may be anywhere.
const FEWEST_LINKS: usize = 3;

/// Largest p at which a fit is believed.
const LARGEST_P: f64 = 0.01;

/// Ring and grid within this share of the variance of hidden links are not told apart.
const LEAST_LEAD: f64 = 0.02;

/// Share of the variance of hidden links that a believable shape explains: at least half.
const LEAST_HELDOUT: f64 = 0.5;

/// Why nothing is told where there was no time.
const STOPPED: &str = "it was stopped before it could be told";

/// What was measured of a machine whose layout is sought.
#[derive(Clone, Copy, Debug, Default)]
pub struct Observed<'a> {
    /// Label of each core.
    pub cores: &'a [String],
    /// Core-to-core latency.
    pub pairs: Option<&'a PairLatencies>,
    /// Core-to-memory latency.
    pub columns: Option<&'a ColumnLatencies>,
    /// Where each core sits, if that is known: `x` to the right and `y` down, in whole steps.
    pub places: Option<&'a [Option<(f64, f64)>]>,
}

/// Infers the layout. The same input and seed give the same findings.
///
/// # Errors
/// [`PlacementError::Cores`] when the parts speak of different numbers of cores.
pub fn infer(observed: &Observed<'_>, seed: u64) -> Result<Findings, PlacementError> {
    infer_while(observed, seed, &|| true)
}

/// The same while `keep_going` says so, which is asked every some ten milliseconds. Nothing is told where it says no.
///
/// # Errors
/// As [`infer`].
pub fn infer_while(
    observed: &Observed<'_>,
    seed: u64,
    keep_going: &dyn Fn() -> bool,
) -> Result<Findings, PlacementError> {
    check(observed)?;
    let findings = inferred(observed, seed, keep_going);
    // What was cut short on the way is no evidence, and looks like some.
    if keep_going() {
        return Ok(findings);
    }
    Ok(Findings::untold(STOPPED.to_owned()))
}

fn inferred(observed: &Observed<'_>, seed: u64, keep_going: &dyn Fn() -> bool) -> Findings {
    let means = || Means::new(seed, keep_going);
    let mut findings = match (observed.places, observed.pairs, observed.columns) {
        (Some(_), ..) => known(observed),
        (None, Some(pairs), columns) => {
            let from_pairs = from_pairs(pairs, &mut means());
            let many = columns.filter(|c| c.columns().len() >= FEWEST_COLUMNS);
            match many {
                Some(columns) if !from_pairs.told() => {
                    let from_columns = from_columns(columns, &mut means());
                    if from_columns.told() { from_columns } else { from_pairs }
                }
                _ => from_pairs,
            }
        }
        (None, None, Some(columns)) => from_columns(columns, &mut means()),
        (None, None, None) => Findings::untold("no latency between cores was measured".into()),
    };
    findings.controllers = columns_of(observed, &findings, &means);
    complete(observed, &mut findings);
    findings
}

fn check(observed: &Observed<'_>) -> Result<(), PlacementError> {
    let expected = observed.cores.len();
    let parts = [
        ("the matrix of pairs", observed.pairs.map(PairLatencies::cores)),
        ("the matrix of columns", observed.columns.map(ColumnLatencies::cores)),
        ("the list of places", observed.places.map(<[_]>::len)),
    ];
    for (what, found) in parts {
        if let Some(found) = found.filter(|&found| found != expected) {
            return Err(PlacementError::Cores { what, found, expected });
        }
    }
    Ok(())
}

impl Findings {
    /// Nothing could be told, for this reason.
    fn untold(reason: String) -> Self {
        Self {
            placement: Placement {
                shape: "cannot tell".to_owned(),
                reason,
                places: Vec::new(),
                symmetries: String::new(),
                rank_correlation: None,
            },
            tiles: Vec::new(),
            best: None,
            runner_up: None,
            hierarchy_r2: None,
            p_value: None,
            controllers: Vec::new(),
        }
    }

    /// Whether a shape was found and believed.
    #[must_use]
    pub fn told(&self) -> bool {
        self.placement.shape != "cannot tell"
    }
}

/// Cores whose places are given need no fit.
fn known(observed: &Observed<'_>) -> Findings {
    let mut findings = Findings::untold("the cores' places were given".into());
    if observed.columns.is_none() {
        findings.placement.reason += ", and no memory column to look for a controller in";
    }
    findings.tiles = (0..observed.cores.len()).map(|core| vec![core]).collect();
    findings
}

/// Places cores by the latency between them.
fn from_pairs(pairs: &PairLatencies, means: &mut Means<'_>) -> Findings {
    let tiles = tiles(pairs);
    let merged = pairs.between(&tiles);
    let observations = Observations::of_pairs(&merged);
    let mut findings = Findings::untold(String::new());
    findings.tiles = tiles;
    if let Err(reason) = enough(&observations, &findings.tiles, pairs.noise()) {
        findings.placement.reason = reason;
        return findings;
    }
    findings.hierarchy_r2 = Some(evidence::hierarchy_r2(&observations));
    judge(findings, &observations, means)
}

/// Whether there is anything to fit: places, links, and a spread beyond the noise.
fn enough(
    observations: &Observations,
    tiles: &[Vec<usize>],
    noise: Option<f64>,
) -> Result<(), String> {
    let (cores, items) = (tiles.iter().map(Vec::len).sum::<usize>(), observations.items);
    if items < FEWEST_ITEMS {
        return Err(if items == cores {
            format!("{cores} cores have no layout: at least {FEWEST_ITEMS} are needed")
        } else {
            format!("{cores} cores in {items} tiles have no layout: {FEWEST_ITEMS} are needed")
        });
    }
    if observations.fewest_links() < FEWEST_LINKS {
        return Err("a core has fewer than three latencies, which leaves it anywhere".to_owned());
    }
    let latencies = observations.latencies();
    let spread = (line::scatter(&latencies) / latencies.len() as f64).sqrt();
    let noise = noise.unwrap_or(0.0);
    // At a spread of 1.4 times the noise, half of the variance is noise.
    let rounding = 1e-9 * line::mean(&latencies).abs();
    if spread <= rounding || spread < std::f64::consts::SQRT_2 * noise {
        return Err(format!(
            "the latencies differ by {spread:.3} (standard deviation), \
             which is within the noise of {noise:.3}"
        ));
    }
    Ok(())
}

/// Places cores and columns by the latency between the two.
fn from_columns(columns: &ColumnLatencies, means: &mut Means<'_>) -> Findings {
    let count = columns.columns().len();
    let mut findings = Findings::untold(String::new());
    findings.tiles = (0..columns.cores()).map(|core| vec![core]).collect();
    if count < FEWEST_COLUMNS {
        findings.placement.reason = format!(
            "{count} memory column{} cannot place cores: all places at one distance look the same",
            if count == 1 { "" } else { "s" }
        );
        return findings;
    }
    let observations = Observations::of_columns(columns);
    if let Err(reason) = enough(&observations, &findings.tiles, None) {
        findings.placement.reason = reason;
        return findings;
    }
    judge(findings, &observations, means)
}

/// Fits both shapes and believes the better one if the evidence allows. Of many places a sample is fitted and judged,
/// and the others are placed by it.
fn judge(mut findings: Findings, observations: &Observations, means: &mut Means<'_>) -> Findings {
    let drawn = sample::draw(observations.items, &mut means.rng);
    let of_sample = drawn.as_ref().map(|chosen| observations.of_items(chosen));
    let searched = of_sample.as_ref().unwrap_or(observations);
    if searched.fewest_links() < FEWEST_LINKS {
        let (some, all) = (searched.items, observations.items);
        findings.placement.reason =
            format!("too few latencies are known between {some} of the {all} places");
        return findings;
    }
    let ring = shapes::best_ring(searched, means);
    let grid = shapes::best_grid(searched, means);
    let mut fits: Vec<(Fit, f64)> = [ring, grid]
        .into_iter()
        .flatten()
        .map(|fit| {
            let heldout = evidence::heldout_r2(searched, &fit.space, means);
            (fit, heldout)
        })
        .collect();
    fits.sort_by(|a, b| b.1.total_cmp(&a.1));
    let Some((fit, _)) = fits.first() else {
        findings.placement.reason = "neither a ring nor a grid has room for the cores".to_owned();
        return findings;
    };
    findings.p_value = Some(evidence::p_value(searched, &fit.space, means));
    let shapes = fits.into_iter().map(|(fit, heldout)| {
        let all = match &drawn {
            Some(chosen) => shapes::spread(observations, chosen, &fit, means),
            None => fit,
        };
        ShapeFit::new(&canonical(all), observations, &findings.tiles, heldout)
    });
    let mut shapes = shapes.collect::<Vec<_>>().into_iter();
    (findings.best, findings.runner_up) = (shapes.next(), shapes.next());
    conclude(findings, searched.items)
}

/// Turns the figures into a verdict and a reason. They come from so many places.
fn conclude(mut findings: Findings, searched: usize) -> Findings {
    let (Some(best), Some(p)) = (&findings.best, findings.p_value) else { return findings };
    let percent = |share: f64| format!("{:.1} %", 100.0 * share.max(0.0));
    let places = findings.tiles.len();
    let by = if searched < places {
        format!(" (of {searched} of {places} places)")
    } else {
        String::new()
    };
    let explains = format!(
        "{} explains {} of the variance of latencies hidden from it{by}",
        best.shape,
        percent(best.heldout_r2)
    );
    let rival = findings.runner_up.as_ref();
    let other =
        rival.map_or(String::new(), |r| format!(" ({} {})", r.shape, percent(r.heldout_r2)));
    let doubt = if p > LARGEST_P {
        Some(format!("{} fits no better than shuffled latencies do (p = {p:.2}){by}", best.shape))
    } else if best.heldout_r2 < LEAST_HELDOUT {
        Some(format!("{explains}{other}, too little to believe"))
    } else if rival.is_some_and(|r| best.heldout_r2 - r.heldout_r2 < LEAST_LEAD) {
        Some(format!("{explains}{other}, which is too close to call"))
    } else if findings.hierarchy_r2.is_some_and(|h| h >= best.r2) {
        let hierarchy = percent(findings.hierarchy_r2.unwrap_or(0.0));
        Some(format!(
            "{explains}{other}, but groups without any order explain {hierarchy} of all and it {}",
            percent(best.r2)
        ))
    } else {
        None
    };
    let placement = &mut findings.placement;
    placement.rank_correlation = best.rank_correlation;
    if let Some(doubt) = doubt {
        placement.reason = doubt;
        return findings;
    }
    placement.shape = best.shape.name().to_owned();
    placement.reason = format!("{explains}{other}, p = {p:.3}");
    placement.symmetries = best.symmetries();
    findings
}

/// Looks for the controller of every memory column, where the cores have places.
fn columns_of<'a>(
    observed: &Observed<'_>,
    findings: &Findings,
    means: &dyn Fn() -> Means<'a>,
) -> Vec<ControllerFit> {
    let Some(columns) = observed.columns else { return Vec::new() };
    let each = columns.columns().iter().enumerate();
    match (observed.places, &findings.best) {
        (Some(places), _) => {
            each.map(|(k, name)| locate(name, places, &columns.column(k), means())).collect()
        }
        (None, Some(best)) if findings.told() => {
            let stops: Vec<Option<usize>> = best.cell_of_core.iter().copied().map(Some).collect();
            let places: Vec<Option<(f64, f64)>> =
                stops.iter().flatten().map(|&cell| Some(best.shape.place(cell))).collect();
            let find = |name: &str, latencies: &[Option<f64>]| match best.shape {
                Shape::Ring { stops: count } => {
                    locate_on_ring(name, count, &stops, latencies, means())
                }
                Shape::Grid { .. } => locate(name, &places, latencies, means()),
            };
            each.map(|(k, name)| find(name, &columns.column(k))).collect()
        }
        _ => Vec::new(),
    }
}

/// Fills the places into the record and says what was found of the controllers.
fn complete(observed: &Observed<'_>, findings: &mut Findings) {
    let found: Vec<&ControllerFit> =
        findings.controllers.iter().filter(|c| c.best.is_some()).collect();
    let placement = &mut findings.placement;
    if let Some(places) = observed.places {
        if !findings.controllers.is_empty() {
            let said: Vec<&str> = findings.controllers.iter().map(|c| c.summary.as_str()).collect();
            placement.reason = format!("{}; {}", placement.reason, said.join("; "));
        }
        if let Some(first) = found.first() {
            placement.shape = "grid".to_owned();
            placement.symmetries = "none: the cores' places were given".to_owned();
            placement.rank_correlation = first.rank_correlation;
        }
        let cores = observed.cores.iter().zip(places);
        placement.places =
            cores.filter_map(|(label, at)| at.map(|(x, y)| (label.clone(), x, y))).collect();
    } else if let Some(best) = findings.best.as_ref().filter(|_| placement.shape != "cannot tell") {
        let cores = observed.cores.iter().zip(&best.cell_of_core);
        placement.places = cores
            .map(|(label, &cell)| {
                let (x, y) = best.shape.place(cell);
                (label.clone(), x, y)
            })
            .collect();
    }
    placement
        .places
        .extend(found.iter().filter_map(|c| c.best.map(|(x, y)| (c.column.clone(), x, y))));
}
