//! What a mapping promises: alignment, zeroes, honesty about its pages, and that frames change
//! and contents stay when one is replaced.

use super::*;
use crate::frames::Pagemap;
use core::sync::atomic::Ordering;
use isochrone_units::RegionId;
use std::string::String;

/// Sum of a field of `/proc/self/smaps` over the mappings inside of `mapping`, in KiB.
fn smaps_kib(mapping: &Mapping, field: &str) -> u64 {
    let text = std::fs::read_to_string("/proc/self/smaps").expect("Linux has it");
    let range = mapping.as_ptr().addr()..mapping.as_ptr().addr() + mapping.len();
    let (mut inside, mut sum) = (false, 0);
    for line in text.lines() {
        let word = line.split_whitespace().next().unwrap_or_default();
        if let Some((start, _)) = word.split_once('-') {
            inside = usize::from_str_radix(start, 16).is_ok_and(|start| range.contains(&start));
        } else if inside && word.strip_suffix(':') == Some(field) {
            let kib = line.split_whitespace().nth(1).map(str::parse::<u64>);
            sum += kib.expect("a number").expect("a number");
        }
    }
    sum
}

#[test]
fn memory_is_aligned_zeroed_present_and_as_long_as_asked() {
    for (wanted, bytes, expected) in [
        (Backing::Small, 1, PAGE_BYTES),
        (Backing::Small, (5 << 20) + 1, (5 << 20) + PAGE_BYTES),
        (Backing::Transparent2M, (3 << 20) + 1, 4 << 20),
    ] {
        let mapping = Mapping::anonymous(bytes, wanted).expect("a few MiB");
        assert_eq!(mapping.as_ptr().align_offset(HUGE_PAGE_BYTES), 0);
        assert_eq!(mapping.len(), expected);
        assert_eq!(mapping.lines() * 64, expected as u64);
        assert_eq!(mapping.pages() * 4096, expected as u64);
        assert_eq!(smaps_kib(&mapping, "Rss") * 1024, expected as u64, "{mapping:?}");
        assert!(mapping.words().iter().all(|word| word.load(Ordering::Relaxed) == 0));
    }
}

#[test]
fn what_is_not_wanted_any_more_is_left_out() {
    for wanted in [Backing::Small, Backing::Transparent2M] {
        let mut asked = 0;
        let mapping = Mapping::anonymous_while(3 * PART_BYTES, wanted, &mut || {
            asked += 1;
            asked < 2
        });
        let mapping = mapping.expect("some MiB");
        assert_eq!((asked, mapping.len()), (2, 2 * PART_BYTES));
        assert_eq!(smaps_kib(&mapping, "Rss") * 1024, 2 * PART_BYTES as u64);
        assert!(mapping.huge_share().is_none_or(|share| share <= 1.0));
        let least = Mapping::anonymous_while(3 * PART_BYTES, wanted, &mut || false);
        assert_eq!(least.expect("some MiB").len(), PART_BYTES, "a mapping is never empty");
    }
}

#[test]
fn what_is_said_of_huge_pages_is_what_the_kernel_says() {
    let small = Mapping::anonymous(8 << 20, Backing::Small).expect("8 MiB");
    assert_eq!((small.backing(), small.huge_share()), (Backing::Small, Some(0.0)));
    assert_eq!(smaps_kib(&small, "AnonHugePages"), 0);

    let asked = Mapping::anonymous(8 << 20, Backing::Transparent2M).expect("8 MiB");
    let kib = u32::try_from(smaps_kib(&asked, "AnonHugePages")).expect("at most 8192");
    let share = f64::from(kib) / 8192.0;
    match asked.huge_share() {
        Some(said) => assert!((said - share).abs() < 1e-9, "said {said}, is {share}"),
        None => assert_eq!(asked.backing(), Backing::Small),
    }
    assert_eq!(asked.backing() == Backing::Transparent2M, asked.huge_share() == Some(1.0));
}

#[test]
fn the_pool_gives_its_pages_or_says_what_to_do() {
    match Mapping::anonymous(2 << 20, Backing::HugeTlb2M) {
        Ok(mapping) => {
            assert_eq!((mapping.backing(), mapping.huge_share()), (Backing::HugeTlb2M, Some(1.0)));
            assert_eq!(smaps_kib(&mapping, "Private_Hugetlb"), 2048);
            assert!(mapping.replace_frame(PageAddr(0)).is_err_and(|e| e.is_unsupported()));
        }
        Err(error) => assert!(error.advice.contains("nr_hugepages"), "{error}"),
    }
}

#[test]
fn a_dropped_mapping_is_gone() {
    let mapping = Mapping::anonymous(4 << 20, Backing::Small).expect("4 MiB");
    let pagemap = Pagemap::open().expect("Linux has it");
    let page = mapping.virtual_page(PageAddr(7));
    let seen = pagemap.frame(page);
    assert_eq!(seen.is_some(), pagemap.shows_frames());
    let start = std::format!("{:x}-", mapping.as_ptr().addr());
    let is_listed = || {
        let maps: String = std::fs::read_to_string("/proc/self/maps").expect("Linux has it");
        maps.lines().any(|line| line.starts_with(&start))
    };
    assert!(is_listed());
    drop(mapping);
    assert!(!is_listed());
}

#[test]
fn shared_memory_is_seen_from_its_second_view() {
    let first = Mapping::shared_memfd(3 * PAGE_BYTES).expect("12 KiB");
    let second = first.second_view().expect("room for one more");
    assert_ne!(first.as_ptr(), second.as_ptr());
    assert_ne!(first.memfd().expect("a file"), second.memfd().expect("another"));
    first.words()[700].store(42, Ordering::Relaxed);
    assert_eq!(second.words()[700].load(Ordering::Relaxed), 42);
    let private = Mapping::anonymous(PAGE_BYTES, Backing::Small).expect("4 KiB");
    assert!(private.memfd().is_none() && private.second_view().is_err());
    assert!(first.replace_frame(PageAddr(0)).is_err_and(|e| e.is_unsupported()));
}

#[test]
fn a_replaced_frame_differs_and_nothing_else_does() {
    for backing in [Backing::Small, Backing::Transparent2M] {
        let mapping = Mapping::anonymous(2 << 20, backing).expect("2 MiB");
        for (i, word) in mapping.words().iter().enumerate() {
            word.store(i as u64, Ordering::Relaxed);
        }
        let pagemap = Pagemap::open().expect("Linux has it");
        let read = |out: &mut [Option<u64>; 512]| {
            pagemap.frames(mapping.virtual_page(PageAddr(0)), out).expect("our own pages");
        };
        let (mut before, mut after) = ([None; 512], [None; 512]);
        read(&mut before);
        mapping.replace_frame(PageAddr(9)).expect("private memory");
        read(&mut after);
        let kept = |(i, word): (usize, &AtomicU64)| word.load(Ordering::Relaxed) == i as u64;
        assert!(mapping.words().iter().enumerate().all(kept));
        if !pagemap.shows_frames() {
            // Not root: the frames cannot be compared, and none may be invented.
            assert_eq!((before, after), ([None; 512], [None; 512]));
            continue;
        }
        for page in 0..512 {
            assert!(before[page].is_some() && after[page].is_some());
            assert_eq!(before[page] == after[page], page != 9, "page {page}, {backing:?}");
        }
        // The page can be replaced again, and written.
        mapping.replace_frame(PageAddr(9)).expect("private memory");
        mapping.words()[9 * 512].store(1, Ordering::Relaxed);
    }
}

#[test]
fn pages_outside_are_refused() {
    let mapping = Mapping::anonymous(PAGE_BYTES, Backing::Small).expect("4 KiB");
    assert!(mapping.replace_frame(PageAddr(1)).is_err_and(|e| e.errno == libc::EINVAL));
    assert!(mapping.regions_of(&[PageAddr(1)], &mut [None]).is_err());
    assert!(mapping.regions_of(&[PageAddr(0)], &mut []).is_err());
    assert!(mapping.check_lines(&[LineAddr(63)]).is_ok());
    assert!(mapping.check_lines(&[LineAddr(0), LineAddr(64)]).is_err());
    assert!(Mapping::anonymous(usize::MAX, Backing::Small).is_err());
    assert!(Mapping::anonymous(usize::MAX / 2 + 1, Backing::Transparent2M).is_err());
}

#[test]
fn bound_pages_live_where_they_were_bound() {
    let mapping = Mapping::anonymous(100 * PAGE_BYTES, Backing::Small).expect("400 KiB");
    let pages: std::vec::Vec<PageAddr> = (0..100).map(PageAddr).collect();
    let mut regions = [None; 100];
    match mapping.regions_of(&pages, &mut regions) {
        // A kernel without regions, or a sandbox: the way out is named.
        Err(error) => return assert!(!error.advice.is_empty() && error.errno != 0),
        Ok(()) => assert!(regions.iter().all(Option::is_some)),
    }
    for region in regions.map(|region| region.expect("checked above")) {
        mapping.bind(region).expect("a region that has pages is usable");
        let mut now = [None; 100];
        mapping.regions_of(&pages, &mut now).expect("it worked before");
        assert_eq!(now, [Some(region); 100]);
    }
    assert!(mapping.bind(RegionId(1023)).is_err());
    assert!(mapping.bind(RegionId(1024)).is_err_and(|e| e.errno == libc::EINVAL));
}

#[test]
fn memory_is_locked_or_the_limit_is_named() {
    let mapping = Mapping::anonymous(16 * PAGE_BYTES, Backing::Small).expect("64 KiB");
    match mapping.lock() {
        Ok(()) => assert_eq!(smaps_kib(&mapping, "Locked"), 64),
        Err(error) => assert!(error.advice.contains("ulimit -l"), "{error}"),
    }
}

#[test]
fn what_is_absent_comes_part_by_part() {
    let mapping = Mapping::absent(10 * PAGE_BYTES).expect("address space");
    assert_eq!(mapping.len(), 10 * PAGE_BYTES);
    let words = mapping.words();
    mapping.populate_part(0..1).expect("a page");
    words[3].store(7, core::sync::atomic::Ordering::Relaxed);
    mapping.populate_part(0..3 * PAGE_BYTES).expect("two more");
    assert_eq!(words[3].load(core::sync::atomic::Ordering::Relaxed), 7, "what is there stays");
    mapping.populate_part(9 * PAGE_BYTES..99 * PAGE_BYTES).expect("the last");
    mapping.populate_part(99 * PAGE_BYTES..100 * PAGE_BYTES).expect("nothing");
}
