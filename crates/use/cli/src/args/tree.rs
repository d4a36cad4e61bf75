//! A tree, as `--tree` names it.

use isochrone_cla::collectives::Tree;
use isochrone_cla::program::Rank;

/// A tree as it is asked for; how many ranks it has is said beside it, but for a list of parents.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum TreeAsked {
    Flat,
    Binomial,
    Degree(u16),
    Parents(Vec<Option<Rank>>),
}

/// `flat`, `binomial`, `2` or `-,0,0,1`.
pub(super) fn parse_tree(text: &str) -> Result<TreeAsked, String> {
    let wrong =
        || format!("`{text}` is no tree: flat, binomial, a degree, or parents such as -,0,0,1");
    match text.trim() {
        "flat" => Ok(TreeAsked::Flat),
        "binomial" => Ok(TreeAsked::Binomial),
        parents if parents.contains(',') => {
            let parent = |text: &str| match text.trim() {
                "-" => Some(None),
                rank => rank.parse().ok().map(|rank| Some(Rank(rank))),
            };
            let parents: Option<Vec<_>> = parents.split(',').map(parent).collect();
            let parents = parents.ok_or_else(wrong)?;
            Tree::new(&parents).map_err(|error| format!("`{text}` is no tree: {error}"))?;
            Ok(TreeAsked::Parents(parents))
        }
        degree => {
            let degree = degree.parse::<u16>().ok().filter(|degree| *degree > 0);
            degree.map(TreeAsked::Degree).ok_or_else(wrong)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn trees() {
        assert_eq!(parse_tree("flat"), Ok(TreeAsked::Flat));
        assert_eq!(parse_tree("3"), Ok(TreeAsked::Degree(3)));
        let parents = [None, Some(Rank(0)), Some(Rank(0)), Some(Rank(1))];
        assert_eq!(parse_tree("-,0,0,1"), Ok(TreeAsked::Parents(parents.to_vec())));
        for wrong in
            ["", "0", "-", "-1", "65536", "--json", "0,1", "-,-", "-,7", "-,2,1", "-,a", "-,"]
        {
            assert!(parse_tree(wrong).is_err(), "{wrong}");
        }
    }
}
