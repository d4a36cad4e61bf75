//! Topologies as hwloc writes them, and those that are wrong.

use super::*;
use proptest::prelude::*;

/// Two packages with two dies each, a core of two threads in each die; fast memory beside the first
/// region.
const TWO_PACKAGES: &str = r#"<?xml version="1.0" encoding="UTF-8"?>
<!DOCTYPE topology SYSTEM "hwloc2.dtd">
<topology version="2.0">
 <object type="Machine" os_index="0" cpuset="0x000000ff">
  <object type="Package" os_index="0" cpuset="0x0000000f">
   <info name="CPUVendor" value="GenuineIntel"/><info name="CPUModel" value="A &amp; B"/>
   <info name="CPUFamilyNumber" value="6"/><info name="CPUModelNumber" value="143"/>
   <object type="NUMANode" os_index="0" subtype="DRAM" cpuset="0x0000000f" local_memory="8000000000"/>
   <object type="NUMANode" os_index="2" subtype="HBM" cpuset="0x0000000f" local_memory="1000000000"/>
   <object type="Die" os_index="0" cpuset="0x00000003">
    <object type="L3Cache" cpuset="0x00000003" cache_size="1048576" depth="3"
    cache_linesize="64" cache_associativity="16" cache_type="0">
     <object type="L1Cache" cpuset="0x00000003" cache_size="32768" depth="1"
     cache_linesize="64" cache_associativity="0" cache_type="1">
      <object type="Core" os_index="0" cpuset="0x00000003">
       <object type="PU" os_index="0" cpuset="0x00000001"/>
       <object type="PU" os_index="1" cpuset="0x00000002"/>
      </object></object></object></object>
   <object type="Die" os_index="1" cpuset="0x0000000c">
      <object type="Core" os_index="1" cpuset="0x0000000c">
       <object type="PU" os_index="2" cpuset="0x00000004"/>
       <object type="PU" os_index="3" cpuset="0x00000008"/>
      </object></object>
  </object>
  <object type="Package" os_index="1" cpuset="0x000000f0">
   <object type="NUMANode" os_index="1" cpuset="0x000000f0" local_memory="8000000000"/>
   <object type="Die" os_index="0" cpuset="0x00000030">
   <object type="Core" os_index="0" cpuset="0x00000030">
       <object type="PU" os_index="4" cpuset="0x00000010"/>
       <object type="PU" os_index="5" cpuset="0x00000020"/></object></object>
   <object type="Die" os_index="1" cpuset="0x000000c0">
   <object type="Core" os_index="1" cpuset="0x000000c0">
       <object type="PU" os_index="6" cpuset="0x00000040"/>
       <object type="PU" os_index="7" cpuset="0x00000080"/></object></object>
  </object>
 </object>
 <distances2 type="NUMANode" nbobjs="3" kind="5" name="NUMALatency" indexing="os">
  <indexes length="6">0 2 1 </indexes>
  <u64values length="18">10 13 21 13 10 23 </u64values><u64values length="9">21 23 10 </u64values>
 </distances2>
</topology>"#;

fn read(text: &str) -> Machine {
    machine_from_hwloc(text, "folder/two.xml").expect("right")
}

fn refused(text: &str) -> String {
    machine_from_hwloc(text, "a.xml").expect_err("wrong").to_string()
}

#[test]
fn cores_have_their_region_die_package_and_siblings() {
    let machine = read(TWO_PACKAGES);
    assert_eq!((machine.name.as_str(), machine.title.as_str()), ("two", "A & B, 8 cores"));
    let of = |id: usize| {
        let core = &machine.cores[id];
        (core.region, core.module, core.package, core.smt_siblings.as_slice())
    };
    assert_eq!(of(0), (0, Some(0), Some(0), [1].as_slice()));
    assert_eq!(of(3), (0, Some(1), Some(0), [2].as_slice()));
    assert_eq!(of(7), (1, Some(3), Some(1), [6].as_slice()));
    let cpu = machine.cpu.expect("a package");
    assert_eq!(
        (cpu.vendor.as_deref(), cpu.family, cpu.model, cpu.stepping),
        (Some("GenuineIntel"), Some(6), Some(143), None)
    );
}

#[test]
fn regions_are_in_order_and_fast_memory_has_no_cores_of_its_own() {
    let machine = read(TWO_PACKAGES);
    let of = |region: &Region| (region.id, region.kind, region.cores.clone());
    let regions: Vec<_> = machine.regions.iter().map(of).collect();
    assert_eq!(
        regions,
        [
            (0, RegionKind::Ddr, vec![0, 1, 2, 3]),
            (1, RegionKind::Unknown, vec![4, 5, 6, 7]),
            (2, RegionKind::Hbm, vec![])
        ]
    );
    assert_eq!(machine.memory_bytes, Some(17_000_000_000));
    let distances = machine.distances.expect("of the firmware");
    assert_eq!(distances, [[10, 21, 13], [21, 10, 23], [13, 23, 10]], "in the order of regions");
    assert!(machine.notes.is_empty(), "{:?}", machine.notes);
}

#[test]
fn caches_stand_by_level_and_what_is_zero_is_not_known() {
    let machine = read(TWO_PACKAGES);
    let of =
        |cache: &Cache| (cache.level, cache.kind, cache.bytes, cache.ways, cache.shared_by.clone());
    let caches: Vec<_> = machine.caches.iter().map(of).collect();
    assert_eq!(
        caches,
        [
            (1, CacheKind::Data, Some(32768), None, vec![0, 1]),
            (3, CacheKind::Unified, Some(1 << 20), Some(16), vec![0, 1])
        ]
    );
}

#[test]
fn distances_that_a_user_added_are_not_the_firmwares() {
    let machine = read(&TWO_PACKAGES.replace("kind=\"5\"", "kind=\"6\""));
    assert_eq!(machine.distances, None);
    assert!(machine.notes[0].contains("no distances of the firmware"), "{:?}", machine.notes);
}

#[test]
fn a_topology_without_regions_is_one_and_cores_without_one_are_told() {
    let machine = read(&TWO_PACKAGES.replace("NUMANode", "Misc"));
    assert_eq!(machine.regions.len(), 1);
    assert_eq!(machine.regions[0].cores, (0..8).collect::<Vec<u16>>());
    let machine = read(
        &TWO_PACKAGES.replace("os_index=\"1\" cpuset=\"0x000000f0\" local", "os_index=\"1\" local"),
    );
    assert_eq!(machine.regions[0].cores, (0..8).collect::<Vec<u16>>());
    assert!(
        machine.notes[0].contains("cores 4-7; they are taken for region 0"),
        "{:?}",
        machine.notes
    );
}

#[test]
fn what_is_wrong_is_named_with_its_place() {
    assert!(refused("<topology/>").starts_with("a.xml:1:1: no object of type PU"));
    assert!(refused("<html></html>").contains("expected an element <topology>"));
    assert!(refused("").starts_with("a.xml:1:"));
    let twice =
        refused(&TWO_PACKAGES.replace("type=\"PU\" os_index=\"1\"", "type=\"PU\" os_index=\"0\""));
    assert!(twice.starts_with("a.xml:17:") && twice.contains("unit 0 is there twice"), "{twice}");
    let large = refused(
        &TWO_PACKAGES.replace("type=\"PU\" os_index=\"1\"", "type=\"PU\" os_index=\"70000\""),
    );
    assert!(large.contains("os_index of an object of type PU is \"70000\""), "{large}");
    let set = refused(&TWO_PACKAGES.replace("\"0x0000000f\" local", "\"0xgg\" local"));
    assert!(set.contains("the set \"0xgg\""), "{set}");
    let entities =
        "<!DOCTYPE t [<!ENTITY a \"xx\"><!ENTITY b \"&a;&a;&b;\">]><topology>&b;</topology>";
    assert!(refused(entities).starts_with("a.xml:"), "a loop of entities ends");
}

#[test]
fn sets_have_words_from_the_highest_down() {
    let has = |text: &str| -> Vec<u16> {
        let set = Bits::of(text).expect("a set");
        (0..80).filter(|core| set.has(*core)).collect()
    };
    assert_eq!(has("0x00000001,0x80000002"), [1, 31, 32]);
    assert_eq!(has("0x1,,0x0"), [64]);
    assert!(has("0x0").is_empty());
    assert_eq!(has("0xf...f,0x0").len(), 48);
    assert!(Bits::of("3").is_none() && Bits::of("0x100000000").is_none());
}

proptest! {
    #[test]
    fn no_damage_ends_in_a_panic(at in 0..TWO_PACKAGES.len(), byte in any::<u8>(), cut in any::<bool>()) {
        let mut bytes = TWO_PACKAGES.as_bytes().to_vec();
        bytes[at] = byte;
        if cut {
            bytes.truncate(at);
        }
        let _ = machine_from_hwloc(&String::from_utf8_lossy(&bytes), "a.xml");
    }
}
