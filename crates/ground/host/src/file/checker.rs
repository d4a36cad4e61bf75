//! Turns a position in the text into file, line and column, and holds the checks that every part
//! of a description needs. It knows nothing about machines beyond numbers and names.

use std::collections::BTreeSet;
use std::ops::Range;

use isochrone_machine::Machine;
use isochrone_units::RegionId;
use toml::Spanned;

use super::error::MachineFileError;
use super::raw::Bytes;
use crate::system::parse_list;

/// Core numbers are below this; Linux on x86 is built for at most 8192.
pub(super) const CORE_LIMIT: u16 = 8192;
/// Region numbers are below this; Linux has at most 1024 (`NODES_SHIFT` is 10).
pub(super) const REGION_LIMIT: u16 = 1024;
/// Physical addresses of x86 have at most 52 bits (Intel SDM volume 3A, section 4.1.4).
const MAX_BYTES: u64 = 1 << 52;

/// The text being checked and the names of its sources.
#[derive(Debug)]
pub(super) struct Checker<'a> {
    text: &'a str,
    file: &'a str,
    sources: Vec<&'a str>,
}

impl<'a> Checker<'a> {
    pub(super) fn new(text: &'a str, file: &'a str, sources: &[&'a str]) -> Self {
        Self { text, file, sources: sources.to_vec() }
    }

    /// The error at the start of `span`.
    pub(super) fn at(&self, span: Range<usize>, problem: impl Into<String>) -> MachineFileError {
        let before = self.text.get(..span.start).unwrap_or(self.text);
        let line_start = before.rfind('\n').map_or(0, |newline| newline + 1);
        MachineFileError::At {
            file: self.file.to_owned(),
            line: before.matches('\n').count() + 1,
            column: before[line_start..].chars().count() + 1,
            problem: problem.into(),
        }
    }

    /// The error at a value.
    pub(super) fn wrong<T>(
        &self,
        value: &Spanned<T>,
        problem: impl Into<String>,
    ) -> MachineFileError {
        self.at(value.span(), problem)
    }

    /// A name that can be a file name and a word of a command line.
    pub(super) fn named(&self, name: &Spanned<String>) -> Result<(), MachineFileError> {
        let allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
        match !name.get_ref().is_empty() && name.get_ref().chars().all(allowed) {
            true => Ok(()),
            false => Err(self.wrong(
                name,
                format!(
                    "expected a name of letters, digits, '-', '_' and '.', not {name:?}",
                    name = name.get_ref()
                ),
            )),
        }
    }

    /// No two of `names` are equal.
    pub(super) fn unique<'b>(
        &self,
        what: &str,
        names: impl Iterator<Item = &'b Spanned<String>>,
    ) -> Result<(), MachineFileError> {
        let mut seen = BTreeSet::new();
        for name in names {
            if !seen.insert(name.get_ref()) {
                let problem =
                    format!("{what} {:?} is described twice; expected it once", name.get_ref());
                return Err(self.wrong(name, problem));
            }
        }
        Ok(())
    }

    /// A source is the id of one of the file's sources, then, after a comma, the place in it.
    pub(super) fn source(&self, source: &Spanned<String>) -> Result<String, MachineFileError> {
        let text = source.get_ref();
        let id = text.split(',').next().unwrap_or_default().trim();
        match self.sources.contains(&id) {
            true => Ok(text.clone()),
            false => Err(self.wrong(
                source,
                format!(
                    "source {id:?} is not listed under [[sources]]; expected one of: {}",
                    self.sources.join(", ")
                ),
            )),
        }
    }

    /// A size that memory can have.
    pub(super) fn size(&self, bytes: &Spanned<Bytes>) -> Result<u64, MachineFileError> {
        let found = bytes.get_ref().0;
        match u64::try_from(found) {
            Ok(size @ 1..=MAX_BYTES) => Ok(size),
            _ => Err(self.wrong(
                bytes,
                format!("expected a size above 0 and of at most {MAX_BYTES} bytes, not {found}"),
            )),
        }
    }

    /// A whole number above zero.
    pub(super) fn count<T>(&self, what: &str, value: &Spanned<i64>) -> Result<T, MachineFileError>
    where
        T: TryFrom<i64>,
    {
        let number = *value.get_ref();
        T::try_from(number).ok().filter(|_| number > 0).ok_or_else(|| {
            self.wrong(value, format!("expected {what} above 0 and in range, not {number}"))
        })
    }

    /// A list such as `"0-3,8"`: not empty, ascending, every number below `limit`.
    pub(super) fn list(
        &self,
        list: &Spanned<String>,
        limit: u16,
    ) -> Result<Vec<u16>, MachineFileError> {
        let text = list.get_ref();
        let ids = parse_list(text).filter(|ids| !ids.is_empty()).ok_or_else(|| {
            let problem =
                format!("expected numbers such as \"0-3,8\" in ascending order, not {text:?}");
            self.wrong(list, problem)
        })?;
        match ids.last() {
            Some(&last) if last >= limit => {
                Err(self.wrong(list, format!("expected numbers below {limit}, not {last}")))
            }
            _ => Ok(ids),
        }
    }

    /// At most `limit` entries of a kind, so that a small file cannot describe a huge machine.
    pub(super) fn at_most(
        &self,
        what: &str,
        limit: usize,
        found: usize,
        span: Option<Range<usize>>,
    ) -> Result<(), MachineFileError> {
        let problem = || format!("expected at most {limit} {what}, not {found}");
        match found > limit {
            false => Ok(()),
            true => Err(self.at(span.unwrap_or(0..0), problem())),
        }
    }

    /// The region that something belongs to: one that is described.
    pub(super) fn region(
        &self,
        id: &Spanned<u16>,
        machine: &Machine,
    ) -> Result<u16, MachineFileError> {
        let number = *id.get_ref();
        let found = machine.region(RegionId(number)).map(|_| number);
        found.ok_or_else(|| {
            self.wrong(id, format!("region {number} is not described under [[regions]]"))
        })
    }

    /// A finite number that is not negative.
    pub(super) fn not_negative(&self, value: &Spanned<f64>) -> Result<f64, MachineFileError> {
        let number = *value.get_ref();
        match number.is_finite() && number >= 0.0 {
            true => Ok(number),
            false => {
                Err(self.wrong(value, format!("expected a number of at least 0, not {number}")))
            }
        }
    }

    /// A finite number above zero.
    pub(super) fn positive(&self, value: &Spanned<f64>) -> Result<f64, MachineFileError> {
        let number = *value.get_ref();
        match number.is_finite() && number > 0.0 {
            true => Ok(number),
            false => Err(self.wrong(value, format!("expected a number above 0, not {number}"))),
        }
    }
}
