//! What a process was told, and the atlas, read when it was loaded: later it opens nothing.

use crate::config::{CONFIG_BYTES, Config};
use crate::memory;
use core::ffi::CStr;
use isochrone_os::boxed::Boxed;

/// The largest atlas that is read; those of large machines have some MiB.
const ATLAS_BYTES_MAX: usize = 256 << 20;

/// What a process was told.
#[derive(Debug)]
pub(crate) struct Told {
    pub(crate) config: Config,
    /// The atlas's bytes, unchecked; none where it could not be read.
    pub(crate) atlas: &'static [u8],
}

impl Told {
    /// By the record at `path`, where it is one. `allow` says whether the process may place at all; the atlas is not
    /// looked for where it may not.
    pub(crate) fn read(path: &CStr, allow: impl FnOnce(&Config) -> bool) -> Option<&'static Self> {
        let mut bytes = [0; CONFIG_BYTES];
        let length = memory::read_file(path, &mut bytes)?;
        let config = Config::from_bytes(bytes.get(..length)?).ok().filter(allow)?;
        let atlas = memory::whole_file(config.atlas.as_c_str(), ATLAS_BYTES_MAX).unwrap_or(&[]);
        Some(Boxed::new(Self { config, atlas }).ok()?.leak())
    }

    /// Gives the memory of the atlas back, which reads as zeros from now on.
    pub(crate) fn forget_atlas(&self) {
        memory::give_back(self.atlas);
    }
}
