//! Clusters along the side of a matrix: which level has room for its names, and where borders lie. It knows sizes and
//! names, not what is clustered.

use super::canvas::thinning;

/// Borders nearer to one another than this would hide what they part.
const LEAST_APART: f64 = 12.0;

/// Rows or columns side by side that belong together.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Cluster {
    /// What it is called: `"cores 0-7"`.
    pub label: String,
    /// How many rows or columns it has.
    pub cells: usize,
}

/// What names the rows or columns of a matrix.
#[derive(Debug)]
pub(super) enum Axis<'m> {
    /// Each has its own.
    Each(&'m [String]),
    /// Those of a level of clusters.
    Clusters(&'m [Cluster]),
}

/// Each row has its name if there is room for all of them. If not, the innermost level of clusters does that has room,
/// else the outermost.
pub(super) fn axis<'m>(
    labels: &'m [String],
    levels: &'m [Vec<Cluster>],
    cell: f64,
    line: f64,
) -> Axis<'m> {
    let fits = |level: &&Vec<Cluster>| least(level) * cell >= line;
    match levels.iter().find(fits).or(levels.last()) {
        Some(level) if cell < line => Axis::Clusters(level),
        _ => Axis::Each(labels),
    }
}

/// Cells of the smallest cluster.
pub(super) fn least(level: &[Cluster]) -> f64 {
    level.iter().map(|cluster| cluster.cells).min().unwrap_or(0) as f64
}

impl<'m> Axis<'m> {
    /// All names.
    pub(super) fn names(&self) -> impl Iterator<Item = &'m String> + use<'m> {
        let (each, clusters): (&[String], &[Cluster]) = match self {
            Self::Each(labels) => (labels, &[]),
            Self::Clusters(level) => (&[], level),
        };
        each.iter().chain(clusters.iter().map(|cluster| &cluster.label))
    }

    /// Names with the middle of what they name, from the side's start; some are left out where there is no room.
    pub(super) fn labels(&self, cell: f64, room: f64) -> Vec<(f64, &'m String)> {
        match self {
            Self::Each(labels) => {
                let every = thinning(cell, room);
                let places = labels.iter().enumerate().step_by(every);
                places.map(|(nth, label)| ((nth as f64 + 0.5) * cell, label)).collect()
            }
            Self::Clusters(level) => {
                let every = thinning(least(level) * cell, room);
                let mut first = 0;
                let middles = level.iter().map(|cluster| {
                    let middle = (first as f64 + cluster.cells as f64 / 2.0) * cell;
                    first += cluster.cells;
                    (middle, &cluster.label)
                });
                middles.step_by(every).collect()
            }
        }
    }
}

/// Where borders lie, from the side's start, with the class of their lines, finer the further in a level lies.
pub(super) fn borders(levels: &[Vec<Cluster>], cell: f64) -> Vec<(f64, &'static str)> {
    let apart: Vec<&Vec<Cluster>> = levels
        .iter()
        .filter(|level| level.len() > 1 && least(level) * cell >= LEAST_APART)
        .collect();
    let mut all: Vec<(usize, &'static str)> = Vec::new();
    for (nth, level) in apart.iter().rev().enumerate() {
        let class = ["cut", "cut mid", "cut fine"][nth.min(2)];
        let mut at = 0;
        for cluster in level.iter().take(level.len() - 1) {
            at += cluster.cells;
            if all.iter().all(|known| known.0 != at) {
                all.push((at, class));
            }
        }
    }
    all.into_iter().map(|(at, class)| (at as f64 * cell, class)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn level(clusters: usize, cells: usize) -> Vec<Cluster> {
        (0..clusters).map(|nth| Cluster { label: format!("cluster {nth}"), cells }).collect()
    }

    #[test]
    fn names_are_those_of_the_innermost_level_that_has_room() {
        let labels: Vec<String> = (0..96).map(|nth| nth.to_string()).collect();
        let levels = [level(48, 2), level(12, 8), level(2, 48)];
        let count = |cell| axis(&labels, &levels, cell, 14.0).labels(cell, 14.0).len();
        assert_eq!(count(20.0), 96);
        assert_eq!(count(7.0), 48);
        assert_eq!(count(2.0), 12);
        assert_eq!(count(0.5), 2);
        assert_eq!(count(0.01), 1, "the outermost, thinned");
        let bare = axis(&labels, &[], 2.0, 14.0).labels(2.0, 14.0);
        assert_eq!(bare.len(), 12, "every eighth");
        let middles = axis(&labels, &levels, 2.0, 14.0).labels(2.0, 14.0);
        assert_eq!((middles[1].0, middles[1].1.as_str()), (24.0, "cluster 1"));
    }

    #[test]
    fn each_border_is_drawn_once_and_none_that_are_too_close() {
        let levels = [level(48, 2), level(12, 8), level(2, 48), level(1, 96)];
        let found = borders(&levels, 2.0);
        assert_eq!(found.iter().filter(|border| border.1 == "cut").count(), 1);
        assert_eq!(found.iter().filter(|border| border.1 == "cut mid").count(), 10);
        assert!(found.contains(&(96.0, "cut")) && found.contains(&(16.0, "cut mid")));
        let wide = borders(&levels, 8.0);
        assert_eq!(wide.iter().filter(|border| border.1 == "cut fine").count(), 36);
        assert!(borders(&[], 2.0).is_empty());
    }
}
