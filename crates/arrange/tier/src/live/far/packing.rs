//! How groups are made shorter: what a store of compressed memory asks of its compressor.

use isochrone_os::OsError;

use super::Scratch;
use crate::pages::Trouble;

/// A store that holds what was not written by it, or an actor without what its compressor needs.
pub(super) const CORRUPT: Trouble = Trouble::Far(117);

/// A compressor. It allocates nothing after [`Self::scratch`], waits for nobody, and keeps nothing between two calls.
pub trait Packing: std::fmt::Debug + Send + Sync {
    /// The name in figures.
    fn name(&self) -> &'static str;

    /// What an actor has at hand for groups of so many bytes.
    ///
    /// # Errors
    /// [`OsError`] where there is no memory for it.
    fn scratch(&self, group_bytes: usize) -> Result<Scratch, OsError>;

    /// Packs a group into the bytes of `scratch`, and says how many it takes: perhaps more than the group has.
    ///
    /// # Errors
    /// [`Trouble`] where `scratch` is not of [`Self::scratch`] for such groups.
    fn pack(&self, from: &[u8], scratch: &mut Scratch) -> Result<usize, Trouble>;

    /// Unpacks a group, and says how many bytes it had.
    ///
    /// # Errors
    /// [`Trouble`] where `stored` is not what [`Self::pack`] made.
    fn unpack(&self, stored: &[u8], to: &mut [u8], scratch: &mut Scratch)
    -> Result<usize, Trouble>;
}
