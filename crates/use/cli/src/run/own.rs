//! Which allocator a program brings, so that little or nothing of it can be placed.
//!
//! The library stands before the `malloc` of the C library. A runtime that has its objects in a heap of its own asks
//! `malloc` for little, and a program that defines `malloc` itself is not reached by anything that is preloaded. Both
//! show in the names that the program's file has. What it loads later, and what the programs that it starts bring, does
//! not.

use std::fs::File;

use super::elf::Elf;

/// Where Go's linker leaves which packages a program was built from.
const GO_SECTION: &str = ".go.buildinfo";
/// What is said of Go's programs, linked in either way.
pub(super) const GO: &str = "Go's runtime has a heap of its own and does not ask malloc";

/// What is said of a program that no preloaded allocator reaches.
pub(crate) const DEFINES: &str = "it defines malloc itself, before anything that is preloaded";

/// An allocator that a program brings.
#[derive(Debug)]
struct Own {
    words: &'static str,
    /// The variable, and its values, by which the program is told to ask `malloc` all the same.
    unless: Option<(&'static str, &'static [&'static str])>,
}

const fn own(words: &'static str) -> Own {
    Own { words, unless: None }
}

const PYTHON: Own = Own {
    words: "CPython has its objects in a heap of its own (PYTHONMALLOC=malloc leaves them to malloc)",
    unless: Some(("PYTHONMALLOC", &["malloc", "malloc_debug"])),
};
const PHP: Own = Own {
    words: "PHP has its objects in a heap of its own (USE_ZEND_ALLOC=0 leaves them to malloc)",
    unless: Some(("USE_ZEND_ALLOC", &["0"])),
};

/// Names that a program defines, and what that says of its objects.
static DEFINED: [(&str, Own); 13] = [
    ("malloc", own(DEFINES)),
    ("PyObject_Malloc", PYTHON),
    ("_emalloc", PHP),
    ("MemoryContextAlloc", own("PostgreSQL cuts its objects from blocks of 8 KiB and more")),
    ("ngx_palloc", own("nginx cuts its objects from pools")),
    ("_ZN2v87Isolate7DisposeEv", own("V8 has the objects of its scripts in a heap of its own")),
    ("mi_malloc", own("it has mimalloc built in")),
    ("je_malloc", own("it has jemalloc built in")),
    ("_rjem_malloc", own("it has jemalloc built in")),
    ("tc_malloc", own("it has tcmalloc built in")),
    ("rpmalloc", own("it has rpmalloc built in")),
    ("caml_alloc_shr", own("OCaml has its objects in a heap of its own")),
    ("stg_upd_frame_info", own("GHC's runtime has a heap of its own")),
];

/// Beginnings of the names of libraries that a program asks for, and what that says.
static NEEDED: [(&str, Own); 6] = [
    ("libpython", PYTHON),
    ("libjli.", own("Java has its objects in a heap of its own")),
    ("libjemalloc", own("it links jemalloc, which gets what is not placed")),
    ("libmimalloc", own("it links mimalloc, which gets what is not placed")),
    ("libtcmalloc", own("it links tcmalloc, which gets what is not placed")),
    ("libsnmalloc", own("it links snmalloc, which gets what is not placed")),
];

/// Whether a program is Go's.
pub(super) fn is_go(elf: &Elf, file: &File) -> bool {
    elf.has_section(file, GO_SECTION)
}

/// What is to be said of the allocator that a program brings; `None` where it shows none. `variable` is the program's
/// environment.
pub(super) fn allocator(
    elf: &Elf,
    file: &File,
    variable: impl Fn(&str) -> Option<String>,
) -> Option<&'static str> {
    if is_go(elf, file) {
        return Some(GO);
    }
    let names: Vec<&str> = DEFINED.iter().map(|(name, _)| *name).collect();
    let defined = elf.defines(file, &names);
    let defined = DEFINED.iter().find(|(name, _)| Some(*name) == defined);
    let (_, found) = defined.or_else(|| {
        let needed = elf.needed(file);
        NEEDED.iter().find(|(begin, _)| needed.iter().any(|name| name.starts_with(begin)))
    })?;
    let is_told = found.unless.is_some_and(|(name, values)| {
        variable(name).is_some_and(|value| values.contains(&value.as_str()))
    });
    (!is_told).then_some(found.words)
}

#[cfg(test)]
mod tests {
    use std::io::Read as _;
    use std::path::Path;

    use super::*;

    fn of(path: &Path, variable: impl Fn(&str) -> Option<String>) -> Option<&'static str> {
        let file = File::open(path).ok()?;
        let mut head = [0; 256];
        (&file).read_exact(&mut head).ok()?;
        allocator(&Elf::parse(&head)?, &file, variable)
    }

    #[test]
    fn a_program_that_asks_malloc_shows_nothing() {
        assert_eq!(of(Path::new("/bin/sh"), |_| None), None);
        assert_eq!(of(&std::env::current_exe().unwrap(), |_| None), None);
    }

    #[test]
    fn python_is_told_from_one_that_leaves_its_objects_to_malloc() {
        let python = Path::new("/usr/bin/python3");
        if !python.exists() {
            return;
        }
        assert_eq!(of(python, |_| None), Some(PYTHON.words));
        let told = |name: &str| (name == "PYTHONMALLOC").then(|| "malloc".to_owned());
        assert_eq!(of(python, told), None);
        let other = |name: &str| (name == "PYTHONMALLOC").then(|| "pymalloc".to_owned());
        assert_eq!(of(python, other), Some(PYTHON.words));
    }
}
