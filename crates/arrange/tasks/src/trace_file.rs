//! Traces of tasks in the format of Chrome and Perfetto ("Trace Event Format", JSON object form): a
//! process for each region, a track for each worker, a slice for each task. It makes text, and writes no file.

use std::fmt::Write as _;

use serde_json::json;

use crate::trace::Trace;

/// Numbers of processes that one run takes, more than any machine has regions.
const PROCESSES: u32 = 1 << 16;

/// Traces of several runs, in one file.
#[derive(Debug, Default)]
pub struct TraceFile {
    /// Events, one a line.
    lines: String,
    runs: u32,
    left_out: u64,
}

impl TraceFile {
    /// No run yet.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a run under a name.
    pub fn add(&mut self, run: &str, trace: &Trace) {
        let first = self.runs * PROCESSES;
        self.runs += 1;
        self.left_out += trace.left_out;
        let begin = trace.events.iter().map(|event| event.start_ns).min().unwrap_or(0);
        let mut named = std::collections::BTreeSet::new();
        for event in &trace.events {
            let process = first + u32::from(event.region.0);
            if named.insert((process, None)) {
                let name = format!("{run}, region {}", event.region.0);
                self.name("process_name", process, 0, &name);
            }
            if named.insert((process, Some(event.worker))) {
                self.name(
                    "thread_name",
                    process,
                    event.worker,
                    &format!("worker {}", event.worker),
                );
            }
            self.line(&json!({
                "name": event.kernel,
                "ph": "X",
                "ts": micro(event.start_ns - begin),
                "dur": micro(event.ns),
                "pid": process,
                "tid": event.worker,
                "args": {
                    "local_bytes": event.local_bytes,
                    "remote_bytes": event.remote_bytes,
                    "stolen_from": event.stolen_from.map(|region| region.0),
                    "successor": event.successor,
                },
            }));
        }
    }

    fn name(&mut self, what: &str, process: u32, track: u32, name: &str) {
        self.line(&json!({
            "name": what, "ph": "M", "pid": process, "tid": track, "args": {"name": name},
        }));
    }

    fn line(&mut self, event: &serde_json::Value) {
        if !self.lines.is_empty() {
            self.lines.push_str(",\n");
        }
        // Writing to a string does not fail.
        let _ = write!(self.lines, "{event}");
    }

    /// The file.
    #[must_use]
    pub fn text(&self) -> String {
        format!(
            "{{\"displayTimeUnit\": \"ns\", \"otherData\": {{\"tasks_left_out\": {}}}, \
             \"traceEvents\": [\n{}\n]}}\n",
            self.left_out, self.lines
        )
    }
}

#[allow(clippy::cast_precision_loss, reason = "a run is far below 2^53 ns")]
fn micro(ns: u64) -> f64 {
    ns as f64 / 1000.0
}

#[cfg(not(loom))]
#[cfg(test)]
mod tests {
    use isochrone_units::RegionId;

    use super::*;
    use crate::trace::TaskEvent;

    #[test]
    fn each_task_is_a_slice_on_its_workers_track() {
        let event = TaskEvent {
            kernel: "update",
            number: Some(4),
            order: 2,
            successor: false,
            worker: 3,
            region: RegionId(1),
            start_ns: 5_000,
            ns: 1_500,
            local_bytes: 64,
            remote_bytes: 32,
            stolen_from: Some(RegionId(0)),
        };
        let later = TaskEvent { start_ns: 7_000, stolen_from: None, ..event };
        let mut file = TraceFile::new();
        file.add("dft", &Trace { events: vec![event], left_out: 0 });
        file.add("naft", &Trace { events: vec![event, later], left_out: 2 });
        let read: serde_json::Value = serde_json::from_str(&file.text()).unwrap();
        assert_eq!(read["otherData"]["tasks_left_out"], 2);
        let events = read["traceEvents"].as_array().unwrap();
        let slices: Vec<_> = events.iter().filter(|event| event["ph"] == "X").collect();
        assert_eq!((events.len(), slices.len()), (7, 3));
        assert_eq!(slices[2]["ts"], 2.0);
        assert_eq!(slices[2]["dur"], 1.5);
        assert_eq!(slices[0]["args"]["stolen_from"], 0);
        assert!(slices[2]["args"]["stolen_from"].is_null());
        assert_ne!(slices[0]["pid"], slices[1]["pid"], "runs are told apart");
        let named = |event: &&serde_json::Value| event["args"]["name"] == "naft, region 1";
        assert_eq!(events.iter().filter(named).count(), 1);
    }
}
