//! Tasks on this machine's threads: order, failures, nested tasks, bounds.

#![allow(clippy::tests_outside_test_module, reason = "the whole file is tests")]

use isochrone_tasks::live::{Config, Runtime, Task};
use isochrone_tasks::simulated::{Flat, Plan, Simulation};
use isochrone_tasks::{
    Capacity, Data, DataId, Failure, Footprint, Kernel, Mem, Op, Part, Range, Regime, Schedule,
    TaskError, Topology, WORKERS_MAX,
};

fn config(workers: usize) -> Config {
    let mut config = Config::new(Regime::Dft, workers, Topology::flat(64));
    config.spin_ns = 1000;
    config.pin = false;
    config
}

fn runtime(workers: usize) -> Runtime {
    Runtime::start(config(workers)).expect("threads start")
}

#[derive(Clone, Copy)]
struct Fill {
    data: Part<u64>,
    value: u64,
}

impl Kernel for Fill {
    const NAME: &'static str = "fill";

    fn declare(&self, footprint: &mut Footprint) {
        footprint.output(self.data);
    }

    fn run(&self, mem: &Mem<'_>) -> Result<(), Failure> {
        mem.write(self.data)?.fill(self.value);
        Ok(())
    }
}

/// Multiplies by three and adds one: order matters.
#[derive(Clone, Copy)]
struct Step {
    from: Part<u64>,
    to: Part<u64>,
}

impl Kernel for Step {
    const NAME: &'static str = "step";

    fn declare(&self, footprint: &mut Footprint) {
        footprint.input(self.from).inout(self.to);
    }

    fn run(&self, mem: &Mem<'_>) -> Result<(), Failure> {
        let from = mem.read(self.from)?;
        let mut to = mem.write(self.to)?;
        for (to, from) in to.iter_mut().zip(from.iter()) {
            *to = to.wrapping_mul(3).wrapping_add(from + 1);
        }
        Ok(())
    }
}

#[test]
fn tasks_keep_the_order_that_their_ranges_ask_for() {
    for workers in [1, 2, 5] {
        let mut runtime = runtime(workers);
        let data: Data<u64> = runtime.data(64).unwrap();
        runtime.spawn(Fill { data: data.all(), value: 1 }).unwrap();
        for i in 0..2000 {
            let (from, to) = (i * 7 % 8, (i * 7 + 3) % 8);
            runtime.spawn(Step { from: data.part(from * 8, 8), to: data.part(to * 8, 8) }).unwrap();
        }
        let mut expected = [1_u64; 8];
        for i in 0..2000 {
            let (from, to) = (i * 7 % 8, (i * 7 + 3) % 8);
            expected[to] = expected[to].wrapping_mul(3).wrapping_add(expected[from] + 1);
        }
        let seen: Vec<u64> = runtime.read(data.all()).unwrap().iter().step_by(8).copied().collect();
        assert_eq!(seen, expected, "{workers} workers");
        runtime.wait().unwrap();
    }
}

#[derive(Clone, Copy)]
struct Add {
    to: Part<u64>,
    sum: bool,
}

impl Kernel for Add {
    const NAME: &'static str = "add";

    fn declare(&self, footprint: &mut Footprint) {
        if self.sum {
            footprint.reduce(self.to, Op::Sum);
        } else {
            footprint.commutative(self.to);
        }
    }

    fn run(&self, mem: &Mem<'_>) -> Result<(), Failure> {
        if self.sum {
            mem.accumulate(self.to)?[1] += 1;
        } else {
            mem.write(self.to)?[1] += 1;
        }
        Ok(())
    }
}

#[test]
fn commutative_and_reducing_tasks_lose_nothing() {
    let mut runtime = runtime(4);
    let data: Data<u64> = runtime.data(4).unwrap();
    for i in 0..10_000 {
        runtime.spawn(Add { to: data.all(), sum: i / 1000 % 2 == 0 }).unwrap();
    }
    assert_eq!(runtime.read(data.all()).unwrap(), [0, 10_000, 0, 0]);
    runtime.wait().unwrap();
    let report = runtime.report();
    assert_eq!((report.tasks, report.tasks_of.len()), (10_000, 4));
    assert_eq!((report.local_bytes(), report.remote_bytes()), (320_000, 0));
}

#[derive(Clone, Copy)]
struct Fail {
    at: Part<u64>,
    panics: bool,
}

impl Kernel for Fail {
    const NAME: &'static str = "fail";

    fn declare(&self, footprint: &mut Footprint) {
        footprint.inout(self.at);
    }

    fn run(&self, _: &Mem<'_>) -> Result<(), Failure> {
        assert!(!self.panics, "on purpose");
        Err(Failure::new("out of luck"))
    }
}

#[test]
fn a_failure_reaches_who_waits_and_what_follows_is_left_out() {
    let mut runtime = runtime(2);
    let data: Data<u64> = runtime.data(8).unwrap();
    for (panics, text) in [(false, "out of luck"), (true, "on purpose")] {
        runtime.spawn(Fill { data: data.all(), value: 1 }).unwrap();
        runtime.spawn(Fail { at: data.all(), panics }).unwrap();
        runtime.spawn(Fill { data: data.all(), value: 2 }).unwrap();
        let error = runtime.wait().unwrap_err();
        assert!(matches!(&error, TaskError::Failed { kernel, .. } if kernel == "fail"), "{error}");
        assert!(error.to_string().contains(text), "{error}");
        runtime.wait().expect("a failure is told once");
        runtime.spawn(Fill { data: data.all(), value: 3 }).unwrap();
        assert_eq!(runtime.read(data.all()).unwrap(), [3; 8], "the run goes on");
    }
}

/// Copies a part to another.
#[derive(Clone, Copy)]
struct Copied {
    from: Part<u64>,
    to: Part<u64>,
}

impl Kernel for Copied {
    const NAME: &'static str = "copied";

    fn declare(&self, footprint: &mut Footprint) {
        footprint.input(self.from).output(self.to);
    }

    fn run(&self, mem: &Mem<'_>) -> Result<(), Failure> {
        mem.write(self.to)?.copy_from_slice(&mem.read(self.from)?);
        Ok(())
    }
}

/// What a failed task should have written is an error for whoever looks at it, however often, and so is what follows
/// from it, until it is written anew.
#[test]
fn a_range_whose_task_failed_stays_failed_until_it_is_written_anew() {
    let mut runtime = runtime(2);
    let data: Data<u64> = runtime.data(8).unwrap();
    let (left, right) = (data.part(0, 4), data.part(4, 4));
    let undone = |error: TaskError| matches!(error, TaskError::Undone { .. });
    runtime.spawn(Fill { data: data.all(), value: 1 }).unwrap();
    runtime.wait().unwrap();
    runtime.spawn(Fail { at: data.part(0, 2), panics: false }).unwrap();
    runtime.wait().unwrap_err();
    for _ in 0..2 {
        assert!(undone(runtime.read(left).unwrap_err()));
        assert!(undone(runtime.wait_on(data).unwrap_err()));
        assert_eq!(runtime.read(right).unwrap(), [1; 4], "what has nothing to do with it");
    }
    // It spreads to what is made from it.
    runtime.spawn(Copied { from: left, to: right }).unwrap();
    let error = runtime.wait().unwrap_err().to_string();
    assert!(error.contains("copied failed") && error.contains("which fail left undone"), "{error}");
    assert!(undone(runtime.read(right).unwrap_err()));
    // A task that does not look mends, and so does the program.
    runtime.spawn(Fill { data: left, value: 2 }).unwrap();
    runtime.spawn(Copied { from: left, to: right }).unwrap();
    assert_eq!(runtime.read(data.all()).unwrap(), [2; 8]);
    runtime.spawn(Fail { at: data.all(), panics: true }).unwrap();
    runtime.wait().unwrap_err();
    runtime.write(left).unwrap().fill(5);
    assert_eq!(runtime.read(left).unwrap(), [5; 4]);
    assert!(undone(runtime.read(data.all()).unwrap_err()));
    runtime.free(data).expect("it may go");
}

/// A task that is told of its own tasks' failure may mend what they left.
#[test]
fn a_task_may_mend_what_its_own_tasks_left_undone() {
    let mut runtime = runtime(2);
    let data: Data<u64> = runtime.data(8).unwrap();
    for told in [true, false] {
        let declare = |footprint: &mut Footprint| {
            footprint.inout(data.all());
        };
        let run = move |mem: &Mem<'_>| {
            mem.spawn(Fail { at: data.part(2, 2), panics: false })?;
            if told {
                mem.wait().expect_err("it failed");
                mem.write(data.all())?.fill(9);
            }
            Ok(())
        };
        runtime.spawn_fn(declare, run).unwrap();
        if told {
            assert_eq!(runtime.read(data.all()).unwrap(), [9; 8]);
        } else {
            runtime.wait().expect_err("nobody else was told");
            assert_eq!(runtime.read(data.part(0, 2)).unwrap(), [9; 2]);
            runtime.read(data.all()).expect_err("two elements are undone");
        }
    }
}

#[test]
fn waiting_for_what_is_not_registered_is_refused() {
    let mut runtime = runtime(1);
    let data: Data<u64> = runtime.data(8).unwrap();
    let unknown = Range { data: DataId(77), start: 0, bytes: 8 };
    let past = Range { data: data.id(), start: 60, bytes: 8 };
    assert!(matches!(runtime.wait_on(unknown), Err(TaskError::UnknownData { .. })));
    assert!(matches!(runtime.wait_on(past), Err(TaskError::OutOfRange { .. })));
    runtime.free(data).unwrap();
    assert!(matches!(runtime.wait_on(data), Err(TaskError::FreedData { .. })));
}

/// Splits its part until it is small: nested tasks.
#[derive(Clone, Copy)]
struct Halve {
    data: Part<u64>,
    array: Data<u64>,
    waits: bool,
}

impl Kernel for Halve {
    const NAME: &'static str = "halve";

    fn declare(&self, footprint: &mut Footprint) {
        footprint.inout(self.data);
    }

    fn run(&self, mem: &Mem<'_>) -> Result<(), Failure> {
        let (first, len) = (self.data.first(), self.data.len());
        if len <= 4 {
            mem.write(self.data)?.iter_mut().for_each(|x| *x += 1);
            return Ok(());
        }
        for (first, len) in [(first, len / 2), (first + len / 2, len - len / 2)] {
            mem.spawn(Self { data: self.array.part(first, len), ..*self })?;
        }
        if self.waits {
            mem.wait()?;
            let mut mine = mem.write(self.data)?;
            assert!(mine.iter().all(|x| *x == mine[0]), "the children are over");
            mine.fill(self.data.len() as u64);
        }
        Ok(())
    }
}

#[test]
fn a_task_ends_when_its_children_have() {
    for (workers, waits) in [(1, false), (3, false), (1, true), (3, true)] {
        let mut runtime = runtime(workers);
        let data: Data<u64> = runtime.data(4096).unwrap();
        for _ in 0..3 {
            runtime.spawn(Fill { data: data.all(), value: 5 }).unwrap();
            runtime.spawn(Halve { data: data.all(), array: data, waits }).unwrap();
        }
        let expected = if waits { 4096 } else { 6 };
        assert!(runtime.read(data.all()).unwrap().iter().all(|x| *x == expected));
    }
}

#[test]
fn closures_are_tasks_and_own_what_they_took() {
    let mut runtime = runtime(2);
    let data: Data<u64> = runtime.data(8).unwrap();
    let kept = std::sync::Arc::new(());
    for i in 0..100_u64 {
        let kept = std::sync::Arc::clone(&kept);
        runtime
            .spawn_fn(
                |footprint| {
                    footprint.inout(data.part(2, 1));
                },
                move |mem| {
                    let _kept = kept;
                    mem.write(data.part(2, 1))?[0] += i;
                    if i == 60 { Err(Failure::new("sixty")) } else { Ok(()) }
                },
            )
            .unwrap();
    }
    assert!(runtime.wait().unwrap_err().to_string().contains("sixty"));
    assert_eq!(runtime.write(data.part(2, 1)).unwrap(), [60 * 61 / 2], "as the last one left it");
    assert_eq!(std::sync::Arc::strong_count(&kept), 1, "those that were left out ended as well");
    assert_eq!(runtime.report().left_out, 39);
}

#[test]
fn a_task_that_waits_for_itself_is_told() {
    for workers in [1, 3] {
        let mut runtime = runtime(workers);
        let data: Data<u64> = runtime.data(8).unwrap();
        let (send, receive) = std::sync::mpsc::channel::<Task>();
        let waits = runtime
            .spawn_fn(
                |footprint| {
                    footprint.inout(data.all());
                },
                move |mem| {
                    let other = receive.recv().map_err(Failure::from)?;
                    Ok(mem.wait_task(other)?)
                },
            )
            .unwrap();
        // It cannot begin before the first has ended, which waits for it.
        let after = runtime.spawn_task(Fill { data: data.all(), value: 1 }).unwrap();
        send.send(after).unwrap();
        let error = runtime.wait_task(waits).unwrap_err();
        assert!(error.to_string().contains("do not wait inside of a task"), "{error}");
        runtime.spawn(Fill { data: data.all(), value: 2 }).unwrap();
        assert_eq!(runtime.read(data.all()).unwrap(), [2; 8], "the run goes on");
    }
}

#[test]
fn a_task_that_waits_for_another_is_not_stuck() {
    let mut runtime = runtime(2);
    let data: Data<u64> = runtime.data(16).unwrap();
    for _ in 0..50 {
        let first = runtime.spawn_task(Fill { data: data.part(0, 8), value: 1 }).unwrap();
        runtime
            .spawn_fn(
                |footprint| {
                    footprint.inout(data.part(8, 8));
                },
                move |mem| Ok(mem.wait_task(first)?),
            )
            .unwrap();
    }
    runtime.wait().unwrap();
}

#[test]
fn tasks_below_tasks_do_not_overflow_arena_or_stack() {
    for workers in [1, 4] {
        let mut config = config(workers);
        config.setup.capacity.tasks = 400;
        let mut runtime = Runtime::start(config).unwrap();
        let data: Data<u64> = runtime.data(1 << 14).unwrap();
        for waits in [false, true] {
            runtime.spawn(Halve { data: data.all(), array: data, waits }).unwrap();
            runtime.wait().unwrap();
        }
        assert!(runtime.read(data.all()).unwrap().iter().all(|x| *x == 1 << 14));
    }
}

#[derive(Clone, Copy)]
struct Stray {
    data: Data<u64>,
    what: u32,
}

impl Kernel for Stray {
    const NAME: &'static str = "stray";

    fn declare(&self, footprint: &mut Footprint) {
        footprint.input(self.data.part(0, 4)).output(self.data.part(4, 4));
    }

    fn run(&self, mem: &Mem<'_>) -> Result<(), Failure> {
        match self.what {
            0 => drop(mem.read(self.data.part(3, 2))?),
            1 => drop(mem.write(self.data.part(0, 1))?),
            2 => {
                let _one = mem.write(self.data.part(4, 2))?;
                drop(mem.read(self.data.part(5, 1))?);
            }
            3 => mem.spawn(Fill { data: self.data.part(0, 4), value: 0 })?,
            _ => {
                let one = mem.read(self.data.part(0, 4))?;
                let two = mem.read(self.data.part(0, 4))?;
                drop(mem.write(self.data.part(4, 4))?);
                assert_eq!(*one, *two);
            }
        }
        Ok(())
    }
}

#[test]
fn a_kernel_gets_what_it_declared_and_nothing_else() {
    let mut runtime = runtime(1);
    let data: Data<u64> = runtime.data(8).unwrap();
    for (what, says) in [
        (0, "did not declare"),
        (1, "did not declare"),
        (2, "another view"),
        (3, "did not declare"),
    ] {
        runtime.spawn(Stray { data, what }).unwrap();
        let error = runtime.wait().unwrap_err().to_string();
        assert!(error.contains(says), "{what}: {error}");
    }
    runtime.spawn(Stray { data, what: 9 }).unwrap();
    runtime.wait().unwrap();
}

#[test]
fn ranges_that_cannot_be_used_are_refused_where_they_are_registered() {
    let mut runtime = runtime(1);
    let data: Data<u64> = runtime.data(8).unwrap();
    let error = runtime.spawn(Fill { data: data.part(7, 2), value: 0 }).unwrap_err();
    assert!(matches!(error, TaskError::OutOfRange { bytes: 64, .. }), "{error}");
    runtime.free(data).unwrap();
    let error = runtime.spawn(Fill { data: data.all(), value: 0 }).unwrap_err();
    assert!(matches!(error, TaskError::FreedData { .. }), "{error}");
    let mut other = self::runtime(1);
    let error = other.spawn(Fill { data: data.all(), value: 0 }).unwrap_err();
    assert!(matches!(error, TaskError::UnknownData { .. }), "{error}");
    runtime.wait().unwrap();
}

#[test]
fn interleaved_memory_and_numa_aware_queues_are_refused_unless_asked_for() {
    let mut config = config(1);
    config.setup.policy = isochrone_tasks::Policy::PAPER;
    config.setup.placement = isochrone_tasks::Placement::Interleaved;
    let error = Runtime::start(config.clone()).unwrap_err();
    assert!(error.to_string().contains("section 4.1"), "{error}");
    config.setup.ablation = true;
    Runtime::start(config).unwrap();
}

#[test]
fn waiting_for_a_range_again_and_again_never_misses_its_end() {
    // More workers than cores, so that one is often stopped between ending a task and telling so.
    let mut run = runtime(6);
    let data: Data<u64> = run.data(8).unwrap();
    let (from, to) = (data.part(0, 4), data.part(4, 4));
    for round in 0..4000 {
        run.spawn(Fill { data: from, value: round }).unwrap();
        run.spawn(Fill { data: to, value: 0 }).unwrap();
        run.spawn(Step { from, to }).unwrap();
        assert_eq!(run.read(to).unwrap(), [round + 1; 4]);
    }
}

#[test]
fn a_trace_has_every_task_that_found_room_and_says_how_many_did_not() {
    for (room, seen) in [(0, 0), (1000, 300), (100, 100)] {
        let mut config = config(1);
        config.setup.capacity.trace = room;
        let mut run = Runtime::start(config).unwrap();
        let data: Data<u64> = run.data(512).unwrap();
        for i in 0..300 {
            run.spawn(Fill { data: data.part(i, 8), value: 1 }).unwrap();
        }
        run.wait().unwrap();
        let trace = run.trace();
        assert_eq!(trace.events.len(), seen);
        assert_eq!(trace.left_out, if room == 0 { 0 } else { 300 - seen as u64 });
        for pair in trace.events.windows(2) {
            assert!(pair[0].start_ns + pair[0].ns <= pair[1].start_ns, "one after the other");
        }
        for event in trace.events {
            assert_eq!((event.kernel, event.worker, event.local_bytes), ("fill", 0, 64));
            assert_eq!((event.remote_bytes, event.stolen_from), (0, None));
        }
    }
}

#[test]
fn a_schedule_that_is_followed_gives_each_worker_the_same_tasks_in_the_same_order() {
    let run = |follow: Option<Schedule>| {
        let mut config = config(3);
        config.setup.capacity.trace = 1000;
        config.setup.follow = follow;
        let mut runtime = Runtime::start(config).unwrap();
        let data: Data<u64> = runtime.data(64).unwrap();
        runtime.spawn(Fill { data: data.all(), value: 1 }).unwrap();
        for i in 0..300 {
            let (from, to) = (i * 7 % 8, (i * 7 + 3) % 8);
            runtime.spawn(Step { from: data.part(from * 8, 8), to: data.part(to * 8, 8) }).unwrap();
            if i == 100 {
                runtime.wait_on(data.part(8, 8)).unwrap();
            }
        }
        runtime.wait().unwrap();
        (runtime.read(data.all()).unwrap().to_vec(), runtime.schedule().unwrap())
    };
    let (values, mut schedule) = run(None);
    // Whoever ran what: now each worker has a third, whatever it would have taken.
    for (turn, worker) in schedule.tasks.iter_mut().zip((0..3).cycle()) {
        turn.worker = worker;
    }
    let (again, followed) = run(Some(schedule.clone()));
    assert_eq!(again, values);
    for worker in 0..3 {
        let orders = [&schedule, &followed].map(|of| {
            let numbered = of.tasks.iter().enumerate().filter(|(_, turn)| turn.worker == worker);
            let mut own: Vec<(u64, u32, usize)> =
                numbered.map(|(number, turn)| (turn.start_ns, turn.order, number)).collect();
            own.sort_unstable();
            own.into_iter().map(|(_, _, number)| number).collect::<Vec<_>>()
        });
        assert_eq!(orders[0], orders[1], "worker {worker}");
        assert_eq!(orders[0].len(), 100 + usize::from(worker == 0));
    }
}

#[test]
fn a_report_is_a_table_of_a_few_lines() {
    let mut run = runtime(1);
    let data: Data<u64> = run.data(512).unwrap();
    run.spawn(Fill { data: data.all(), value: 1 }).unwrap();
    run.wait().unwrap();
    let text = run.report().to_string();
    assert!(text.contains("tasks      1 ") && text.contains("bytes      4096 0 0 0"), "{text}");
}

/// Adds its number to one of a few sums.
#[derive(Clone, Copy)]
struct Count {
    to: Part<u64>,
    number: u64,
}

impl Kernel for Count {
    const NAME: &'static str = "count";

    fn declare(&self, footprint: &mut Footprint) {
        footprint.inout(self.to);
    }

    fn run(&self, mem: &Mem<'_>) -> Result<(), Failure> {
        mem.write(self.to)?[0] += self.number;
        Ok(())
    }
}

/// Kilobytes of memory that this process has had at most.
fn most_kb() -> u64 {
    let text = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = text.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    line.trim().strip_suffix(" kB").unwrap().trim().parse().unwrap()
}

#[test]
#[ignore = "ten seconds or more; run alone, as it looks at the memory of the whole process"]
fn ten_million_tasks_take_bounded_memory() {
    const SUMS: usize = 5000;
    let mut run = runtime(2);
    let data: Data<u64> = run.data(8 * SUMS).unwrap();
    let spawn = |run: &mut Runtime, numbers: std::ops::Range<u64>| {
        for number in numbers {
            // Ranges move along, so that most of them are new to the map of ranges.
            let sum = usize::try_from(number).unwrap() * 7 % SUMS;
            let len = 1 + usize::try_from(number / 1000).unwrap() % 8;
            run.spawn(Count { to: data.part(8 * sum, len), number }).unwrap();
        }
    };
    spawn(&mut run, 0..200_000);
    let early = most_kb();
    spawn(&mut run, 200_000..10_000_000);
    let late = most_kb();
    let sum: u64 = run.read(data.all()).unwrap().iter().sum();
    assert_eq!(sum, 9_999_999 * 5_000_000);
    assert!(
        late < early + 16 * 1024,
        "{early} kB after 200 000 tasks, {late} kB after ten million"
    );
}

#[test]
fn numbers_of_workers_that_no_machine_has_are_refused() {
    for workers in [0, WORKERS_MAX + 1, 3_000_000_000, usize::MAX] {
        for processes in [false, true] {
            let asked = Config { processes, ..config(workers) };
            let error = Runtime::start(asked).expect_err("nobody has so many").to_string();
            assert_eq!(error, format!("{workers} workers; a run has 1 to 8192"));
        }
        let plan = Plan::new(Regime::Dft, workers, Topology::flat(4));
        let error = Simulation::new(plan, Flat::new(Topology::flat(4), 0.01, 10.0))
            .expect_err("nor there")
            .to_string();
        assert_eq!(error, format!("{workers} workers; a run has 1 to 8192"));
    }
    let tables = [
        Capacity { tasks: u32::MAX, ..Capacity::default() },
        Capacity { edges: u32::MAX, ..Capacity::default() },
        Capacity { data: u32::MAX, ..Capacity::default() },
        Capacity { tasks: 1 << 30, edges: 1 << 30, trace: 1 << 30, ..Capacity::default() },
    ];
    for capacity in tables {
        let mut asked = config(2);
        asked.setup.capacity = capacity;
        let error = Runtime::start(asked).expect_err("nobody has so much").to_string();
        assert!(error.contains("Capacity"), "{error}");
    }
}
