//! Text into rows of tokens. A row is a line of text, longer where a bracket is still open.

use super::error::{At, Fault};

/// What a token is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Word(String),
    Number(i64),
    Symbol(&'static str),
}

/// A token with its place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Token {
    pub(super) kind: Kind,
    pub(super) at: At,
    /// Where it ends.
    pub(super) end: At,
}

/// The tokens of a row; never none.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Row {
    pub(super) tokens: Vec<Token>,
}

impl Row {
    /// The column at which the row begins.
    pub(super) fn column(&self) -> u32 {
        self.tokens[0].at.column
    }
}

/// Longer symbols before their beginnings.
const SYMBOLS: [&str; 29] = [
    "==", "!=", "<=", ">=", "<<", ">>", "&&", "||", "(", ")", "[", "]", ",", ";", ".", "=", "<",
    ">", "+", "-", "*", "/", "%", "!", "&", "|", "^", ":", "~",
];

/// Longest text that is read.
const BYTES_MAX: usize = 1 << 20;

/// The rows of a text.
pub(super) fn rows(text: &str) -> Result<Vec<Row>, Fault> {
    if text.len() > BYTES_MAX {
        return Err(Fault::new(At { line: 1, column: 1 }, "a program of more than 1 MiB"));
    }
    let mut rows: Vec<Row> = Vec::new();
    let mut open = 0_usize;
    for (number, line) in (1..).zip(text.lines()) {
        let tokens = tokens(number, line)?;
        let continued = open > 0;
        for token in &tokens {
            match token.kind {
                Kind::Symbol("(" | "[") => open += 1,
                Kind::Symbol(")" | "]") => open = open.saturating_sub(1),
                _ => {}
            }
        }
        match rows.last_mut() {
            _ if tokens.is_empty() => {}
            Some(last) if continued => last.tokens.extend(tokens),
            _ => rows.push(Row { tokens }),
        }
    }
    Ok(rows)
}

fn tokens(number: u32, line: &str) -> Result<Vec<Token>, Fault> {
    let characters: Vec<char> = line.chars().collect();
    let at = |n: usize| At { line: number, column: u32::try_from(n + 1).unwrap_or(u32::MAX) };
    let mut tokens = Vec::new();
    let mut n = 0;
    while let Some(&c) = characters.get(n) {
        let rest = &characters[n..];
        if rest.starts_with(&['/', '/']) {
            break;
        }
        if c.is_whitespace() {
            if c == '\t' && tokens.is_empty() {
                return Err(Fault::new(
                    at(n),
                    "a tab in the indentation, which says where blocks end: indent with spaces",
                ));
            }
            n += 1;
            continue;
        }
        let run = |of: fn(char) -> bool| rest.iter().take_while(|c| of(**c)).count();
        let (kind, length) = if c.is_ascii_digit() {
            let length = run(|c| c.is_ascii_alphanumeric());
            let digits: String = rest[..length].iter().collect();
            let value = digits.parse().map_err(|_| {
                Fault::new(at(n), format!("`{digits}` is no whole number below 2^63"))
            })?;
            (Kind::Number(value), length)
        } else if c.is_ascii_alphabetic() || c == '_' {
            let length = run(|c| c.is_ascii_alphanumeric() || c == '_');
            (Kind::Word(rest[..length].iter().collect()), length)
        } else {
            let found = SYMBOLS.iter().find(|s| {
                let mut at = rest.iter();
                s.chars().all(|c| at.next() == Some(&c))
            });
            let Some(symbol) = found else {
                return Err(Fault::new(
                    at(n),
                    format!("`{}` is no part of the language", c.escape_debug()),
                ));
            };
            (Kind::Symbol(symbol), symbol.len())
        };
        tokens.push(Token { kind, at: at(n), end: at(n + length) });
        n += length;
    }
    Ok(tokens)
}
