//! Manual page and shell completions, from the definition of a command line.

use anyhow::Result;
use clap::Command;
use clap_complete::Shell;

/// What a shell reads to complete this command.
pub fn completions(shell: Shell, mut command: Command) -> String {
    let name = command.get_name().to_owned();
    let mut text = Vec::new();
    clap_complete::generate(shell, &mut command, name, &mut text);
    String::from_utf8_lossy(&text).into_owned()
}

/// The manual page, as roff.
///
/// # Errors
/// None that is known; writing into memory can fail by its type.
pub fn manual(command: Command) -> Result<String> {
    let mut text = Vec::new();
    clap_mangen::Man::new(command).render(&mut text)?;
    Ok(String::from_utf8_lossy(&text).into_owned())
}
