//! Whether the examples that help shows are understood: for the tests of both programs.

use clap::Parser;

/// What a shell makes of a line: words, some in quotes, up to a redirection or a
/// comment in a column of its own.
fn words(line: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let (mut quoted, mut before) = (false, 'i');
    for letter in line.chars() {
        match letter {
            '\'' => quoted = !quoted,
            ' ' if !quoted && before == ' ' => break,
            '>' if !quoted => break,
            ' ' if !quoted => words.push(String::new()),
            _ => words.last_mut().expect("one at least").push(letter),
        }
        before = letter;
    }
    words.retain(|word| !word.is_empty());
    words
}

/// Commands in the examples of a help text; several may stand in one line, and one in several that end in a backslash.
fn examples(command: &clap::Command) -> Vec<String> {
    let text = command.get_after_help().map(ToString::to_string).unwrap_or_default();
    let text = text.replace("\\\n    ", "");
    let lines = text.lines().map(str::trim).filter(|line| line.starts_with("isochrone"));
    lines
        .flat_map(|line| line.split(" && ").flat_map(|part| part.split("; ")))
        .filter(|part| part.starts_with("isochrone"))
        .map(str::to_owned)
        .collect()
}

fn all(command: &clap::Command) -> Vec<&clap::Command> {
    let children = command.get_subcommands().filter(|child| !child.is_hide_set());
    std::iter::once(command).chain(children.flat_map(all)).collect()
}

/// Commands without an example, but for those that `without` names, and examples that are not understood, but for
/// those that belong to the other program: they begin with one of `others`.
pub(crate) fn wrong<P: Parser>(without: fn(&str) -> bool, others: &[&str]) -> Vec<String> {
    let root = P::command();
    let mut wrong = Vec::new();
    for command in all(&root).into_iter().skip(1) {
        let found = examples(command);
        let needs = !command.has_subcommands() && !without(command.get_name());
        if needs && found.is_empty() {
            wrong.push(format!("{} has no example", command.get_name()));
        }
        let ours = |example: &&String| !others.iter().any(|other| example.starts_with(other));
        let refused = |example: &String| Some(P::try_parse_from(words(example)).err()?.to_string());
        wrong.extend(found.iter().filter(ours).filter_map(refused));
    }
    wrong
}

/// Examples that a terminal of 80 columns breaks: what is copied from there is two commands.
pub(crate) fn broken(root: &clap::Command) -> Vec<String> {
    let text = |command: &clap::Command| {
        command.get_after_help().map(ToString::to_string).unwrap_or_default()
    };
    let texts: Vec<String> = all(root).into_iter().map(text).collect();
    // A command ends where the column of words begins.
    let command = |line: &str| {
        let begin = line.len() - line.trim_start().len();
        line[begin..].find("  ").map_or(line, |end| &line[..begin + end]).to_owned()
    };
    let lines = texts.iter().flat_map(|text| text.lines()).filter(|line| line.starts_with("  "));
    lines.map(command).filter(|line| line.chars().count() > 80).collect()
}

/// Lines of help that a source file has cut: clap wraps lines where the terminal ends, and one that is cut elsewhere as
/// well is ragged on every other terminal.
pub(crate) fn cut_lines(root: &clap::Command) -> Vec<String> {
    let mut cut = Vec::new();
    for command in all(root) {
        let text = command.get_after_help().map(ToString::to_string).unwrap_or_default();
        let lines: Vec<&str> = text.lines().collect();
        let prose = |line: &str| !line.is_empty() && !line.starts_with(' ');
        let pairs = lines.windows(2).filter(|pair| pair.iter().all(|line| prose(line)));
        let ended = |line: &str| line.ends_with(['.', ':']);
        cut.extend(pairs.filter(|pair| !ended(pair[0])).map(|pair| pair[0].to_owned()));
    }
    cut
}

/// Options that name a place for text and have another form than all others: a file, or none for what the option
/// stands for alone.
pub(crate) fn other_forms(root: &clap::Command) -> Vec<String> {
    let mut root = root.clone();
    root.build();
    let mut wrong = Vec::new();
    for command in all(&root) {
        for arg in command.get_arguments() {
            let alone = match arg.get_long() {
                Some("json" | "csv" | "hwloc-xml" | "dot" | "svg") => "-",
                Some("html") => "isochrone.html",
                _ => continue,
            };
            let takes = arg.get_num_args().map(|count| (count.min_values(), count.max_values()));
            let has_default = format!("{arg:?}").contains(&format!("{alone:?}"));
            if takes != Some((0, 1)) || !has_default {
                wrong.push(format!("{} {arg}", command.get_name()));
            }
        }
    }
    wrong
}
