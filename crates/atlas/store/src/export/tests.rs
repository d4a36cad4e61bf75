//! Other programs' formats hold what the atlas holds; hwloc's own tool reads its XML where it is
//! installed.

#![allow(clippy::print_stderr, reason = "a test says why it was skipped")]

use super::*;
use crate::samples::{contents, machine, per_line};
use isochrone_machine::{Core, Machine, Region};
use std::io::Write as _;
use std::process::Command;

#[test]
fn json_holds_everything_but_the_binary_tables() {
    let original = contents();
    let back: Contents = serde_json::from_str(&json(&original).unwrap()).unwrap();
    let mut expected = Contents { pages: Vec::new(), ..original };
    expected.levels.iter_mut().for_each(|level| level.penalties = None);
    assert_eq!(back, expected);
}

fn table(contents: &Contents) -> Vec<String> {
    let mut bytes = Vec::new();
    csv(contents, &mut bytes).unwrap();
    String::from_utf8(bytes).unwrap().lines().map(str::to_owned).collect()
}

#[test]
fn csv_has_a_row_a_value_and_nothing_for_what_is_missing() {
    let rows = table(&contents());
    let has = |row: &str| assert!(rows.iter().any(|found| found == row), "no row {row}");
    has("table,group,row,column,quantity,unit,value,lo,hi,p5,p95,n");
    let first = f64::from(contents().levels[0].bases[1].patterns[0][0]);
    has(&format!("base,llc,base 1 class 0,line 0,latency,cycles,{first},,,,,"));
    has("quality,llc,core 0,,r2_heldout,,0.93,,,,,");
    has("quality,llc,core 1,,r2_heldout,,,,,,,");
    has("transfer,modified,core 0,core 0,latency,ns,,,,,,");
    has("transfer,modified,core 0,core 1,latency,ns,50.5,50.399,50.601,45.45,65.65,400");
    has("transfer,modified,core 0,core 1,best_line,ns,45.5,,,,,");
    has("interaction,contention,2,,latency,ns,,,,,,");
    has(
        "term,left-shared,,,difference,ns,31,30.938,31.062,27.900000000000002,40.300000000000004,400",
    );
    has("term,left-shared,,,without,ns,8,7.984,8.016,7.2,10.4,400");
    has("term,rfo-sharer,,,difference,ns,,,,,,");
    has("multiline,core 0 -> core 1,,,o,ns,4.5,4.4,4.6,,,");
    has("multiline,core 0 -> core 1,,,c,ns,,,,,,");
    has("place,,core 0,,x,cells,0,,,,,");
    assert!(rows.iter().all(|row| row.split(',').count() == 12));
    assert!(
        table(&per_line())
            .contains(&"line,llc,core 0,frame 9 line 3,latency,cycles,,,,,,".to_owned())
    );
}

#[test]
fn csv_quotes_what_needs_quotes() {
    let mut odd = contents();
    odd.multiline[0].what = "a \"b\", c".to_owned();
    assert!(
        table(&odd).iter().any(|row| row.starts_with("multiline,\"a \"\"b\"\", c\",,,q,ns,12"))
    );
}

#[test]
fn hwloc_xml_has_the_tree_the_distances_and_the_latencies() {
    let xml = hwloc_xml(&contents()).unwrap();
    for part in [
        "<info name=\"IsochroneMachine\" value=\"Two cores &amp; &quot;one&quot; region\"/>",
        "<object type=\"NUMANode\" os_index=\"0\" cpuset=\"0x00000003\"",
        "local_memory=\"8589934592\"",
        "cache_size=\"33554432\" depth=\"3\"",
        "<distances2 type=\"PU\" nbobjs=\"2\" kind=\"6\" name=\"IsochroneModifiedLineTransfer\"",
        "<u64values length=\"10\">0 51 52 0 </u64values>",
        "value=\"131\" initiator_cpuset=\"0x00000001\"",
        "value=\"135\" initiator_cpuset=\"0x00000002\"",
    ] {
        assert!(xml.contains(part), "no {part} in\n{xml}");
    }
    let order = [
        "Machine", "NUMANode", "Package", "L3Cache", "L2Cache", "L1Cache", "L1iCache", "Core", "PU",
    ];
    let places = order.map(|kind| xml.find(&format!("type=\"{kind}\"")).unwrap());
    assert!(places.is_sorted(), "{places:?}");
    assert_eq!(xml.matches("<object").count(), xml.matches("</object>").count() + 1);
}

#[test]
fn a_map_with_a_pair_that_was_not_measured_gives_no_distances_and_a_whole_one_does() {
    let mut holed = contents();
    let mut whole = holed.transfers[0].clone();
    whole.state = "cas".to_owned();
    holed.transfers.truncate(1);
    holed.transfers[0].latency_ns.cells[1] = None;
    assert!(!hwloc_xml(&holed).unwrap().contains("distances2"));
    holed.transfers.push(whole);
    assert!(hwloc_xml(&holed).unwrap().contains("name=\"IsochroneCasLineTransfer\""));
    holed.machine = Machine::default();
    assert!(matches!(hwloc_xml(&holed), Err(HwlocError::NoCores)));
}

/// Sixteen cores with siblings on two packages, four regions with cores and one without.
fn large() -> Machine {
    let core = |id: u16| Core {
        id,
        region: id % 8 / 2,
        package: Some(id % 8 / 4),
        smt_siblings: vec![(id + 8) % 16],
        ..Core::default()
    };
    let region = |id: u16| Region {
        id,
        bytes: Some(1 << 30),
        cores: (0..16).filter(|core| core % 8 / 2 == id).collect(),
        ..Region::default()
    };
    Machine {
        cores: (0..16).map(core).collect(),
        regions: (0..5).map(region).collect(),
        ..Machine::default()
    }
}

/// Output of hwloc's tool for an XML file; `None` where hwloc is not installed. With `CI=true` it must be there.
fn lstopo(xml: &str, arguments: &[&str]) -> Option<String> {
    let mut file = tempfile::Builder::new().suffix(".xml").tempfile().unwrap();
    file.write_all(xml.as_bytes()).unwrap();
    let output = Command::new("lstopo-no-graphics")
        .env("HWLOC_XML_VERBOSE", "1")
        .arg("-i")
        .arg(file.path())
        .args(arguments)
        .output();
    let Ok(output) = output else {
        assert!(
            option_env!("CI") != Some("true"),
            "hwloc-nox is not installed; .ci/run installs it"
        );
        eprintln!("skipped: hwloc-nox is not installed");
        return None;
    };
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success() && said.is_empty(), "lstopo says: {said}\n{xml}");
    Some(String::from_utf8_lossy(&output.stdout).into_owned())
}

#[test]
fn hwloc_reads_the_xml() {
    let xml = hwloc_xml(&contents()).unwrap();
    let Some(tree) = lstopo(&xml, &["--of", "console"]) else { return };
    for part in ["NUMANode L#0 (P#0 8192MB)", "L3 L#0 (32MB)", "L2 L#1 (1024KB)", "PU L#1 (P#1)"] {
        assert!(tree.contains(part), "no {part} in\n{tree}");
    }
    let distances = lstopo(&xml, &["--distances"]).unwrap();
    assert!(distances.contains("IsochroneModifiedLineTransfer"), "{distances}");
    assert!(distances.contains("51"), "{distances}");
    let latencies = lstopo(&xml, &["--memattrs"]).unwrap();
    assert!(latencies.contains("= 131 from cpuset 0x00000001"), "{latencies}");
}

#[test]
fn hwloc_reads_packages_siblings_and_memory_without_cores() {
    let mut many = contents();
    many.machine = large();
    many.regions.clear();
    let Some(tree) = lstopo(&hwloc_xml(&many).unwrap(), &["--of", "console"]) else { return };
    assert_eq!(tree.matches("Package").count(), 2, "{tree}");
    assert_eq!(tree.matches("NUMANode").count(), 5, "{tree}");
    assert_eq!(tree.matches("Core").count(), 8, "{tree}");
    assert_eq!(tree.matches("PU").count(), 16, "{tree}");
    many.machine = Machine { regions: Vec::new(), caches: Vec::new(), ..machine() };
    let tree = lstopo(&hwloc_xml(&many).unwrap(), &["--of", "console"]).unwrap();
    assert_eq!(tree.matches("NUMANode").count(), 1, "{tree}");
}
