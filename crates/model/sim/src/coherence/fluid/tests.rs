//! The conditions of the optimum, cases by hand, and what holds for all rates.

use super::*;
use crate::random::{Random, Stream};

fn demand(roof: u32, bytes: f64) -> Demand {
    Demand { roof, bytes }
}

fn need(arithmetic_ns: f64, waiting_ns: f64) -> Need {
    Need { arithmetic_ns, waiting_ns, window: 20.0 }
}

/// Tasks with random needs and demands over random roofs; `latency` scales what waiting takes.
fn random(seed: u64, roofs: u32, tasks: u32, latency: f64) -> (Vec<f64>, Vec<(Vec<Demand>, Need)>) {
    let mut random = Random::new(seed, Stream::Noise);
    let limits = (0..roofs).map(|_| 1.0 + 9.0 * random.uniform()).collect();
    let tasks = (0..tasks).map(|_| {
        let some = (0..roofs).filter(|_| random.chance(0.4)).collect::<Vec<u32>>();
        let demands = some.iter().map(|r| demand(*r, 100.0 * random.uniform())).collect();
        let need = Need {
            arithmetic_ns: 1.0 + 200.0 * random.uniform(),
            waiting_ns: latency * 200.0 * random.uniform(),
            window: 10.0 + 20.0 * random.uniform(),
        };
        (demands, need)
    });
    let tasks = tasks.collect();
    (limits, tasks)
}

fn fluid(roofs: &[f64], tasks: &[(Vec<Demand>, Need)]) -> Fluid {
    begun(Fluid::new(roofs.to_vec()), tasks)
}

fn begun(mut fluid: Fluid, tasks: &[(Vec<Demand>, Need)]) -> Fluid {
    for (name, (demands, need)) in (0..).zip(tasks) {
        fluid.begin(0.0, name, demands.clone(), *need);
    }
    fluid.next_end();
    fluid
}

/// With queues: each roof carries what it passes at its delay, and every task is as long as its lines with these
/// delays.
fn assert_queued(fluid: &mut Fluid, what: &str) {
    for roof in 0..fluid.roofs.len() {
        let (load, limit, delay) = (fluid.load(roof), fluid.roofs[roof], fluid.rates.delay(roof));
        let used = 2.0 * delay * limit / (1.0 + 2.0 * delay * limit);
        assert!(
            (load / limit - used).abs() < 2e-7,
            "{what}: roof {roof}: {load} of {limit}, {delay}"
        );
        assert!(load < limit, "{what}: roof {roof} is full");
    }
    assert_as_long_as_lines(fluid, what);
}

/// The conditions of the optimum: no roof over its limit, a delay only at a full one, and every task as long as its
/// lines with these delays.
fn assert_optimal(fluid: &mut Fluid, what: &str) {
    let loads: Vec<f64> = (0..fluid.roofs.len()).map(|roof| fluid.load(roof)).collect();
    for (roof, (load, limit)) in loads.iter().zip(&fluid.roofs).enumerate() {
        assert!(*load <= limit * (1.0 + 2e-7), "{what}: roof {roof} carries {load} of {limit}");
        let delay = fluid.rates.delay(roof);
        assert!(delay >= 0.0);
        assert!(
            delay == 0.0 || *load >= limit * (1.0 - 2e-7),
            "{what}: roof {roof}: {load}, {delay}"
        );
    }
    assert_as_long_as_lines(fluid, what);
}

fn assert_as_long_as_lines(fluid: &Fluid, what: &str) {
    for name in &fluid.under_way {
        let flow = &fluid.flows[*name as usize];
        let held = |d: &Demand| d.bytes * fluid.rates.delay(d.roof as usize);
        let held: f64 = flow.demands.iter().map(held).sum();
        let time = (1.0 / flow.cap).max((flow.latencies + held) / flow.window);
        assert!((time * flow.rate - 1.0).abs() < 1e-9, "{what}: task {name}: {time} {}", flow.rate);
    }
}

/// What the rates maximise.
fn objective(fluid: &Fluid) -> f64 {
    let of = |name: &u32| {
        let flow = &fluid.flows[*name as usize];
        flow.window * flow.rate.ln() - flow.rate * flow.latencies
    };
    fluid.under_way.iter().map(of).sum()
}

#[test]
fn one_task_alone_takes_its_floor_or_what_the_roof_gives() {
    let mut fluid = Fluid::new(vec![10.0]);
    fluid.begin(0.0, 1, vec![demand(0, 1000.0)], need(20.0, 50.0));
    let (time, name) = fluid.next_end().expect("one");
    assert!((time - 100.0).abs() < 1e-6 && name == 1, "{time}");
    fluid.end(100.0, 1);
    fluid.begin(100.0, 2, vec![demand(0, 1000.0)], need(400.0, 30.0));
    assert_eq!(fluid.next_end(), Some((500.0, 2)));
}

#[test]
fn equal_windows_share_a_roof_by_their_latencies() {
    // By hand: two tasks of 1000 bytes with windows of 20 on a roof of 10 B/ns, one 100 ns long by
    // latency, the other 0. T1 = 100 + W and T2 = W with W = 50 delay, and 1000/T1 + 1000/T2 = 10. So
    // W (100 + W) = 100 (100 + 2 W), and W = 161.8: the golden ratio.
    let mut fluid = Fluid::new(vec![10.0]);
    fluid.begin(0.0, 1, vec![demand(0, 1000.0)], need(1.0, 100.0));
    fluid.begin(0.0, 2, vec![demand(0, 1000.0)], need(1.0, 0.0));
    let golden = f64::midpoint(1.0, 5.0_f64.sqrt());
    let time = |fluid: &mut Fluid, name| 1.0 / fluid.rate(name).expect("runs");
    assert!((time(&mut fluid, 2) - 100.0 * golden).abs() < 1e-5);
    assert!((time(&mut fluid, 1) - 100.0 * (1.0 + golden)).abs() < 1e-5);
    assert!((fluid.load(0) - 10.0).abs() < 1e-5);
    // When one is done, the other has the roof to itself.
    let (end, name) = fluid.next_end().expect("one");
    assert_eq!(name, 2);
    fluid.end(end, name);
    assert!((time(&mut fluid, 1) - 100.0).abs() < 1e-6);
}

#[test]
fn who_needs_less_leaves_more() {
    // Two tasks share a roof of 10; one can only use 2.
    let mut fluid = Fluid::new(vec![10.0]);
    fluid.begin(0.0, 1, vec![demand(0, 1000.0)], need(500.0, 0.0));
    fluid.begin(0.0, 2, vec![demand(0, 1000.0)], need(1.0, 0.0));
    assert!((fluid.rate(1).expect("runs") - 0.002).abs() < 1e-12);
    assert!((fluid.rate(2).expect("runs") - 0.008).abs() < 1e-10);
    assert!((fluid.slowdown(2).expect("runs") - 125.0).abs() < 1e-5);
}

#[test]
fn rates_fulfil_the_conditions() {
    for seed in 0..400 {
        let latency = [0.0, 0.1, 1.0, 5.0][usize::try_from(seed).expect("small") % 4];
        let (roofs, tasks) = random(seed, 6, 20, latency);
        assert_optimal(&mut fluid(&roofs, &tasks), &format!("seed {seed}"));
    }
}

#[test]
fn they_do_while_tasks_come_and_go_on_a_large_machine() {
    let (roofs, tasks) = random(7, 60, 300, 1.0);
    let mut fluid = fluid(&roofs, &tasks);
    let mut random = Random::new(8, Stream::Noise);
    for round in 0..300 {
        assert_optimal(&mut fluid, &format!("round {round}"));
        let (time, name) = fluid.next_end().expect("some are under way");
        fluid.end(time, name);
        if random.chance(0.9) {
            let (demands, need) = tasks[(name as usize + 37) % tasks.len()].clone();
            fluid.begin(time, name, demands, need);
        }
    }
}

#[test]
fn more_of_the_only_roof_slows_nobody() {
    for seed in 0..100 {
        let (roofs, tasks) = random(seed, 1, 12, 1.0);
        let (before, after) = (fluid(&roofs, &tasks), fluid(&[roofs[0] * 1.3], &tasks));
        let rates = before.flows.iter().zip(&after.flows);
        assert!(rates.clone().all(|(b, a)| a.rate >= b.rate * (1.0 - 1e-6)), "seed {seed}");
    }
}

#[test]
fn more_of_one_roof_never_lowers_the_objective() {
    for seed in 0..100 {
        let (roofs, tasks) = random(seed, 6, 20, 1.0);
        let before = objective(&fluid(&roofs, &tasks));
        for roof in 0..roofs.len() {
            let mut more = roofs.clone();
            more[roof] *= 1.5;
            let after = objective(&fluid(&more, &tasks));
            assert!(after >= before - before.abs() * 1e-7, "seed {seed}: {before} {after}");
        }
    }
}

#[test]
fn without_latencies_rates_scale_with_all_roofs() {
    for seed in 0..100 {
        let (roofs, mut tasks) = random(seed, 6, 20, 0.0);
        // Roofs alone bound them.
        for (demands, need) in &mut tasks {
            need.arithmetic_ns = 1.0;
            demands.push(demand(0, 400.0));
        }
        let twice: Vec<f64> = roofs.iter().map(|roof| roof * 2.0).collect();
        let (one, two) = (fluid(&roofs, &tasks), fluid(&twice, &tasks));
        for (one, two) in one.flows.iter().zip(&two.flows) {
            assert!((two.rate / one.rate - 2.0).abs() < 1e-6, "seed {seed}");
        }
    }
}

#[test]
fn a_small_share_on_a_full_roof_slows_by_that_share() {
    // Ten tasks fill a roof; an eleventh puts a hundredth of what each of them does on it.
    let mut tasks = vec![(vec![demand(0, 1000.0)], need(1.0, 10.0)); 10];
    tasks.push((vec![demand(0, 10.0)], need(1.0, 10.0)));
    let fluid = fluid(&[10.0], &tasks);
    let held = |name: usize| 1.0 / fluid.flows[name].rate - 10.0;
    assert!(held(0) > 900.0, "{}", held(0));
    assert!((held(10) * 100.0 / held(0) - 1.0).abs() < 1e-9, "{} {}", held(10), held(0));
}

#[test]
fn roofs_that_are_always_full_together_are_solved() {
    let task = (vec![demand(0, 1000.0), demand(1, 1000.0)], need(1.0, 10.0));
    let mut fluid = fluid(&[10.0, 10.0], &vec![task; 4]);
    assert!((fluid.load(0) - 10.0).abs() < 1e-5 && (fluid.load(1) - 10.0).abs() < 1e-5);
    assert!((fluid.rate(2).expect("runs") * 400.0 - 1.0).abs() < 1e-6);
}

/// Eight modules of 36 tasks whose data lie everywhere: links into a module carry almost the same, to some parts of a
/// thousand.
#[test]
fn links_that_are_nearly_alike_are_solved() {
    let modules = 8_u32;
    let roofs = vec![10.0; (modules * modules) as usize];
    let mut random = Random::new(3, Stream::Noise);
    let mut task = |module: u32| {
        let noise = |random: &mut Random| 1000.0 * (1.0 + 0.002 * random.uniform());
        let links = (0..modules).filter(|from| *from != module);
        let demands = links.map(|from| demand(from * modules + module, noise(&mut random)));
        let demands: Vec<Demand> = demands.collect();
        (demands, need(300.0 + random.uniform(), 200.0 + random.uniform()))
    };
    let tasks: Vec<_> = (0..modules * 36).map(|name| task(name / 36)).collect();
    let mut fluid = fluid(&roofs, &tasks);
    for round in 0..300 {
        assert_optimal(&mut fluid, &format!("round {round}"));
        let (time, name) = fluid.next_end().expect("some are under way");
        fluid.end(time, name);
        let (demands, need) = task(name / 36);
        fluid.begin(time, name, demands, need);
    }
    assert!(
        fluid.rates.steps() < 20 * fluid.solved(),
        "{} {}",
        fluid.rates.steps(),
        fluid.solved()
    );
}

#[test]
fn a_line_waits_for_others_before_a_roof_that_is_not_full() {
    // By hand: 1000 bytes in windows of 20 on a roof of 10 B/ns, 50 ns by latency. With rho = 100 / T in use,
    // T = 50 + (100 / 20) rho / (2 (1 - rho)).
    let one = [(vec![demand(0, 1000.0)], need(1.0, 50.0))];
    let mut fluid = begun(Fluid::new(vec![10.0]).with_queues(), &one);
    let time = 1.0 / fluid.rate(0).expect("runs");
    let used = 100.0 / time;
    assert!(used < 1.0 && (time - 50.0 - 2.5 * used / (1.0 - used)).abs() < 1e-3, "{time}");
    // A tenth of the bytes: nearly nobody is before it, and without queues nobody.
    let few = [(vec![demand(0, 100.0)], need(1.0, 50.0))];
    let mut fluid = begun(Fluid::new(vec![10.0]).with_queues(), &few);
    let held = 1.0 / fluid.rate(0).expect("runs") - 50.0;
    assert!((held - 0.25 * 0.2 / 0.8).abs() < 1e-3, "{held}");
}

#[test]
fn queues_fulfil_their_conditions_while_tasks_come_and_go() {
    for seed in 0..200 {
        let latency = [0.1, 1.0, 5.0, 50.0][usize::try_from(seed).expect("small") % 4];
        let (roofs, tasks) = random(seed, 6, 20, latency);
        let mut fluid = begun(Fluid::new(roofs).with_queues(), &tasks);
        for round in 0..20 {
            assert_queued(&mut fluid, &format!("seed {seed}, round {round}"));
            let (time, name) = fluid.next_end().expect("some are under way");
            fluid.end(time, name);
        }
    }
}

#[test]
fn queues_of_a_large_machine_are_solved_in_few_steps() {
    let (roofs, tasks) = random(7, 60, 300, 5.0);
    let mut fluid = begun(Fluid::new(roofs).with_queues(), &tasks);
    for round in 0..300 {
        assert_queued(&mut fluid, &format!("round {round}"));
        let (time, name) = fluid.next_end().expect("some are under way");
        fluid.end(time, name);
        let (demands, need) = tasks[(name as usize + 37) % tasks.len()].clone();
        fluid.begin(time, name, demands, need);
    }
    let (steps, solved) = (fluid.rates.steps(), fluid.solved());
    assert!(steps < 10 * solved, "{steps} {solved}");
}
