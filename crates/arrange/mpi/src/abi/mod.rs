//! The MPI of the running process: which kind it is, its functions, its constants.
//!
//! Open MPI, MPICH (and what follows MPICH's ABI: Intel MPI, MVAPICH) and the standard ABI differ in their handles and
//! constants and in nothing else that is used here. So one library serves all: it asks the process
//! which MPI is there when the first call comes.

mod arguments;
mod functions;
mod standard;
mod types;

pub use arguments::{Buffer, Handle};
pub(crate) use arguments::{arguments, each_uneven, large, small};
pub use functions::{CopyAttribute, DeleteAttribute, Functions};
pub(crate) use functions::{one, profiling};
pub(crate) use types::{Class, How, Layout, Types};

use std::ffi::{CStr, c_char, c_int, c_void};

/// The kinds of MPI that are known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flavour {
    /// Open MPI: handles are addresses of objects.
    OpenMpi,
    /// MPICH and those that share its ABI: handles are numbers.
    Mpich,
    /// Any MPI by the standard ABI: handles are numbers in pointers.
    Standard,
}

/// Where its symbols are looked up.
#[derive(Clone, Copy, Debug)]
struct Source(*mut c_void);

// SAFETY: a source is a token for dlsym(3), which any thread may call.
unsafe impl Send for Source {}
// SAFETY: as above.
unsafe impl Sync for Source {}

impl Source {
    fn lookup(self, name: &CStr) -> *mut c_void {
        // SAFETY: the handle is one of dlopen(3) that is never closed, or one that means all
        // libraries; the name is a C string.
        unsafe { libc::dlsym(self.0, name.as_ptr()) }
    }

    /// The function that programs call, by its profiling name.
    fn public(self, profiling: &CStr) -> *mut c_void {
        let public = profiling.to_bytes_with_nul().strip_prefix(b"P");
        let public = public.and_then(|bytes| CStr::from_bytes_with_nul(bytes).ok());
        self.lookup(public.unwrap_or(profiling))
    }
}

impl Source {
    /// Which version of the standard ABI the handles of this MPI are of, if they are (MPI 5.0, chapter 20): libraries
    /// that have it say so by themselves, before they are initialised, and an MPI's library with handles of its own
    /// says
    /// -1 where it has the function. The library that holds the functions is asked, not whoever comes first.
    fn standard_abi(self) -> Option<c_int> {
        let called = self.lookup(c"PMPI_Bcast");
        // SAFETY: an all-zero description is a valid one: addresses and pointers.
        let mut place: libc::Dl_info = unsafe { std::mem::zeroed() };
        // SAFETY: any address may be asked about, and the answer has room.
        let found = unsafe { libc::dladdr(called, &raw mut place) } != 0;
        let holder = if found && !place.dli_fname.is_null() {
            // SAFETY: dladdr(3) names a file by a C string that lives as long as it is loaded.
            open(unsafe { CStr::from_ptr(place.dli_fname) }, libc::RTLD_NOLOAD)
        } else {
            None
        };
        let asked = holder.unwrap_or(self).lookup(c"PMPI_Abi_get_version");
        type Ask = unsafe extern "C" fn(*mut c_int, *mut c_int) -> c_int;
        // SAFETY: a function of this name takes two places for ints (MPI 5.0, section 20.3.2); a null one
        // becomes none.
        let ask = unsafe { std::mem::transmute::<*mut c_void, Option<Ask>>(asked) }?;
        let (mut major, mut minor): (c_int, c_int) = (-1, -1);
        // SAFETY: it may be called at any time, and the answers have room.
        let failed = unsafe { ask(&raw mut major, &raw mut minor) } != 0;
        (!failed && major >= 0).then_some(major)
    }
}

/// An MPI.
#[derive(Debug)]
pub struct Mpi {
    source: Source,
    flavour: Flavour,
    /// Whether it is MPICH or made of it.
    of_mpich: bool,
    version: String,
    functions: Functions,
    next: Functions,
    world: Handle,
    own: Handle,
    none: Handle,
    byte: Handle,
    int: Handle,
    min: Handle,
}

/// Names of MPI libraries that a program may have loaded for itself, as an extension of Python does.
const LIBRARIES: &[&CStr] = &[
    c"libmpi.so.40",
    c"libmpich.so.12",
    c"libmpi.so.12",
    c"libmpi_abi.so.1",
    c"libmpi_abi.so.0",
    c"libmpi_abi.so",
];

/// An MPI of this process that is left alone.
#[derive(Debug)]
pub struct Stranger {
    source: Option<Source>,
    /// What it says of itself, the first line.
    pub version: String,
    /// Why it is left alone, in words.
    pub why: String,
}

impl Stranger {
    /// A function of it, or null.
    pub(crate) fn function(&self, name: &CStr) -> *mut c_void {
        self.source.map_or(std::ptr::null_mut(), |source| source.lookup(name))
    }
}

impl Mpi {
    /// The MPI that this process has loaded, if it is one that is known.
    ///
    /// # Errors
    /// What is there instead.
    pub fn here() -> Result<Self, Stranger> {
        let all = Source(libc::RTLD_DEFAULT);
        if !all.lookup(c"PMPI_Bcast").is_null() {
            return Self::of(all);
        }
        let loaded = LIBRARIES.iter().find_map(|name| open(name, libc::RTLD_NOLOAD));
        Self::of(loaded.ok_or_else(|| Stranger {
            source: None,
            version: String::new(),
            why: "no MPI is loaded".to_owned(),
        })?)
    }

    /// Loads the MPI in the library `name` into this process.
    ///
    /// # Errors
    /// Words that say what is missing.
    pub fn load(name: &CStr) -> Result<Self, String> {
        let loaded = open(name, libc::RTLD_GLOBAL).ok_or_else(|| {
            format!("{} cannot be loaded; install that MPI", name.to_string_lossy())
        })?;
        Self::of(loaded).map_err(|stranger| stranger.why)
    }

    fn of(source: Source) -> Result<Self, Stranger> {
        let lookup = |name: &CStr| source.lookup(name);
        let version = one::library_version(&lookup).map_or_else(String::new, version);
        let stranger =
            |why: String| Stranger { source: Some(source), version: version.clone(), why };
        let abi = source.standard_abi();
        if abi == Some(0) {
            return Err(stranger("a standard ABI of before its first version".to_owned()));
        }
        let missing = |name| stranger(format!("this MPI has no MPI_{name}"));
        let functions = Functions::find(&lookup).map_err(missing)?;
        let behind = |name: &CStr| {
            let found = Source(libc::RTLD_NEXT).public(name);
            if found.is_null() { lookup(name) } else { found }
        };
        let next = Functions::find(&behind).map_err(missing)?;
        let object = |name: &CStr| source.lookup(name).expose_provenance();
        let open_mpi = object(c"ompi_mpi_comm_world") != 0;
        let flavour = match version.as_str() {
            _ if abi.is_some() => Flavour::Standard,
            _ if open_mpi => Flavour::OpenMpi,
            v if ["MPICH", "MVAPICH", "Intel(R) MPI"].iter().any(|known| v.contains(known)) => {
                Flavour::Mpich
            }
            other => return Err(stranger(format!("an MPI that is not known: {other}"))),
        };
        let mut mpi = Self {
            source,
            flavour,
            of_mpich: ["MPICH", "MVAPICH", "Intel(R) MPI"]
                .iter()
                .any(|name| version.contains(name)),
            functions,
            next,
            version,
            world: 0,
            own: 0,
            none: 0,
            byte: 0,
            int: 0,
            min: 0,
        };
        mpi.world = mpi.named(c"ompi_mpi_comm_world", 0x4400_0000);
        mpi.own = mpi.named(c"ompi_mpi_comm_self", 0x4400_0001);
        mpi.none = mpi.named(c"ompi_mpi_comm_null", 0x0400_0000);
        mpi.byte = mpi.named(c"ompi_mpi_byte", 0x4c00_010d);
        mpi.int = mpi.named(c"ompi_mpi_int", 0x4c00_0405);
        mpi.min = mpi.named(c"ompi_mpi_op_min", 0x5800_0002);
        Ok(mpi)
    }

    /// Which kind.
    #[must_use]
    pub const fn flavour(&self) -> Flavour {
        self.flavour
    }

    /// What it says of itself, the first line.
    #[must_use]
    pub fn version(&self) -> &str {
        &self.version
    }

    /// Its functions.
    #[must_use]
    pub const fn functions(&self) -> &Functions {
        &self.functions
    }

    /// The same functions by the names that programs call, of whoever comes after this library: a tool that was
    /// preloaded as well, or this MPI. It is asked what the program asks, and nothing else.
    pub(crate) const fn next(&self) -> &Functions {
        &self.next
    }

    /// The same functions by the names that programs call: those of a library that was preloaded, and
    /// this MPI's own where it took none.
    ///
    /// # Errors
    /// Words that say what is missing.
    pub fn preloaded(&self) -> Result<Functions, String> {
        let all = Source(libc::RTLD_DEFAULT);
        let lookup = |name: &CStr| all.public(name);
        if all.lookup(c"MPI_Bcast") == self.symbol(c"PMPI_Bcast") {
            return Err("no library is preloaded before this MPI".to_owned());
        }
        Functions::find(&lookup).map_err(|name| format!("this MPI has no MPI_{name}"))
    }

    /// The types and operations that have names.
    pub(crate) fn types(&self) -> Types {
        let object = |name: &CStr| self.source.lookup(name).expose_provenance();
        match self.flavour {
            Flavour::OpenMpi => Types::ask(&self.functions, Some(&object)),
            Flavour::Mpich => Types::ask(&self.functions, None),
            Flavour::Standard => Types::ask(&self.functions, Some(&standard::handle)),
        }
    }

    /// A symbol of this MPI, or null.
    pub(crate) fn symbol(&self, name: &CStr) -> *mut c_void {
        self.source.lookup(name)
    }

    /// `MPI_COMM_WORLD`.
    #[must_use]
    pub const fn world(&self) -> Handle {
        self.world
    }

    /// `MPI_COMM_SELF`.
    #[must_use]
    pub const fn own(&self) -> Handle {
        self.own
    }

    /// `MPI_BYTE`.
    #[must_use]
    pub const fn byte(&self) -> Handle {
        self.byte
    }

    /// `MPI_INT`.
    #[must_use]
    pub const fn int(&self) -> Handle {
        self.int
    }

    /// `MPI_MIN`.
    #[must_use]
    pub const fn min(&self) -> Handle {
        self.min
    }

    /// Any other named object: Open MPI's name, MPICH's number.
    #[must_use]
    pub fn named(&self, name: &CStr, number: Handle) -> Handle {
        match self.flavour {
            Flavour::OpenMpi => self.source.lookup(name).expose_provenance(),
            Flavour::Mpich => number,
            Flavour::Standard => standard::handle(name),
        }
    }

    /// A handle as a caller passed it: of an `int` only the low half of the word means something.
    #[inline]
    pub(crate) const fn handle(&self, passed: Handle) -> Handle {
        match self.flavour {
            Flavour::OpenMpi | Flavour::Standard => passed,
            Flavour::Mpich => passed & 0xffff_ffff,
        }
    }

    /// Whether a communicator is none.
    pub(crate) const fn is_null_comm(&self, comm: Handle) -> bool {
        comm == 0 || comm == self.none
    }

    /// Whether a buffer is `MPI_IN_PLACE`.
    #[inline]
    pub(crate) fn is_in_place(&self, buffer: *const c_void) -> bool {
        buffer == self.in_place().cast_const()
    }

    /// `MPI_IN_PLACE`.
    #[inline]
    pub(crate) const fn in_place(&self) -> *mut c_void {
        match self.flavour {
            Flavour::OpenMpi | Flavour::Standard => std::ptr::without_provenance_mut(1),
            Flavour::Mpich => std::ptr::without_provenance_mut(usize::MAX),
        }
    }

    /// `MPI_STATUS_IGNORE`.
    pub(crate) const fn no_status(&self) -> *mut c_void {
        match self.flavour {
            Flavour::OpenMpi | Flavour::Standard => std::ptr::null_mut(),
            Flavour::Mpich => std::ptr::without_provenance_mut(1),
        }
    }

    /// `MPI_COMM_TYPE_SHARED`.
    pub(crate) const fn shared(&self) -> c_int {
        match self.flavour {
            Flavour::OpenMpi => 0,
            Flavour::Mpich => 1,
            Flavour::Standard => 221,
        }
    }

    /// Whether a handle that is no named operation is one of the program's own: in Open MPI any is, as for the MPI
    /// itself, which does not look.
    pub(crate) const fn is_own_operation(&self, operation: Handle) -> bool {
        match self.flavour {
            Flavour::OpenMpi => operation != 0,
            // The kind of an object is in the four bits from 2^26 on, how it is kept above: 1 for what is named.
            Flavour::Mpich => (operation >> 26) & 0xf == 6 && operation >> 30 >= 2,
            // Named handles are below (MPI 5.0, section 20.3).
            Flavour::Standard => operation >= 0x1000,
        }
    }

    /// `MPI_DATATYPE_NULL`.
    pub(crate) fn null_type(&self) -> Handle {
        self.named(c"ompi_mpi_datatype_null", 0x0c00_0000)
    }

    /// `MPI_INFO_NULL`.
    pub(crate) fn no_info(&self) -> Handle {
        self.named(c"ompi_mpi_info_null", 0x1c00_0000)
    }

    /// `MPI_ANY_SOURCE`.
    pub(crate) const fn any_source(&self) -> c_int {
        match self.flavour {
            Flavour::OpenMpi | Flavour::Standard => -1,
            Flavour::Mpich => -2,
        }
    }

    /// `MPI_ANY_TAG`.
    pub(crate) const fn any_tag(&self) -> c_int {
        match self.flavour {
            Flavour::OpenMpi | Flavour::Mpich => -1,
            Flavour::Standard => -2,
        }
    }

    /// `MPI_UNDEFINED`: the same in all.
    pub(crate) const UNDEFINED: c_int = -32766;

    /// `MPI_THREAD_MULTIPLE`.
    pub(crate) const fn thread_multiple(&self) -> c_int {
        match self.flavour {
            Flavour::OpenMpi | Flavour::Mpich => 3,
            Flavour::Standard => 4096,
        }
    }

    /// Whether it refuses buffers that are null or the same memory, as MPICH does by whatever ABI.
    #[inline]
    pub(crate) const fn looks_at_buffers(&self) -> bool {
        self.of_mpich
    }

    /// Whether it copies long messages once, from process to process, where the kernel lets it: MPICH moves them
    /// through shared memory.
    pub(crate) const fn copies_once(&self) -> bool {
        !self.of_mpich
    }

    /// `MPI_ERR_TRUNCATE`.
    pub(crate) const fn truncated(&self) -> c_int {
        match self.flavour {
            Flavour::OpenMpi | Flavour::Standard => 15,
            Flavour::Mpich => 14,
        }
    }

    /// `MPI_ERR_OTHER`.
    pub(crate) const fn other_error(&self) -> c_int {
        match self.flavour {
            Flavour::OpenMpi | Flavour::Standard => 16,
            Flavour::Mpich => 15,
        }
    }
}

fn open(name: &CStr, how: c_int) -> Option<Source> {
    // SAFETY: loading a library runs its constructors; an MPI's do nothing that concerns us.
    let handle = unsafe { libc::dlopen(name.as_ptr(), libc::RTLD_NOW | how) };
    (!handle.is_null()).then_some(Source(handle))
}

/// Bytes of the version of an MPI at most (MPICH's `MPI_MAX_LIBRARY_VERSION_STRING`; Open MPI has 256).
const VERSION_BYTES: usize = 8192;

fn version(ask: unsafe extern "C" fn(*mut c_char, *mut c_int) -> c_int) -> String {
    let mut text = vec![0_u8; VERSION_BYTES];
    let mut length: c_int = 0;
    let first = text.as_mut_ptr().cast::<c_char>();
    // SAFETY: this function may be called at any time, and the text has room for what any MPI says.
    let failed = unsafe { ask(first, &raw mut length) };
    let words = CStr::from_bytes_until_nul(&text).unwrap_or_default().to_string_lossy();
    if failed != 0 {
        return String::new();
    }
    let line = words.lines().next().unwrap_or_default();
    line.split_whitespace().collect::<Vec<_>>().join(" ")
}
