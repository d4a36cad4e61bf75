//! Which node of a cluster this process runs on: the name of the host, which boot of which machine, and which network
//! namespace, since containers of one machine can be nodes.

use crate::fingerprint::text_hash;

use super::root::SysRoot;

/// A node as it can be told from others.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeIdentity {
    /// What it calls itself; empty where that cannot be read.
    pub host: String,
    /// Which boot of which machine, as a hash of the kernel's random number; 0 where that cannot be read.
    pub boot: u64,
    /// Which network namespace, as a hash; 0 where that cannot be read. Containers that have one each have a `sysfs`
    /// each too, and so take turns by themselves.
    pub space: u64,
}

/// The node on which this process runs.
#[must_use]
pub fn node_identity(root: &SysRoot) -> NodeIdentity {
    let hash = |text: Option<String>| text.map_or(0, |text| text_hash(&text));
    let space = std::fs::read_link(root.path("proc/self/ns/net")).ok();
    NodeIdentity {
        host: root.line("proc/sys/kernel/hostname").unwrap_or_default(),
        boot: hash(root.line("proc/sys/kernel/random/boot_id")),
        space: hash(space.map(|link| link.to_string_lossy().into_owned())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_node_is_itself_and_another_boot_is_not() {
        let here = node_identity(&SysRoot::live());
        assert_eq!(here, node_identity(&SysRoot::live()));
        let folder = tempfile::tempdir().unwrap();
        let kernel = folder.path().join("proc/sys/kernel");
        std::fs::create_dir_all(kernel.join("random")).unwrap();
        std::fs::write(kernel.join("hostname"), "n1\n").unwrap();
        let root = SysRoot(folder.path().to_owned());
        let of = |boot: &str| {
            std::fs::write(kernel.join("random/boot_id"), boot).unwrap();
            node_identity(&root)
        };
        let (one, other) = (of("a\n"), of("b\n"));
        assert_eq!((one.host.as_str(), one.space), ("n1", 0), "what cannot be read is 0");
        assert!(one.boot != other.boot && one.boot != 0);
    }
}
