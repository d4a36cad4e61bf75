//! A program as a tree of statements.

use super::error::At;
use crate::program::{Combine, Compare};

/// What a parameter or an array stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// A number.
    Int(IntKind),
    /// The tree.
    Tree,
    /// The first buffer: what the rank gives; or, if it is the only one, what the root gives and the
    /// others get.
    Buffer { second: bool },
}

/// Where a number comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum IntKind {
    Me,
    Ranks,
    Root,
    Call,
    /// From the setting, by name.
    Value,
}

/// A parameter.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Parameter {
    pub(super) name: String,
    pub(super) kind: Kind,
    pub(super) at: At,
}

/// Shared lines under one name.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Array {
    pub(super) name: String,
    /// How many; none for those of the tree, which have one for each rank.
    pub(super) length: Option<Expression>,
    pub(super) at: At,
}

/// A whole program.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Function {
    pub(super) name: String,
    pub(super) parameters: Vec<Parameter>,
    pub(super) arrays: Vec<Array>,
    /// How many variables and parameters that are numbers, by place.
    pub(super) variables: Vec<String>,
    pub(super) body: Vec<Statement>,
}

/// A statement with its place.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Statement {
    pub(super) at: At,
    pub(super) what: What,
}

/// What a statement does.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum What {
    Copy { src: Region, dst: Region, size: Size },
    Reduce { combine: Combine, src: Region, dst: Region, size: Size },
    Wait { line: Region, value: Expression, compare: Compare },
    Write { line: Region, value: Expression },
    Add { line: Region, value: Expression },
    Claim { line: Region, lines: Expression },
    Set { variable: usize, value: Expression },
    If { condition: Expression, then: Vec<Statement>, otherwise: Vec<Statement> },
    For { variable: usize, from: Expression, to: Expression, body: Vec<Statement> },
    While { condition: Expression, body: Vec<Statement> },
}

/// How much is copied.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Size {
    pub(super) count: Expression,
    /// Bytes rather than lines.
    pub(super) bytes: bool,
}

/// Shared lines, or a part of a buffer.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Region {
    pub(super) at: At,
    pub(super) base: Base,
    pub(super) index: Option<Expression>,
    /// Beside the word of the line.
    pub(super) payload: bool,
}

/// What a region counts from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Base {
    Array(usize),
    Buffer { second: bool },
}

/// A number that is worked out.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Expression {
    pub(super) at: At,
    pub(super) what: Value,
}

#[derive(Clone, Debug, PartialEq)]
pub(super) enum Value {
    Number(i64),
    Variable(usize),
    Tree(TreeField, Vec<Expression>),
    Unary(&'static str, Box<Expression>),
    Binary(&'static str, Box<Expression>, Box<Expression>),
}

/// What a program asks of its tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TreeField {
    /// The rank's parent, -1 for the root.
    Parent,
    /// How many children the rank has.
    Sons,
    /// The root.
    Root,
    /// A child by its number, from 0.
    Son,
}
