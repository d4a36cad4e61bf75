//! The paper's machine for tests of this crate, which cannot read machine files: sixteen sockets of the
//! numbers of Table 2. A test of `host` compares the file with what stands here.

use super::clocks::Clocks;
use super::message::MessageBytes;
use super::spec::{
    Bandwidth, CleanEvictions, Energy, FarLink, Latency, MemoryDirectory, Node, NumaSpec, Protocol,
    Rates, Spread,
};

/// Eight modules of two sockets of eighteen cores.
pub(crate) fn bullion() -> NumaSpec {
    let spread = |mean, min, max| Some(Spread { mean, min, max });
    let node = |region: u16| Node {
        region,
        socket: region,
        module: u8::try_from(region / 2).expect("eight modules"),
        cores: (region * 18..region * 18 + 18).collect(),
        llc_lines: 45 << 14,
        memory_bytes: 512 << 30,
    };
    NumaSpec {
        name: "bullion".into(),
        nodes: (0..16).map(node).collect(),
        latency: Latency {
            read: [
                spread(125.6, 124.0, 127.0),
                None,
                spread(178.0, 177.0, 180.0),
                spread(416.0, 410.0, 428.0),
            ],
            llc: 20.0,
            crossing: 40.0,
            position: 3.0,
        },
        bandwidth: Bandwidth {
            triad: [Some(41.3), None, Some(25.0), Some(4.6)],
            controllers: Some(275.0),
            far: FarLink::WIDTH,
        },
        outstanding: [20.0, 1.0, 20.0, 20.0],
        bytes: MessageBytes { control: 16.0, data: 80.0 },
        protocol: Protocol {
            memory_directory: MemoryDirectory::PerSocket,
            directory_lines: Some(10_500_000),
            filter: true,
            clean_evictions: CleanEvictions::All,
            exclusive_readers: false,
        },
        rates: Rates { blocked: 33.6, scalar: 4.0 },
        clocks: Clocks::default(),
        energy: Energy { memory: 500.0, near: 80.0, far: 240.0 },
    }
}
