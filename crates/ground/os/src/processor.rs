//! What a processor says of itself.

/// The instructions and properties of this CPU that measuring depends on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Features {
    /// Lines can be put out of all caches.
    pub clflush: bool,
    /// The same, without waiting for one another.
    pub clflushopt: bool,
    /// Lines can be written back and kept.
    pub clwb: bool,
    /// Lines can be moved from the near caches to the last-level cache.
    pub cldemote: bool,
    /// The core's number can be read without a system call.
    pub rdpid: bool,
    /// The counter runs at one rate whatever the core's clock and sleep state.
    pub invariant_tsc: bool,
    /// This is a virtual machine that says so.
    pub hypervisor: bool,
}

impl Features {
    /// A CPU of which nothing is known.
    pub const NONE: Self = Self {
        clflush: false,
        clflushopt: false,
        clwb: false,
        cldemote: false,
        rdpid: false,
        invariant_tsc: false,
        hypervisor: false,
    };
}

/// Who made a processor, and its family and model as CPUID leaf 1 shows them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Signature {
    /// The twelve letters of leaf 0.
    pub(crate) vendor: [u8; 12],
    /// Extended family included.
    pub(crate) family: u32,
    /// Extended model included.
    pub(crate) model: u32,
}
