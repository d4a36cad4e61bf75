//! The sheet that figures are drawn on: escaped text, finite numbers, one style. It knows
//! nothing of what a figure means.

use std::fmt::Write as _;

use crate::cast::index;
use crate::colour::Rgb;

/// Widest figure, in pixels; the page's column is made for it.
pub(crate) const FULL_WIDTH: f64 = 920.0;
/// Stands for the figure's own name until [`Canvas::finish`] knows it. Not a legal character of
/// XML, so no escaped text can hold it.
const NAME: &str = "\u{1}";

/// Where a text's x lies on the text.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Anchor {
    Start,
    Middle,
    End,
}

/// How a shape is coloured.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Paint {
    /// A class of the figure's style, which follows the theme.
    Class(&'static str),
    /// A colour that carries a number, the same on every theme.
    Fill(Rgb),
    /// The hatching of a missing number.
    Hatch,
}

/// Classes of the categorical colours as fill and as stroke.
pub(crate) const SERIES_FILL: [&str; 8] = ["f0", "f1", "f2", "f3", "f4", "f5", "f6", "f7"];
pub(crate) const SERIES_LINE: [&str; 8] = ["s0", "s1", "s2", "s3", "s4", "s5", "s6", "s7"];

/// A figure under construction.
#[derive(Debug, Default)]
pub(crate) struct Canvas {
    body: String,
    width: f64,
}

/// A number as SVG takes it: at most two decimals, never NaN or infinite.
pub(crate) fn num(value: f64) -> String {
    let value = if value.is_finite() { value.clamp(-1e6, 1e6) } else { 0.0 };
    let text = format!("{value:.2}");
    let text = text.trim_end_matches('0').trim_end_matches('.');
    if text == "-0" { "0".into() } else { text.into() }
}

/// Text as XML takes it: markup escaped, characters that XML forbids replaced.
pub(crate) fn escape(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => safe.push_str("&amp;"),
            '<' => safe.push_str("&lt;"),
            '>' => safe.push_str("&gt;"),
            '"' => safe.push_str("&quot;"),
            '\'' => safe.push_str("&#39;"),
            '\t' | '\n' | '\r' => safe.push(' '),
            '\0'..='\u{1f}' | '\u{fffe}' | '\u{ffff}' => safe.push('\u{fffd}'),
            _ => safe.push(c),
        }
    }
    safe
}

/// About how wide `text` is at `size` pixels, for margins; the real font is not known here.
pub(crate) fn text_width(text: &str, size: f64) -> f64 {
    let ems: f64 = text
        .chars()
        .map(|c| match c {
            'i' | 'j' | 'l' | '.' | ',' | ':' | ';' | '|' | '\'' | ' ' | '(' | ')' => 0.32,
            'm' | 'w' | 'M' | 'W' | '%' | '@' => 0.88,
            'A'..='Z' => 0.68,
            '0'..='9' => 0.64,
            '\u{1100}'.. => 1.05,
            _ => 0.57,
        })
        .sum();
    ems * size
}

/// `text` cut into lines of at most `width` pixels, at spaces where there are any.
pub(crate) fn wrap(text: &str, size: f64, width: f64) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split_whitespace() {
        match lines.last_mut() {
            Some(line) if text_width(line, size) + text_width(word, size) + 0.3 * size <= width => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.into()),
        }
    }
    lines
}

/// `text` shortened with an ellipsis to `width` pixels.
pub(crate) fn shorten(text: &str, size: f64, width: f64) -> String {
    if text_width(text, size) <= width {
        return text.into();
    }
    let mut kept = String::new();
    for c in text.chars() {
        kept.push(c);
        if text_width(&kept, size) > width - size {
            kept.pop();
            break;
        }
    }
    kept.push('…');
    kept
}

impl Canvas {
    /// An empty sheet.
    pub(crate) fn new() -> Self {
        Self::default()
    }

    /// The figure's visible title and a muted note (a unit, say); returns the height used.
    pub(crate) fn heading(&mut self, title: &str, note: &str) -> f64 {
        let mut y = 4.0;
        for line in wrap(title, 14.0, FULL_WIDTH - 20.0) {
            y += 18.0;
            self.text(0.0, y - 4.0, "t", Anchor::Start, &line);
        }
        for line in wrap(note, 12.0, FULL_WIDTH - 20.0) {
            y += 16.0;
            self.text(0.0, y - 4.0, "m", Anchor::Start, &line);
        }
        y + 8.0
    }

    fn reach(&mut self, x: f64) {
        if x.is_finite() && x > self.width {
            self.width = x;
        }
    }

    fn paint(&mut self, paint: Paint) {
        match paint {
            Paint::Class(class) => _ = write!(self.body, " class=\"{class}\""),
            Paint::Fill(colour) => _ = write!(self.body, " fill=\"{}\"", colour.hex()),
            Paint::Hatch => _ = write!(self.body, " class=\"missing\" fill=\"url(#{NAME}h)\""),
        }
    }

    /// A rectangle; `hint` is shown when pointed at and read by screen readers.
    pub(crate) fn rect(&mut self, at: (f64, f64), size: (f64, f64), paint: Paint, hint: &str) {
        self.reach(at.0 + size.0);
        let (w, h) = (num(size.0.max(0.0)), num(size.1.max(0.0)));
        _ = write!(
            self.body,
            "<rect x=\"{}\" y=\"{}\" width=\"{w}\" height=\"{h}\"",
            num(at.0),
            num(at.1)
        );
        self.paint(paint);
        self.close("rect", hint);
    }

    fn close(&mut self, element: &str, hint: &str) {
        if hint.is_empty() {
            self.body.push_str("/>");
        } else {
            _ = write!(self.body, "><title>{}</title></{element}>", escape(hint));
        }
    }

    /// A straight line.
    pub(crate) fn line(&mut self, from: (f64, f64), to: (f64, f64), class: &str) {
        self.reach(from.0.max(to.0));
        _ = write!(
            self.body,
            "<line x1=\"{}\" y1=\"{}\" x2=\"{}\" y2=\"{}\" class=\"{class}\"/>",
            num(from.0),
            num(from.1),
            num(to.0),
            num(to.1)
        );
    }

    /// A line through points; `closed` joins its ends.
    pub(crate) fn path(
        &mut self,
        points: impl IntoIterator<Item = (f64, f64)>,
        class: &str,
        closed: bool,
    ) {
        let mut path = String::new();
        for (x, y) in points {
            path.push(if path.is_empty() { 'M' } else { 'L' });
            _ = write!(path, "{} {}", num(x), num(y));
        }
        if path.is_empty() {
            return;
        }
        let end = if closed { "Z" } else { "" };
        _ = write!(self.body, "<path d=\"{path}{end}\" class=\"{class}\"/>");
    }

    /// A circle.
    pub(crate) fn circle(&mut self, centre: (f64, f64), radius: f64, paint: Paint, hint: &str) {
        self.reach(centre.0 + radius);
        let (x, y) = (num(centre.0), num(centre.1));
        _ = write!(self.body, "<circle cx=\"{x}\" cy=\"{y}\" r=\"{}\"", num(radius));
        self.paint(paint);
        self.close("circle", hint);
    }

    /// A line of text; `class` is one of the style's text classes, or several.
    pub(crate) fn text(&mut self, x: f64, y: f64, class: &str, anchor: Anchor, text: &str) {
        self.text_turned(x, y, class, anchor, text, false);
    }

    /// A line of text, turned to read upwards if `upwards`.
    pub(crate) fn text_turned(
        &mut self,
        x: f64,
        y: f64,
        class: &str,
        anchor: Anchor,
        text: &str,
        upwards: bool,
    ) {
        let size = if class.starts_with('t') { 14.0 } else { 12.0 };
        let (anchor, right) = match anchor {
            Anchor::Start => ("", 1.0),
            Anchor::Middle => (" text-anchor=\"middle\"", 0.5),
            Anchor::End => (" text-anchor=\"end\"", 0.0),
        };
        let (x_text, y_text) = (num(x), num(y));
        let turn = if upwards {
            format!(" transform=\"rotate(-90 {x_text} {y_text})\"")
        } else {
            self.reach(x + right * text_width(text, size));
            String::new()
        };
        let text = escape(text);
        _ = write!(
            self.body,
            "<text x=\"{x_text}\" y=\"{y_text}\" class=\"{class}\"{anchor}{turn}>{text}</text>"
        );
    }

    /// A picture with hard-edged dots, stretched over the rectangle.
    pub(crate) fn image(&mut self, at: (f64, f64), size: (f64, f64), address: &str) {
        self.reach(at.0 + size.0);
        _ = write!(
            self.body,
            "<image x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\" preserveAspectRatio=\"none\" \
             class=\"dots\" href=\"{address}\"/>",
            num(at.0),
            num(at.1),
            num(size.0),
            num(size.1)
        );
    }

    /// The whole figure. `title` and `description` are what a screen reader says.
    pub(crate) fn finish(self, height: f64, title: &str, description: &str) -> String {
        let (width, height) = (num(self.width.ceil() + 1.0), num(height.ceil()));
        let name = name(&self.body, description);
        let body = self.body.replace(NAME, &name);
        let (title, description) = (escape(title), escape(description));
        format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" class=\"iso-fig\" width=\"{width}\" \
             height=\"{height}\" viewBox=\"0 0 {width} {height}\" role=\"img\" \
             aria-labelledby=\"{name}t {name}d\"><title id=\"{name}t\">{title}</title>\
             <desc id=\"{name}d\">{description}</desc><style>{STYLE}</style>\
             <defs><pattern id=\"{name}h\" width=\"6\" height=\"6\" \
             patternUnits=\"userSpaceOnUse\" patternTransform=\"rotate(45)\">\
             <line x1=\"0\" y1=\"0\" x2=\"0\" y2=\"6\" class=\"hatch\"/></pattern></defs>\
             {body}</svg>\n"
        )
    }
}

/// A name for the figure's own ids, so that several figures share a page: FNV-1a of what is
/// drawn. Equal names mean equal figures, whose definitions are equal too.
fn name(body: &str, description: &str) -> String {
    let hash = body
        .bytes()
        .chain(description.bytes())
        .fold(0xcbf2_9ce4_8422_2325u64, |h, b| (h ^ u64::from(b)).wrapping_mul(0x0100_0000_01b3));
    format!("fig{hash:016x}")
}

/// The style of every figure. Class names are only valid inside `.iso-fig`.
const STYLE: &str = include_str!("figure.css");

/// Every how many of `labels` one is written so that they keep `room` pixels each, in steps of
/// powers of two, as cores and lines come.
pub(crate) fn thinning(cell: f64, room: f64) -> usize {
    let needed = if cell > 0.0 { room / cell } else { f64::MAX };
    let mut every = 1;
    while every < index(needed.ceil(), 1 << 20) {
        every *= 2;
    }
    every
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_short_and_finite() {
        assert_eq!(num(1.0), "1");
        assert_eq!(num(0.126), "0.13");
        assert_eq!(num(-0.001), "0");
        assert_eq!(num(f64::NAN), "0");
        assert_eq!(num(f64::INFINITY), "0");
        assert_eq!(num(1e300), "1000000");
    }

    #[test]
    fn text_cannot_break_out() {
        assert_eq!(escape("a<b>&\"c\"'\u{1}\n"), "a&lt;b&gt;&amp;&quot;c&quot;&#39;\u{fffd} ");
    }

    #[test]
    fn labels_are_thinned_by_powers_of_two() {
        assert_eq!(thinning(20.0, 14.0), 1);
        assert_eq!(thinning(2.6, 16.0), 8);
        assert_eq!(thinning(12.0, 14.0), 2);
        assert!(thinning(0.0, 14.0) >= 1 << 20);
    }

    #[test]
    fn long_text_is_wrapped_and_shortened() {
        let lines = wrap("one two three four", 12.0, 70.0);
        assert!(lines.len() > 1);
        assert_eq!(lines.join(" "), "one two three four");
        assert!(text_width(&shorten("a very long label indeed", 12.0, 60.0), 12.0) <= 66.0);
        assert_eq!(shorten("core 0", 12.0, 60.0), "core 0");
    }
}
