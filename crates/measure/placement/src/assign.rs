//! The cheapest assignment of items to cells, one to a cell (the Hungarian method by shortest
//! augmenting paths, Jonker and Volgenant 1987). Knows nothing of latencies.

/// Gives each of `items` rows of the row-major `items x cells` cost matrix its own cell so that
/// the total cost is least. There must be at least as many cells as items.
pub(super) fn assign(items: usize, cells: usize, cost: &[f64]) -> Vec<usize> {
    debug_assert!(items <= cells && cost.len() == items * cells);
    // Index 0 is a sentinel: row 0 and column 0 do not exist.
    let mut row_price = vec![0.0; items + 1];
    let mut column_price = vec![0.0; cells + 1];
    let mut row_of = vec![0_usize; cells + 1];
    let mut came_from = vec![0_usize; cells + 1];
    for item in 1..=items {
        row_of[0] = item;
        let mut column = 0;
        let mut slack = vec![f64::INFINITY; cells + 1];
        let mut done = vec![false; cells + 1];
        while row_of[column] != 0 {
            done[column] = true;
            let row = row_of[column];
            let (mut step, mut next) = (f64::INFINITY, 0);
            for c in 1..=cells {
                if done[c] {
                    continue;
                }
                let reduced = cost[(row - 1) * cells + c - 1] - row_price[row] - column_price[c];
                if reduced < slack[c] {
                    slack[c] = reduced;
                    came_from[c] = column;
                }
                if slack[c] < step {
                    step = slack[c];
                    next = c;
                }
            }
            for c in 0..=cells {
                if done[c] {
                    row_price[row_of[c]] += step;
                    column_price[c] -= step;
                } else {
                    slack[c] -= step;
                }
            }
            column = next;
        }
        while column != 0 {
            let before = came_from[column];
            row_of[column] = row_of[before];
            column = before;
        }
    }
    let mut cell_of = vec![0; items];
    for c in (1..=cells).filter(|&c| row_of[c] != 0) {
        cell_of[row_of[c] - 1] = c - 1;
    }
    cell_of
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every way to give `items` distinct cells, tried in turn.
    fn cheapest(items: usize, cells: usize, cost: &[f64], taken: &mut Vec<usize>) -> f64 {
        if taken.len() == items {
            return taken.iter().enumerate().map(|(i, c)| cost[i * cells + c]).sum();
        }
        let mut best = f64::INFINITY;
        for c in 0..cells {
            if !taken.contains(&c) {
                taken.push(c);
                best = best.min(cheapest(items, cells, cost, taken));
                taken.pop();
            }
        }
        best
    }

    #[test]
    fn no_assignment_is_cheaper() {
        let mut state = 1_u32;
        for (items, cells) in [(1, 1), (3, 3), (4, 6), (5, 5)] {
            for _ in 0..20 {
                let cost: Vec<f64> = (0..items * cells)
                    .map(|_| {
                        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                        f64::from(state >> 16)
                    })
                    .collect();
                let found = assign(items, cells, &cost);
                let total: f64 = found.iter().enumerate().map(|(i, c)| cost[i * cells + c]).sum();
                let best = cheapest(items, cells, &cost, &mut Vec::new());
                assert!((total - best).abs() < 1e-9, "{items} x {cells}: {total} against {best}");
            }
        }
    }
}
