//! What the first process of an emulated machine does, as lines of text: `tests/vm/src/orders.rs` obeys them.

use super::super::ci::say;
use super::carried::{ATLAS, Suite};
use super::shape::{Cpuset, Shape};

/// Where programs lie and where they write.
const ISOCHRONE: &str = "/bin/isochrone";
/// Seconds of a command that only reads or writes files. One takes a second; under emulation of many cores ten.
const SHORT_S: u32 = 120;
/// Seconds of a benchmark or a map beside its budget: loading, mapping, writing.
const BESIDE_S: u32 = 120;
/// Seconds of the benchmark.
const BENCH_S: u32 = 60;

/// The exit code of `tier check` where no area can be had.
const NO_AREA: u32 = 4;
/// Seconds in which some test of a suite ends: that of the preloaded library compiles its programs, and
/// starts each over three allocators; ranks of the MPI's poll on two emulated cores, one test for six minutes.
const SUITE_S: u32 = 1200;
/// Tests that are left out on an emulated machine: their names, and why.
const NOT_THERE: [(&str, &str); 3] = [
    ("timed::tests::flushed_lines_are_farther_than_cached_ones", "the emulator has no caches"),
    (
        "usual_teams_do_every_collective_with_every_root",
        "teams of up to twelve ranks that poll on two emulated cores take longer than six minutes",
    ),
    (
        "the_wrong_order_is_seen_to_lose",
        "the loss that it waits for did not come within its two minutes",
    ),
];

/// Files that are brought out, by the name of their order.
pub(super) const BROUGHT: [&str; 6] = ["machine", "map", "show", "export", "run", "jacobi"];

/// All lines for a machine on which the two programs run.
pub(super) fn of(shape: &Shape) -> String {
    let mut lines = mounts(shape);
    lines.extend(
        shape.off.iter().map(|core| format!("write /sys/devices/system/cpu/cpu{core}/online 0")),
    );
    lines.extend(shape.cpuset.iter().flat_map(enter));
    lines.extend(programs(shape));
    if shape.arch.is_arm() {
        lines.extend(elsewhere(shape));
    }
    lines.join("\n") + "\n"
}

/// All lines for a machine on which suites of tests run: those whose program's path holds one of the words, and of
/// their tests those with one of the names; without any all.
pub(super) fn of_suites(
    shape: &Shape,
    suites: &[Suite],
    only: &[String],
    named: &[String],
) -> String {
    let mut lines = mounts(shape);
    lines.extend(
        [
            "mount tmpfs /dev/shm",
            "mount devpts /dev/pts",
            // An MPI looks for its own host, and ranks find their launcher there.
            "write /proc/sys/kernel/hostname localhost",
            "run 60 /bin/busybox ip link set lo up",
        ]
        .map(str::to_owned),
    );
    for (test, why) in NOT_THERE {
        say(&format!("vm {}: left out: {test}: {why}", shape.name));
    }
    let skipped = NOT_THERE.iter().map(|(test, _)| format!(" --skip={test}"));
    let chosen: String = skipped.chain(named.iter().map(|test| format!(" {test}"))).collect();
    let wanted = |suite: &&Suite| {
        only.is_empty()
            || only.iter().any(|word| suite.program.contains(word) || suite.folder.contains(word))
    };
    lines.extend(suites.iter().filter(wanted).map(|Suite { program, folder }| {
        format!("test {SUITE_S} {folder} {program} --test-threads=1 --exact{chosen}")
    }));
    lines.join("\n") + "\n"
}

/// The kernel's files, and a folder to write to.
fn mounts(shape: &Shape) -> Vec<String> {
    let sys = shape.sys.then_some("mount sysfs /sys");
    let pages = format!("pages {}", shape.arch.page_bytes());
    let first =
        [Some("mount proc /proc"), sys, Some("mount devtmpfs /dev"), Some("mount tmpfs /tmp")];
    first.into_iter().flatten().map(str::to_owned).chain([pages]).collect()
}

/// The first process goes into a cpuset of its own, and all that it starts with it
/// (Documentation/admin-guide/cgroup-v2.rst, "Cpuset").
fn enter(set: &Cpuset) -> [String; 6] {
    const ALL: &str = "/sys/fs/cgroup";
    let (cores, regions) = (set.cores, set.regions);
    [
        format!("mount cgroup2 {ALL}"),
        format!("write {ALL}/cgroup.subtree_control +cpuset"),
        format!("folder {ALL}/job"),
        format!("write {ALL}/job/cpuset.cpus {}-{}", cores.0, cores.1),
        format!("write {ALL}/job/cpuset.mems {}-{}", regions.0, regions.1),
        format!("write {ALL}/job/cgroup.procs 1"),
    ]
}

/// What is tried besides where the processor is of another kind: that an atlas is read in both directions, and that
/// there is an area for tiering, or with longer pages a reason why there is none.
fn elsewhere(shape: &Shape) -> Vec<String> {
    let short = |words: &str| format!("run {SHORT_S} {words}");
    let code = if shape.arch.page_bytes() == 4 << 10 { 0 } else { NO_AREA };
    vec![
        short(&format!("{ISOCHRONE} export /{} --json=/tmp/foreign.json", ATLAS.1)),
        "bring foreign /tmp/foreign.json".to_owned(),
        "bring-bytes atlas /tmp/a.atlas".to_owned(),
        format!("ends {code} {SHORT_S} {ISOCHRONE} tier check --json=/tmp/tier.json"),
        "bring tier /tmp/tier.json".to_owned(),
    ]
}

/// Every command, and what it leaves.
fn programs(shape: &Shape) -> Vec<String> {
    let run = |seconds: u32, words: &str| format!("run {seconds} {ISOCHRONE} {words}");
    let bring = |name: &str| format!("bring {name} /tmp/{name}.json");
    let map_s = shape.map_s;
    let map = format!(
        "map --quick --budget {map_s}s --buffer 16M --memory 32M --out /tmp/a.atlas --html=/tmp/a.html \
         --json=/tmp/map.json"
    );
    vec![
        run(SHORT_S, "machine --json=/tmp/machine.json"),
        bring("machine"),
        run(map_s + BESIDE_S, &map),
        bring("map"),
        run(SHORT_S, "show /tmp/a.atlas"),
        run(SHORT_S, "show /tmp/a.atlas --json=/tmp/show.json"),
        bring("show"),
        run(SHORT_S, "export /tmp/a.atlas --csv=/tmp/cells.csv --hwloc-xml=/tmp/topology.xml"),
        run(SHORT_S, "export /tmp/a.atlas --json=/tmp/export.json"),
        bring("export"),
        run(
            SHORT_S,
            &format!(
                "run --atlas /tmp/a.atlas --force --json=/tmp/run.json -- {ISOCHRONE} machine --list"
            ),
        ),
        bring("run"),
        run(
            // Thirty-two emulated workers on two cores that others use take minutes to begin and to end.
            BENCH_S + 2 * BESIDE_S,
            &format!(
                "bench jacobi --row-blocks 16 --rows 4 --columns 512 --sweeps 2 --blocks 2 --budget {BENCH_S}s \
                 --atlas /tmp/a.atlas --json=/tmp/jacobi.json"
            ),
        ),
        bring("jacobi"),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_file_is_written_by_a_command_and_brought_out() {
        for shape in Shape::all() {
            let text = of(&shape);
            for name in BROUGHT {
                let [written, brought] =
                    [format!("--json=/tmp/{name}.json"), format!("bring {name} /tmp/{name}.json")];
                assert!(text.find(&written) < text.find(&brought), "{}: {name}", shape.name);
                assert!(text.contains(&written), "{}: {name}", shape.name);
            }
        }
    }

    #[test]
    fn suites_run_in_their_folders_and_words_choose_among_them() {
        let shape = Shape::named("debian").expect("it is there");
        let suite = |name: &str| Suite {
            program: format!("/target/{name}-1"),
            folder: format!("/crates/{name}"),
        };
        let suites = ["mpi", "tier"].map(suite);
        let text = |only: &[String]| of_suites(&shape, &suites, only, &[]);
        let (all, one) = (text(&[]), text(&["crates/mpi".to_owned()]));
        assert!(all.contains("/crates/mpi /target/mpi-1 ") && all.contains("/target/tier-1"));
        assert!(one.contains("/target/mpi-1") && !one.contains("/target/tier-1"));
        assert!(all.find("link set lo up") < all.find("test "), "{all}");
        let named = of_suites(&shape, &suites, &[], &["a_test".to_owned()]);
        assert!(named.contains(" a_test\n") && !all.contains("a_test"), "{named}");
    }

    #[test]
    fn what_is_odd_about_a_machine_comes_before_its_programs() {
        let of = |name| of(&Shape::named(name).expect("it is there"));
        assert!(!of("nosys").contains("sysfs") && of("offline").contains("mount sysfs /sys"));
        let (offline, cpuset) = (of("offline"), of("cpuset"));
        assert!(offline.find("cpu2/online 0") < offline.find("run "), "{offline}");
        assert!(offline.contains("cpu2/online 0"));
        assert!(cpuset.contains("cpuset.cpus 2-5\n") && cpuset.contains("cpuset.mems 1-2\n"));
        assert!(cpuset.find("cgroup.procs 1") < cpuset.find("run "), "{cpuset}");
    }
}
