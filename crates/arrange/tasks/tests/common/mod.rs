//! Random task programs and what they must compute: every task is a few random ranges, some tasks have
//! tasks of their own, and whatever a task does follows from its seed and what it reads.

use isochrone_tasks::{Data, Failure, Footprint, Kernel, Mem, Mode, Op, TaskError};

/// Words of memory that a program works on.
pub(crate) const WORDS: usize = 96;

/// A task: the seed of its ranges, and the words that it may use.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Random {
    pub(crate) data: Data<u64>,
    pub(crate) seed: u64,
    pub(crate) lo: u16,
    pub(crate) hi: u16,
    pub(crate) depth: u8,
}

/// One range of a task.
#[derive(Clone, Copy, Debug)]
struct Use {
    first: usize,
    len: usize,
    mode: Mode,
}

/// splitmix64 (Steele, Lea, Flood, OOPSLA 2014).
pub(crate) fn mix(state: u64) -> u64 {
    let mut z = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ z >> 31
}

fn below(state: &mut u64, limit: usize) -> usize {
    *state = mix(*state);
    usize::try_from(*state % limit as u64).expect("below a usize")
}

impl Random {
    /// What the task uses. A task with children reads and writes one range, as its children are inside.
    fn uses(&self) -> Vec<Use> {
        let (lo, hi) = (usize::from(self.lo), usize::from(self.hi));
        let mut state = self.seed;
        if self.has_children() {
            return vec![Use { first: lo, len: hi - lo, mode: Mode::InOut }];
        }
        let mut uses: Vec<Use> = Vec::new();
        for _ in 0..below(&mut state, 9) {
            let first = lo + below(&mut state, hi - lo);
            let longest = (hi - first).min(if below(&mut state, 4) == 0 { 40 } else { 8 });
            // Exact matches must be common as well: half of the ranges are aligned.
            let (first, longest) = match below(&mut state, 2) {
                0 if first.is_multiple_of(8) || first & !7 >= lo => (first & !7, longest),
                _ => (first, longest),
            };
            let len = 1 + below(&mut state, longest);
            let mode = [
                Mode::In,
                Mode::In,
                Mode::Out,
                Mode::InOut,
                Mode::InOut,
                Mode::Commutative,
                Mode::Reduce(Op::Sum),
                Mode::Reduce(Op::Max),
            ][below(&mut state, 8)];
            let clashes = |other: &Use| {
                let apart = first + len <= other.first || other.first + other.len <= first;
                !apart && (mode.writes() || other.mode.writes())
            };
            if !uses.iter().any(clashes) {
                uses.push(Use { first, len, mode });
            }
        }
        uses
    }

    fn has_children(&self) -> bool {
        self.depth > 0 && self.hi > self.lo + 4 && mix(self.seed ^ 1).is_multiple_of(6)
    }

    fn waits(&self) -> bool {
        mix(self.seed ^ 2).is_multiple_of(2)
    }

    fn children(&self) -> Vec<Self> {
        let mut state = self.seed ^ 3;
        let count = 1 + below(&mut state, 6);
        (0..count)
            .map(|_| {
                let span = usize::from(self.hi - self.lo);
                let a = below(&mut state, span);
                let b = a + 1 + below(&mut state, span - a);
                let at = |x: usize| self.lo + u16::try_from(x).expect("below 96");
                let seed = mix(state);
                Self { seed, lo: at(a), hi: at(b), depth: self.depth - 1, ..*self }
            })
            .collect()
    }

    /// What the task makes of a word that it reads and writes.
    fn changed(old: u64, read: u64, index: usize) -> u64 {
        mix(old ^ read.rotate_left(7)).wrapping_add(index as u64)
    }

    /// The same in program order, on plain memory.
    pub(crate) fn serial(&self, memory: &mut [u64]) {
        if self.has_children() {
            for child in self.children() {
                child.serial(memory);
            }
            if self.waits() {
                for (i, word) in
                    memory[usize::from(self.lo)..usize::from(self.hi)].iter_mut().enumerate()
                {
                    *word = Self::changed(*word, self.seed, i);
                }
            }
            return;
        }
        let mut read = self.seed;
        let uses = self.uses();
        for (use_, mode) in uses.iter().map(|u| (u, u.mode)) {
            if matches!(mode, Mode::In | Mode::InOut) {
                for word in &memory[use_.first..use_.first + use_.len] {
                    read = mix(read ^ word);
                }
            }
        }
        for use_ in &uses {
            for (i, word) in memory[use_.first..use_.first + use_.len].iter_mut().enumerate() {
                match use_.mode {
                    Mode::In => {}
                    Mode::Out => *word = mix(read).wrapping_add(i as u64),
                    Mode::InOut => *word = Self::changed(*word, read, i),
                    Mode::Commutative | Mode::Reduce(Op::Sum) => {
                        *word = word.wrapping_add(mix(read ^ i as u64));
                    }
                    Mode::Reduce(Op::Max) => *word = (*word).max(mix(read ^ i as u64)),
                    Mode::Reduce(Op::Min) => *word = (*word).min(mix(read ^ i as u64)),
                }
            }
        }
    }
}

impl Kernel for Random {
    const NAME: &'static str = "random";

    fn declare(&self, footprint: &mut Footprint) {
        for use_ in self.uses() {
            footprint.access(self.data.part(use_.first, use_.len).range(), use_.mode);
        }
        let urgency = i32::try_from(mix(self.seed ^ 4) % 5).expect("below 5") - 2;
        footprint.priority(if urgency.abs() == 2 { urgency } else { 0 });
    }

    fn run(&self, mem: &Mem<'_>) -> Result<(), Failure> {
        if self.has_children() {
            for child in self.children() {
                mem.spawn(child)?;
            }
            if self.waits() {
                mem.wait()?;
                let part = self.data.part(usize::from(self.lo), usize::from(self.hi - self.lo));
                for (i, word) in mem.write(part)?.iter_mut().enumerate() {
                    *word = Self::changed(*word, self.seed, i);
                }
            }
            return Ok(());
        }
        let mut read = self.seed;
        let uses = self.uses();
        for use_ in uses.iter().filter(|u| matches!(u.mode, Mode::In | Mode::InOut)) {
            for word in mem.read(self.data.part(use_.first, use_.len))?.iter() {
                read = mix(read ^ word);
            }
        }
        for use_ in &uses {
            self.put(mem, use_, read)?;
        }
        Ok(())
    }
}

impl Random {
    fn put(&self, mem: &Mem<'_>, use_: &Use, read: u64) -> Result<(), Failure> {
        let part = self.data.part(use_.first, use_.len);
        if let Mode::Reduce(op) = use_.mode {
            let mut own = mem.accumulate(part)?;
            for (i, word) in own.iter_mut().enumerate() {
                let value = mix(read ^ i as u64);
                *word = if op == Op::Sum { word.wrapping_add(value) } else { (*word).max(value) };
            }
            return Ok(());
        }
        if use_.mode == Mode::In {
            return Ok(());
        }
        for (i, word) in mem.write(part)?.iter_mut().enumerate() {
            match use_.mode {
                Mode::Out => *word = mix(read).wrapping_add(i as u64),
                Mode::Commutative => *word = word.wrapping_add(mix(read ^ i as u64)),
                _ => *word = Self::changed(*word, read, i),
            }
        }
        Ok(())
    }
}

/// The tasks of a program.
pub(crate) fn program(data: Data<u64>, seed: u64, tasks: usize) -> impl Iterator<Item = Random> {
    (0..tasks as u64).map(move |i| Random {
        data,
        seed: mix(seed ^ i << 20),
        lo: 0,
        hi: u16::try_from(WORDS).expect("96"),
        depth: 3,
    })
}

/// What a program leaves in memory.
pub(crate) fn expected(data: Data<u64>, seed: u64, tasks: usize) -> Vec<u64> {
    let mut memory = vec![0; WORDS];
    for task in program(data, seed, tasks) {
        task.serial(&mut memory);
    }
    memory
}

/// Runs a program; what it leaves in memory.
pub(crate) fn run(
    runtime: &mut isochrone_tasks::live::Runtime,
    data: Data<u64>,
    seed: u64,
    tasks: usize,
) -> Result<Vec<u64>, TaskError> {
    runtime.write(data.all())?.fill(0);
    for (i, task) in program(data, seed, tasks).enumerate() {
        runtime.spawn(task)?;
        if i % 97 == 50 {
            runtime.wait_on(data.part(i % WORDS, 1))?;
        }
    }
    runtime.wait()?;
    runtime.read(data.all()).map(<[u64]>::to_vec)
}
