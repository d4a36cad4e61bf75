//! What a task asks for, and a task under way.

/// What one task asks of one roof.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Demand {
    /// Which roof.
    pub roof: u32,
    /// Bytes over the whole task; of places of lines, how many times how long, ns.
    pub bytes: f64,
}

/// What bounds a task beside roofs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Need {
    /// What it takes if every line is at hand, ns.
    pub arithmetic_ns: f64,
    /// What it takes if it waits for its lines, and no roof holds it up, ns.
    pub waiting_ns: f64,
    /// Lines that it keeps in flight.
    pub window: f64,
}

/// A task under way.
#[derive(Clone, Debug, Default)]
pub(super) struct Flow {
    pub(super) demands: Vec<Demand>,
    /// Rate at which it may go by itself, 1 / ns.
    pub(super) cap: f64,
    /// Latencies of all its lines, one after another, ns: what `window` of them at once take turns in.
    pub(super) latencies: f64,
    pub(super) window: f64,
    pub(super) rate: f64,
    /// Part that is still to do.
    pub(super) rest: f64,
}
