//! Which crate may stand on which. Folders are the floors, and no arrow goes upward; on a floor and downward, only
//! the arrows of one table may be drawn, and each of them must be: so the table is the truth.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use super::members::Member;

/// The folders below `crates`, from the ground up. What lies elsewhere stands on the roof.
pub(super) const FLOORS: &[&str] =
    &["ground", "atlas", "model", "measure", "arrange", "use", "lab"];

/// A crate and what it stands on, of this repository.
type Row = (&'static str, &'static [&'static str]);

/// Every crate, in the order of the floors. What only tests need is not listed here.
const ARROWS: &[Row] = &[
    ("report", &["units"]),
    ("schemas", &["report"]),
    ("stats", &[]),
    ("units", &[]),
    ("machine", &["units"]),
    ("os", &["units"]),
    ("host", &["units", "machine"]),
    ("atlas", &["units"]),
    ("atlas-store", &["stats", "units", "machine", "atlas"]),
    ("decode", &["units", "atlas"]),
    ("distance", &["units", "machine", "atlas"]),
    ("fleet", &["report", "stats", "units", "atlas-store"]),
    ("places", &["host", "atlas-store"]),
    ("view", &["report", "stats", "units", "machine", "atlas", "atlas-store"]),
    ("sim", &["stats", "units", "machine"]),
    ("placement", &["stats", "atlas-store"]),
    (
        "probe",
        &["stats", "units", "machine", "os", "host", "atlas", "atlas-store", "decode", "sim"],
    ),
    (
        "survey",
        &[
            "report",
            "stats",
            "units",
            "machine",
            "os",
            "host",
            "atlas",
            "atlas-store",
            "sim",
            "placement",
            "probe",
        ],
    ),
    ("alloc", &["units", "os", "atlas", "decode"]),
    ("cla", &["stats", "units", "machine", "os", "distance", "sim"]),
    ("malloc", &["units", "os", "atlas", "alloc"]),
    ("near", &["units", "os", "host", "atlas", "atlas-store", "places", "alloc", "malloc"]),
    ("tasks", &["stats", "units", "machine", "os", "distance", "sim"]),
    ("mpi", &["units", "distance", "places", "cla"]),
    ("preload", &["malloc"]),
    ("tier", &["stats", "units", "os", "distance", "sim", "cla"]),
    ("pager", &["units", "os", "malloc", "tier"]),
    (
        "console",
        &[
            "report",
            "stats",
            "units",
            "machine",
            "os",
            "host",
            "atlas",
            "atlas-store",
            "distance",
            "places",
            "probe",
            "alloc",
            "cla",
            "malloc",
        ],
    ),
    (
        "capi",
        &[
            "units",
            "os",
            "host",
            "atlas",
            "atlas-store",
            "distance",
            "places",
            "cla",
            "near",
            "tasks",
            "tier",
        ],
    ),
    (
        "cli",
        &[
            "report",
            "stats",
            "units",
            "machine",
            "os",
            "host",
            "atlas",
            "atlas-store",
            "distance",
            "places",
            "fleet",
            "view",
            "probe",
            "survey",
            "alloc",
            "cla",
            "malloc",
            "mpi",
            "near",
            "tier",
            "console",
        ],
    ),
    ("workloads", &["stats", "units", "machine", "atlas", "sim", "alloc", "tasks", "tier"]),
    (
        "papers",
        &[
            "report",
            "stats",
            "units",
            "machine",
            "host",
            "atlas-store",
            "sim",
            "placement",
            "probe",
            "cla",
            "tasks",
            "tier",
            "workloads",
        ],
    ),
    (
        "lab",
        &[
            "report",
            "stats",
            "units",
            "machine",
            "os",
            "host",
            "atlas",
            "atlas-store",
            "distance",
            "view",
            "sim",
            "probe",
            "survey",
            "alloc",
            "cla",
            "malloc",
            "tasks",
            "mpi",
            "tier",
            "console",
            "workloads",
            "papers",
        ],
    ),
    ("xtask", &["stats", "units", "host"]),
    ("fuzz", &["units", "host", "atlas", "alloc", "cla"]),
    ("vm-tests", &["units", "machine", "os", "host", "tasks", "tier", "workloads"]),
];

/// Checks every arrow of the manifests.
pub(super) fn check(members: &[Member], breaches: &mut Vec<String>) {
    rows(members, ARROWS, breaches);
    upward(members, breaches);
    reverse(members, breaches);
}

/// The floor of a folder, from 0; `None` for a folder below `crates` that is none of them.
pub(super) fn floor(folder: &Path) -> Option<usize> {
    match folder.strip_prefix("crates") {
        Ok(inside) => FLOORS.iter().position(|name| inside.starts_with(name)),
        Err(_) => Some(FLOORS.len()),
    }
}

/// All that a crate stands on, on whatever floor.
pub(super) fn below<'a>(members: &'a [Member], name: &str) -> BTreeSet<&'a str> {
    let by_name: BTreeMap<&str, &Member> = members.iter().map(|m| (m.name.as_str(), m)).collect();
    let mut reached = BTreeSet::new();
    let mut next: Vec<&str> = by_name.get(name).map(|m| m.name.as_str()).into_iter().collect();
    while let Some(member) = next.pop().and_then(|name| by_name.get(name)) {
        let new = member.stands_on.iter().map(String::as_str).filter(|on| reached.insert(*on));
        next.extend(new);
    }
    reached
}

/// The table says what the manifests say.
fn rows(members: &[Member], table: &[Row], breaches: &mut Vec<String>) {
    let of = "the table in xtask/src/tidy/arrows.rs";
    for member in members {
        let name = &member.name;
        let Some((_, allowed)) = table.iter().find(|(row, _)| row == name) else {
            breaches.push(format!("{} ({name}) has no row in {of}", member.folder.display()));
            continue;
        };
        for on in member.stands_on.iter().filter(|on| !allowed.contains(&on.as_str())) {
            breaches.push(format!("{name} must not depend on {on}, says {of}"));
        }
        for on in allowed.iter().filter(|on| !member.stands_on.contains(**on)) {
            breaches.push(format!("{name} does not depend on {on}: take it off {of}"));
        }
    }
    for (row, _) in table.iter().filter(|(row, _)| members.iter().all(|m| m.name != *row)) {
        breaches.push(format!("there is no crate {row}: take it off {of}"));
    }
}

/// No arrow goes upward, not even for a test.
fn upward(members: &[Member], breaches: &mut Vec<String>) {
    let floors: BTreeMap<&str, Option<usize>> =
        members.iter().map(|m| (m.name.as_str(), floor(&m.folder))).collect();
    for member in members {
        let Some(own) = floor(&member.folder) else {
            breaches.push(format!("{} lies on no floor: {FLOORS:?}", member.folder.display()));
            continue;
        };
        for on in member.stands_on.union(&member.tested_with) {
            if floors.get(on.as_str()).copied().flatten().is_some_and(|floor| floor > own) {
                breaches.push(format!("{} stands below {on}, on which it depends", member.name));
            }
        }
    }
}

/// No test needs what stands on the crate that it tests: the crate would be built twice, and its types with it.
fn reverse(members: &[Member], breaches: &mut Vec<String>) {
    for member in members {
        for with in member.tested_with.iter().filter(|with| **with != member.name) {
            if below(members, with).contains(member.name.as_str()) {
                let name = &member.name;
                breaches.push(format!("{name} is tested with {with}, which stands on {name}"));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn member(folder: &str, stands_on: &[&str], tested_with: &[&str]) -> Member {
        let set = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
        Member {
            name: folder.rsplit('/').next().unwrap_or(folder).to_owned(),
            folder: folder.into(),
            stands_on: set(stands_on),
            tested_with: set(tested_with),
        }
    }

    fn house() -> Vec<Member> {
        vec![
            member("crates/ground/units", &[], &[]),
            member("crates/atlas/store", &["units"], &["units", "store"]),
            member("crates/use/cli", &["store"], &[]),
            member("fuzz", &["cli"], &[]),
        ]
    }

    const TABLE: &[Row] =
        &[("units", &[]), ("store", &["units"]), ("cli", &["store"]), ("fuzz", &["cli"])];

    fn told(members: &[Member]) -> Vec<String> {
        let mut breaches = Vec::new();
        rows(members, TABLE, &mut breaches);
        upward(members, &mut breaches);
        reverse(members, &mut breaches);
        breaches
    }

    #[test]
    fn a_house_as_its_table_has_no_breach() {
        assert!(told(&house()).is_empty());
    }

    #[test]
    fn an_arrow_too_many_and_one_too_few_are_breaches() {
        let mut members = house();
        members[2] = member("crates/use/cli", &["units"], &[]);
        let breaches = told(&members);
        assert_eq!(breaches.len(), 2, "{breaches:?}");
        assert!(breaches[0].starts_with("cli must not depend on units"), "{breaches:?}");
        assert!(breaches[1].starts_with("cli does not depend on store"), "{breaches:?}");
    }

    #[test]
    fn a_crate_without_a_row_and_a_row_without_a_crate_are_breaches() {
        let mut members = house();
        members[3] = member("tests/vm", &[], &[]);
        let breaches = told(&members);
        assert_eq!(breaches.len(), 2, "{breaches:?}");
        assert!(breaches[0].starts_with("tests/vm (vm) has no row"), "{breaches:?}");
        assert!(breaches[1].starts_with("there is no crate fuzz"), "{breaches:?}");
    }

    #[test]
    fn an_arrow_upward_is_a_breach_for_tests_too() {
        let mut members = house();
        members[0] = member("crates/ground/units", &[], &["store"]);
        let breaches = told(&members);
        assert!(breaches.contains(&"units stands below store, on which it depends".to_owned()));
        assert!(breaches.contains(&"units is tested with store, which stands on units".to_owned()));
        assert_eq!(breaches.len(), 2, "{breaches:?}");
    }

    #[test]
    fn a_test_with_what_stands_on_the_crate_over_another_is_a_breach() {
        let mut members = house();
        members[0] = member("crates/use/units", &[], &["cli"]);
        members[1] = member("crates/use/store", &["units"], &[]);
        assert_eq!(told(&members), ["units is tested with cli, which stands on units"]);
    }

    #[test]
    fn a_folder_that_is_no_floor_is_a_breach() {
        let mut members = house();
        members[0] = member("crates/units", &[], &[]);
        let breaches = told(&members);
        assert!(matches!(&breaches[..], [one] if one.starts_with("crates/units lies on no floor")));
    }
}
