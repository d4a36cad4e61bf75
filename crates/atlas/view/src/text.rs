//! Sentences and pictures under one another, as wide as the terminal: headings, wrapped
//! paragraphs, lists. It never changes what is said, except that words from outside cannot steer
//! the terminal, and that without colour only ASCII is left of our own signs.

use isochrone_report::lines::wrap;
use isochrone_report::term::Colour;

/// Left margin of everything under a heading.
const INDENT: usize = 2;
/// Text for a terminal.
#[derive(Debug)]
pub(super) struct Text {
    out: String,
    width: usize,
    colour: Colour,
}

impl Text {
    /// Empty text for a terminal of `width` columns.
    pub(super) fn new(colour: Colour, width: usize) -> Self {
        Self { out: String::new(), width: width.clamp(40, 200), colour }
    }

    /// The first line: what this is at the left, which reading at the right.
    pub(super) fn title(&mut self, title: &str, mark: &str) {
        let (title, mark) = (clean(title), clean(mark));
        let used = title.chars().count() + mark.chars().count();
        let title_bold = self.bold(&title);
        if used + 2 <= self.width {
            let gap = " ".repeat(self.width - used);
            self.out.push_str(&format!("{title_bold}{gap}{mark}\n"));
        } else {
            self.out.push_str(&format!("{title_bold}\n{mark}\n"));
        }
    }

    /// A heading, set off by an empty line.
    pub(super) fn heading(&mut self, heading: &str) {
        let heading = self.bold(&clean(heading));
        self.out.push_str(&format!("\n{heading}\n"));
    }

    /// A paragraph.
    pub(super) fn say(&mut self, sentence: &str) {
        self.wrapped(sentence, "", "");
    }

    /// One entry of a list.
    pub(super) fn item(&mut self, sentence: &str) {
        self.wrapped(sentence, "- ", "  ");
    }

    /// Columns for a picture.
    pub(super) fn room(&self) -> usize {
        self.width - INDENT
    }

    /// Colours of the terminal.
    pub(super) fn colour(&self) -> Colour {
        self.colour
    }

    /// Lines as they are, such as a picture of [`isochrone_report::term`].
    pub(super) fn picture(&mut self, lines: &str) {
        for line in lines.lines() {
            self.out.push_str(&format!("{:INDENT$}{}\n", "", line.trim_end()));
        }
    }

    /// The text, without a line break at its end.
    pub(super) fn finish(self) -> String {
        // Thin spaces held numbers together until now.
        let text = self.out.trim_end().replace('\u{2009}', " ");
        if self.colour == Colour::None { plain(&text) } else { text }
    }

    fn bold(&self, text: &str) -> String {
        match self.colour {
            Colour::None => text.to_owned(),
            Colour::Ansi256 | Colour::TrueColour => format!("\x1b[1m{text}\x1b[0m"),
        }
    }

    fn wrapped(&mut self, sentence: &str, first: &str, rest: &str) {
        let room = self.room() - first.len();
        for (i, line) in wrap(&clean(sentence), room).iter().enumerate() {
            let lead = if i == 0 { first } else { rest };
            self.out.push_str(&format!("{:INDENT$}{lead}{line}\n", ""));
        }
    }
}

/// Text without control characters.
fn clean(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect()
}

/// Our own signs in ASCII.
fn plain(text: &str) -> String {
    text.replace('µ', "u").replace(['–', '─'], "-")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_from_outside_cannot_steer_the_terminal() {
        for colour in [Colour::None, Colour::Ansi256] {
            let mut text = Text::new(colour, 80);
            text.title("x\x1b[2J", "measured\x07");
            text.heading("y\x1b]0;z");
            text.say("a\x1bb");
            let seen = text.finish().replace("\x1b[1m", "").replace("\x1b[0m", "");
            assert!(!seen.contains(|c: char| c.is_control() && c != '\n'), "{seen:?}");
        }
    }

    #[test]
    fn the_mark_ends_at_the_right_edge_or_has_its_own_line() {
        let mut text = Text::new(Colour::None, 40);
        text.title("Atlas", "measured");
        assert_eq!(text.finish().chars().count(), 40);
        let mut text = Text::new(Colour::None, 40);
        text.title("A machine whose name takes all of it", "measured");
        assert_eq!(text.finish().lines().count(), 2);
    }
}
