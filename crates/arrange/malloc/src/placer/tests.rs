//! A placer whose memory comes while somebody else learns.

use super::*;
use isochrone_alloc::Policy;
use isochrone_atlas_store::{encode, made};
use std::boxed::Box;
use std::sync::mpsc;
use std::vec;

/// More than tables are made for at once, several times over.
const BYTES: usize = 32 << 20;

#[test]
fn memory_beyond_the_tables_of_a_moment_ago_is_found_while_another_thread_learns() {
    let mut contents = made::lines(1, |_, _| None, &[]);
    contents.levels =
        vec![made::flat_level("llc", 20.0, &contents), made::flat_level("dram", 100.0, &contents)];
    let settings = Settings {
        atlas: Box::leak(encode(&contents).unwrap().into_boxed_slice()),
        policy: Policy::default(),
        arena_bytes_max: 2 * BYTES as u64,
        huge_pages: false,
        cores: &[],
    };
    let placer: &'static Placer<'static> = Box::leak(Box::new(Placer::new(&settings).unwrap()));
    let (to, from) = mpsc::channel();
    // A thread that nobody waits for: what goes wrong here never ends.
    std::thread::spawn(move || {
        let _learns = placer.room.enter();
        let class = SizeClass::of(256, 16).unwrap();
        let found = (0..BYTES / 256).filter(|_| !placer.take(None, class, 256).is_null());
        to.send(found.count()).unwrap();
    });
    let found = from.recv_timeout(Duration::from_secs(120)).expect("an end");
    assert_eq!(found, BYTES / 256);
}
