//! Every place in turn, with atlases of this machine and of others.

use isochrone_atlas_store::contents::{Clock, Contents, Fingerprint};
use isochrone_atlas_store::save;
use isochrone_host::counted_hash;
use isochrone_machine::Machine;

use super::*;

fn words(cpu: &str, cores: u32) -> Vec<String> {
    vec![format!("cpu: {cpu}"), format!("cores: {cores}")]
}

/// A machine whose hash leaves the number of cores out, as `fingerprint` makes it.
fn identity(cpu: &str, cores: u32) -> Identity {
    Identity::new(words(cpu, cores), counted_hash(&words(cpu, cores)[..1]))
}

/// Saves an atlas of a machine.
fn put(path: &Path, of: &Identity) -> PathBuf {
    let contents = Contents {
        fingerprint: Fingerprint { words: of.words.clone(), hash: of.hash },
        ..Contents::begun(
            isochrone_units::Reading::Measured,
            Machine { name: "made".to_owned(), ..Machine::default() },
            Clock { hz: 1e9, tick_cycles: 1, overhead_cycles: 0.0 },
        )
    };
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    save(&contents, path).unwrap();
    path.canonicalize().unwrap()
}

fn path_of(answer: &Result<Answer, Refusal>) -> Option<PathBuf> {
    answer.as_ref().unwrap().found.as_ref().map(|found| found.path.clone())
}

#[test]
fn the_first_place_that_has_one_is_taken() {
    let folder = tempfile::tempdir().unwrap();
    let us = identity("A", 2);
    let at = |name: &str| folder.path().join(name);
    let mut places = Places { cache: Some(at("cache")), ..Places::default() };
    let nowhere = places.find(&us, Check::Hash).unwrap();
    assert!(nowhere.found.is_none() && nowhere.passed_over.is_empty());
    let old = put(&kept(&at("cache"), us.counted_hash), &us);
    assert_eq!(path_of(&places.find(&us, Check::Hash)), Some(old), "kept by an older version");
    let cached = put(&kept(&at("cache"), us.hash), &us);
    assert_eq!(path_of(&places.find(&us, Check::Hash)), Some(cached));
    let here = put(&at("here.atlas"), &us);
    places.here = Some(here.clone());
    assert_eq!(path_of(&places.find(&us, Check::Hash)), Some(here));
    let variable = put(&at("variable.atlas"), &us);
    places.variable = Some(variable.clone());
    assert_eq!(path_of(&places.find(&us, Check::Hash)), Some(variable));
    let named = put(&at("named.atlas"), &us);
    places.named = Some(named.clone());
    assert_eq!(path_of(&places.find(&us, Check::Hash)), Some(named));
}

#[test]
fn another_machine_is_refused_in_a_line_where_it_was_named_and_passed_over_where_not() {
    let folder = tempfile::tempdir().unwrap();
    let us = identity("A", 2);
    let other = put(&folder.path().join("other.atlas"), &identity("B", 2));
    let cached = put(&kept(folder.path(), us.hash), &us);
    let cache = Some(folder.path().to_owned());
    let here = Places { here: Some(other.clone()), cache: cache.clone(), ..Places::default() };
    let answer = here.find(&us, Check::Words).unwrap();
    assert_eq!(answer.found.map(|found| found.path), Some(cached));
    let said = answer.passed_over[0].to_string();
    assert!(said.contains("another machine (`cpu: B`, here `cpu: A`)"), "{said}");
    let named = Places { named: Some(other.clone()), cache: cache.clone(), ..Places::default() };
    let variable = Places { variable: Some(other), cache, ..Places::default() };
    for places in [named, variable] {
        let said = places.find(&us, Check::Hash).unwrap_err().to_string();
        assert!(said.contains("is of another machine: measure"), "{said}");
        assert_eq!(said.lines().count(), 1);
    }
}

#[test]
fn a_machine_is_known_by_hash_whatever_its_number_of_cores_and_older_atlases_by_words() {
    let folder = tempfile::tempdir().unwrap();
    let us = identity("A", 2);
    let fewer = put(&folder.path().join("fewer.atlas"), &identity("A", 1));
    let older = Identity { hash: counted_hash(&words("A", 1)), ..identity("A", 1) };
    let older = put(&folder.path().join("older.atlas"), &older);
    let find = |path: &Path, check| {
        let places = Places { named: Some(path.to_owned()), ..Places::default() };
        places.find(&us, check).map(|answer| answer.found.is_some())
    };
    assert!(find(&fewer, Check::Hash).unwrap());
    assert!(find(&older, Check::Hash).is_err(), "only its words tell");
    assert!(find(&older, Check::Words).unwrap());
}

#[test]
fn what_is_no_atlas_is_refused_with_its_path() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("words");
    let places = Places { named: Some(path.clone()), ..Places::default() };
    let us = identity("A", 2);
    assert!(places.find(&us, Check::Hash).unwrap_err().to_string().contains("words"));
    std::fs::write(&path, "no atlas").unwrap();
    assert!(places.find(&us, Check::Hash).unwrap_err().to_string().contains("words"));
    let here = Places { here: Some(path), ..Places::default() };
    let answer = here.find(&us, Check::Hash).unwrap();
    assert!(answer.found.is_none());
    assert_eq!(answer.passed_over.len(), 1);
}

#[test]
fn the_cache_folder_is_absolute_or_below_home() {
    let of = |cache: &str, home: &str| {
        let value = |text: &str| Some(text.into()).filter(|_| !text.is_empty());
        cache_folder(value(cache), value(home))
    };
    assert_eq!(of("/c", "/h"), Some("/c".into()));
    assert_eq!(of("c", "/h"), Some("/h/.cache".into()));
    assert_eq!(of("", ""), None);
}

#[test]
fn this_machine_is_itself() {
    let us = Identity::of_this_machine().unwrap();
    assert_eq!(us, Identity::of_this_machine().unwrap());
    assert!(us.has(us.hash) && us.differs_from(&us.words).is_none());
}

#[test]
fn places_are_those_that_variables_name_and_a_look_says_whether_any_is_there() {
    let folder = tempfile::tempdir().unwrap();
    let cache = folder.path().to_owned();
    let variables = |name: &str| match name {
        VARIABLE => Some("".into()),
        "XDG_CACHE_HOME" => Some(cache.clone().into_os_string()),
        _ => None,
    };
    let places = Places::of(None, variables);
    assert_eq!((places.variable.clone(), places.cache.clone()), (None, Some(cache.clone())));
    let places = Places { here: Some(cache.join("here")), ..places };
    assert!(!places.may_have_one());
    assert!(places.of_this_machine(Check::Hash).unwrap().is_none());
    std::fs::create_dir(cache.join("isochrone")).unwrap();
    assert!(places.may_have_one(), "one may be kept there");
    assert!(places.of_this_machine(Check::Hash).unwrap().is_none());
    std::fs::write(cache.join("here"), "no atlas").unwrap();
    let why = places.of_this_machine(Check::Hash).unwrap_err();
    assert!(why.contains("here") && why.lines().count() == 1, "{why}");
    let named = Places::of(Some(Path::new("nowhere")), |_| None);
    assert!(named.may_have_one() && named.of_this_machine(Check::Hash).is_err());
}
