//! The MPI of the running process: which kind it is, its functions, its constants.
//!
//! Open MPI and MPICH (and what follows MPICH's ABI: Intel MPI, MVAPICH) differ in their handles and
//! constants and in nothing else that is used here. So one library serves both: it asks the process
//! which MPI is there when the first call comes.

mod functions;
mod types;

pub use functions::{Buffer, CopyAttribute, DeleteAttribute, Functions, Handle};
pub(crate) use types::{Layout, Types};

use std::ffi::{CStr, c_char, c_int, c_void};

/// The kinds of MPI that are known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flavour {
    /// Open MPI: handles are addresses of objects.
    OpenMpi,
    /// MPICH and those that share its ABI: handles are numbers.
    Mpich,
}

/// Where its symbols are looked up.
#[derive(Clone, Copy, Debug)]
struct Source(*mut c_void);

impl Source {
    fn lookup(self, name: &CStr) -> *mut c_void {
        // SAFETY: the handle is one of dlopen(3) that is never closed, or one that means all
        // libraries; the name is a C string.
        unsafe { libc::dlsym(self.0, name.as_ptr()) }
    }
}

/// An MPI.
#[derive(Debug)]
pub struct Mpi {
    source: Source,
    flavour: Flavour,
    version: String,
    functions: Functions,
    world: Handle,
    own: Handle,
    byte: Handle,
    int: Handle,
    min: Handle,
}

// SAFETY: a source is a token for dlsym(3), which any thread may call.
unsafe impl Send for Mpi {}
// SAFETY: as above; the rest is plain numbers and functions.
unsafe impl Sync for Mpi {}

/// Names of MPI libraries that a program may have loaded for itself, as an extension of Python does.
const LIBRARIES: &[&CStr] = &[c"libmpi.so.40", c"libmpich.so.12", c"libmpi.so.12"];

impl Mpi {
    /// The MPI that this process has loaded, if it is one that is known.
    ///
    /// # Errors
    /// Words that say what is missing.
    pub fn here() -> Result<Self, String> {
        let all = Source(libc::RTLD_DEFAULT);
        if !all.lookup(c"PMPI_Bcast").is_null() {
            return Self::of(all);
        }
        let loaded = LIBRARIES.iter().find_map(|name| open(name, libc::RTLD_NOLOAD));
        Self::of(loaded.ok_or("no MPI is loaded")?)
    }

    /// Loads the MPI in the library `name` into this process.
    ///
    /// # Errors
    /// Words that say what is missing.
    pub fn load(name: &CStr) -> Result<Self, String> {
        Self::of(open(name, libc::RTLD_GLOBAL).ok_or_else(|| {
            format!("{} cannot be loaded; install that MPI", name.to_string_lossy())
        })?)
    }

    fn of(source: Source) -> Result<Self, String> {
        let lookup = |name: &CStr| source.lookup(name);
        let functions =
            Functions::find(&lookup).map_err(|name| format!("this MPI has no MPI_{name}"))?;
        let version = version(&functions);
        let object = |name: &CStr| source.lookup(name).expose_provenance();
        let open_mpi = object(c"ompi_mpi_comm_world") != 0;
        let flavour = match version.as_str() {
            _ if open_mpi => Flavour::OpenMpi,
            v if ["MPICH", "MVAPICH", "Intel(R) MPI"].iter().any(|known| v.contains(known)) => {
                Flavour::Mpich
            }
            other => return Err(format!("an MPI that is not known: {other}")),
        };
        let handle = |name, number| if open_mpi { object(name) } else { number };
        Ok(Self {
            source,
            flavour,
            functions,
            version,
            world: handle(c"ompi_mpi_comm_world", 0x4400_0000),
            own: handle(c"ompi_mpi_comm_self", 0x4400_0001),
            byte: handle(c"ompi_mpi_byte", 0x4c00_010d),
            int: handle(c"ompi_mpi_int", 0x4c00_0405),
            min: handle(c"ompi_mpi_op_min", 0x5800_0002),
        })
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

    /// The same functions by the names that programs call: those of a library that was preloaded, and
    /// this MPI's own where it took none.
    ///
    /// # Errors
    /// Words that say what is missing.
    pub fn preloaded(&self) -> Result<Functions, String> {
        let all = Source(libc::RTLD_DEFAULT);
        let lookup = |name: &CStr| {
            let public = name.to_bytes_with_nul().strip_prefix(b"P");
            let public = public.and_then(|bytes| CStr::from_bytes_with_nul(bytes).ok());
            all.lookup(public.unwrap_or(name))
        };
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
        }
    }

    /// A handle as a caller passed it: of an `int` only the low half of the word means something.
    #[inline]
    pub(crate) const fn handle(&self, passed: Handle) -> Handle {
        match self.flavour {
            Flavour::OpenMpi => passed,
            Flavour::Mpich => passed & 0xffff_ffff,
        }
    }

    /// Whether a communicator is none.
    pub(crate) fn is_null_comm(&self, comm: Handle) -> bool {
        comm == 0 || comm == self.named(c"ompi_mpi_comm_null", 0x0400_0000)
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
            Flavour::OpenMpi => std::ptr::without_provenance_mut(1),
            Flavour::Mpich => std::ptr::without_provenance_mut(usize::MAX),
        }
    }

    /// `MPI_STATUS_IGNORE`.
    pub(crate) const fn no_status(&self) -> *mut c_void {
        match self.flavour {
            Flavour::OpenMpi => std::ptr::null_mut(),
            Flavour::Mpich => std::ptr::without_provenance_mut(1),
        }
    }

    /// `MPI_COMM_TYPE_SHARED`.
    pub(crate) const fn shared(&self) -> c_int {
        match self.flavour {
            Flavour::OpenMpi => 0,
            Flavour::Mpich => 1,
        }
    }

    /// `MPI_INFO_NULL`.
    pub(crate) fn no_info(&self) -> Handle {
        self.named(c"ompi_mpi_info_null", 0x1c00_0000)
    }

    /// `MPI_ANY_SOURCE`.
    pub(crate) const fn any_source(&self) -> c_int {
        match self.flavour {
            Flavour::OpenMpi => -1,
            Flavour::Mpich => -2,
        }
    }

    /// `MPI_ANY_TAG`: -1 in both.
    pub(crate) const ANY_TAG: c_int = -1;
    /// `MPI_UNDEFINED`: the same in both.
    pub(crate) const UNDEFINED: c_int = -32766;
    /// `MPI_THREAD_MULTIPLE`: the same in both.
    pub(crate) const THREAD_MULTIPLE: c_int = 3;

    /// `MPI_ERR_OTHER`.
    pub(crate) const fn other_error(&self) -> c_int {
        match self.flavour {
            Flavour::OpenMpi => 16,
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

fn version(functions: &Functions) -> String {
    let mut text = vec![0_u8; VERSION_BYTES];
    let mut length: c_int = 0;
    let first = text.as_mut_ptr().cast::<c_char>();
    // SAFETY: this function may be called at any time, and the text has room for what any MPI says.
    let failed = unsafe { (functions.library_version)(first, &raw mut length) };
    let words = CStr::from_bytes_until_nul(&text).unwrap_or_default().to_string_lossy();
    if failed != 0 {
        return String::new();
    }
    let line = words.lines().next().unwrap_or_default();
    line.split_whitespace().collect::<Vec<_>>().join(" ")
}
