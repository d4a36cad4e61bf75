//! Atlases of many nodes side by side: which nodes are equal, and which one deviates in what.
//!
//! [`Folder`] reads a folder of atlases, [`Node`] is what one of them says in numbers that can be compared,
//! [`judge`] finds groups and deviations, and [`text`] and [`page`] show them. It measures nothing, never prints, and
//! says of no node that it is broken: it says by how much a number is another one than that of its equals.

mod bare;
mod effects;
mod figures;
mod folder;
mod groups;
mod judge;
mod node;
mod page;
mod scatter;
mod words;

pub use figures::{Finding, Group, Limit, NodeFigure, NotJudged, Report, Skipped};
pub use folder::{Folder, PARTIAL, State, StateWord};
pub use judge::{Asked, LEAST, LEVEL, judge};
pub use node::{Item, Kind, Made, Node, Quantity};
pub use page::page;
pub use scatter::{RECORDED, recorded};
pub use words::text;
