//! Replays the stored corpus of the fuzz target `alloc_ops` on stable Rust, and requires that it
//! does what its names say: a corpus that takes nothing would prove nothing.

#[cfg(test)]
mod operations;

#[cfg(test)]
mod tests {
    use super::operations::{Done, run};
    use std::fs;
    use std::path::PathBuf;

    fn corpus_directory() -> PathBuf {
        PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../../fuzz/corpus/alloc_ops")
    }

    /// What the word before the first hyphen promises.
    fn keeps_promise(name: &str, done: Done) -> bool {
        match name.split('-').next() {
            Some("near") => done.taken > 100 && done.freed > 50 && done.near > 0,
            // Of a heap of one page, the thread that has it takes what there is to take.
            Some("full") => done.refused > 0 && done.taken > 50,
            Some("misuse") => done.misused > 0 && done.taken > 0,
            Some("recode") => done.recoded > 5 && done.taken > 100,
            Some("nothing") => done == Done::default(),
            Some("found") => true,
            _ => false,
        }
    }

    #[test]
    fn the_stored_corpus_is_replayed_and_does_what_its_names_say() {
        let mut kinds = std::collections::BTreeSet::new();
        for entry in fs::read_dir(corpus_directory()).expect("the corpus is stored") {
            let path = entry.expect("an entry of the corpus").path();
            let name = path.file_name().and_then(|name| name.to_str()).expect("a name").to_owned();
            let done = run(&fs::read(&path).expect("a file of the corpus"));
            assert!(keeps_promise(&name, done), "{name}: {done:?}");
            kinds.extend(name.split('-').next().map(str::to_owned));
        }
        for kind in ["near", "full", "misuse", "recode", "nothing"] {
            assert!(kinds.contains(kind), "no {kind} file in {kinds:?}");
        }
    }

    /// Bytes that look random, from a seed.
    fn noise(seed: u64, count: usize) -> Vec<u8> {
        let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
        let mut step = || {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            state.to_le_bytes()[3]
        };
        (0..count).map(|_| step()).collect()
    }

    #[test]
    fn random_operations_agree_with_the_model() {
        let mut all = Done::default();
        for seed in 0..400 {
            let done = run(&noise(seed, 400));
            all.taken += done.taken;
            all.freed += done.freed;
            all.refused += done.refused;
            all.misused += done.misused;
            all.recoded += done.recoded;
        }
        assert!(all.taken > 10_000 && all.freed > 5_000, "{all:?}");
        assert!(all.refused > 100 && all.misused > 100 && all.recoded > 100, "{all:?}");
    }

    /// Operations of the corpus, written by hand.
    #[derive(Default)]
    struct Script(Vec<u8>);

    impl Script {
        /// Mode 0..4, checked, and pages of slack.
        fn new(mode: u8, checked: bool, slack_pages: u8, llc_pages: u8) -> Self {
            Self(vec![mode | u8::from(checked) << 2 | 1 << 3 | 1 << 5, slack_pages, llc_pages, 7])
        }

        fn then(mut self, bytes: &[u8]) -> Self {
            self.0.extend(bytes);
            self
        }

        fn ready(self, pages: u8, how: u8) -> Self {
            (0..pages)
                .fold(self, |script, page| script.then(&[14, page, how, page.wrapping_mul(29)]))
        }

        /// Both cores are told their bases.
        fn with_bases(self) -> Self {
            self.then(&[11, 0]).then(&[11 | 1 << 6, 1])
        }

        /// Every thread takes of every class and frees some, by magazine and without.
        fn work(self, rounds: u8) -> Self {
            (0..rounds).fold(self, |script, round| {
                let thread = (round % 3) << 4;
                let class = round % 5;
                script
                    .then(&[thread, class, 40 + round])
                    .then(&[thread | 5, round.wrapping_mul(37), 25])
                    .then(&[thread | 4, class, 3])
                    .then(&[thread | 8, round, 2])
            })
        }
    }

    #[test]
    #[ignore = "writes the stored corpus anew; only when operations are read differently"]
    fn write_corpus() {
        let directory = corpus_directory();
        fs::create_dir_all(&directory).expect("a directory");
        let write = |name: &str, script: Script| {
            fs::write(directory.join(name), script.0).expect("a file of the corpus");
        };
        let started = |mode, checked| Script::new(mode, checked, 16, 16).ready(12, 0).with_bases();
        write("nothing-empty", Script::default());
        write("nothing-policy", Script::new(0, false, 0, 0));
        for (mode, name) in (0..).zip(["aware", "oblivious", "adversarial", "oracle"]) {
            write(&format!("near-{name}"), started(mode, false).work(20));
        }
        write("near-checked", started(0, true).work(20));
        write(
            "near-tiny-cache",
            Script::new(0, false, 16, 1).ready(12, 0).with_bases().work(10).work(9),
        );
        let moves = (0..6).fold(started(0, false), |script, core| {
            script.work(2).then(&[9, core]).then(&[10]).then(&[11, 0x80])
        });
        write("near-moves", moves);
        write("full-no-pages", Script::new(0, false, 1, 1).ready(1, 0).with_bases().work(12));
        write("full-unknown", Script::new(2, true, 0, 0).ready(3, 2).work(12));
        let misuse = (0..20).fold(started(0, true).work(5), |script, at| {
            script.then(&[13, at, at.wrapping_mul(91)])
        });
        write("misuse-checked", misuse);
        let misuse = (0..20).fold(started(1, false).work(5), |script, at| {
            script.then(&[13, at, at.wrapping_mul(91)])
        });
        write("misuse-unchecked", misuse);
        let recode = (0..16).fold(started(0, false), |script, page| {
            let how = 3 + page % 4;
            script.work(2).then(&[15, page % 12, how, page.wrapping_mul(53)]).then(&[12, page % 5])
        });
        write("recode-while-used", recode);
    }
}
