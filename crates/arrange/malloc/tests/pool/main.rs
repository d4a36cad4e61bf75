//! Pools over an atlas of alike lines, so that nothing is timed: records keep their values, handles
//! are refused where they do not belong, and every line comes back.

#[cfg(test)]
#[path = "../preload/atlas.rs"]
mod atlas;

#[cfg(test)]
mod tests {
    use super::atlas::flat_atlas;
    use isochrone_alloc::{Mode, Policy};
    use isochrone_malloc::{Handle, InstanceError, Pool, Settings};
    use isochrone_units::CoreId;

    fn settings(atlas: &[u8], mode: Mode, bytes: u64) -> Settings<'_> {
        Settings {
            atlas,
            policy: Policy { mode, ..Policy::default() },
            arena_bytes_max: bytes,
            huge_pages: false,
            cores: &[],
        }
    }

    #[test]
    fn records_keep_their_values_in_every_mode_side_by_side() {
        let atlas = flat_atlas();
        let modes = [Mode::Aware, Mode::Oblivious, Mode::Adversarial];
        let mut pools = modes.map(|mode| {
            let pool: Pool<'_, [u64; 8]> = Pool::new(&settings(&atlas, mode, 16 << 20)).unwrap();
            (pool, Vec::new())
        });
        for value in 0..20_000_u64 {
            for (pool, handles) in &mut pools {
                handles.push(pool.alloc([value; 8]).expect("room"));
            }
        }
        for (pool, handles) in &mut pools {
            assert_eq!(pool.len(), 20_000);
            for (value, handle) in (0_u64..).zip(&*handles) {
                assert_eq!(*pool.get(*handle), [value; 8]);
                assert_eq!(pool.address(*handle).as_ptr().addr() % 64, 0);
            }
            handles.drain(..).for_each(|handle| pool.free(handle));
            assert!(pool.is_empty());
        }
    }

    #[test]
    fn a_full_pool_says_so_and_lines_come_back() {
        let atlas = flat_atlas();
        let mut pool: Pool<'_, [u8; 64]> =
            Pool::new(&settings(&atlas, Mode::Aware, 1 << 20)).unwrap();
        let mut handles = Vec::new();
        while let Some(handle) = pool.alloc([7; 64]) {
            handles.push(handle);
        }
        assert_eq!(handles.len(), (1 << 20) / 64, "every line of the arena, and no more");
        let mut places: Vec<_> = handles.iter().map(|h| pool.address(*h)).collect();
        places.sort_unstable();
        places.dedup();
        assert_eq!(places.len(), handles.len(), "no line twice");
        for handle in handles.drain(..).step_by(2) {
            pool.free(handle);
        }
        for _ in 0..(1 << 20) / 128 {
            assert!(pool.alloc([8; 64]).is_some());
        }
        assert!(pool.alloc([9; 64]).is_none());
    }

    #[test]
    fn a_record_is_handed_over_whole() {
        let atlas = flat_atlas();
        let mut pool: Pool<'_, [u64; 4]> =
            Pool::new(&settings(&atlas, Mode::Aware, 4 << 20)).unwrap();
        let old = pool.alloc([1, 2, 3, 4]).expect("room");
        let new = pool.hand_over(old, CoreId(1)).expect("room");
        assert_ne!(old, new);
        assert_eq!(*pool.get(new), [1, 2, 3, 4]);
        assert_eq!(pool.len(), 1);
        pool.get_mut(new)[0] = 9;
        assert_eq!(pool.get(new)[0], 9);
    }

    #[test]
    #[should_panic(expected = "a handle of another pool")]
    fn a_handle_of_another_pool_is_refused() {
        let atlas = flat_atlas();
        let mut first: Pool<'_, u64> = Pool::new(&settings(&atlas, Mode::Aware, 1 << 20)).unwrap();
        let second: Pool<'_, u64> = Pool::new(&settings(&atlas, Mode::Aware, 1 << 20)).unwrap();
        let handle = first.alloc(5).expect("room");
        let _ = second.get(handle);
    }

    #[test]
    #[should_panic(expected = "freed twice")]
    fn a_checked_pool_finds_a_double_free() {
        let atlas = flat_atlas();
        let mut settings = settings(&atlas, Mode::Aware, 1 << 20);
        settings.policy.checked = true;
        let mut pool: Pool<'_, u64> = Pool::new(&settings).unwrap();
        let handle = pool.alloc(5).expect("room");
        pool.free(handle);
        pool.free(handle);
    }

    #[test]
    fn handles_are_as_small_as_pointers() {
        assert_eq!(size_of::<Handle<[u8; 200]>>(), 8);
        assert_eq!(size_of::<Option<Handle<[u8; 200]>>>(), 8);
    }

    #[test]
    fn bytes_that_are_no_atlas_are_refused() {
        let refused = Pool::<'_, u64>::new(&settings(b"nothing", Mode::Aware, 1 << 20));
        assert!(matches!(refused, Err(InstanceError::Atlas(_))));
    }
}
