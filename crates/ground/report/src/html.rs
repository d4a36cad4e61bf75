//! The report as one HTML file: everything inside, nothing fetched (its own security policy
//! forbids it), light and dark, readable with scripts off and on paper. It arranges what it is
//! given; figures come from [`crate::svg`], tables from [`crate::table`].

use isochrone_units::Reading;
use minijinja::{Environment, Value, context};

use crate::inline::sentences;
use crate::table::Table;

/// Which reading a number comes from, or another short remark, as a label on the page.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Badge {
    /// The reading of the numbers beside it.
    Reading(Reading),
    /// Something the reader must know before trusting a number: `"incomplete"`.
    Warning(String),
    /// Any other remark: `"quick"`.
    Note(String),
}

impl From<Reading> for Badge {
    fn from(reading: Reading) -> Self {
        Self::Reading(reading)
    }
}

impl Badge {
    /// The word on it.
    #[must_use]
    pub fn word(&self) -> &str {
        match self {
            Self::Reading(reading) => reading.as_str(),
            Self::Warning(word) | Self::Note(word) => word,
        }
    }

    /// How the page draws it. What others published is no result of ours, and looks like a remark.
    fn class(&self) -> &'static str {
        match self {
            Self::Warning(_) => "warning",
            Self::Note(_) | Self::Reading(Reading::Published) => "note",
            Self::Reading(reading) => reading.as_str(),
        }
    }

    fn value(&self) -> Value {
        context! { word => self.word(), class => self.class() }
    }
}

/// A figure with the table of its numbers.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Figure {
    /// The picture, as a function of [`crate::svg`] returns it; it is not escaped. May be empty
    /// for a table alone.
    pub svg: String,
    /// What to see in it, one or two sentences.
    pub caption: String,
    /// Which reading its numbers come from.
    pub badge: Option<Badge>,
    /// Its numbers.
    pub table: Option<Table>,
    /// Whether the table is open at first; short tables should be.
    pub open: bool,
}

/// One section.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Section {
    /// Its anchor: what is not a letter, digit or `-` is replaced.
    pub id: String,
    /// Its heading.
    pub heading: String,
    /// Which reading all its numbers come from, where they share one.
    pub badge: Option<Badge>,
    /// Its paragraphs, plain text.
    pub prose: Vec<String>,
    /// Its figures, each with its table.
    pub figures: Vec<Figure>,
}

/// Another page in the same folder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Link {
    /// What it is called.
    pub words: String,
    /// Its file.
    pub file: String,
}

impl Link {
    fn value(&self) -> Value {
        context! { words => self.words.as_str(), file => self.file.as_str() }
    }
}

/// The whole report.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Page {
    /// The title.
    pub title: String,
    /// One line under it: which machine, when.
    pub subtitle: String,
    /// The readings found in the report and remarks on the whole.
    pub badges: Vec<Badge>,
    /// Pages beside this one, where it is one of several.
    pub links: Vec<Link>,
    /// The result in plain sentences.
    pub summary: Vec<String>,
    /// Name and value of what identifies the machine and the run.
    pub facts: Vec<(String, String)>,
    /// The sections, in order.
    pub sections: Vec<Section>,
    /// All numbers as JSON text, embedded for programs and for the reader to save.
    pub json: Option<String>,
    /// One closing line: program, version, seed.
    pub footer: String,
}

const TEMPLATE: &str = include_str!("page/page.html");
const STYLE: &str = include_str!("page/page.css");
const SCRIPT: &str = include_str!("page/page.js");

impl Page {
    /// The page as the text of an HTML file.
    ///
    /// # Panics
    ///
    /// If the template of this crate is broken, which its tests rule out.
    #[must_use]
    pub fn render(&self) -> String {
        let mut environment = Environment::new();
        // The name's ending switches on escaping for HTML.
        environment.add_template("page.html", TEMPLATE).expect("the template parses (tested)");
        let template = environment.get_template("page.html").expect("it was added just above");
        template.render(self.context()).expect("the template uses what the context has (tested)")
    }

    fn context(&self) -> Value {
        let mut figures = 0;
        let mut tables = 0;
        let sections: Vec<Value> =
            self.sections.iter().map(|s| section(s, &mut figures, &mut tables)).collect();
        let facts: Vec<Value> =
            self.facts.iter().map(|(name, value)| context! { name, value => set(value) }).collect();
        context! {
            title => self.title.as_str(),
            subtitle => self.subtitle.as_str(),
            badges => self.badges.iter().map(Badge::value).collect::<Vec<_>>(),
            links => self.links.iter().map(Link::value).collect::<Vec<_>>(),
            summary => self.summary.iter().map(|line| set(line)).collect::<Vec<_>>(),
            facts,
            sections,
            json => self.json.as_deref().map(|j| Value::from_safe_string(script_safe(j))),
            footer => self.footer.as_str(),
            style => Value::from_safe_string(STYLE.to_owned()),
            script => Value::from_safe_string(SCRIPT.to_owned()),
        }
    }
}

fn section(section: &Section, figures: &mut usize, tables: &mut usize) -> Value {
    let figures: Vec<Value> = section
        .figures
        .iter()
        .map(|figure| {
            // Pictures and lone tables are counted apart, as in a paper.
            let (word, number) = if figure.svg.is_empty() {
                *tables += 1;
                ("Table", *tables)
            } else {
                *figures += 1;
                ("Figure", *figures)
            };
            context! {
                name => format!("{word} {number}"),
                svg => Value::from_safe_string(figure.svg.clone()),
                has_svg => !figure.svg.is_empty(),
                caption => set(&figure.caption),
                badge => figure.badge.as_ref().map(Badge::value),
                table => figure.table.as_ref().map(|t| Value::from_safe_string(t.to_html())),
                rows => figure.table.as_ref().map_or(0, Table::len),
                open => figure.open,
            }
        })
        .collect();
    context! {
        id => anchor(&section.id),
        heading => section.heading.as_str(),
        badge => section.badge.as_ref().map(Badge::value),
        prose => section.prose.iter().map(|line| set(line)).collect::<Vec<_>>(),
        figures,
    }
}

/// Sentences as the page has them.
fn set(text: &str) -> Value {
    Value::from_safe_string(sentences(text))
}

/// A name that is safe in an address.
fn anchor(id: &str) -> String {
    id.chars().map(|c| if c.is_ascii_alphanumeric() || c == '-' { c } else { '-' }).collect()
}

/// JSON that cannot close the element it stands in. In JSON text `<` occurs in strings only,
/// where its escape means the same.
fn script_safe(json: &str) -> String {
    json.replace('<', "\\u003c")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::svg::{HeatMap, heat_map};
    use crate::table::Cell;

    fn sample() -> Page {
        let map = HeatMap {
            title: "A <b> & c".into(),
            unit: "ns".into(),
            rows: vec!["r".into()],
            columns: vec!["c".into()],
            cells: vec![Some(1.5)],
            ..HeatMap::default()
        };
        let mut table = Table::new(["what", "ns"]);
        table.row(["r".into(), Cell::number(1.5, "1.50")]);
        let figure = Figure {
            svg: heat_map(&map),
            caption: "Seen <once>.".into(),
            badge: Some(Badge::Reading(Reading::Measured)),
            table: Some(table.clone()),
            open: false,
        };
        let lone = Figure { svg: String::new(), open: true, table: Some(table), ..figure.clone() };
        Page {
            title: "Atlas of <host>".into(),
            subtitle: "a & b".into(),
            links: Vec::new(),
            badges: vec![Badge::Reading(Reading::Simulated), Badge::Warning("incomplete".into())],
            summary: vec!["Near is 24 % nearer.".into()],
            facts: vec![("CPU".into(), "model \"x\"".into())],
            sections: vec![Section {
                id: "pairs & more".into(),
                heading: "Pairs".into(),
                badge: Some(Badge::Reading(Reading::Predicted)),
                prose: vec!["First.".into(), "Second <p>.".into()],
                figures: vec![figure, lone],
            }],
            json: Some("{\"a\": \"</script><script>alert(1)</script>\"}".into()),
            footer: "seed 1".into(),
        }
    }

    #[test]
    fn all_text_is_escaped() {
        let html = sample().render();
        assert!(html.contains("<title>Atlas of &lt;host&gt;</title>"));
        assert!(html.contains("Second &lt;p&gt;."));
        assert!(html.contains("Seen &lt;once&gt;."));
        assert!(html.contains("model &quot;x&quot;"));
        assert!(!html.contains("<script>alert"));
        assert!(html.contains("\\u003c/script>\\u003cscript>alert(1)"));
    }

    #[test]
    fn every_badge_anchor_figure_and_table_is_there() {
        let html = sample().render();
        for word in ["measured", "predicted", "simulated", "incomplete"] {
            assert!(html.contains(&format!(">{word}</span>")), "{word}");
        }
        assert!(html.contains("href=\"#pairs---more\""));
        assert!(html.contains("<section id=\"pairs---more\""));
        assert!(html.contains("Figure 1") && html.contains("Table 1"));
        assert_eq!(html.matches("<table>").count(), 2);
        assert_eq!(html.matches("<details").count(), 1, "a lone table is not folded");
        assert_eq!(html.matches("role=\"img\"").count(), 1);
    }

    #[test]
    fn nothing_is_fetched() {
        let html = sample().render();
        for outside in ["http://", "https://", "src=", "@import", "url(http"] {
            let found = html.replace("http://www.w3.org/2000/svg", "").contains(outside);
            assert!(!found, "{outside}");
        }
        assert!(html.contains("default-src 'none'"));
    }

    #[test]
    fn an_empty_page_is_a_page() {
        let html = Page::default().render();
        assert!(html.starts_with("<!doctype html>"));
        assert!(html.trim_end().ends_with("</html>"));
        assert!(!html.contains("<nav"));
    }

    #[test]
    fn a_badge_has_the_word_of_its_reading_and_what_others_published_looks_like_a_remark() {
        for reading in Reading::ALL {
            let badge = Badge::from(reading);
            let class = if reading == Reading::Published { "note" } else { reading.as_str() };
            assert_eq!((badge.word(), badge.class()), (reading.as_str(), class));
        }
    }
}
