//! The figures of a side-by-side comparison as lines for people. Only words and digits: every
//! number was made in `figures`.

use super::figures::{Changes, Estimate, Fate, Figures, Placement};
use super::series::Series;

/// All lines.
pub(crate) fn lines(figures: &Figures, series: &Series) -> Vec<String> {
    let mut lines = Vec::new();
    for placement in &figures.placements {
        lines.extend(of_placement(placement));
    }
    lines.extend(beside(figures, series));
    lines.extend(left_out(figures, series));
    lines.push(match figures.control {
        Some(ratio) => format!(
            "A/A control   ours / ours, ABBA  {}  over {} controls: a difference inside is none",
            interval(ratio, 4),
            ratio.n
        ),
        None => "A/A control   none was steady".into(),
    });
    lines.push("Change of medians between two runs of ours next to one another".into());
    let changes = [
        ("all that did not jump", figures.change_all),
        ("no base change noticed in either", figures.change_unnoticed),
        ("... and the same spread over lines", figures.change_same_base),
    ];
    lines.extend(changes.map(|(name, c)| change(name, c)));
    lines
}

/// What both show of a pair of cores, and what one of them cannot, one below the other. Figures are those of the
/// placement with most blocks; the rest is what the peer's version prints, by its own description.
fn beside(figures: &Figures, series: &Series) -> Vec<String> {
    let Some(p) = figures.placements.iter().max_by_key(|p| p.blocks) else { return Vec::new() };
    let lines = series.blocks.first().map_or(0, |block| block.ours[0].lines);
    let figure = |ns: Estimate| format!("{} ns", interval(ns, 1));
    let rows = [
        ("compare-and-swap, half a round trip", figure(p.ours_ns), figure(p.peer_ns)),
        ("seconds of a process", number(p.ours_process_s), number(p.peer_process_s)),
        ("seconds for a median within 1 %", seconds(p.ours_certain_s), seconds(p.peer_certain_s)),
        ("lines that a process times", format!("{lines}, with percentiles"), "1".into()),
        ("interval of a cell", "95 %, of the median".into(), "deviation of samples".into()),
        ("lost time slices", "left out and counted".into(), "in the mean".into()),
        ("a core that the host moved", "noticed, named in the file".into(), NO.into()),
        ("states of a line, each direction", "modified, exclusive, shared".into(), NO.into()),
        ("one writer and one reader, by clock", NO.into(), "mode 3".into()),
        ("blocks, regions, bandwidth", "yes".into(), NO.into()),
        ("systems", "Linux".into(), "Linux, macOS, Windows".into()),
    ];
    let line = |what: &str, ours: &str, peer: &str| format!("  {what:<36} {ours:<27} {peer}");
    let mut table = vec![line("Side by side", "isochrone", "core-to-core-latency")];
    table.extend(rows.iter().map(|(what, ours, peer)| line(what, ours, peer)));
    table
}

/// What a tool does not show.
const NO: &str = "not shown";

fn number(seconds: f64) -> String {
    format!("{seconds:.2} s")
}

fn interval(e: Estimate, digits: usize) -> String {
    format!("{:.digits$} [{:.digits$}, {:.digits$}]", e.median, e.lo, e.hi)
}

fn of_placement(p: &Placement) -> Vec<String> {
    let verdict = if p.inside { "lies inside" } else { "lies OUTSIDE" };
    let (lo, hi) = p.own_interval_ns;
    vec![
        format!(
            "Placement at {:.0} ns, {} blocks (half round trip, ns)",
            p.ours_ns.median, p.blocks
        ),
        format!(
            "  ours   median {}  over {} runs; one run's own interval [{lo:.2}, {hi:.2}]",
            interval(p.ours_ns, 2),
            p.ours_ns.n
        ),
        format!("         over lines: p5 {:.2}, p95 {:.2}", p.ours_p5_ns, p.ours_p95_ns),
        format!(
            "  peer   median {}  over {} processes: p5 {:.2}, p95 {:.2}",
            interval(p.peer_ns, 2),
            p.peer_ns.n,
            p.peer_p5_ns,
            p.peer_p95_ns
        ),
        format!("         its median {verdict} of our p5 and p95"),
        format!("  ratio  peer / ours, block by block  {}", interval(p.ratio, 4)),
        format!(
            "  time   a process: ours {:.3} s, peer {:.3} s",
            p.ours_process_s, p.peer_process_s
        ),
        format!(
            "         a median within 1 %: ours {} ({:.2} s by one run's own interval), peer {}",
            seconds(p.ours_certain_s),
            p.own_certain_s,
            seconds(p.peer_certain_s)
        ),
        "         (seconds spent x (half-width of the 95 % interval reached / 1 %)^2)".into(),
    ]
}

fn seconds(of: Option<f64>) -> String {
    of.map_or_else(|| "cannot be told from so few".into(), |s| format!("{s:.2} s"))
}

fn left_out(figures: &Figures, series: &Series) -> Vec<String> {
    let mut lines = Vec::new();
    for (fate, why) in [
        (Fate::Jumped, "A tool differed from itself by more than 30 %: the host moved a core"),
        (Fate::Disturbed, "Others took more than 5 % of the processors' time"),
    ] {
        let of = |fates: &[Fate]| -> Vec<usize> {
            (0..fates.len()).filter(|i| fates[*i] == fate).collect()
        };
        let (blocks, controls) = (of(&figures.blocks), of(&figures.controls));
        lines.push(format!(
            "{why}; left out {} of {} blocks, {} of {} controls",
            blocks.len(),
            series.blocks.len(),
            controls.len(),
            series.controls.len()
        ));
        lines.extend(blocks.iter().map(|i| {
            let block = &series.blocks[*i];
            let ([a, d], [b, c]) = (block.ours, block.peer);
            format!(
                "  block {i}: ours {:.1}, peer {:.1}, peer {:.1}, ours {:.1}",
                a.median_ns, b.mean_ns, c.mean_ns, d.median_ns
            )
        }));
        lines.extend(controls.iter().map(|i| {
            let medians = series.controls[*i].ours.map(|o| format!("{:.1}", o.median_ns));
            format!("  control {i}: ours {}", medians.join(", "))
        }));
    }
    lines
}

fn change(name: &str, c: Changes) -> String {
    let percent = |share: Option<f64>| share.map_or("-".into(), |s| format!("{:.2} %", 100.0 * s));
    format!(
        "  {name:<36} {:>3} pairs: median {}, largest {}; {} within 0.5 %",
        c.pairs,
        percent(c.median),
        percent(c.largest),
        c.within
    )
}
