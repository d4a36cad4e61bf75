//! What each rank of a program does: its text followed, its operations written down.

use super::error::{At, Fault};
use super::syntax::{
    Base, Expression, IntKind, Kind, Parameter, Region, Size, Statement, TreeField, Value, What,
};
use super::{LanguageError, Program};
use crate::collectives::Tree;
use crate::program::{Buffer, Line, Lines, Place, Rank, Record, Recorded, Span};

/// What a program is run with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Setting {
    /// Ranks, their tree and its root.
    pub tree: Tree,
    /// The numbers that the program takes beside those, by name.
    pub values: Vec<(String, i64)>,
}

/// Statements that one rank follows in one call at most.
const STEPS_MAX: usize = 1_000_000;
/// Operations of all ranks and calls at most.
const OPERATIONS_MAX: usize = 1_000_000;
/// Shared lines at most.
const LINES_MAX: u64 = 1 << 20;
/// Bytes of a buffer at most.
const BUFFER_MAX: u64 = 1 << 24;

impl Program {
    /// What every rank does in calls `from..to`, the first of which is call 0.
    ///
    /// # Errors
    /// [`LanguageError`] when the program asks for what is not there, or does not end.
    pub fn record(&self, setting: &Setting, from: u64, to: u64) -> Result<Recorded, LanguageError> {
        self.recorded(setting, from, to).map_err(|fault| fault.shown(&self.file, ""))
    }

    fn recorded(&self, setting: &Setting, from: u64, to: u64) -> Result<Recorded, Fault> {
        let ranks = setting.tree.ranks();
        let bases = self.bases(setting)?;
        let mut all = 0;
        let mut recorded = Recorded { ranks: Vec::with_capacity(usize::from(ranks)) };
        for me in (0..ranks).map(Rank) {
            let mut record = Record::default();
            for call in from..to {
                let mut run = Run {
                    program: self,
                    setting,
                    bases: &bases,
                    me,
                    variables: vec![None; self.function.variables.len()],
                    steps: 0,
                    room: OPERATIONS_MAX.saturating_sub(all),
                    record: &mut record,
                };
                run.parameters(Some((me, call)))?;
                run.block(&self.function.body)?;
            }
            all += record.operations.len();
            recorded.ranks.push(record);
        }
        Ok(recorded)
    }

    /// The first line of every array, and one past the last of all.
    fn bases(&self, setting: &Setting) -> Result<Vec<u32>, Fault> {
        let mut run = Run {
            program: self,
            setting,
            bases: &[],
            me: Rank(0),
            variables: vec![None; self.function.variables.len()],
            steps: 0,
            room: 0,
            record: &mut Record::default(),
        };
        run.parameters(None)?;
        let mut bases = vec![0];
        let mut next = 0_u64;
        for array in &self.function.arrays {
            let length = match &array.length {
                Some(length) => run.value(length)?,
                None => i64::from(setting.tree.ranks()),
            };
            let length = u64::try_from(length).map_err(|_| {
                Fault::new(array.at, format!("`{}` has {length} lines", array.name))
            })?;
            next = next.saturating_add(length);
            if next > LINES_MAX {
                return Err(Fault::new(array.at, format!("more than {LINES_MAX} lines")));
            }
            bases.push(u32::try_from(next).unwrap_or(u32::MAX));
        }
        Ok(bases)
    }
}

struct Run<'a> {
    program: &'a Program,
    setting: &'a Setting,
    bases: &'a [u32],
    me: Rank,
    variables: Vec<Option<i64>>,
    steps: usize,
    /// Operations that there is still room for.
    room: usize,
    record: &'a mut Record,
}

impl Run<'_> {
    /// Sets the parameters that are numbers; without a rank and a call, those that all have in common.
    fn parameters(&mut self, of: Option<(Rank, u64)>) -> Result<(), Fault> {
        let ints = self.program.function.parameters.iter().filter_map(|p| match p.kind {
            Kind::Int(kind) => Some((p, kind)),
            _ => None,
        });
        for (variable, (parameter, kind)) in ints.enumerate() {
            self.variables[variable] = match kind {
                IntKind::Me => of.map(|(me, _)| i64::from(me.0)),
                IntKind::Call => match of {
                    Some((_, call)) => i64::try_from(call).ok(),
                    None => None,
                },
                IntKind::Ranks => Some(i64::from(self.setting.tree.ranks())),
                IntKind::Root => Some(i64::from(self.setting.tree.root().0)),
                IntKind::Value => Some(self.given(parameter)?),
            };
        }
        Ok(())
    }

    fn given(&self, parameter: &Parameter) -> Result<i64, Fault> {
        let name = &parameter.name;
        let found = self.setting.values.iter().find(|(known, _)| known == name);
        found.map(|(_, value)| *value).ok_or_else(|| {
            let message =
                format!("the parameter `{name}` has no value: give it with --set {name}=NUMBER");
            Fault::new(parameter.at, message)
        })
    }

    fn block(&mut self, statements: &[Statement]) -> Result<(), Fault> {
        statements.iter().try_for_each(|statement| self.statement(statement))
    }

    fn statement(&mut self, statement: &Statement) -> Result<(), Fault> {
        self.step(statement.at)?;
        match &statement.what {
            What::Set { variable, value } => self.variables[*variable] = Some(self.value(value)?),
            What::If { condition, then, otherwise } => {
                let chosen = if self.value(condition)? != 0 { then } else { otherwise };
                self.block(chosen)?;
            }
            What::For { variable, from, to, body } => {
                let (from, to) = (self.value(from)?, self.value(to)?);
                for value in from..=to {
                    self.step(statement.at)?;
                    self.variables[*variable] = Some(value);
                    self.block(body)?;
                }
            }
            What::While { condition, body } => {
                while self.value(condition)? != 0 {
                    self.step(statement.at)?;
                    self.block(body)?;
                }
            }
            primitive => self.primitive(statement.at, primitive)?,
        }
        Ok(())
    }

    fn step(&mut self, at: At) -> Result<(), Fault> {
        self.steps += 1;
        if self.steps > STEPS_MAX {
            let message =
                format!("{} has done {STEPS_MAX} statements: a loop without an end?", self.me);
            return Err(Fault::new(at, message));
        }
        Ok(())
    }

    fn primitive(&mut self, at: At, what: &What) -> Result<(), Fault> {
        if self.record.operations.len() >= self.room {
            let message =
                format!("more than {OPERATIONS_MAX} operations: take fewer ranks or calls");
            return Err(Fault::new(at, message));
        }
        match what {
            What::Copy { src, dst, size } => {
                let (src, dst) = self.spans(at, src, dst, size)?;
                self.record.copy(src, dst);
            }
            What::Reduce { combine, src, dst, size } => {
                let (src, dst) = self.spans(at, src, dst, size)?;
                let element = combine.element().bytes();
                if !src.bytes.is_multiple_of(element) {
                    let message = format!("{} bytes are no whole elements of {element}", src.bytes);
                    return Err(Fault::new(at, message));
                }
                self.record.reduce(*combine, src, dst);
            }
            What::Wait { line, value, compare } => {
                let (line, value) = (self.line(line, 1)?, self.word(value)?);
                // A recorder waits for nobody.
                let _recorded = self.record.wait(line, *compare, value);
            }
            What::Write { line, value } => {
                let (line, value) = (self.line(line, 1)?, self.word(value)?);
                self.record.write(line, value);
            }
            What::Add { line, value } => {
                let (line, value) = (self.line(line, 1)?, self.word(value)?);
                self.record.add(line, value);
            }
            What::Claim { line, lines } => {
                let count = self.count(lines, LINES_MAX)?;
                let line = self.line(line, u64::from(count))?;
                self.record.claim(line, count);
            }
            _ => {}
        }
        Ok(())
    }

    /// A value of a word, which is never negative.
    fn word(&mut self, value: &Expression) -> Result<u64, Fault> {
        let found = self.value(value)?;
        u64::try_from(found)
            .map_err(|_| Fault::new(value.at, format!("a word cannot become {found}")))
    }

    fn count(&mut self, value: &Expression, most: u64) -> Result<u32, Fault> {
        let found = self.value(value)?;
        let fits = u64::try_from(found).ok().filter(|n| *n <= most);
        fits.and_then(|n| u32::try_from(n).ok())
            .ok_or_else(|| Fault::new(value.at, format!("{found} is not from 0 to {most}")))
    }

    /// Shared lines from the region on, of which `count` are used.
    fn line(&mut self, region: &Region, count: u64) -> Result<Line, Fault> {
        let Base::Array(array) = region.base else {
            return Err(Fault::new(region.at, "a buffer is no shared line; name one"));
        };
        if region.payload {
            return Err(Fault::new(
                region.at,
                "this is done to the word of a line, not its payload",
            ));
        }
        let index = self.index(region)?;
        let (first, end) = (self.bases[array], self.bases[array + 1]);
        let length = u64::from(end - first);
        let fits = u64::try_from(index).ok().filter(|i| i.saturating_add(count) <= length);
        let Some(index) = fits.and_then(|i| u32::try_from(i).ok()) else {
            let name = &self.program.function.arrays[array].name;
            let message = format!("{}: line {index} of `{name}`, which has {length}", self.me);
            return Err(Fault::new(region.at, message));
        };
        Ok(Line(first + index))
    }

    fn index(&mut self, region: &Region) -> Result<i64, Fault> {
        region.index.as_ref().map_or(Ok(0), |index| self.value(index))
    }

    fn spans(
        &mut self,
        at: At,
        src: &Region,
        dst: &Region,
        size: &Size,
    ) -> Result<(Span, Span), Fault> {
        let count = self.count(&size.count, BUFFER_MAX)?;
        let bytes = if size.bytes { count } else { count.saturating_mul(Line::BYTES) };
        let (src, dst) = (self.span(src, bytes)?, self.span(dst, bytes)?);
        let (from, to) = (src.touched(), dst.touched());
        let meet = match (src.place, dst.place) {
            (Place::Shared(a), Place::Shared(b)) => {
                a.0 + from.0 < b.0 + to.0 + to.1 && b.0 + to.0 < a.0 + from.0 + from.1
            }
            (a, b) => a == b && from.0 < to.0 + to.1 && to.0 < from.0 + from.1,
        };
        if meet {
            return Err(Fault::new(at, "source and destination overlap"));
        }
        Ok((src, dst))
    }

    fn span(&mut self, region: &Region, bytes: u32) -> Result<Span, Fault> {
        match region.base {
            Base::Buffer { second } => {
                let index = self.index(region)?;
                let offset = u64::try_from(index).ok().and_then(|i| i.checked_mul(64));
                let fits = offset.filter(|o| o.saturating_add(u64::from(bytes)) <= BUFFER_MAX);
                let offset = fits.and_then(|o| u32::try_from(o).ok()).ok_or_else(|| {
                    let message = format!("{}: line {index} of a buffer; it holds 16 MiB", self.me);
                    Fault::new(region.at, message)
                })?;
                Ok(Span::of(self.buffer(second), offset, bytes))
            }
            Base::Array(_) => {
                let word = if region.payload { Line::WORD_BYTES } else { 0 };
                let lines = u64::from((bytes + word).div_ceil(Line::BYTES));
                let line = self.line(&Region { payload: false, ..region.clone() }, lines)?;
                Ok(if region.payload { line.payload(bytes) } else { line.whole(bytes) })
            }
        }
    }

    /// The only buffer is what the root gives and the others get.
    fn buffer(&self, second: bool) -> Buffer {
        let buffers = self.program.function.parameters.iter();
        let two = buffers.filter(|p| matches!(p.kind, Kind::Buffer { .. })).count() > 1;
        let gives = if two { !second } else { self.me == self.setting.tree.root() };
        if gives { Buffer::Send } else { Buffer::Receive }
    }

    fn value(&mut self, expression: &Expression) -> Result<i64, Fault> {
        let at = expression.at;
        match &expression.what {
            Value::Number(number) => Ok(*number),
            Value::Variable(variable) => self.variables[*variable].ok_or_else(|| {
                let name = &self.program.function.variables[*variable];
                Fault::new(at, format!("{}: `{name}` has no value here", self.me))
            }),
            Value::Tree(field, of) => self.of_tree(at, *field, of),
            Value::Unary(operator, value) => {
                let value = self.value(value)?;
                let found = if *operator == "-" {
                    value.checked_neg()
                } else {
                    Some(i64::from(value == 0))
                };
                found.ok_or_else(|| Fault::new(at, "too large a number"))
            }
            Value::Binary(operator, left, right) => {
                let left = self.value(left)?;
                match (*operator, left) {
                    ("&&", 0) => return Ok(0),
                    ("||", n) if n != 0 => return Ok(1),
                    _ => {}
                }
                let right = self.value(right)?;
                binary(operator, left, right).ok_or_else(|| {
                    Fault::new(at, format!("{}: {left} {operator} {right} is no number", self.me))
                })
            }
        }
    }

    fn of_tree(&mut self, at: At, field: TreeField, of: &[Expression]) -> Result<i64, Fault> {
        let index = of.iter().map(|n| self.value(n)).next().transpose()?;
        let tree = &self.setting.tree;
        let sons = tree.children(self.me);
        Ok(match field {
            TreeField::Parent => tree.parent(self.me).map_or(-1, |rank| i64::from(rank.0)),
            TreeField::Sons => i64::try_from(sons.len()).unwrap_or(i64::MAX),
            TreeField::Root => i64::from(tree.root().0),
            TreeField::Son => {
                let son = index.and_then(|n| usize::try_from(n).ok()).and_then(|n| sons.get(n));
                let missing = || {
                    let n = index.unwrap_or(0);
                    Fault::new(at, format!("{}: child {n}; it has {}", self.me, sons.len()))
                };
                i64::from(son.ok_or_else(missing)?.0)
            }
        })
    }
}

/// `left operator right`; none where that is no number.
fn binary(operator: &str, left: i64, right: i64) -> Option<i64> {
    let shift = || u32::try_from(right).ok().filter(|n| *n < 63);
    match operator {
        "+" => left.checked_add(right),
        "-" => left.checked_sub(right),
        "*" => left.checked_mul(right),
        "/" => left.checked_div(right),
        "%" => left.checked_rem_euclid(right),
        "<<" => shift().and_then(|n| left.checked_mul(1 << n)),
        ">>" => shift().map(|n| left >> n),
        "&" => Some(left & right),
        "|" => Some(left | right),
        "^" => Some(left ^ right),
        "==" => Some(i64::from(left == right)),
        "!=" => Some(i64::from(left != right)),
        "<" => Some(i64::from(left < right)),
        "<=" => Some(i64::from(left <= right)),
        ">" => Some(i64::from(left > right)),
        ">=" => Some(i64::from(left >= right)),
        "&&" => Some(i64::from(left != 0 && right != 0)),
        "||" => Some(i64::from(left != 0 || right != 0)),
        _ => None,
    }
}
