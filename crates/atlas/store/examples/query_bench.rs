//! Times dependent random queries over modelled page tables of 256 MiB to 4 GiB, with codes that
//! follow an address hash, that mostly do, and that do not at all.

use isochrone_atlas::Atlas;
use isochrone_atlas_store::contents::{Base, Clock, Contents, Form, LevelMap};
use isochrone_atlas_store::{PageModel, bench_query, encode, model_pages};
use isochrone_machine::{Core, Machine};
use isochrone_units::{CoreId, Level, Reading};
use std::error::Error;
use std::io::{Write, stdout};

fn level(name: &str) -> LevelMap {
    let pattern = (0..64_u8).map(|line| 40.0 + f32::from(line * 37 % 64) / 3.0).collect();
    LevelMap {
        level: name.to_owned(),
        form: Form::Pattern,
        reason: "modelled".to_owned(),
        method: "none".to_owned(),
        period: 64,
        classes: 1,
        canonical_key: (0..64).collect(),
        bases: vec![Base { core: 0, patterns: vec![pattern], rounds: 1 }],
        core_base: vec![Some(0)],
        probe_lines: Vec::new(),
        noise_cycles: 1.0,
        code_share: Vec::new(),
        quality: Vec::new(),
        lines: Vec::new(),
        penalties: None,
    }
}

fn contents() -> Contents {
    Contents {
        complete: true,
        levels: vec![level("llc"), level("dram")],
        pages_keyed_by: "guest frames".to_owned(),
        ..Contents::begun(
            Reading::Simulated,
            Machine { cores: vec![Core::default()], ..Machine::default() },
            Clock { hz: 2.6e9, tick_cycles: 1, overhead_cycles: 0.0 },
        )
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let models = [
        ("hashed", PageModel::Hashed { strays: 0 }),
        ("hashed, 2 % strays", PageModel::Hashed { strays: 20 }),
        ("hashed, 6 % strays", PageModel::Hashed { strays: 61 }),
        ("independent", PageModel::Independent),
    ];
    let mut out = stdout().lock();
    writeln!(out, "model               GiB  bytes/page  ns p50  with address ns p50")?;
    for (name, model) in models {
        for blocks in [128, 512, 2048] {
            let pages = model_pages(blocks, model, 63, 1);
            let bytes = encode(&Contents { pages, ..contents() })?;
            let atlas = Atlas::open(&bytes)?;
            let time = bench_query(&atlas, CoreId(0), Level::Llc, 1).ok_or("no pages")?;
            let gib = f64::from(u32::try_from(time.pages)?) * 4096.0 / f64::from(1 << 30);
            let bytes_per_page = f64::from(u32::try_from(atlas.page_table_bytes())?)
                / f64::from(u32::try_from(time.pages)?);
            let (net, chain) = (time.ns_p50, time.chain_ns_p50);
            writeln!(out, "{name:18} {gib:4.2}  {bytes_per_page:10.3}  {net:6.2}  {chain:6.2}")?;
        }
    }
    Ok(())
}
