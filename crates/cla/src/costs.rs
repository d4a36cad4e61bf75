//! What lines cost on a machine that is described by text: the numbers of the paper's section 2, by name.
//!
//! `R_L`, `R_R`, `R_Q`, `R_I`, `R_QI` are single lines, `intra` and `inter` with `q`, `o`, `c` several
//! lines (equation 1). Cores of one package are one class, packages another. Siblings of a core are a class
//! of their own where hardware threads are asked for; no paper here measured them, so their cost (`R_S`)
//! is assumed.

use isochrone_machine::{ClassCost, LineCosts, Machine, PairClass, Quantity};

/// Why a description gives no costs.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CostsError {
    /// A number is not there.
    #[error(
        "{machine} has no number `{name}`, which the costs of lines need; machines/xeon-e5-2660-2s.toml has \
         all of them"
    )]
    Missing {
        /// Whose description.
        machine: String,
        /// The name of the number.
        name: String,
    },
    /// No cores.
    #[error("{0} has no cores")]
    NoCores(String),
}

/// Costs of lines between the threads of a described machine.
#[derive(Clone, Debug, PartialEq)]
pub struct MachineCosts {
    /// The table. Threads `0..cores` are the cores in ascending order; with siblings, the second threads
    /// follow in the same order.
    pub costs: LineCosts,
    /// Names of the classes, as in `costs.classes`.
    pub classes: Vec<String>,
    /// What is not published but assumed: name, value, and why.
    pub assumed: Vec<String>,
}

/// The costs that `machine` states. With `siblings`, every core has a second thread.
///
/// # Errors
/// [`CostsError`] when a number is missing.
pub fn of_machine(machine: &Machine, siblings: bool) -> Result<MachineCosts, CostsError> {
    let mut assumed = Vec::new();
    let mut number = |name: &str| {
        let cost = machine.cost(name);
        if let Some(Quantity::Assumed { value, low, high, why }) = cost.map(|c| &c.value) {
            assumed.push(format!("{name} = {value} ({low} to {high}): {why}"));
        }
        cost.and_then(|c| c.value.value()).ok_or_else(|| CostsError::Missing {
            machine: machine.name.clone(),
            name: name.to_owned(),
        })
    };
    if machine.cores.is_empty() {
        return Err(CostsError::NoCores(machine.name.clone()));
    }
    let package = |core: usize| machine.cores[core].package.unwrap_or(0);
    let cores = machine.cores.len();
    let several = (0..cores).any(|core| package(core) != package(0));
    let mut classes = vec![ClassCost {
        transfer_ns: number("R_R")?,
        memory_ns: number("R_I")?,
        start_ns: number("intra q")?,
        line_ns: number("intra o")?,
        congestion_ns: number("intra c")?,
    }];
    let mut names = vec!["one socket".to_owned()];
    if several {
        classes.push(ClassCost {
            transfer_ns: number("R_Q")?,
            memory_ns: number("R_QI")?,
            start_ns: number("inter q")?,
            line_ns: number("inter o")?,
            congestion_ns: number("inter c")?,
        });
        names.push("two sockets".to_owned());
    }
    if siblings {
        // Several lines come from the shared cache as from anybody's in the socket.
        let own = ClassCost { transfer_ns: number("R_S")?, ..classes[0].clone() };
        classes.insert(0, own);
        names.insert(0, "one core".to_owned());
    }
    let local_ns = number("R_L")?;
    let shift = u8::from(siblings);
    let threads = if siblings { 2 * cores } else { cores };
    let class = |a: usize, b: usize| {
        let (x, y) = (a % cores, b % cores);
        // A core's own memory is that of its socket.
        if x == y && a != b && siblings {
            PairClass(0)
        } else {
            PairClass(shift + u8::from(package(x) != package(y)))
        }
    };
    let costs = LineCosts::new(threads, classes, local_ns, class);
    Ok(MachineCosts { costs, classes: names, assumed })
}
