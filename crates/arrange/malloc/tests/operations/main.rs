//! Random operations of eight threads on the process's allocator, which also free what others
//! made: every object keeps its bytes until it is freed, and is as aligned as asked. Built for
//! `AddressSanitizer` (see CONTRIBUTING.md), what is free is poisoned as well, so that an allocator
//! that touches it, or hands it out twice, is caught.

#[cfg(test)]
#[path = "../preload/atlas.rs"]
mod atlas;

#[cfg(test)]
#[allow(unsafe_code, reason = "an allocator is called as Rust calls it")]
mod tests {
    use std::alloc::{GlobalAlloc, Layout};
    use std::ffi::CString;
    use std::os::unix::ffi::OsStrExt;
    use std::path::Path;
    use std::sync::{Mutex, PoisonError};

    use isochrone_alloc::Policy;
    use isochrone_malloc::{Config, CoreList, IsochroneAlloc, PathBytes, Reason};
    use isochrone_units::CoreId;

    use super::atlas::flat_atlas;

    const THREADS: usize = 8;
    /// Objects that a thread has at once, at most.
    const KEPT: usize = 4096;
    /// Objects that wait for another thread, at most.
    const SENT: usize = 256;
    /// Objects after which placing has begun.
    const FIRST: u32 = 1000;
    static ALLOCATOR: IsochroneAlloc = IsochroneAlloc;
    /// The allocator rightly writes to a slot that is poisoned still when it zeroes or copies.
    const IT_WRITES: bool = cfg!(not(asan));

    /// What the sanitizer is told.
    #[cfg(asan)]
    mod shadow {
        use std::alloc::Layout;
        use std::ffi::c_void;

        unsafe extern "C" {
            fn __asan_poison_memory_region(at: *const c_void, bytes: usize);
            fn __asan_unpoison_memory_region(at: *const c_void, bytes: usize);
        }

        /// Slots hold a power of two, glibc's objects never do. Only slots are told of: glibc's
        /// memory may go back to the system and be mapped for something else.
        fn slot_bytes(at: *mut u8) -> Option<usize> {
            // SAFETY: the object is live.
            let bytes = unsafe { isochrone_malloc::abi::malloc_usable_size(at.cast()) };
            bytes.is_power_of_two().then_some(bytes)
        }

        pub(super) fn made(at: *mut u8, layout: Layout) {
            let bytes = slot_bytes(at).unwrap_or(layout.size());
            // SAFETY: the object has so many bytes.
            unsafe { __asan_unpoison_memory_region(at.cast(), bytes) };
        }

        pub(super) fn freed(at: *mut u8) {
            if let Some(bytes) = slot_bytes(at) {
                // SAFETY: the whole slot is this object's.
                unsafe { __asan_poison_memory_region(at.cast(), bytes) };
            }
        }
    }

    #[cfg(not(asan))]
    mod shadow {
        use std::alloc::Layout;

        pub(super) const fn made(_: *mut u8, _: Layout) {}
        pub(super) const fn freed(_: *mut u8) {}
    }

    /// A live object, all of whose bytes are `byte`.
    #[derive(Debug)]
    struct Object {
        at: *mut u8,
        layout: Layout,
        byte: u8,
    }

    // SAFETY: the memory is the object's alone, and any thread may free it.
    unsafe impl Send for Object {}

    impl Object {
        fn new(layout: Layout, byte: u8, zeroed: bool) -> Self {
            let at = if zeroed {
                // SAFETY: the layout has a size.
                unsafe { ALLOCATOR.alloc_zeroed(layout) }
            } else {
                // SAFETY: the layout has a size.
                unsafe { ALLOCATOR.alloc(layout) }
            };
            assert!(!at.is_null() && at.addr() % layout.align() == 0, "{layout:?} {at:?}");
            shadow::made(at, layout);
            let object = Self { at, layout, byte };
            if zeroed {
                assert!(object.bytes().iter().all(|&byte| byte == 0), "{object:?}");
            }
            object.filled()
        }

        fn filled(self) -> Self {
            // SAFETY: it has so many bytes, and they are its own.
            unsafe { self.at.write_bytes(self.byte, self.layout.size()) };
            self
        }

        fn bytes(&self) -> &[u8] {
            // SAFETY: so many bytes were written, by `filled` or by zeroing.
            unsafe { std::slice::from_raw_parts(self.at, self.layout.size()) }
        }

        fn check(&self, bytes: usize) {
            assert!(self.bytes()[..bytes].iter().all(|&byte| byte == self.byte), "{self:?}");
        }

        fn resized(mut self, size: usize) -> Self {
            self.check(self.layout.size());
            let (at, layout) = (self.at, self.layout);
            if !IT_WRITES {
                let new = Layout::from_size_align(size, layout.align()).expect("a layout");
                let new = Self::new(new, self.byte, false);
                self.free();
                return new;
            }
            // SAFETY: the object is live with this layout, and the size is not zero.
            self.at = unsafe { ALLOCATOR.realloc(at, layout, size) };
            assert!(!self.at.is_null());
            self.layout = Layout::from_size_align(size, layout.align()).expect("a layout");
            self.check(size.min(layout.size()));
            self.filled()
        }

        fn free(self) {
            self.check(self.layout.size());
            shadow::freed(self.at);
            // SAFETY: it is live with this layout, and nobody refers to it.
            unsafe { ALLOCATOR.dealloc(self.at, self.layout) };
        }
    }

    struct Dice(u64);

    impl Dice {
        fn next(&mut self) -> u64 {
            self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
            let mut z = self.0;
            z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
            z ^ z >> 31
        }

        fn below(&mut self, limit: usize) -> usize {
            usize::try_from(self.next() % limit.max(1) as u64).expect("small")
        }

        fn size(&mut self) -> usize {
            let most = [16, 64, 64, 128, 256, 256, 300, 4000][self.below(8)];
            self.below(most) + 1
        }

        fn layout(&mut self) -> Layout {
            let align = [1, 8, 16, 16, 16, 16, 64, 256][self.below(8)];
            // The sanitizer stands in for glibc's `memalign`, but not for its `free`.
            let align = if IT_WRITES { align } else { align.min(16) };
            Layout::from_size_align(self.size(), align).expect("a layout")
        }
    }

    fn work(me: usize, operations: usize, sent: &[Mutex<Vec<Object>>]) {
        let mut dice = Dice(me as u64 + 1);
        let mut kept: Vec<Object> = Vec::with_capacity(KEPT + SENT);
        for step in 0..operations {
            let byte = u8::try_from(step % 251).expect("a byte");
            let pick = dice.below(kept.len());
            match dice.below(16) {
                0..=6 if kept.len() < KEPT => {
                    let zeroed = IT_WRITES && step % 5 == 0;
                    kept.push(Object::new(dice.layout(), byte, zeroed));
                }
                7 | 8 if !kept.is_empty() => {
                    let object = kept.swap_remove(pick).resized(dice.size());
                    kept.push(object);
                }
                9 if !kept.is_empty() => {
                    let mut box_of = sent[dice.below(THREADS)].lock().expect("no thread failed");
                    if box_of.len() < SENT {
                        box_of.push(kept.swap_remove(pick));
                    }
                }
                10 => {
                    let mine = std::mem::take(&mut *sent[me].lock().expect("no thread failed"));
                    mine.into_iter().for_each(Object::free);
                }
                _ if !kept.is_empty() => kept.swap_remove(pick).free(),
                _ => {}
            }
        }
        kept.into_iter().for_each(Object::free);
    }

    /// Tells the process's allocator to place from the first byte on.
    fn begin(folder: &Path) {
        let atlas = folder.join("flat.atlas");
        std::fs::write(&atlas, flat_atlas()).expect("writable");
        let config = Config {
            policy: Policy::default(),
            start_bytes: 0,
            force: true,
            arena_bytes_max: 256 << 20,
            cores: CoreList::new(&[CoreId(0), CoreId(1)]).expect("short"),
            atlas: PathBytes::new(atlas.as_os_str().as_bytes()).expect("short"),
            ..Config::default()
        };
        let file = folder.join("config");
        std::fs::write(&file, config.to_bytes()).expect("writable");
        let path = CString::new(file.as_os_str().as_bytes()).expect("no zero in it");
        IsochroneAlloc::begin(Some(&path));
        // It begins here: objects that threads ask for while one of them begins go to glibc.
        for _ in 0..FIRST {
            Object::new(Layout::new::<[u8; 64]>(), 1, false).free();
        }
    }

    /// The allocator is the process's: what one test does while it begins, another's report has.
    static ALONE: Mutex<()> = Mutex::new(());

    fn random_operations(each: usize) {
        let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
        let folder = tempfile::tempdir().expect("a folder");
        begin(folder.path());
        let sent: Vec<Mutex<Vec<Object>>> = (0..THREADS).map(|_| Mutex::default()).collect();
        std::thread::scope(|threads| {
            for me in 0..THREADS {
                let sent = &sent;
                threads.spawn(move || work(me, each, sent));
            }
        });
        for left in sent {
            left.into_inner().expect("no thread failed").into_iter().for_each(Object::free);
        }
        let report = IsochroneAlloc::report();
        assert!(
            report.placed_share() > Some(0.9),
            "{:?}, and {:?}",
            report.placed(),
            Reason::ALL.map(|reason| (reason, report.delegated(reason).objects))
        );
    }

    #[test]
    fn objects_keep_their_bytes() {
        random_operations(40_000);
    }

    #[test]
    #[ignore = "ten million operations; for AddressSanitizer, see CONTRIBUTING.md"]
    fn ten_million_operations() {
        random_operations(10_000_000 / THREADS);
    }
}
