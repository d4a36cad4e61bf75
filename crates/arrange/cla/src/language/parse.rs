//! Rows of tokens into a program. Blocks are rows that are indented deeper than what opens them, as the
//! paper prints them; an `end` below the opening row may close them.

use super::error::Fault;
use super::expression::{Cursor, DEPTH_MAX, Names};
use super::lex::{Kind as Lexeme, Row, rows};
use super::syntax::{
    Array, Expression, Function, IntKind, Kind, Parameter, Region, Size, Statement, Value, What,
};
use crate::program::{Combine, Compare, Element};

/// A whole text.
pub(super) fn function(text: &str) -> Result<Function, Fault> {
    let rows = rows(text)?;
    let mut parser = Parser { rows: &rows, next: 0, names: Names::default(), depth: 0 };
    let declared = parser.declarations()?;
    let Some(header) = parser.peek() else {
        let at = super::error::At { line: 1, column: 1 };
        return Err(Fault::new(at, "expected `Function Name(...)`, the text ends"));
    };
    let name = parser.header(header)?;
    parser.sized(declared)?;
    parser.next += 1;
    let body = parser.block(header.column())?;
    parser.end_of(header.column());
    if let Some(row) = parser.peek() {
        return Err(Cursor::new(row).expected("the end of the text: a program is one function"));
    }
    let Names { parameters, arrays, variables } = parser.names;
    Ok(Function { name, parameters, arrays, variables, body })
}

struct Parser<'a> {
    rows: &'a [Row],
    next: usize,
    names: Names,
    depth: usize,
}

const STATEMENT: &str = "a statement: cl_copy, cl_wait, cl_write, cl_add, cl_claim, cl_reduce, `if`, `for`, \
    `while` or `name = ...`";

impl<'a> Parser<'a> {
    fn peek(&self) -> Option<&'a Row> {
        self.rows.get(self.next)
    }

    /// The rows `lines name[length]` before the function; their lengths may use its parameters, so they are
    /// read after these.
    fn declarations(&mut self) -> Result<Vec<&'a Row>, Fault> {
        let mut rows = Vec::new();
        while let Some(row) = self.peek().filter(|row| Cursor::new(row).is_word("lines")) {
            let mut cursor = Cursor::new(row);
            cursor.skip();
            let (name, at) = cursor.name("the name of lines")?;
            if self.names.arrays.iter().any(|a| a.name == name) {
                return Err(Fault::new(at, format!("`{name}` is there already")));
            }
            let zero = Expression { at, what: Value::Number(0) };
            self.names.arrays.push(Array { name: name.to_owned(), length: Some(zero), at });
            rows.push(row);
            self.next += 1;
        }
        Ok(rows)
    }

    fn sized(&mut self, rows: Vec<&Row>) -> Result<(), Fault> {
        for (n, row) in rows.into_iter().enumerate() {
            let mut cursor = Cursor::new(row);
            cursor.skip();
            cursor.name("the name of lines")?;
            cursor.need("[")?;
            let length = cursor.expression(&mut self.names)?;
            cursor.need("]")?;
            cursor.symbol(";");
            cursor.end("the end of the line")?;
            self.names.arrays[n].length = Some(length);
        }
        Ok(())
    }

    fn header(&mut self, row: &Row) -> Result<String, Fault> {
        let mut cursor = Cursor::new(row);
        if !(cursor.word("Function") || cursor.word("function")) {
            return Err(cursor.expected("`Function` or `lines`"));
        }
        let (name, _) = cursor.name("the function's name")?;
        cursor.need("(")?;
        let mut first = true;
        while !cursor.symbol(")") {
            if !first {
                cursor.need(",")?;
            }
            first = false;
            self.parameter(&mut cursor)?;
        }
        cursor.symbol(":");
        cursor.end("the end of the line")?;
        Ok(name.to_owned())
    }

    fn parameter(&mut self, cursor: &mut Cursor<'_>) -> Result<(), Fault> {
        const TYPES: &str = "a parameter's type: `int`, `tree_t` or `cl_t *`";
        let unknown = cursor.expected(TYPES);
        let (of, _) = cursor.name(TYPES)?;
        let pointer = cursor.symbol("*");
        let (name, at) = cursor.name("the parameter's name")?;
        let buffers = |k: Kind| matches!(k, Kind::Buffer { .. });
        let there = self.names.parameters.iter().filter(|p| buffers(p.kind)).count();
        let kind = match (of, pointer) {
            ("int", false) => Kind::Int(match name {
                "me" => IntKind::Me,
                "ranks" => IntKind::Ranks,
                "root" => IntKind::Root,
                "call" => IntKind::Call,
                _ => IntKind::Value,
            }),
            ("tree_t", false) => Kind::Tree,
            ("cl_t" | "clt" | "cLt", _) if there < 2 => Kind::Buffer { second: there == 1 },
            ("cl_t" | "clt" | "cLt", _) => {
                return Err(Fault::new(
                    at,
                    "a third buffer; a rank has one to give and one to get",
                ));
            }
            _ => return Err(unknown),
        };
        let same = |p: &Parameter| p.name == name || (kind == Kind::Tree && p.kind == Kind::Tree);
        if self.names.parameters.iter().any(same)
            || self.names.arrays.iter().any(|a| a.name == name)
        {
            return Err(Fault::new(at, format!("`{name}` is there already")));
        }
        if matches!(kind, Kind::Int(_)) {
            self.names.variables.push(name.to_owned());
        }
        self.names.parameters.push(Parameter { name: name.to_owned(), kind, at });
        Ok(())
    }

    /// The rows that are indented deeper than `column`.
    fn block(&mut self, column: u32) -> Result<Vec<Statement>, Fault> {
        let mut statements = Vec::new();
        let Some(first) = self.peek().filter(|row| row.column() > column) else {
            return Ok(statements);
        };
        if self.depth == DEPTH_MAX {
            let most = format!("blocks nested more than {DEPTH_MAX} deep");
            return Err(Fault::new(first.tokens[0].at, most));
        }
        self.depth += 1;
        while let Some(row) = self.peek().filter(|row| row.column() > column) {
            if row.column() != first.column() {
                let message = format!(
                    "this row begins in column {}, its block in column {}: rows of a block begin alike",
                    row.column(),
                    first.column()
                );
                return Err(Fault::new(row.tokens[0].at, message));
            }
            self.next += 1;
            self.row(row, &mut statements)?;
        }
        self.depth -= 1;
        Ok(statements)
    }

    /// Takes the `end` of what was opened in `column`, if there is one.
    fn end_of(&mut self, column: u32) {
        let end = |row: &&Row| {
            let word = Cursor::new(row).is_word("end");
            let rest = &row.tokens[1..];
            word && row.column() == column && rest.iter().all(|t| t.kind == Lexeme::Symbol(";"))
        };
        self.next += usize::from(self.peek().filter(end).is_some());
    }

    fn row(&mut self, row: &'a Row, statements: &mut Vec<Statement>) -> Result<(), Fault> {
        let mut cursor = Cursor::new(row);
        let at = cursor.at();
        if cursor.word("if") {
            let condition = cursor.expression(&mut self.names)?;
            self.opened(&mut cursor, "then")?;
            let then = self.block(row.column())?;
            let mut otherwise = Vec::new();
            if let Some(next) = self.peek().filter(|r| r.column() == row.column())
                && Cursor::new(next).is_word("else")
            {
                let mut cursor = Cursor::new(next);
                cursor.skip();
                cursor.end("the end of the line: what `else` does stands below it")?;
                self.next += 1;
                otherwise = self.block(row.column())?;
            }
            self.end_of(row.column());
            statements.push(Statement { at, what: What::If { condition, then, otherwise } });
        } else if cursor.word("for") {
            let (name, name_at) = cursor.name("a variable")?;
            cursor.need("=")?;
            let from = cursor.expression(&mut self.names)?;
            if !cursor.word("to") {
                return Err(cursor.expected("`to`"));
            }
            let to = cursor.expression(&mut self.names)?;
            let variable = self.names.declare(name, name_at)?;
            self.opened(&mut cursor, "do")?;
            let body = self.block(row.column())?;
            self.end_of(row.column());
            statements.push(Statement { at, what: What::For { variable, from, to, body } });
        } else if cursor.word("while") {
            let condition = cursor.expression(&mut self.names)?;
            self.opened(&mut cursor, "do")?;
            let body = self.block(row.column())?;
            self.end_of(row.column());
            statements.push(Statement { at, what: What::While { condition, body } });
        } else {
            while !cursor.at_end() {
                statements.push(self.simple(&mut cursor)?);
                if !cursor.symbol(";") {
                    cursor.end("`;` or the end of the line")?;
                }
            }
        }
        Ok(())
    }

    fn opened(&mut self, cursor: &mut Cursor<'_>, word: &str) -> Result<(), Fault> {
        if !cursor.word(word) {
            return Err(cursor.expected(&format!("`{word}`")));
        }
        cursor.end("the end of the line: a block stands below what opens it")
    }

    fn simple(&mut self, cursor: &mut Cursor<'_>) -> Result<Statement, Fault> {
        let at = cursor.at();
        let unknown = cursor.expected(STATEMENT);
        let int = cursor.word("int");
        let (name, name_at) = cursor.name(STATEMENT)?;
        // The paper's letter l is printed like a one.
        let what = match name {
            _ if int => None,
            "cl_copy" | "c1_copy" => Some(self.copy(cursor)?),
            "cl_wait" | "c1_wait" => Some(self.wait(cursor)?),
            "cl_write" | "c1_write" => {
                let (line, value) = self.line_and_value(cursor)?;
                Some(What::Write { line, value })
            }
            "cl_add" | "c1_add" => {
                let (line, value) = self.line_and_value(cursor)?;
                Some(What::Add { line, value })
            }
            "cl_claim" => {
                let (line, lines) = self.line_and_value(cursor)?;
                Some(What::Claim { line, lines })
            }
            "cl_reduce" => Some(self.reduce(cursor)?),
            _ => None,
        };
        let what = match what {
            Some(what) => {
                cursor.need(")")?;
                what
            }
            None if cursor.symbol("=") => {
                let value = cursor.expression(&mut self.names)?;
                What::Set { variable: self.names.declare(name, name_at)?, value }
            }
            None if int => return Err(cursor.expected("`=`")),
            None => return Err(unknown),
        };
        Ok(Statement { at, what })
    }

    fn line_and_value(&mut self, cursor: &mut Cursor<'_>) -> Result<(Region, Expression), Fault> {
        cursor.need("(")?;
        let line = cursor.region(&mut self.names)?;
        cursor.need(",")?;
        Ok((line, cursor.expression(&mut self.names)?))
    }

    fn wait(&mut self, cursor: &mut Cursor<'_>) -> Result<What, Fault> {
        let (line, value) = self.line_and_value(cursor)?;
        let mut compare = Compare::Equal;
        if cursor.symbol(",") {
            if cursor.word("comp") {
                cursor.need("=")?;
            }
            compare = if cursor.word("eq") {
                Compare::Equal
            } else if cursor.word("ge") {
                Compare::AtLeast
            } else {
                return Err(cursor.expected("`eq` or `ge`"));
            };
        }
        Ok(What::Wait { line, value, compare })
    }

    fn copy(&mut self, cursor: &mut Cursor<'_>) -> Result<What, Fault> {
        let (src, dst, size) = self.two_and_size(cursor)?;
        Ok(What::Copy { src, dst, size })
    }

    fn two_and_size(&mut self, cursor: &mut Cursor<'_>) -> Result<(Region, Region, Size), Fault> {
        cursor.need("(")?;
        let src = cursor.region(&mut self.names)?;
        cursor.need(",")?;
        let dst = cursor.region(&mut self.names)?;
        cursor.need(",")?;
        let count = cursor.expression(&mut self.names)?;
        let bytes = cursor.word("bytes");
        if !bytes && !cursor.word("lines") {
            cursor.word("line");
        }
        Ok((src, dst, Size { count, bytes }))
    }

    fn reduce(&mut self, cursor: &mut Cursor<'_>) -> Result<What, Fault> {
        const OPERATORS: &str =
            "`sum`, `product`, `min`, `max`, `and`, `or`, `xor`, `both`, `either` or `one_of`";
        const ELEMENTS: &str = "`i8` to `i64`, `u8` to `u64`, `f32` or `f64`";
        let (src, dst, size) = self.two_and_size(cursor)?;
        cursor.need(",")?;
        let wrong = cursor.expected(OPERATORS);
        let (operator, at) = cursor.name(OPERATORS)?;
        let mut element = Element::I64;
        if !matches!(cursor.peek().map(|t| &t.kind), Some(Lexeme::Symbol(_)) | None) {
            let wrong = cursor.expected(ELEMENTS);
            element = match cursor.name(ELEMENTS)?.0 {
                "i8" => Element::I8,
                "i16" => Element::I16,
                "u8" => Element::U8,
                "u16" => Element::U16,
                "i32" => Element::I32,
                "i64" => Element::I64,
                "u32" => Element::U32,
                "u64" => Element::U64,
                "f32" => Element::F32,
                "f64" => Element::F64,
                _ => return Err(wrong),
            };
        }
        let combine = match operator {
            "sum" => Combine::Sum(element),
            "product" => Combine::Product(element),
            "min" => Combine::Min(element),
            "max" => Combine::Max(element),
            "and" => Combine::And(element),
            "or" => Combine::Or(element),
            "xor" => Combine::Xor(element),
            "both" => Combine::Both(element),
            "either" => Combine::Either(element),
            "one_of" => Combine::OneOf(element),
            _ => return Err(wrong),
        };
        if combine.is_bitwise() && element.is_float() {
            return Err(Fault::new(at, format!("`{operator}` combines integers, not {element:?}")));
        }
        Ok(What::Reduce { combine, src, dst, size })
    }
}
