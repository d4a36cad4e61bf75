//! The words through which programs call a function of another library, so that a call need not pass through this one
//! any more.
//!
//! The dynamic linker keeps, for each object and each function that it calls, a word with the function's address
//! (System V ABI, "Procedure Linkage Table"). It writes that word when the function is first called, unless the object
//! is bound at start. From when everything is the next allocator's for good, its functions stand there in place of
//! ours, as if this library had not been loaded. That takes no system call: a word is left alone that the linker made
//! read-only, as are all of an object that is bound at start (`-z now`), and calls through it go on by one jump.
//!
//! Only objects that were there when the process began are looked at: these are never unloaded, and are found without
//! the dynamic linker, whose lock another thread may hold.

use crate::entry::{Back, Front};
use core::ffi::{c_int, c_void};
use core::mem::{align_of, size_of};
use core::ptr;
use core::sync::atomic::{AtomicPtr, AtomicU8, AtomicUsize, Ordering::Relaxed};
use isochrone_os::pages::kernel_page_bytes;
use libc::{Elf64_Phdr, PF_W, PT_DYNAMIC, PT_GNU_RELRO, PT_LOAD};

/// Objects that are remembered: a program and the libraries that it is linked with. Of more, calls go on as before.
const OBJECTS: usize = 48;
/// Words that are changed: few objects call more than three of our functions.
const WORDS: usize = 96;
/// Relocations of one object that are looked at.
const RELOCATIONS: usize = 1 << 14;
/// Names under which this library is called.
const NAMES: usize = 12;

/// The relocation by which the linker writes such a word.
#[cfg(target_arch = "x86_64")]
const JUMP_SLOT: u64 = 7;
#[cfg(target_arch = "aarch64")]
const JUMP_SLOT: u64 = 1026;

/// Entries of an object's dynamic section (`elf.h`).
const DT_NULL: u64 = 0;
const DT_PLTRELSZ: u64 = 2;
const DT_JMPREL: u64 = 23;

/// A function of the next allocator that a name of ours stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Name {
    /// `malloc(3)`.
    Malloc,
    /// `calloc(3)`.
    Calloc,
    /// `realloc(3)`.
    Realloc,
    /// `free(3)` and its like, which are called with more arguments.
    Free,
    /// `memalign(3)`.
    Memalign,
    /// `aligned_alloc(3)`.
    AlignedAlloc,
    /// `valloc(3)`.
    Valloc,
    /// `pvalloc(3)`.
    Pvalloc,
}

impl Name {
    const ALL: [Self; 8] = [
        Self::Malloc,
        Self::Calloc,
        Self::Realloc,
        Self::Free,
        Self::Memalign,
        Self::AlignedAlloc,
        Self::Valloc,
        Self::Pvalloc,
    ];

    /// The function among these; none for one that takes memory back where such calls stay ours.
    fn among(self, front: &Front, back: Option<&Back>) -> Option<*mut c_void> {
        Some(match self {
            Self::Malloc => front.malloc,
            Self::Calloc => front.calloc,
            Self::Realloc => back?.realloc,
            Self::Free => back?.free,
            Self::Memalign => front.memalign,
            Self::AlignedAlloc => front.aligned_alloc,
            Self::Valloc => front.valloc,
            Self::Pvalloc => front.pvalloc,
        })
    }
}

/// An exported function: its address, and what it stands for.
struct Exported {
    address: AtomicUsize,
    name: AtomicU8,
}

/// An object that the process began with.
struct Object {
    /// What its addresses are counted from.
    base: AtomicUsize,
    headers: AtomicPtr<Elf64_Phdr>,
    count: AtomicUsize,
}

/// A word that was changed, and what it held.
struct Changed {
    word: AtomicPtr<AtomicUsize>,
    before: AtomicUsize,
}

static EXPORTED: [Exported; NAMES] =
    [const { Exported { address: AtomicUsize::new(0), name: AtomicU8::new(0) } }; NAMES];
static BEGUN_WITH: [Object; OBJECTS] = [const {
    Object {
        base: AtomicUsize::new(0),
        headers: AtomicPtr::new(ptr::null_mut()),
        count: AtomicUsize::new(0),
    }
}; OBJECTS];
static CHANGED: [Changed; WORDS] =
    [const { Changed { word: AtomicPtr::new(ptr::null_mut()), before: AtomicUsize::new(0) } };
        WORDS];

/// Remembers the objects of the process, and under which addresses programs call this library. Once, from a
/// constructor, before the process has other threads.
pub fn loaded(exported: &[(Name, *const c_void)]) {
    for (kept, (name, address)) in EXPORTED.iter().zip(exported) {
        kept.name.store(*name as u8, Relaxed);
        kept.address.store(address.addr(), Relaxed);
    }
    let mut count = 0_usize;
    // SAFETY: the function takes what this one hands on, and keeps none of it but addresses of headers, which stay as
    // long as their object.
    unsafe { libc::dl_iterate_phdr(Some(remember), (&raw mut count).cast()) };
}

unsafe extern "C" fn remember(
    info: *mut libc::dl_phdr_info,
    _: libc::size_t,
    count: *mut c_void,
) -> c_int {
    // SAFETY: the linker hands out a record that it has filled.
    let info = unsafe { &*info };
    // SAFETY: the caller's own, which nobody else looks at meanwhile.
    let count = unsafe { &mut *count.cast::<usize>() };
    let Some(object) = BEGUN_WITH.get(*count) else { return 1 };
    object.base.store(usize::try_from(info.dlpi_addr).unwrap_or(0), Relaxed);
    object.headers.store(info.dlpi_phdr.cast_mut(), Relaxed);
    object.count.store(info.dlpi_phnum.into(), Relaxed);
    *count += 1;
    0
}

/// Calls go past this library from now on, as far as they can: those that allocate to `front`, and those that take
/// memory back to `back`, where nothing was placed.
pub(crate) fn lead_past(front: &Front, back: Option<&Back>) {
    let mut free = CHANGED.iter().filter(|changed| changed.word.load(Relaxed).is_null());
    for object in &BEGUN_WITH {
        object.each_word(&mut |word: &'static AtomicUsize| {
            let before = word.load(Relaxed);
            let ours = EXPORTED.iter().find(|ours| ours.address.load(Relaxed) == before);
            let name = ours.and_then(|ours| Name::ALL.get(usize::from(ours.name.load(Relaxed))));
            let onward = name.and_then(|name| name.among(front, back));
            let (Some(onward), true) = (onward, before != 0) else { return };
            let Some(changed) = free.next() else { return };
            changed.before.store(before, Relaxed);
            changed.word.store(ptr::from_ref(word).cast_mut(), Relaxed);
            word.store(onward.addr(), Relaxed);
        });
    }
}

/// Calls come here again. For a child of `fork`, in which nothing was placed.
pub(crate) fn lead_here() {
    for changed in &CHANGED {
        // SAFETY: null, or a word of an object that is never unloaded, which was written before.
        if let Some(word) = unsafe { changed.word.load(Relaxed).as_ref() } {
            word.store(changed.before.load(Relaxed), Relaxed);
            changed.word.store(ptr::null_mut(), Relaxed);
        }
    }
}

impl Object {
    /// Shows the words of this object that may be written.
    fn each_word(&self, show: &mut dyn FnMut(&'static AtomicUsize)) {
        for relocation in self.relocations().iter().take(RELOCATIONS) {
            let word = self.base.load(Relaxed).wrapping_add(relocation.r_offset);
            if relocation.r_info & 0xffff_ffff == JUMP_SLOT && self.is_written(word) {
                // SAFETY: an aligned word of a segment that is mapped to be written as long as the object is, and
                // neither the linker nor anybody else has made it read-only. The linker writes it while other threads
                // read it, as we do.
                show(unsafe { &*ptr::with_exposed_provenance::<AtomicUsize>(word) });
            }
        }
    }

    fn headers(&self) -> &'static [Elf64_Phdr] {
        let headers = self.headers.load(Relaxed);
        if headers.is_null() {
            return &[];
        }
        // SAFETY: they were the object's when the process began, and it is never unloaded.
        unsafe { core::slice::from_raw_parts(headers, self.count.load(Relaxed)) }
    }

    /// Its addresses from one of its headers.
    fn range(&self, header: &Elf64_Phdr) -> [usize; 2] {
        let start = self.base.load(Relaxed).wrapping_add(whole(header.p_vaddr));
        [start, start.wrapping_add(whole(header.p_memsz))]
    }

    /// Whether an aligned word lies where the object may be written, and not where the linker forbids that after it
    /// has relocated it.
    fn is_written(&self, word: usize) -> bool {
        let holds = |[start, end]: [usize; 2]| word >= start && word + size_of::<usize>() <= end;
        let is_of = |kind| self.headers().iter().filter(move |header| header.p_type == kind);
        let mut loaded = is_of(PT_LOAD).filter(|header| header.p_flags & PF_W != 0);
        let down = |at: usize| at / kernel_page_bytes() * kernel_page_bytes();
        let mut forbidden = is_of(PT_GNU_RELRO).map(|header| self.range(header));
        word.is_multiple_of(size_of::<usize>())
            && loaded.any(|header| holds(self.range(header)))
            && !forbidden.any(|[start, end]| word >= down(start) && word < end)
    }

    /// The object's dynamic section: tags and values.
    fn dynamic(&self) -> &'static [[u64; 2]] {
        let Some(header) = self.headers().iter().find(|header| header.p_type == PT_DYNAMIC) else {
            return &[];
        };
        let [start, end] = self.range(header);
        let count = (end - start) / size_of::<[u64; 2]>();
        // SAFETY: mapped, aligned and as long as its header says for as long as the object is, which is never unloaded;
        // the linker has written to it before any constructor.
        unsafe { core::slice::from_raw_parts(ptr::with_exposed_provenance(start), count) }
    }

    /// The table of these relocations; empty where the object has none.
    fn relocations(&self) -> &'static [Relocation] {
        let Some((table, count)) = self.table() else { return &[] };
        // SAFETY: within a segment that is mapped and never written, of such entries, as long as the object is there.
        unsafe { core::slice::from_raw_parts(table, count) }
    }

    /// Where it is, and how many it has.
    fn table(&self) -> Option<(*const Relocation, usize)> {
        let found = |tag: u64| {
            let mut all = self.dynamic().iter().take_while(|[tag, _]| *tag != DT_NULL);
            all.find(|[other, _]| *other == tag).map(|[_, value]| whole(*value))
        };
        let (table, bytes) = (found(DT_JMPREL)?, found(DT_PLTRELSZ)?);
        // glibc writes where the table is; what is smaller than the base was not written.
        let base = self.base.load(Relaxed);
        let table = if table < base { base + table } else { table };
        let holds = |[from, to]: [usize; 2]| table >= from && table + bytes <= to;
        let loads = self.headers().iter().filter(|header| header.p_type == PT_LOAD);
        let is_there = loads.map(|header| self.range(header)).any(holds);
        let count = bytes / size_of::<Relocation>();
        let aligned = table.is_multiple_of(align_of::<Relocation>());
        (is_there && aligned).then(|| (ptr::with_exposed_provenance(table), count))
    }
}

/// An entry of such a table (`Elf64_Rela`).
#[repr(C)]
struct Relocation {
    r_offset: usize,
    r_info: u64,
    _r_addend: i64,
}

fn whole(value: u64) -> usize {
    usize::try_from(value).unwrap_or(usize::MAX)
}
