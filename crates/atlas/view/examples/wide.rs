//! Atlases of hundreds of cores to look at: for each machine the page, the summary for a terminal and the file.
//!
//! `cargo run -p isochrone-view --example wide -- FOLDER` writes them; nothing is measured. What took how long, and how
//! many bytes each has, is in `sizes.txt`; time is that of the processor, so that other work beside does not count.

use isochrone_atlas_store::{MappedAtlas, load, made, save};
use isochrone_report::term::Colour;
use std::fmt::Write as _;
use std::fs;
use std::path::PathBuf;

/// Milliseconds that this thread ran (proc(5), `schedstat`).
fn cpu_ms() -> Result<f64, Box<dyn std::error::Error>> {
    let text = fs::read_to_string("/proc/self/schedstat")?;
    Ok(text.split(' ').next().ok_or("no schedstat")?.parse::<f64>()? / 1e6)
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let folder = PathBuf::from(std::env::args_os().nth(1).ok_or("name a folder")?);
    fs::create_dir_all(&folder)?;
    let mut sizes = String::new();
    for (cores, regions) in [(128, 2), (384, 16), (576, 16)] {
        let at = |ending: &str| folder.join(format!("wide-{cores}.{ending}"));
        let bytes = save(&made::wide(cores, regions), &at("atlas"))?;
        let mut last = cpu_ms()?;
        let mut lap = || -> Result<f64, Box<dyn std::error::Error>> {
            let now = cpu_ms()?;
            Ok(now - std::mem::replace(&mut last, now))
        };
        MappedAtlas::open(&at("atlas"))?.atlas()?;
        let open = lap()?;
        let contents = load(&at("atlas"))?;
        let loaded = lap()?;
        let text = isochrone_view::summary(&contents, Colour::None, 80);
        let shown = lap()?;
        let page = isochrone_view::page(&contents, None).render();
        let drawn = lap()?;
        writeln!(
            sizes,
            "{cores} cores: atlas {bytes} bytes, opened in {open:.1} ms, loaded in {loaded:.1} ms, summary in \
             {shown:.1} ms, page of {} bytes in {drawn:.1} ms",
            page.len()
        )?;
        fs::write(at("txt"), text)?;
        fs::write(at("wide.txt"), isochrone_view::summary(&contents, Colour::None, 160))?;
        fs::write(at("html"), page)?;
    }
    fs::write(folder.join("sizes.txt"), sizes)?;
    Ok(())
}
