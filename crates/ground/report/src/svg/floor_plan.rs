//! Where cores and memory seem to sit, as inferred from latencies alone; and, as often, that
//! this cannot be told and why. A plan without its mirror images stated is not drawn.

use super::canvas::{Anchor, Canvas, Paint, shorten, text_width, wrap};
use super::legend;
use crate::cast::index;
use crate::colour::ramp;
use crate::fmt::significant;
use crate::scale::{Extent, Scale, bounds};

const SIDE: f64 = 460.0;
const MARGIN: f64 = 40.0;
const RADIUS: f64 = 17.0;

/// An inferred floor plan.
#[derive(Clone, Debug, PartialEq)]
pub struct FloorPlan {
    /// What is shown.
    pub title: String,
    /// What could be told.
    pub verdict: Verdict,
}

/// What could be told of a floor plan.
#[derive(Clone, Debug, PartialEq)]
pub enum Verdict {
    /// Everything has a place.
    Placed {
        /// The shape that was fitted.
        outline: Outline,
        /// What was placed where.
        places: Vec<Place>,
        /// How mirror images and rotations leave the plan undetermined, in words.
        symmetries: String,
        /// The unit of the places' values.
        unit: String,
    },
    /// Nothing can be said.
    CannotTell {
        /// Why, in one or two sentences.
        reason: String,
    },
}

/// The shape that was fitted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outline {
    /// Places are points of a grid with unit spacing; its lines are drawn.
    Grid,
    /// Places lie on a ring around their middle.
    Ring,
    /// No shape is drawn.
    None,
}

/// Something with a place.
#[derive(Clone, Debug, PartialEq)]
pub struct Place {
    /// Its name, short enough to stand inside or under its mark.
    pub label: String,
    /// What it is.
    pub kind: PlaceKind,
    /// To the right.
    pub x: f64,
    /// Downwards, in the unit of `x`.
    pub y: f64,
    /// A value that colours it (its latency to the place in question, say).
    pub value: Option<f64>,
}

/// What has a place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PlaceKind {
    /// A core, drawn round.
    Core,
    /// A memory controller or region, drawn square.
    Memory,
}

/// Draws a floor plan, or why there is none.
#[must_use]
pub fn floor_plan(plan: &FloorPlan) -> String {
    match &plan.verdict {
        Verdict::CannotTell { reason } => cannot_tell(&plan.title, reason),
        Verdict::Placed { outline, places, symmetries, unit } => {
            let known: Vec<&Place> =
                places.iter().filter(|p| p.x.is_finite() && p.y.is_finite()).collect();
            if known.is_empty() {
                return cannot_tell(&plan.title, "Nothing was placed.");
            }
            placed(&plan.title, *outline, &known, symmetries, unit)
        }
    }
}

fn cannot_tell(title: &str, reason: &str) -> String {
    let mut canvas = Canvas::new();
    let top = canvas.heading(title, "");
    let lines = wrap(reason, 12.0, 440.0);
    let height = (70.0 + 17.0 * lines.len() as f64).max(120.0);
    canvas.rect((0.5, top), (580.0, height), Paint::Class("dash"), "");
    canvas.text(56.0, top + height / 2.0 + 22.0, "q", Anchor::Middle, "?");
    canvas.text(112.0, top + 36.0, "b", Anchor::Start, "Cannot tell");
    for (i, line) in lines.iter().enumerate() {
        canvas.text(112.0, top + 58.0 + 17.0 * i as f64, "m", Anchor::Start, line);
    }
    canvas.finish(top + height + 4.0, title, &format!("The floor plan cannot be told. {reason}"))
}

/// From the plan's coordinates to the sheet's.
struct View {
    x: Extent,
    y: Extent,
    size: (f64, f64),
    top: f64,
}

impl View {
    /// A view of all places, and of the crossings of the grid nearest to them if `whole`.
    fn new(places: &[&Place], whole: bool, top: f64) -> Self {
        let span = |values: Vec<f64>| {
            let crossings: Vec<f64> =
                if whole { values.iter().map(|v| v.round()).collect() } else { Vec::new() };
            bounds(values.into_iter().chain(crossings)).unwrap_or((0.0, 0.0))
        };
        let (x0, x1) = span(places.iter().map(|p| p.x).collect());
        let (y0, y1) = span(places.iter().map(|p| p.y).collect());
        let (wide, high) = (x1 / 2.0 - x0 / 2.0, y1 / 2.0 - y0 / 2.0);
        let longest = wide.max(high);
        let side = |part: f64| {
            if longest > 0.0 { (SIDE * (part / longest)).max(2.0 * RADIUS) } else { 2.0 * RADIUS }
        };
        Self {
            x: Extent::new(x0, x1, Scale::Linear),
            y: Extent::new(y0, y1, Scale::Linear),
            size: (side(wide), side(high)),
            top: top + MARGIN,
        }
    }

    fn at(&self, x: f64, y: f64) -> (f64, f64) {
        (MARGIN + self.size.0 * self.x.share(x), self.top + self.size.1 * self.y.share(y))
    }

    fn bottom(&self) -> f64 {
        self.top + self.size.1 + MARGIN
    }
}

fn placed(
    title: &str,
    outline: Outline,
    places: &[&Place],
    symmetries: &str,
    unit: &str,
) -> String {
    let mut canvas = Canvas::new();
    let top = canvas.heading(title, "");
    let view = View::new(places, outline == Outline::Grid, top);
    let values = bounds(places.iter().filter_map(|p| p.value));
    let extent = values.map(|(lo, hi)| Extent::for_colours(lo, hi, 0.0));
    match outline {
        Outline::Grid => grid(&mut canvas, &view),
        Outline::Ring => ring(&mut canvas, places, &view),
        Outline::None => {}
    }
    for place in places {
        mark(&mut canvas, place, view.at(place.x, place.y), extent.as_ref(), unit);
    }
    let mut y = view.bottom() + 4.0;
    let entries: Vec<_> = wrap(symmetries, 12.0, 560.0);
    for line in &entries {
        y += 17.0;
        canvas.text(0.0, y, "m", Anchor::Start, line);
    }
    y += 16.0;
    if extent.is_some() {
        legend::colour_bar(&mut canvas, (10.0, y), extent.as_ref(), unit, (false, false), None);
        y += legend::BAR_HEIGHT;
    }
    let names: Vec<_> = places
        .iter()
        .map(|p| format!("{} at ({}, {})", p.label, significant(p.x, 3), significant(p.y, 3)))
        .collect();
    canvas.finish(y, title, &format!("{}. {symmetries}", names.join("; ")))
}

/// Lines at whole coordinates, at most 64 each way.
fn grid(canvas: &mut Canvas, view: &View) {
    let lines = |extent: &Extent| {
        let (first, last) = (extent.lo.ceil(), extent.hi.floor());
        let n = index(last - first + 1.0, 64);
        (0..n).map(move |i| first + i as f64)
    };
    for x in lines(&view.x) {
        let (a, b) = (view.at(x, view.y.lo), view.at(x, view.y.hi));
        canvas.line((a.0, a.1 - 24.0), (b.0, b.1 + 24.0), "soft");
    }
    for y in lines(&view.y) {
        let (a, b) = (view.at(view.x.lo, y), view.at(view.x.hi, y));
        canvas.line((a.0 - 24.0, a.1), (b.0 + 24.0, b.1), "soft");
    }
}

/// The circle around the places' middle at their mean distance, as sixty-four straight pieces.
fn ring(canvas: &mut Canvas, places: &[&Place], view: &View) {
    let n = places.len() as f64;
    let at: Vec<_> = places.iter().map(|p| view.at(p.x, p.y)).collect();
    let middle = (at.iter().map(|p| p.0).sum::<f64>() / n, at.iter().map(|p| p.1).sum::<f64>() / n);
    let far = |p: &(f64, f64)| (p.0 - middle.0).hypot(p.1 - middle.1);
    let radius = at.iter().map(far).sum::<f64>() / n;
    let corner = |i: u32| {
        let turn = f64::from(i) / 64.0 * std::f64::consts::TAU;
        (middle.0 + radius * turn.cos(), middle.1 + radius * turn.sin())
    };
    canvas.path((0..64).map(corner), "soft", true);
}

fn mark(canvas: &mut Canvas, place: &Place, at: (f64, f64), extent: Option<&Extent>, unit: &str) {
    let value = place.value.filter(|v| v.is_finite());
    let colour = value.zip(extent).map(|(v, e)| ramp(e.share(v)));
    let paint = colour.map_or(Paint::Class("rim"), Paint::Fill);
    let hint = match value {
        Some(value) => format!("{}: {} {unit}", place.label, significant(value, 3)),
        None => place.label.clone(),
    };
    match place.kind {
        PlaceKind::Core => canvas.circle(at, RADIUS, paint, &hint),
        PlaceKind::Memory => {
            let corner = (at.0 - RADIUS, at.1 - RADIUS);
            canvas.rect(corner, (2.0 * RADIUS, 2.0 * RADIUS), paint, &hint);
        }
    }
    if text_width(&place.label, 12.0) <= 2.0 * RADIUS - 6.0 {
        let ink = colour.map_or("l", |c| if c.wants_white_text() { "w" } else { "k" });
        canvas.text(at.0, at.1 + 4.0, ink, Anchor::Middle, &place.label);
    } else {
        let label = shorten(&place.label, 12.0, 110.0);
        canvas.text(at.0, at.1 + RADIUS + 15.0, "l", Anchor::Middle, &label);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(i: u32, kind: PlaceKind) -> Place {
        Place {
            label: i.to_string(),
            kind,
            x: f64::from(i % 4),
            y: f64::from(i / 4),
            value: (i != 3).then(|| f64::from(i)),
        }
    }

    fn plan(outline: Outline) -> FloorPlan {
        let mut places: Vec<Place> = (0..12).map(|i| place(i, PlaceKind::Core)).collect();
        places.push(Place { label: "memory 0".into(), ..place(12, PlaceKind::Memory) });
        FloorPlan {
            title: "Plan".into(),
            verdict: Verdict::Placed {
                outline,
                places,
                symmetries: "Mirror images fit equally well.".into(),
                unit: "ns".into(),
            },
        }
    }

    #[test]
    fn every_place_has_its_mark_and_name() {
        let text = floor_plan(&plan(Outline::Grid));
        let tree = roxmltree::Document::parse(&text).unwrap();
        assert_eq!(tree.descendants().filter(|n| n.has_tag_name("circle")).count(), 12);
        assert_eq!(
            text.matches("class=\"rim\"").count(),
            1,
            "a place without a value has no colour"
        );
        assert_eq!(text.matches("class=\"soft\"").count(), 4 + 4);
        assert!(text.contains(">memory 0</text>"));
        assert!(text.contains(">Mirror images fit equally well.</text>"));
    }

    #[test]
    fn a_ring_is_one_closed_line() {
        assert_eq!(floor_plan(&plan(Outline::Ring)).matches("class=\"soft\"").count(), 1);
    }

    #[test]
    fn cannot_tell_gives_the_reason() {
        let reason = "Two cores have one distance; any plan fits it.";
        let verdict = Verdict::CannotTell { reason: reason.into() };
        let text = floor_plan(&FloorPlan { title: "Plan".into(), verdict });
        assert!(text.contains(">Cannot tell</text>"));
        assert!(text.contains("Two cores have one distance"));
        assert_eq!(text.matches("<circle").count(), 0);
    }

    #[test]
    fn a_plan_of_nothing_cannot_tell() {
        let mut nothing = plan(Outline::Grid);
        if let Verdict::Placed { places, .. } = &mut nothing.verdict {
            places.clear();
        }
        assert!(floor_plan(&nothing).contains("Nothing was placed."));
    }
}
