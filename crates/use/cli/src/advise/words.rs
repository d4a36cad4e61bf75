//! What a machine offers, as text and as a page. It decides nothing and prints nothing.

use std::path::Path;

use isochrone_report::html::{Badge, Figure, Page, Section};
use isochrone_report::lines::wrapped;
use isochrone_report::table::Table;
use isochrone_units::Grade;

use super::findings::{Figures, Finding, Offer};

/// The line behind the levers.
const NEXT: &str = "isochrone advise --try -- CMD measures which of them make your program faster";

/// The line behind that.
const WHY: &str = "isochrone advise --long says why";
/// Lines of a terminal that all of it takes at most.
#[cfg(test)]
pub(super) const LINES: usize = 12;

/// All of it in a sentence.
pub(super) fn summary(levers: &[Finding]) -> String {
    let of = |offer| -> Vec<&str> {
        levers.iter().filter(|of| of.offer == offer).map(|of| of.lever).collect()
    };
    let (gain, depends, unknown) = (of(Offer::Gain), of(Offer::Depends), of(Offer::Unknown));
    let mut words = match (gain.as_slice(), unknown.as_slice()) {
        ([], []) => {
            "Nothing here for you: the distances of this machine promise no gain.".to_owned()
        }
        ([], unknown) => format!("Nothing is known of {}.", unknown.join(", ")),
        (gain, _) => format!("A gain is predicted by {}.", gain.join(", ")),
    };
    if !depends.is_empty() {
        words += &format!(" It depends on the program with {}.", depends.join(", "));
    }
    words
}

/// The least room for what is said of a lever beside its name, characters.
const ROOM: usize = 30;

/// A lever's line: what is said of it goes on beside `head`, and below it where a terminal of so many columns is too
/// narrow for both.
pub(super) fn lever(head: &str, said: &str, width: usize) -> String {
    if head.len() + ROOM <= width {
        return format!("{head}{}", wrapped(said, width, head.len()));
    }
    format!("{}\n    {}", head.trim_end(), wrapped(said, width, 4))
}

/// A number of something.
pub(super) fn several(number: usize, one: &str, many: &str) -> String {
    format!("{number} {}", if number == 1 { one } else { many })
}

/// Columns that the longest name of a lever takes.
fn widest(figures: &Figures) -> usize {
    figures.levers.iter().map(|of| of.lever.len()).max().unwrap_or(0)
}

/// A line for each lever, below the sentence, for a terminal of so many columns.
pub(super) fn text(figures: &Figures, width: usize) -> String {
    let mut lines = vec![figures.summary.clone(), gone_by(figures, width)];
    lines.extend(figures.lacks_briefly.clone());
    let widest = widest(figures);
    lines.extend(figures.levers.iter().map(|of| {
        let said = match (of.offer, &of.command) {
            (Offer::Gain | Offer::Depends, Some(command)) => format!("{}: {command}", of.briefly),
            (offer, Some(command)) => format!("{} ({}): {command}", offer.word(), of.briefly),
            (offer, None) => format!("{}: {}", offer.word(), of.briefly),
        };
        lever(&format!("  {:<widest$}  ", of.lever), &said, width)
    }));
    lines.extend([NEXT, WHY].map(str::to_owned));
    lines.join("\n")
}

/// The machine and its atlas, in one line: of a file that lies deep the name, of a long title its beginning.
fn gone_by(figures: &Figures, width: usize) -> String {
    let (machine, whole) = (&figures.machine, atlas(figures));
    let named = figures.atlas.as_ref().and_then(|of| Path::new(&of.file).file_name()?.to_str());
    let short = match (&figures.atlas, named) {
        (Some(of), Some(name)) => whole.replacen(&of.file, name, 1),
        _ => whole.clone(),
    };
    [whole, short.clone()]
        .into_iter()
        .map(|atlas| format!("{machine}; {atlas}"))
        .find(|line| line.chars().count() <= width)
        .unwrap_or_else(|| {
            let room = width.saturating_sub(short.chars().count() + "...; ".len());
            format!("{}...; {short}", machine.chars().take(room).collect::<String>().trim_end())
        })
}

/// The same with every reason in whole sentences; a line goes on below its own beginning.
pub(super) fn long(figures: &Figures, width: usize) -> String {
    let mut lines =
        vec![figures.summary.clone(), format!("{}; {}", figures.machine, atlas(figures))];
    lines.extend(figures.lacks.clone());
    let widest = widest(figures);
    lines.extend(figures.levers.iter().map(|of| {
        let command =
            of.command.as_ref().map_or_else(String::new, |command| format!(": {command}"));
        let head = format!("  {:<widest$}  {:<7}  ", of.lever, of.offer.word());
        lever(&head, &format!("{}{command}", of.what), width)
    }));
    lines.push(NEXT.to_owned());
    lines.join("\n")
}

/// What is gone by, in words.
fn atlas(figures: &Figures) -> String {
    match &figures.atlas {
        None => "no atlas".to_owned(),
        Some(of) => match of.grade {
            Some(Grade::Quiet) => format!("{}, measured on a quiet machine", of.file),
            Some(grade) => format!("{}, graded {grade}", of.file),
            None => of.file.clone(),
        },
    }
}

/// The same as a page.
pub(super) fn page(figures: &Figures) -> Page {
    let mut table = Table::new(["lever", "offer", "why", "command"]);
    for of in &figures.levers {
        let command = of.command.clone().unwrap_or_default();
        table.row([
            of.lever.into(),
            of.offer.word().into(),
            of.what.clone().into(),
            command.into(),
        ]);
    }
    let figure = Figure {
        caption: "A line for each lever; each number names its reading.".to_owned(),
        table: Some(table),
        open: true,
        ..Figure::default()
    };
    let warning = figures.lacks.iter().map(|_| Badge::Warning("not all is known".to_owned()));
    Page {
        title: "What this machine offers".to_owned(),
        subtitle: format!("{}; {}", figures.machine, atlas(figures)),
        badges: warning.collect(),
        summary: std::iter::once(figures.summary.clone()).chain(figures.lacks.clone()).collect(),
        sections: vec![Section {
            id: "levers".to_owned(),
            heading: "Levers".to_owned(),
            prose: vec![NEXT.to_owned()],
            figures: vec![figure],
            ..Section::default()
        }],
        footer: "isochrone advise".to_owned(),
        ..Page::default()
    }
}
