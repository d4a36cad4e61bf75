//! `isochrone export`: an atlas in the forms that other programs read.

use std::process::ExitCode;

use anyhow::{Error, Result};
use isochrone_atlas_store::{SaveError, export, load};
use isochrone_report::json::{self, Format};

use crate::args::ExportArgs;
use isochrone_console::output::Terminal;
use isochrone_console::written::{Place, asked, each_written, write_to};

/// Runs the command.
pub(crate) fn run(args: &ExportArgs, terminal: &Terminal) -> Result<ExitCode> {
    let [json, csv, hwloc] = Place::open_all([
        args.json.asked(),
        asked("--csv", args.csv.as_ref()),
        asked("--hwloc-xml", args.hwloc_xml.as_ref()),
    ])
    .map_err(in_their_order)?;
    let contents = load(&args.atlas)?;
    each_written([
        write_to(json, terminal, || Ok(json::pretty(Format::Atlas, &contents)?)),
        write_to(csv, terminal, || {
            let mut text = Vec::new();
            export::csv(&contents, &mut text)?;
            Ok(String::from_utf8_lossy(&text).into_owned())
        }),
        write_to(hwloc, terminal, || Ok(export::hwloc_xml(&contents)?)),
    ])?;
    Ok(ExitCode::SUCCESS)
}

/// Who writes `export --json isochrone.atlas` means to read that file, and is not told so by what keeps it whole.
fn in_their_order(error: Error) -> Error {
    let Some(SaveError::Atlas(path)) = error.downcast_ref() else { return error };
    let first = format!("the atlas stands first (isochrone export {} --json)", path.display());
    error.context(format!("a word behind an option is the file that it writes, {first}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;
    use isochrone_atlas_store::save;
    use isochrone_report::term::Colour;
    use isochrone_view::fixtures::genoa;

    use crate::args::{Cli, Command};

    #[test]
    fn an_atlas_behind_an_option_is_told_where_it_stands() {
        let folder = tempfile::tempdir().unwrap();
        let atlas = folder.path().join("a.atlas");
        save(&genoa(), &atlas).unwrap();
        let words = ["isochrone", "export", "--json", atlas.to_str().unwrap()];
        let Command::Export(args) = Cli::parse_from(words).command else { panic!("export") };
        let terminal = Terminal { colour: Colour::None, width: 80 };
        let said = isochrone_console::output::words(&run(&args, &terminal).unwrap_err());
        let way_out = format!("isochrone export {} --json", atlas.display());
        assert!(said.contains(&way_out) && said.contains("no text replaces"), "{said}");
    }
}
