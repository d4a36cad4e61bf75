//! Which node deviates in what: every number of every node against those of its equals.
//!
//! A deviation is counted in standard deviations of equal nodes ([`Scatter`]), its p-value is that of Student's t, and
//! all p-values of a fleet are corrected together (Holm). What was measured beside other work is left out where most
//! nodes were quiet. Settings are compared as words.

use std::collections::BTreeMap;

use isochrone_atlas_store::Experiment;
use isochrone_stats::{holm, student_t_p};
use isochrone_units::{Grade, Reading};

use crate::bare;
use crate::effects::effects;
use crate::figures::{Finding, Group, Limit, NodeFigure, NotJudged, Report};
use crate::folder::Folder;
use crate::groups::{Equals, counted, groups};
use crate::node::{Item, Kind, Node};
use crate::scatter::Scatter;

/// The chance of any false finding in a fleet, unless another is asked for.
pub const LEVEL: f64 = 0.05;
/// Smaller deviations are no findings, unless others are asked for; a share.
pub const LEAST: f64 = 0.03;
/// Nodes that can be compared at all.
const NODES_MIN: usize = 3;
/// What a finding of settings is of.
const SETTINGS: &str = "settings";

/// What is asked of a fleet.
#[derive(Clone, Debug, PartialEq)]
pub struct Asked {
    /// The chance of any false finding.
    pub level: f64,
    /// The least deviation that is a finding, a share.
    pub least: f64,
    /// Only this node.
    pub only: Option<String>,
}

impl Default for Asked {
    fn default() -> Self {
        Self { level: LEVEL, least: LEAST, only: None }
    }
}

/// One comparison.
struct Test {
    node: usize,
    group: usize,
    kind: Kind,
    of: Option<Item>,
    is_own: bool,
    /// Logarithm of the node's number over the usual one.
    ln: f64,
    usual: f64,
    p: f64,
}

impl Test {
    fn share(&self) -> f64 {
        self.ln.exp_m1()
    }
}

/// Compares all nodes of a folder with their equals.
#[must_use]
pub fn judge(folder: &Folder, asked: &Asked) -> Report {
    let nodes = &folder.nodes;
    let groups = groups(nodes);
    let is_asked = |node: usize| asked.only.as_ref().is_none_or(|only| *only == nodes[node].name);
    let mut course = Course::default();
    for (number, equals) in groups.iter().enumerate() {
        course.group(number, equals, nodes);
    }
    course.tests.retain(|test| is_asked(test.node));
    let p: Vec<f64> = course.tests.iter().map(|test| test.p).collect();
    let adjusted = holm(&p).unwrap_or_else(|| vec![1.0; p.len()]);
    let comparisons = p.len();
    let limits = course.limits(comparisons, asked);
    let found = course
        .tests
        .iter()
        .zip(&adjusted)
        .filter(|(test, p)| **p <= asked.level && test.share().abs() >= asked.least);
    let mut findings = settings(&groups, nodes, &is_asked);
    findings.extend(condensed(found.map(|(test, p)| (test, *p)).collect(), &course.tests, nodes));
    findings.sort_by(|a, b| a.node.cmp(&b.node));
    Report {
        reading: reading(nodes),
        nodes: shown(nodes, &groups),
        groups: groups.iter().enumerate().map(|(at, of)| group(at, of, nodes)).collect(),
        findings,
        limits,
        not_judged: course.not_judged,
        skipped: folder.skipped.clone(),
        comparisons,
        level: asked.level,
        least_percent: 100.0 * asked.least,
        only: asked.only.clone(),
    }
}

/// What comes of going through all groups.
#[derive(Default)]
struct Course {
    tests: Vec<Test>,
    not_judged: Vec<NotJudged>,
    /// By group and kind: nodes, and what each effect scatters by.
    scatters: Vec<(usize, Kind, usize, Vec<Scatter>)>,
}

impl Course {
    fn group(&mut self, number: usize, equals: &Equals, nodes: &[Node]) {
        if equals.nodes.len() < NODES_MIN {
            let names = equals.nodes.iter().map(|at| nodes[*at].name.clone()).collect();
            let why = format!("{NODES_MIN} equal nodes are the least that can be compared");
            self.not_judged.push(NotJudged { nodes: names, kind: None, why });
            return;
        }
        let mut kinds: Vec<&Kind> =
            equals.nodes.iter().flat_map(|at| nodes[*at].quantities.keys()).collect();
        kinds.sort();
        kinds.dedup();
        if kinds.is_empty() {
            let names = equals.nodes.iter().map(|at| nodes[*at].name.clone()).collect();
            let bare: Vec<&Node> = equals.nodes.iter().map(|at| &nodes[*at]).collect();
            self.not_judged.push(NotJudged { nodes: names, kind: None, why: bare::why(&bare) });
        }
        for kind in kinds {
            let (judged, disturbed) = quiet(kind, &equals.nodes, nodes);
            if !disturbed.is_empty() {
                let names = disturbed.iter().map(|at| nodes[*at].name.clone()).collect();
                let reason = nodes[disturbed[0]].made.reasons.get(&kind.experiment);
                let reason = reason.map_or("others took the machine meanwhile", String::as_str);
                let why = format!("{reason}: measure again");
                self.not_judged.push(NotJudged { nodes: names, kind: Some(kind.to_string()), why });
            }
            if judged.len() < NODES_MIN {
                let names = judged.iter().map(|at| nodes[*at].name.clone()).collect();
                let why = format!("fewer than {NODES_MIN} nodes have numbers that can be compared");
                self.not_judged.push(NotJudged { nodes: names, kind: Some(kind.to_string()), why });
                continue;
            }
            self.compare(number, kind, &judged, nodes);
        }
    }

    fn compare(&mut self, group: usize, kind: &Kind, judged: &[usize], nodes: &[Node]) {
        let compared: Vec<&Node> = judged.iter().map(|at| &nodes[*at]).collect();
        let mut scatters = Vec::new();
        for effect in effects(kind, &compared) {
            let there: Vec<f64> = effect.ln.iter().copied().flatten().collect();
            let Some(scatter) = Scatter::of(&there, kind.experiment) else { continue };
            for (at, ln) in judged.iter().zip(&effect.ln) {
                let Some(ln) = ln.map(|ln| ln - scatter.centre) else { continue };
                self.tests.push(Test {
                    node: *at,
                    group,
                    kind: kind.clone(),
                    of: effect.of,
                    is_own: effect.is_own,
                    ln,
                    usual: effect.usual,
                    p: student_t_p(ln / scatter.sd, scatter.degrees),
                });
            }
            scatters.push(scatter);
        }
        self.scatters.push((group, kind.clone(), judged.len(), scatters));
    }

    /// What would be found, by group and kind.
    fn limits(&self, comparisons: usize, asked: &Asked) -> Vec<Limit> {
        let count = f64::from(u32::try_from(comparisons.max(1)).unwrap_or(u32::MAX));
        let limit = |(group, kind, nodes, scatters): &(usize, Kind, usize, Vec<Scatter>)| {
            let widest = scatters.iter().max_by(|a, b| a.sd.total_cmp(&b.sd))?;
            let found = widest.sd * beyond(asked.level / count, widest.degrees);
            Some(Limit {
                group: group + 1,
                kind: kind.to_string(),
                nodes: *nodes,
                scatter_percent: 100.0 * widest.sd,
                found_from_percent: 100.0 * found.exp_m1().max(asked.least),
                is_recorded: widest.is_recorded,
            })
        };
        self.scatters.iter().filter_map(limit).collect()
    }
}

/// The nodes of which a kind is judged, and those that were measured beside other work. Where most were, all are
/// judged.
fn quiet(kind: &Kind, group: &[usize], nodes: &[Node]) -> (Vec<usize>, Vec<usize>) {
    let grade = |at: &usize| nodes[*at].grades.get(&kind.experiment).copied();
    let there: Vec<usize> =
        group.iter().copied().filter(|at| nodes[*at].quantities.contains_key(kind)).collect();
    let (quiet, disturbed): (Vec<usize>, Vec<usize>) =
        there.iter().partition(|at| grade(at).is_none_or(|grade| grade == Grade::Quiet));
    if quiet.len() >= NODES_MIN && 2 * quiet.len() >= there.len() {
        return (quiet, disturbed);
    }
    there.into_iter().partition(|at| grade(at).is_none_or(|grade| grade >= Grade::USABLE))
}

/// Student's t beyond which a value lies by chance with probability `p`, on both sides.
fn beyond(p: f64, degrees: f64) -> f64 {
    let (mut lo, mut hi) = (0.0, 1.0);
    while student_t_p(hi, degrees) > p && hi < 1e9 {
        hi *= 2.0;
    }
    for _ in 0..60 {
        let middle = f64::midpoint(lo, hi);
        if student_t_p(middle, degrees) > p { lo = middle } else { hi = middle }
    }
    hi
}

/// What was found, the same thing once: where few cores or regions keep the whole of what they differ in, all of them
/// are the node, and one of them is itself.
fn condensed(found: Vec<(&Test, f64)>, tests: &[Test], nodes: &[Node]) -> Vec<Finding> {
    let key = |test: &Test| (test.node, test.kind.clone());
    let parts = |tests: &mut dyn Iterator<Item = &Test>| {
        let mut count: BTreeMap<(usize, Kind), usize> = BTreeMap::new();
        for test in tests.filter(|test| test.of.is_some() && !test.is_own) {
            *count.entry(key(test)).or_default() += 1;
        }
        count
    };
    let (asked, hit) = (parts(&mut tests.iter()), parts(&mut found.iter().map(|(test, _)| *test)));
    let whole: Vec<(usize, Kind)> =
        found.iter().filter(|(test, _)| test.of.is_none()).map(|(test, _)| key(test)).collect();
    let is_kept = |test: &Test| {
        let key = key(test);
        let hit = hit.get(&key).copied().unwrap_or(0);
        let are_all = hit == asked.get(&key).copied().unwrap_or(0);
        match (test.of, test.is_own) {
            (None, _) => hit == 0 || are_all,
            (Some(_), false) => !(are_all && whole.contains(&key)),
            (Some(_), true) => true,
        }
    };
    let kept = found.into_iter().filter(|(test, _)| is_kept(test));
    kept.map(|(test, p)| finding(test, p, nodes)).collect()
}

/// What else than a fault may be why a node's number of this kind deviates.
fn caveat(kind: &Kind, node: &Node, nodes: &[Node]) -> Option<String> {
    let mut whys = Vec::new();
    if nodes.iter().any(|other| bare::are_together(node, other)) {
        whys.push("another node of its machine was measured at the same time".to_owned());
    }
    if let Some(grade) = node.grades.get(&kind.experiment).filter(|grade| **grade != Grade::Quiet) {
        whys.push(format!("measured beside other work ({grade})"));
    }
    let depends = matches!(kind.experiment, Experiment::Block | Experiment::Transfer);
    if depends && node.is_guest() {
        whys.push("a guest, whose host may have moved its CPUs to other cores".to_owned());
    }
    (!whys.is_empty())
        .then(|| format!("{}: measure again before it counts as a fault", whys.join("; ")))
}

fn finding(test: &Test, p: f64, nodes: &[Node]) -> Finding {
    let node = &nodes[test.node];
    let percent = 100.0 * test.share();
    let (value, unit) = (test.usual * test.ln.exp(), test.kind.unit());
    let is_worse = (percent > 0.0) == test.kind.is_cost();
    let of = test.of.map(|of| of.to_string());
    let place = of.as_ref().map_or_else(|| "of all of it".to_owned(), |of| format!("of {of}"));
    let (digits, usual) = (3, test.usual);
    let number = |value| isochrone_report::fmt::significant(value, digits);
    let word = if is_worse { "worse" } else { "better" };
    let what = format!(
        "{} {place}: {} {unit} where its equals have {} ({percent:+.1} %, {word})",
        test.kind,
        number(value),
        number(usual)
    );
    Finding {
        node: node.name.clone(),
        group: test.group + 1,
        kind: test.kind.to_string(),
        of,
        what,
        value: Some(value),
        usual: Some(usual),
        unit: Some(unit),
        percent: Some(percent),
        is_worse: Some(is_worse),
        p: Some(p),
        grade: node.grades.get(&test.kind.experiment).copied(),
        caveat: caveat(&test.kind, node, nodes),
    }
}

/// Nodes that are set otherwise than most of their processor.
fn settings(groups: &[Equals], nodes: &[Node], is_asked: &dyn Fn(usize) -> bool) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (number, equals) in groups.iter().enumerate().filter(|(_, of)| of.deviates(groups)) {
        let others = groups[equals.usual].nodes.len();
        let what = format!(
            "set otherwise than {} of the same processor: {}",
            counted(others, "node"),
            equals.differs.join("; ")
        );
        for at in equals.nodes.iter().copied().filter(|at| is_asked(*at)) {
            findings.push(Finding {
                node: nodes[at].name.clone(),
                group: number + 1,
                kind: SETTINGS.to_owned(),
                of: None,
                what: what.clone(),
                value: None,
                usual: None,
                unit: None,
                percent: None,
                is_worse: None,
                p: None,
                grade: None,
                caveat: None,
            });
        }
    }
    findings
}

/// The reading that all have.
fn reading(nodes: &[Node]) -> Option<Reading> {
    let first = nodes.first()?.reading;
    nodes.iter().all(|node| node.reading == first).then_some(first)
}

fn shown(nodes: &[Node], groups: &[Equals]) -> Vec<NodeFigure> {
    let figure = |(at, node): (usize, &Node)| NodeFigure {
        name: node.name.clone(),
        group: groups.iter().position(|of| of.nodes.contains(&at)).map_or(0, |of| of + 1),
        cores: node.cores,
        regions: node.regions,
        complete: node.complete,
        grade: node.grades.values().copied().min(),
        started_unix_s: node.started_unix_s,
    };
    nodes.iter().enumerate().map(figure).collect()
}

fn group(at: usize, equals: &Equals, nodes: &[Node]) -> Group {
    let first = &nodes[equals.nodes[0]];
    Group {
        number: at + 1,
        nodes: equals.nodes.iter().map(|node| nodes[*node].name.clone()).collect(),
        cpu: first.word("cpu").to_owned(),
        cores: first.cores,
        regions: first.regions,
        memory: first.word("memory").to_owned(),
        differs: equals.differs.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::node::{Made, Quantity};
    use isochrone_stats::{Rng, normal, rng};

    /// A node of eight cores and four regions whose numbers scatter by 1 %.
    fn node(name: &str, noise: &mut impl Rng) -> Node {
        let mut node = Node {
            name: name.to_owned(),
            reading: Reading::Simulated,
            words: vec!["cpu: made up".to_owned(), "regions: 4".to_owned()],
            cores: 8,
            regions: 4,
            complete: true,
            started_unix_s: 0,
            grades: BTreeMap::new(),
            quantities: BTreeMap::new(),
            made: Made::default(),
        };
        let mut near = |value: f64| value * (0.01 * normal(noise)).exp();
        for core in 0..8 {
            for other in (0..8).filter(|other| *other != core) {
                let value = near(50.0 + f64::from(core));
                let of = vec![Item::Core(core), Item::Core(other)];
                let quantity =
                    Quantity::new(format!("{core} to {other}"), of, value, (value, value));
                node.add(Experiment::Transfer, "cas", quantity);
            }
            for region in 0..4 {
                let value = near(100.0 + 20.0 * f64::from(region));
                let of = vec![Item::Core(core), Item::Region(region)];
                let quantity =
                    Quantity::new(format!("{core} to r{region}"), of, value, (value, value));
                node.add(Experiment::Region, "random", quantity);
            }
        }
        node
    }

    fn fleet(count: usize) -> Folder {
        let mut noise = rng(9);
        let nodes = (0..count).map(|at| node(&format!("n{at:02}"), &mut noise)).collect();
        Folder { nodes, skipped: Vec::new() }
    }

    fn slow(node: &mut Node, experiment: Experiment, item: Item, factor: f64) {
        let of = |(kind, _): &(&Kind, _)| kind.experiment == experiment;
        let quantities = node
            .quantities
            .iter_mut()
            .filter(|(kind, _)| of(&(*kind, ())))
            .flat_map(|(_, all)| all);
        quantities.filter(|it| it.of.contains(&item)).for_each(|it| it.value *= factor);
    }

    fn found(report: &Report) -> Vec<(&str, Option<&str>)> {
        report.findings.iter().map(|it| (it.node.as_str(), it.of.as_deref())).collect()
    }

    #[test]
    fn a_far_core_and_a_slow_region_are_named_and_nothing_else_is() {
        let mut folder = fleet(32);
        assert_eq!(found(&judge(&folder, &Asked::default())), []);
        slow(&mut folder.nodes[3], Experiment::Transfer, Item::Core(5), 1.10);
        slow(&mut folder.nodes[9], Experiment::Region, Item::Region(2), 1.08);
        let report = judge(&folder, &Asked::default());
        assert_eq!(found(&report), [("n03", Some("core 5")), ("n09", Some("region 2"))]);
        let region = &report.findings[1];
        assert!((region.percent.unwrap() - 8.0).abs() < 1.5 && region.is_worse == Some(true));
        assert!((region.usual.unwrap() - 140.0).abs() < 2.0, "{region:?}");
        assert!(
            report.limits.iter().all(|limit| limit.found_from_percent < 8.0 && !limit.is_recorded)
        );
        let one = Asked { only: Some("n03".to_owned()), ..Asked::default() };
        let report = judge(&folder, &one);
        assert_eq!(found(&report), [("n03", Some("core 5"))]);
        let coarse = Asked { least: 0.2, ..Asked::default() };
        assert_eq!(found(&judge(&folder, &coarse)), []);
    }

    #[test]
    fn what_all_of_a_node_has_is_the_node() {
        let mut folder = fleet(32);
        for core in 0..8 {
            // Each pair is that of two cores.
            slow(&mut folder.nodes[7], Experiment::Transfer, Item::Core(core), 1.1_f64.sqrt());
        }
        assert_eq!(found(&judge(&folder, &Asked::default())), [("n07", None)]);
    }

    #[test]
    fn what_was_measured_beside_other_work_is_no_finding_where_most_was_not() {
        let mut folder = fleet(32);
        slow(&mut folder.nodes[3], Experiment::Transfer, Item::Core(5), 1.5);
        for (at, node) in folder.nodes.iter_mut().enumerate() {
            let grade = if at == 3 { Grade::Disturbed } else { Grade::Quiet };
            node.grades.insert(Experiment::Transfer, grade);
        }
        let report = judge(&folder, &Asked::default());
        assert_eq!(found(&report), []);
        assert_eq!(report.not_judged.len(), 1, "{:?}", report.not_judged);
        assert_eq!(report.not_judged[0].nodes, ["n03"]);
        for node in &mut folder.nodes {
            node.grades.insert(Experiment::Transfer, Grade::Disturbed);
        }
        let report = judge(&folder, &Asked::default());
        assert_eq!(found(&report), [("n03", Some("core 5"))]);
        let caveat = report.findings[0].caveat.as_deref().unwrap_or_default();
        assert!(caveat.contains("beside other work (disturbed)"), "{caveat}");
        assert_eq!(report.findings[0].grade, Some(Grade::Disturbed));
        let text = crate::text(&report, 80);
        assert!(text.contains("n03, line transfers: measured beside"), "{text}");
    }

    #[test]
    fn where_a_host_moves_cores_a_finding_says_so() {
        let mut folder = fleet(32);
        slow(&mut folder.nodes[3], Experiment::Transfer, Item::Core(5), 1.5);
        slow(&mut folder.nodes[4], Experiment::Region, Item::Region(1), 1.5);
        assert!(judge(&folder, &Asked::default()).findings.iter().all(|of| of.caveat.is_none()));
        folder.nodes.iter_mut().for_each(|node| node.words.push("hypervisor: KVM".to_owned()));
        let findings = judge(&folder, &Asked::default()).findings;
        let of = |name| &findings.iter().find(|of| of.node == name).expect("found").caveat;
        assert!(of("n03").as_deref().is_some_and(|why| why.contains("host")), "{findings:?}");
        assert!(of("n04").is_none(), "a host moves no memory: {findings:?}");
    }

    #[test]
    fn where_nodes_of_one_machine_measured_each_other_a_finding_says_so() {
        let mut folder = fleet(32);
        slow(&mut folder.nodes[3], Experiment::Region, Item::Region(1), 1.5);
        folder.nodes.iter_mut().for_each(|node| node.made.seconds = 9.4);
        for (at, node) in folder.nodes.iter_mut().enumerate() {
            node.made.boot = Some(1 + at as u64);
        }
        let caveat = |folder: &Folder| judge(folder, &Asked::default()).findings[0].caveat.clone();
        assert_eq!(caveat(&folder), None, "machines of their own");
        folder.nodes[7].made.boot = folder.nodes[3].made.boot;
        let said = caveat(&folder).unwrap_or_default();
        assert!(said.contains("another node of its machine"), "{said}");
    }

    #[test]
    fn few_that_are_set_otherwise_deviate_and_half_do_not() {
        let mut folder = fleet(8);
        let set = |node: &mut Node| {
            node.words[1] = "regions: 1".to_owned();
            node.regions = 1;
        };
        set(&mut folder.nodes[2]);
        let report = judge(&folder, &Asked::default());
        assert_eq!(found(&report), [("n02", None)]);
        assert!(report.findings[0].what.contains("NPS"), "{:?}", report.findings);
        assert_eq!(report.groups.iter().map(|group| group.nodes.len()).collect::<Vec<_>>(), [7, 1]);
        folder.nodes[3..6].iter_mut().for_each(set);
        let report = judge(&folder, &Asked::default());
        assert_eq!(found(&report), [], "four and four");
        assert!(!report.groups[1].differs.is_empty());
    }

    #[test]
    fn too_few_to_compare_are_said() {
        let report = judge(&fleet(2), &Asked::default());
        assert_eq!((report.comparisons, report.findings.len(), report.not_judged.len()), (0, 0, 1));
        let mut bare = fleet(4);
        bare.nodes.iter_mut().for_each(|node| node.quantities.clear());
        let report = judge(&bare, &Asked::default());
        assert_eq!((report.comparisons, report.not_judged.len()), (0, 1));
        assert!(report.not_judged[0].why.contains("--budget"), "{:?}", report.not_judged);
        let report = judge(&Folder::default(), &Asked::default());
        assert_eq!((report.reading, report.groups.len()), (None, 0));
    }
}
