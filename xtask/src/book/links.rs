//! A link of a page names a file that is there, a page of the book where it is a page, and a heading of that page.

use std::path::Path;

use super::pages::{Link, Page, is_page};

/// Every link that leads nowhere.
pub(super) fn check(root: &Path, pages: &[Page], breaches: &mut Vec<String>) {
    for page in pages {
        for link in page.links() {
            if let Some(why) = fault(root, pages, &link) {
                breaches.push(format!("{}:{}: {why}", page.path.display(), link.at));
            }
        }
    }
}

/// What is wrong with a link.
fn fault(root: &Path, pages: &[Page], link: &Link) -> Option<String> {
    let file = link.file.display();
    if link.file.starts_with("..") || link.file.is_absolute() {
        return Some(format!("{file} lies outside of the repository"));
    }
    if root.join(&link.file).is_dir() {
        return Some(format!("{file} is a folder, of which a book has no page: name a file"));
    }
    if !root.join(&link.file).is_file() {
        return Some(format!("there is no file {file}"));
    }
    if !is_page(&link.file) {
        return None;
    }
    let Some(page) = pages.iter().find(|page| page.path == link.file) else {
        return Some(format!("{file} is no page of the book: name it in docs/SUMMARY.md"));
    };
    let anchor = link.anchor.as_ref()?;
    let anchors = page.anchors();
    (!anchors.contains(anchor)).then(|| format!("{file} has no heading #{anchor}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn what_leads_nowhere_is_named_with_its_line() {
        let tree = tempfile::tempdir().unwrap();
        for name in ["a.md", "b.md", "c.md", "d.txt"] {
            fs::write(tree.path().join(name), "").unwrap();
        }
        fs::create_dir(tree.path().join("folder")).unwrap();
        let page = |path: &str, text: &str| Page { path: path.into(), text: text.into() };
        let told = |text: &str| {
            let pages = [page("a.md", text), page("b.md", "# Some heading\n")];
            let mut breaches = Vec::new();
            check(tree.path(), &pages, &mut breaches);
            breaches
        };
        let good = "# A\n[1](b.md#some-heading) [2](d.txt) [3](#a) [4](b.md)\n";
        assert!(told(good).is_empty(), "{:?}", told(good));
        for (link, why) in [
            ("b.md#other-heading", "a.md:2: b.md has no heading #other-heading"),
            ("e.md", "a.md:2: there is no file e.md"),
            ("c.md", "a.md:2: c.md is no page of the book"),
            ("folder", "a.md:2: folder is a folder"),
            ("../x.md", "a.md:2: ../x.md lies outside"),
            ("#b", "a.md:2: a.md has no heading #b"),
        ] {
            let found = told(&format!("# A\n[x]({link})\n"));
            assert!(found.len() == 1 && found[0].starts_with(why), "{link}: {found:?}");
        }
    }
}
