//! Expressions and regions: one row of tokens, from left to right.

use super::error::{At, Fault};
use super::lex::{Kind as Lexeme, Row, Token};
use super::syntax::{Array, Base, Expression, Kind, Parameter, Region, TreeField, Value};

/// The names that a program has so far.
#[derive(Debug, Default)]
pub(super) struct Names {
    pub(super) parameters: Vec<Parameter>,
    pub(super) arrays: Vec<Array>,
    pub(super) variables: Vec<String>,
}

impl Names {
    pub(super) fn parameter(&self, name: &str) -> Option<Kind> {
        self.parameters.iter().find(|p| p.name == name).map(|p| p.kind)
    }

    pub(super) fn variable(&self, name: &str) -> Option<usize> {
        self.variables.iter().position(|v| v == name)
    }

    /// The variable of that name, new if there is none; no other thing may have it.
    pub(super) fn declare(&mut self, name: &str, at: At) -> Result<usize, Fault> {
        if let Some(known) = self.variable(name) {
            return Ok(known);
        }
        if self.parameter(name).is_some() || self.arrays.iter().any(|a| a.name == name) {
            return Err(Fault::new(at, format!("`{name}` is no number, so it cannot be set")));
        }
        self.variables.push(name.to_owned());
        Ok(self.variables.len() - 1)
    }

    fn known(&self) -> String {
        let arrays = self.arrays.iter().filter(|a| a.length.is_some()).map(|a| &a.name);
        let others = self.parameters.iter().filter(|p| !matches!(p.kind, Kind::Int(_)));
        let names: Vec<&str> = self
            .variables
            .iter()
            .chain(others.map(|p| &p.name))
            .chain(arrays)
            .map(String::as_str)
            .collect();
        names.join(", ")
    }
}

/// Where in a row the parser is.
#[derive(Debug)]
pub(super) struct Cursor<'a> {
    row: &'a Row,
    next: usize,
    /// How deep expressions are nested here.
    depth: usize,
    /// How many operators there were.
    operators: usize,
}

/// Deepest nesting of expressions and blocks.
pub(super) const DEPTH_MAX: usize = 64;
/// Most operators of a row.
const OPERATORS_MAX: usize = 256;

/// Operators by how tightly they bind, loosest first.
const LEVELS: [&[&str]; 7] = [
    &["||", "or"],
    &["&&", "and"],
    &["==", "!=", "<", "<=", ">", ">="],
    &["&", "|", "^"],
    &["<<", ">>"],
    &["+", "-"],
    &["*", "/", "%"],
];

impl<'a> Cursor<'a> {
    pub(super) const fn new(row: &'a Row) -> Self {
        Self { row, next: 0, depth: 0, operators: 0 }
    }

    pub(super) fn peek(&self) -> Option<&'a Token> {
        self.row.tokens.get(self.next)
    }

    pub(super) fn skip(&mut self) {
        self.next += 1;
    }

    /// Where the next token is, or where it is missing.
    pub(super) fn at(&self) -> At {
        let last = self.row.tokens.last();
        self.peek().map(|t| t.at).or(last.map(|t| t.end)).unwrap_or_default()
    }

    /// A fault here: what was expected, and what is there.
    pub(super) fn expected(&self, what: &str) -> Fault {
        let found = match self.peek().map(|t| &t.kind) {
            None => "the line ends".to_owned(),
            Some(Lexeme::Word(word)) => format!("found `{word}`"),
            Some(Lexeme::Number(number)) => format!("found {number}"),
            Some(Lexeme::Symbol(symbol)) => format!("found `{symbol}`"),
        };
        Fault::new(self.at(), format!("expected {what}, {found}"))
    }

    /// Takes the symbol if it comes next.
    pub(super) fn symbol(&mut self, symbol: &str) -> bool {
        let here = matches!(self.peek().map(|t| &t.kind), Some(Lexeme::Symbol(s)) if *s == symbol);
        self.next += usize::from(here);
        here
    }

    /// Takes the word if it comes next.
    pub(super) fn word(&mut self, word: &str) -> bool {
        let here = self.is_word(word);
        self.next += usize::from(here);
        here
    }

    pub(super) fn is_word(&self, word: &str) -> bool {
        matches!(self.peek().map(|t| &t.kind), Some(Lexeme::Word(w)) if w == word)
    }

    pub(super) fn need(&mut self, symbol: &str) -> Result<(), Fault> {
        if self.symbol(symbol) { Ok(()) } else { Err(self.expected(&format!("`{symbol}`"))) }
    }

    pub(super) fn name(&mut self, what: &str) -> Result<(&'a str, At), Fault> {
        match self.peek() {
            Some(Token { kind: Lexeme::Word(word), at, .. }) => {
                self.next += 1;
                Ok((word, *at))
            }
            _ => Err(self.expected(what)),
        }
    }

    pub(super) fn at_end(&self) -> bool {
        self.peek().is_none()
    }

    /// Nothing may follow.
    pub(super) fn end(&self, what: &str) -> Result<(), Fault> {
        if self.at_end() { Ok(()) } else { Err(self.expected(what)) }
    }

    /// An expression.
    pub(super) fn expression(&mut self, names: &mut Names) -> Result<Expression, Fault> {
        self.nested(|c| c.level(names, 0))
    }

    fn nested<T>(&mut self, one: impl FnOnce(&mut Self) -> Result<T, Fault>) -> Result<T, Fault> {
        if self.depth == DEPTH_MAX {
            let most = format!("nested more than {DEPTH_MAX} deep: set a variable first");
            return Err(Fault::new(self.at(), most));
        }
        self.depth += 1;
        let made = one(self);
        self.depth -= 1;
        made
    }

    fn operator(&mut self, of: &[&'static str]) -> Option<&'static str> {
        let found = of.iter().find(|o| match self.peek().map(|t| &t.kind) {
            Some(Lexeme::Symbol(symbol)) => symbol == *o,
            Some(Lexeme::Word(word)) => word == *o,
            _ => false,
        })?;
        self.next += 1;
        Some(match *found {
            "or" => "||",
            "and" => "&&",
            other => other,
        })
    }

    fn level(&mut self, names: &mut Names, level: usize) -> Result<Expression, Fault> {
        let Some(operators) = LEVELS.get(level) else { return self.unary(names) };
        let mut left = self.level(names, level + 1)?;
        // A chain of operators hangs to the left, one deeper for each.
        while let Some(operator) = self.operator(operators) {
            self.operators += 1;
            if self.operators > OPERATORS_MAX {
                let most = format!("more than {OPERATORS_MAX} operators: set a variable first");
                return Err(Fault::new(self.at(), most));
            }
            let right = self.level(names, level + 1)?;
            let at = left.at;
            let what = Value::Binary(operator, Box::new(left), Box::new(right));
            left = Expression { at, what };
        }
        Ok(left)
    }

    fn unary(&mut self, names: &mut Names) -> Result<Expression, Fault> {
        let at = self.at();
        for (symbol, word) in [("-", ""), ("!", "not")] {
            if self.symbol(symbol) || (!word.is_empty() && self.word(word)) {
                let value = self.nested(|c| c.unary(names))?;
                return Ok(Expression { at, what: Value::Unary(symbol, Box::new(value)) });
            }
        }
        if self.symbol("(") {
            let value = self.expression(names)?;
            self.need(")")?;
            return Ok(value);
        }
        if let Some(Token { kind: Lexeme::Number(number), .. }) = self.peek() {
            self.next += 1;
            return Ok(Expression { at, what: Value::Number(*number) });
        }
        let (name, at) = self.name("a number or a name")?;
        let what = match names.variable(name) {
            Some(variable) => Value::Variable(variable),
            None if names.parameter(name) == Some(Kind::Tree) => self.tree_value(names)?,
            None => return Err(unknown(names, name, at, "a number")),
        };
        Ok(Expression { at, what })
    }

    /// `.parent`, `.nsons`, `.root` or `.son[n]` of the tree.
    fn tree_value(&mut self, names: &mut Names) -> Result<Value, Fault> {
        const WHAT: &str = "`parent`, `nsons`, `root` or `son[...]`";
        self.need(".")?;
        let (field, at) = self.name(WHAT)?;
        let field = match field {
            "parent" => TreeField::Parent,
            "nsons" => TreeField::Sons,
            "root" => TreeField::Root,
            "son" => TreeField::Son,
            other => {
                let message = format!("expected {WHAT}, found `{other}`; lines have no value here");
                return Err(Fault::new(at, message));
            }
        };
        let mut of = Vec::new();
        if field == TreeField::Son {
            self.need("[")?;
            of.push(self.expression(names)?);
            self.need("]")?;
        }
        Ok(Value::Tree(field, of))
    }

    /// Shared lines or a part of a buffer: `name`, `name[index]`, `tree.name[index]`, each with
    /// `.payload`.
    pub(super) fn region(&mut self, names: &mut Names) -> Result<Region, Fault> {
        let (name, at) = self.name("a buffer or shared lines")?;
        let base = match names.parameter(name) {
            Some(Kind::Buffer { second }) => Some(Base::Buffer { second }),
            Some(Kind::Tree) => Some(self.tree_lines(names)?),
            Some(Kind::Int(_)) => None,
            None => names.arrays.iter().position(|a| a.name == name).map(Base::Array),
        };
        let Some(base) = base else {
            return Err(unknown(names, name, at, "a buffer or shared lines"));
        };
        let index = if self.symbol("[") {
            let index = self.expression(names)?;
            self.need("]")?;
            Some(index)
        } else {
            None
        };
        let payload = self.symbol(".");
        if payload && !self.word("payload") {
            return Err(self.expected("`payload`"));
        }
        if payload && matches!(base, Base::Buffer { .. }) {
            return Err(Fault::new(at, "a buffer has no flag, so no payload beside it"));
        }
        Ok(Region { at, base, index, payload })
    }

    /// `.name` of the tree: one line for each rank, there as soon as it is named.
    fn tree_lines(&mut self, names: &mut Names) -> Result<Base, Fault> {
        self.need(".")?;
        let (name, at) = self.name("the name of lines")?;
        if matches!(name, "parent" | "nsons" | "root" | "son") {
            return Err(Fault::new(at, format!("`{name}` is a number, not shared lines")));
        }
        if !matches!(self.peek().map(|t| &t.kind), Some(Lexeme::Symbol("["))) {
            return Err(self.expected("`[` and a rank, since the tree has one such line for each"));
        }
        let name = format!("tree.{name}");
        let known = names.arrays.iter().position(|a| a.name == name);
        Ok(Base::Array(known.unwrap_or_else(|| {
            names.arrays.push(Array { name, length: None, at });
            names.arrays.len() - 1
        })))
    }
}

fn unknown(names: &Names, name: &str, at: At, what: &str) -> Fault {
    let is_there = names.parameter(name).is_some() || names.variable(name).is_some();
    let message = if is_there || names.arrays.iter().any(|a| a.name == name) {
        format!("expected {what}, and `{name}` is none")
    } else {
        format!("`{name}` is not known; known here: {}", names.known())
    };
    Fault::new(at, message)
}
