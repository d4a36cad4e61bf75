//! Groups of pages that lie on different nodes of a machine.
//!
//! A virtual machine with one region may have memory on several nodes of its host (seen: a quarter of
//! the pages 46 ns farther than the rest). Such groups differ by several times what the lines of a page
//! do. What tells pages and bases apart must not drown in that difference, so it is taken off first.

/// Gap between neighbouring means, as a share of the mean of all, at which pages lie on another node.
pub(super) const FAR_SHARE: f64 = 0.12;

/// For each of `means` the number of its group, nearest first.
pub(super) fn far_groups(means: &[f64]) -> Vec<usize> {
    let mut order: Vec<usize> = (0..means.len()).filter(|i| means[*i].is_finite()).collect();
    order.sort_by(|a, b| means[*a].total_cmp(&means[*b]));
    let all = order.iter().map(|i| means[*i]).sum::<f64>() / order.len().max(1) as f64;
    let mut groups = vec![0; means.len()];
    let mut group = 0;
    for pair in order.windows(2) {
        group += usize::from(means[pair[1]] - means[pair[0]] > FAR_SHARE * all.abs());
        groups[pair[1]] = group;
    }
    groups
}

/// Means of the groups of [`far_groups`], by value.
pub(super) fn group_means(means: &[f64]) -> Vec<f64> {
    let groups = far_groups(means);
    let count = groups.iter().max().map_or(0, |most| most + 1);
    let mut sums = vec![(0.0, 0.0); count];
    for (mean, group) in means.iter().zip(&groups).filter(|(mean, _)| mean.is_finite()) {
        sums[*group] = (sums[*group].0 + mean, sums[*group].1 + 1.0);
    }
    groups.iter().map(|group| sums[*group].0 / f64::max(sums[*group].1, 1.0)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nodes_are_groups_and_quadrants_are_not() {
        assert_eq!(far_groups(&[209.0, 87.0, 88.0, 205.0, 86.5]), [1, 0, 0, 1, 0]);
        assert_eq!(far_groups(&[337.0, 349.0, 361.0, 373.0]), [0; 4]);
        assert_eq!(far_groups(&[]), [0; 0]);
        assert_eq!(group_means(&[100.0, 200.0, 102.0]), [101.0, 200.0, 101.0]);
    }
}
