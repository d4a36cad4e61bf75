//! What `predict` and `cla` show: figures, a graph and words, each where it was asked for.

use anyhow::Result;
use isochrone_cla::predicted::{self, Prediction};
use isochrone_console::output::Terminal;
use isochrone_console::written::{Asked, Place, each_written, on_stdout, write_to};
use isochrone_report::json::{self, Format};
use serde_json::Value;

/// Places of figures and graphs.
pub(crate) struct Shows {
    /// What figures are.
    format: Format,
    json: Option<Place>,
    dot: Option<Place>,
    svg: Option<Place>,
    /// Whether one of them is standard output.
    alone: bool,
}

/// A graph and what stands above it.
pub(crate) struct Graph {
    pub(crate) prediction: Prediction,
    pub(crate) title: String,
}

impl Graph {
    fn write(self, dot: Option<Place>, svg: Option<Place>, terminal: &Terminal) -> Result<()> {
        let Self { prediction, title } = self;
        let band = &prediction.min;
        each_written([
            write_to(dot, terminal, || Ok(predicted::dot(&prediction, band, &title))),
            write_to(svg, terminal, || Ok(predicted::svg(&prediction, band, &title))),
        ])
    }
}

impl Shows {
    /// Opens what is asked for: figures, the graph for Graphviz, the graph as SVG.
    pub(crate) fn open(format: Format, asked: [Asked<'_>; 3]) -> Result<Self> {
        let places = Place::open_all(asked)?;
        let alone = on_stdout(&places);
        let [json, dot, svg] = places;
        Ok(Self { format, json, dot, svg, alone })
    }

    /// Writes what is asked for, and prints the words where nothing of it is standard output. The graph is made where
    /// it is wanted.
    pub(crate) fn show(
        self,
        json: &Value,
        graph: impl FnOnce() -> Result<Graph>,
        words: &str,
        terminal: &Terminal,
    ) -> Result<()> {
        let Self { format, json: place, dot, svg, alone } = self;
        each_written([
            if alone { Ok(()) } else { terminal.say(words) },
            write_to(place, terminal, || Ok(json::pretty(format, json)?)),
            if dot.is_some() || svg.is_some() {
                graph()?.write(dot, svg, terminal)
            } else {
                Ok(())
            },
        ])
    }
}
