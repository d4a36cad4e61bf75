//! Cache-line-aware (CLa) programs: communication written in cache lines.
//!
//! A program is written once, as an ordinary function over [`program::Lines`], and read three ways: it runs on
//! lines that threads or processes share, its time is predicted as a band, and it is simulated message
//! by message. The idea, the primitives and the rules of cost are those of Ramos and Hoefler, "Cache
//! Line Aware Optimizations for ccNUMA Systems" (HPDC 2015).
//!
//! * [`program`]: the primitives, what a program may address, and the recorder that writes down what
//!   one rank does.
//! * [`live`]: the reading that runs, between threads and between processes.
//! * [`collectives`]: broadcast, barrier and the rest, over the primitives.
//! * [`predicted`]: the graph of a program, and the band of its time.
//! * [`simulated`]: a program replayed on a modelled machine, message by message.
//! * [`language`]: programs as text.
//! * [`search`]: which tree.
//! * [`choice`]: which shape a team takes, by what is known of its cores' distances.
//! * [`published`]: the model against figures of others.
//! * [`check`]: every order in which ranks can take their operations, for what can go wrong.

pub mod check;
pub mod choice;
pub mod collectives;
pub mod costs;
pub mod language;
pub mod live;
pub mod predicted;
pub mod program;
pub mod published;
pub mod search;
pub mod simulated;
