//! Rust without what is not code: comments and the insides of literals become blanks, and lines stay where they are.
//! So a rule about words of the language is not fooled by a text about them.

/// The text with blanks for comments and for what stands in string and character literals.
pub(super) fn bare(text: &str) -> String {
    let mut rest = text;
    let mut code = String::with_capacity(text.len());
    while let Some(first) = rest.chars().next() {
        let blank = comment(rest).or_else(|| literal(rest, code.chars().next_back()));
        match blank {
            Some(bytes) => {
                let (out, next) = rest.split_at(bytes);
                code.extend(out.chars().map(|c| if c == '\n' { '\n' } else { ' ' }));
                rest = next;
            }
            None => {
                code.push(first);
                rest = &rest[first.len_utf8()..];
            }
        }
    }
    code
}

/// The places of a word of the language, as numbers of lines from 1.
pub(super) fn lines_with_word(code: &str, word: &str) -> Vec<usize> {
    let lines = code.lines().enumerate();
    let with = lines.filter(|(_, line)| words(line).any(|found| found == word));
    with.map(|(number, _)| number + 1).collect()
}

/// Identifiers and keywords of a line.
fn words(line: &str) -> impl Iterator<Item = &str> {
    line.split(|c: char| !is_word(c)).filter(|word| !word.is_empty())
}

fn is_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

/// How many bytes the comment has with which a text begins.
fn comment(text: &str) -> Option<usize> {
    if text.starts_with("//") {
        return Some(text.find('\n').unwrap_or(text.len()));
    }
    if !text.starts_with("/*") {
        return None;
    }
    // Comments of this kind lie in each other.
    let (mut depth, mut at) = (0_usize, 0);
    while at < text.len() {
        let rest = &text.as_bytes()[at..];
        let step = match rest {
            [b'/', b'*', ..] => {
                depth += 1;
                2
            }
            [b'*', b'/', ..] => {
                depth -= 1;
                2
            }
            _ => 1,
        };
        at += step;
        if depth == 0 {
            break;
        }
    }
    Some(at)
}

/// How many bytes the literal has with which a text begins; `before` is the character in front of it.
fn literal(text: &str, before: Option<char>) -> Option<usize> {
    let marked = text.trim_start_matches(['b', 'c']);
    let mark = text.len() - marked.len();
    let in_word = before.is_some_and(is_word);
    if mark <= 1 && !in_word && marked.starts_with('r') {
        let hashes = marked[1..].len() - marked[1..].trim_start_matches('#').len();
        if marked[1 + hashes..].starts_with('"') {
            let end = format!("\"{}", "#".repeat(hashes));
            let from = mark + 2 + hashes;
            return Some(text[from..].find(&end).map_or(text.len(), |i| from + i + end.len()));
        }
    }
    if text.starts_with('"') {
        return Some(quoted(text, '"'));
    }
    // A lifetime has no second quote right behind its first character.
    let mut inside = text.strip_prefix('\'')?.chars();
    let first = inside.next()?;
    (first == '\\' || inside.next() == Some('\'')).then(|| quoted(text, '\''))
}

/// How many bytes there are up to the closing quote that no backslash takes away.
fn quoted(text: &str, quote: char) -> usize {
    let mut escaped = false;
    for (at, c) in text.char_indices().skip(1) {
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            _ if c == quote => return at + c.len_utf8(),
            _ => {}
        }
    }
    text.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_code_is_left() {
        let told = |text: &str| bare(text).split_whitespace().collect::<Vec<_>>().join(" ");
        assert_eq!(told("a // unsafe\nb"), "a b");
        assert_eq!(told("a /* unsafe /* more */ unsafe */ b"), "a b");
        assert_eq!(told("a(\"unsafe \\\" unsafe\", b)"), "a( , b)");
        assert_eq!(told("a(r#\"unsafe \" unsafe\"#, br\"\\\", c)"), "a( , , c)");
        assert_eq!(told("a('\"', '\\'', '\\u{41}', b\"x\") + \"\""), "a( , , , b ) +");
        assert_eq!(
            told("fn a<'a>(b: &'a str) -> &'static str"),
            "fn a<'a>(b: &'a str) -> &'static str"
        );
        assert_eq!(told("let bar = r; \"x\""), "let bar = r;");
        assert_eq!(told("open \"unsafe"), "open");
    }

    #[test]
    fn lines_stay_where_they_are() {
        let code =
            bare("a\n/* unsafe\nunsafe */ unsafe\n\"unsafe\nunsafe\"\n#[unsafe(x)]\nunsafe_code");
        assert_eq!(lines_with_word(&code, "unsafe"), [3, 6]);
    }
}
