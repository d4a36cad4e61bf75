//! The table of contents names every page, each once: what it lacks is in no book.

use std::collections::BTreeMap;
use std::path::PathBuf;

use super::pages::{Page, SUMMARY};

/// Pages that the table lacks, and those that it has twice. That what it names is there is looked at with all links.
pub(super) fn check(pages: &[Page], breaches: &mut Vec<String>) {
    let Some(summary) = pages.iter().find(|page| page.path.to_str() == Some(SUMMARY)) else {
        breaches.push(format!("there is no {SUMMARY}"));
        return;
    };
    let mut named: BTreeMap<PathBuf, usize> = BTreeMap::new();
    for link in summary.links() {
        if let Some(first) = named.insert(link.file.clone(), link.at) {
            let file = link.file.display();
            breaches.push(format!("{SUMMARY}:{}: {file} stands on line {first} too", link.at));
        }
    }
    for page in pages.iter().filter(|page| page.path != summary.path) {
        if !named.contains_key(&page.path) {
            breaches.push(format!("{SUMMARY} lacks {}", page.path.display()));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_that_lacks_and_one_that_stands_twice_are_named() {
        let page = |path: &str, text: &str| Page { path: path.into(), text: text.into() };
        let told = |text: &str| {
            let pages = [page("README.md", ""), page("docs/a.md", ""), page(SUMMARY, text)];
            let mut breaches = Vec::new();
            check(&pages, &mut breaches);
            breaches
        };
        assert!(told("[x](../README.md)\n- [a](a.md)\n").is_empty());
        assert_eq!(told("[x](../README.md)\n"), ["docs/SUMMARY.md lacks docs/a.md"]);
        assert_eq!(
            told("[x](../README.md)\n- [a](a.md)\n- [a](a.md)\n"),
            ["docs/SUMMARY.md:3: docs/a.md stands on line 2 too"]
        );
        let mut breaches = Vec::new();
        check(&[page("README.md", "")], &mut breaches);
        assert_eq!(breaches, ["there is no docs/SUMMARY.md"]);
    }
}
