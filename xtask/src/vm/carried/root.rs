//! Debian for arm64 as the root of a machine: two MPIs, compilers, and the programs and allocators that tests run under
//! the preloaded library. Packages are unpacked and not set up; what their scripts would have done, as far as tests
//! need it, is done here.

use std::path::Path;

use anyhow::Result;

use super::super::archive::File;
use super::super::debian::{Debian, unpack};

/// What tests ask for, as `.ci/run` installs it here, and what a Debian always has.
const PACKAGES: [&str; 31] = [
    "base-files",
    "bash",
    "binutils",
    "busybox-static",
    "clang",
    "coreutils",
    "dash",
    "findutils",
    "g++",
    "gcc",
    "gfortran",
    "git",
    "grep",
    "libc-bin",
    "libjemalloc2",
    "libmimalloc2.0",
    "libmpich-dev",
    "libopenmpi-dev",
    "libtcmalloc-minimal4",
    "mpich",
    "openmpi-bin",
    "perl",
    "php8.2-cli",
    "php8.2-mbstring",
    "php8.2-xml",
    "procps",
    "python3",
    "sed",
    "sqlite3",
    "strace",
    "util-linux",
];
/// Extensions of PHP that tests load: a script of their packages switches them on.
const EXTENSIONS: [&str; 2] = ["dom", "mbstring"];
/// What no test reads, and would be unpacked into the machine's memory.
const UNREAD: [&str; 9] = [
    "usr/share/doc",
    "usr/share/info",
    "usr/share/javascript",
    "usr/share/locale",
    "usr/share/man",
    "usr/lib/aarch64-linux-gnu/libmpich.a",
    "usr/lib/gcc/aarch64-linux-gnu/12/lto1",
    "usr/bin/aarch64-linux-gnu-lto-dump-12",
    "var/lib/dpkg",
];

/// All files of it. They are brought once, into `folder`, and again where other packages are asked for.
pub(super) fn files(folder: &Path) -> Result<Vec<File>> {
    let [root, part, list] = ["root", "root.part", "root.packages"].map(|name| folder.join(name));
    let asked = PACKAGES.join("\n");
    if !root.exists() || std::fs::read_to_string(&list).ok() != Some(asked.clone()) {
        let archives = Debian::arm64(folder, "bookworm")?.with_needed(&PACKAGES)?;
        for old in [&root, &part].into_iter().filter(|old| old.exists()) {
            std::fs::remove_dir_all(old)?;
        }
        std::fs::create_dir_all(&part)?;
        archives.iter().try_for_each(|archive| unpack(archive, &part))?;
        // As a whole or not at all: an attempt that broke off is made again.
        std::fs::rename(&part, &root)?;
        std::fs::write(&list, &asked)?;
    }
    let mut files = vec![
        File::link("usr/bin/cc", "gcc"),
        File::link("usr/bin/c++", "g++"),
        File::link("usr/bin/awk", "/bin/busybox"),
        File::link("usr/bin/php", "php8.2"),
        File::link("usr/lib/aarch64-linux-gnu/libmpi.so", "openmpi/lib/libmpi.so"),
        File::text("etc/passwd", "root:x:0:0:root:/tmp:/bin/sh\n".to_owned()),
        File::text("etc/group", "root:x:0:\n".to_owned()),
        File::text("etc/hosts", "127.0.0.1 localhost\n".to_owned()),
    ];
    files.extend(EXTENSIONS.map(|name| {
        let place = format!("etc/php/8.2/cli/conf.d/20-{name}.ini");
        File::text(&place, format!("extension={name}.so\n"))
    }));
    File::below("", &root, &|place| !UNREAD.contains(&place), &mut files)?;
    Ok(files)
}
