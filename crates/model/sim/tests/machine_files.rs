//! Machine files as simulated machines: the paper's is what its tables say, and numbers that cannot be are
//! refused with the reason.

#[cfg(test)]
mod tests {
    use isochrone_host::{find_machine, machine_from_toml};
    use isochrone_sim::coherence::{Distance, Legs, NumaSpec, Topology};

    fn bullion_text() -> String {
        let file = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../machines/bullion-s-16s.toml");
        std::fs::read_to_string(file).expect("bundled")
    }

    /// Why the paper's machine is refused when `from` reads `to`.
    fn refused(from: &str, to: &str) -> String {
        let text = bullion_text();
        assert!(text.contains(from), "{from}");
        let machine = match machine_from_toml(&text.replace(from, to), "changed.toml") {
            Ok(machine) => machine,
            Err(error) => return error.to_string(),
        };
        NumaSpec::of(&machine).expect_err("impossible").to_string()
    }

    #[test]
    fn the_paper_s_machine() {
        let machine = find_machine("bullion-s-16s").expect("bundled");
        let spec = NumaSpec::of(&machine).expect("possible");
        assert_eq!((spec.nodes.len(), spec.modules(), spec.cores()), (16, 8, 288));
        assert!(spec.nodes.iter().all(|node| node.llc_lines == 737_280));
        assert_eq!(spec.distance(4, 5), Distance::Near);
        assert_eq!(spec.distance(5, 6), Distance::Far);
        // Research, section 3.4: 10.3 million lines, if every cache outside holds one module's.
        assert_eq!(spec.lines_outside(3), 10_321_920);
        let legs = Legs::of(&spec);
        assert!((legs.read_ns(0, 15) - 428.0).abs() < 1e-9);
        assert_eq!(Topology::of(&spec).nodes_of(7).iter().collect::<Vec<_>>(), [14, 15]);
    }

    #[test]
    fn as_many_sockets_as_there_may_be() {
        let file = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../machines/hypothetical-64s.toml");
        let machine = find_machine(file).expect("right");
        let spec = NumaSpec::of(&machine).expect("possible");
        assert_eq!((spec.nodes.len(), spec.modules(), spec.cores()), (64, 32, 4096));
        assert_eq!(spec.distance(62, 63), Distance::Near);
        assert_eq!(Topology::of(&spec).nodes_of(31).iter().collect::<Vec<_>>(), [62, 63]);
    }

    #[test]
    fn impossible_numbers_are_refused_with_the_reason() {
        let far = refused("known = 416\nmin = 410\nmax = 428", "known = 150\nmin = 140\nmax = 160");
        assert!(far.contains("cannot come sooner"), "{far}");
        let link = refused("known = 25\nmin = 24.5\nmax = 25.1", "known = 60\nmin = 50\nmax = 61");
        assert!(link.contains("comes from the same memory"), "{link}");
        let nothing = refused("assumed = 10500000\nlow = 1300000", "assumed = 0\nlow = 0");
        assert!(nothing.contains("lets nothing out"), "{nothing}");
        let large = refused(
            "assumed = 10500000\nlow = 1300000\nhigh = 10500000",
            "assumed = 1e13\nlow = 1300000\nhigh = 1e13",
        );
        assert!(large.contains("larger than the memory"), "{large}");
        let cache = refused("bytes = \"45 MiB\"", "bytes = \"600 GiB\"");
        assert!(cache.contains("larger than any"), "{cache}");
        let memory = refused("bytes = \"512 GiB\"", "bytes = \"32 MiB\"");
        assert!(memory.contains("larger than its memory"), "{memory}");
        let header = refused("assumed = 80\nlow = 72", "assumed = 60\nlow = 50");
        assert!(header.contains("a line alone has"), "{header}");
        let crossing =
            refused("assumed = 40\nlow = 20\nhigh = 60", "assumed = 150\nlow = 20\nhigh = 160");
        assert!(crossing.contains("leave nothing"), "{crossing}");
        let split =
            refused("region = 1\npackage = 1\nmodule = 0", "region = 1\npackage = 0\nmodule = 1");
        assert!(split.contains("in two modules"), "{split}");
        let llc =
            refused("assumed = 20\nlow = 15\nhigh = 30", "assumed = 200\nlow = 15\nhigh = 300");
        assert!(llc.contains("looks there first"), "{llc}");
        let missing = refused("name = \"core rate\"", "name = \"some rate\"");
        assert!(missing.contains("core rate"), "{missing}");
    }

    #[test]
    fn one_socket_with_clusters_and_sixty_four_without_controllers() {
        let head = "name = \"m\"\ntitle = \"m\"\n[[sources]]\nid = \"t\"\ntext = \"t\"\n";
        let known = |name: &str, value: f64| {
            format!(
                "[[costs]]\nname = \"{name}\"\nwhat = \"w\"\nunit = \"u\"\nknown = {value}\nsource = \"t\"\n"
            )
        };
        let common = [
            known("core rate", 30.0),
            known("scalar rate", 4.0),
            known("LLC latency", 20.0),
            known("control message", 8.0),
            known("data message", 72.0),
            known("local latency", 80.0),
            known("local bandwidth", 100.0),
            known("outstanding lines local", 20.0),
            "[[caches]]\nlevel = 3\nkind = \"unified\"\nbytes = \"32 MiB\"\nper = \"package\"\nsource = \"t\"\n"
                .into(),
        ]
        .concat();
        let cores = |first: usize, count: usize, region: usize, package: usize| {
            let last = first + count - 1;
            format!(
                "[[cores]]\nids = \"{first}-{last}\"\nregion = {region}\npackage = {package}\nsource = \"t\"\n\
                 [[regions]]\nids = \"{region}\"\nkind = \"ddr\"\nbytes = \"64 GiB\"\nsource = \"t\"\n"
            )
        };
        let clustered = [cores(0, 8, 0, 0), cores(8, 8, 1, 0)].concat();
        let cluster = [
            known("cluster latency", 90.0),
            known("cluster bandwidth", 90.0),
            known("outstanding lines cluster", 20.0),
        ]
        .concat();
        let text = [head, &clustered, &common, &cluster].concat();
        let spec =
            NumaSpec::of(&machine_from_toml(&text, "m.toml").expect("right")).expect("possible");
        assert_eq!(spec.distance(0, 1), Distance::Cluster);
        assert_eq!(spec.nodes[0].llc_lines, 16 << 14, "half of the socket's cache");

        let sockets: String =
            (0..64).map(|socket| cores(socket * 64, 64, socket, socket)).collect();
        let near = [
            known("near latency", 140.0),
            known("near bandwidth", 30.0),
            known("outstanding lines near", 20.0),
        ]
        .concat();
        let text = [head, &sockets, &common, &near].concat();
        let spec =
            NumaSpec::of(&machine_from_toml(&text, "m.toml").expect("right")).expect("possible");
        assert_eq!((spec.cores(), spec.modules()), (4096, 1));
        assert_eq!(spec.distance(0, 63), Distance::Near);
    }
}
