//! From the words of the command line to [`Cli`], and one line for what is wrong in them.

use clap::{error::ErrorKind, ArgAction, Command, CommandFactory, FromArgMatches};

use super::Cli;

/// The command line of this process.
///
/// # Errors
///
/// What is wrong in the command line, for [`one_line`]. A request for help or the version is an error of clap too.
pub fn parse(words: impl IntoIterator<Item = std::ffi::OsString>) -> Result<Cli, clap::Error> {
    let mut command = with_negative_numbers(Cli::command());
    let mut matches = command.try_get_matches_from_mut(words)?;
    Cli::from_arg_matches_mut(&mut matches).map_err(|e| e.format(&mut command))
}

/// A value such as -3 is read as one, so that the answer is about the value and not about a flag that does not exist.
fn with_negative_numbers(command: Command) -> Command {
    command
        .mut_args(|arg| match arg.get_action() {
            ArgAction::Set | ArgAction::Append if !arg.is_positional() => arg.allow_negative_numbers(true),
            _ => arg,
        })
        .mut_subcommands(with_negative_numbers)
}

/// What is wrong, in one line: what, what is legal, and a flag of a similar name if there is one.
pub fn one_line(error: &clap::Error) -> String {
    // What was typed may hold anything, and is repeated.
    let text = error.render().to_string().replace(|c: char| c.is_control() && c != '\n', "?");
    let said =
        text.lines().map(str::trim).take_while(|line| !line.starts_with("Usage:") && !line.starts_with("For more"));
    // A flag of another command is not meant as a value.
    let said = said.filter(|part| !part.is_empty() && !part.starts_with("tip: to pass "));
    let (mut line, mut is_list) = (String::new(), false);
    for part in said {
        let part = part.trim_start_matches("error: ").trim_start_matches("tip: ");
        let legal = part.strip_prefix("[possible values: ").and_then(|rest| rest.strip_suffix(']'));
        let part = legal.map_or_else(|| part.to_string(), |values| format!("must be one of {values}"));
        // What is missing comes as a list below its heading.
        let between = match (line.ends_with(':'), is_list) {
            (true, _) => " ",
            (false, true) => ", ",
            (false, false) => ": ",
        };
        is_list |= line.ends_with(':');
        line = if line.is_empty() { part } else { line + between + &part };
    }
    if let Some(word) = flowlog_filter(&text) {
        return format!("no filters: flowlog counts every frame; leave out \"{word}\"");
    }
    match error.kind() {
        ErrorKind::UnknownArgument | ErrorKind::MissingRequiredArgument | ErrorKind::InvalidSubcommand => {
            line + "; see --help"
        }
        _ => line,
    }
}

/// The first word behind the flags of `flowlog`, where other flow loggers have a filter.
fn flowlog_filter(text: &str) -> Option<&str> {
    let (word, _) = text.strip_prefix("error: the subcommand '")?.split_once("' cannot be used with")?;
    (text.contains("linerate flowlog") && !matches!(word, "show" | "score" | "stop")).then_some(word)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(words: &[&str]) -> (ErrorKind, String) {
        let words = std::iter::once("linerate").chain(words.iter().copied()).map(Into::into);
        let error = parse(words).unwrap_err();
        (error.kind(), one_line(&error))
    }

    #[test]
    fn each_fault_is_said_in_one_line() {
        let faults: [(&[&str], ErrorKind); 12] = [
            (&["trial", "--dut", "l2", "--load", "fast"], ErrorKind::ValueValidation),
            (&["trial", "--memory", "x"], ErrorKind::InvalidValue),
            (&["bench", "--nosuch"], ErrorKind::UnknownArgument),
            (&["bnch"], ErrorKind::InvalidSubcommand),
            (&["bench", "extra"], ErrorKind::UnknownArgument),
            (&["trial", "--frame-size"], ErrorKind::InvalidValue),
            (&["trial", "--json", "a", "--json", "b"], ErrorKind::ArgumentConflict),
            (&["runs", "show"], ErrorKind::MissingRequiredArgument),
            (&["lab", "exec"], ErrorKind::MissingRequiredArgument),
            (&["lab", "show", "phy-phy", "--name", "x"], ErrorKind::UnknownArgument),
            (&["flowlog", "--port", "eth:eth0", "tcp port 80"], ErrorKind::ArgumentConflict),
            (&["flowlog", "--port", "eth:eth0", "show", "ports"], ErrorKind::ArgumentConflict),
        ];
        let mut lines = String::new();
        for (words, kind) in faults {
            let (is, line) = refused(words);
            assert_eq!(is, kind, "{words:?}");
            assert!(!line.is_empty() && !line.contains('\n'), "{line}");
            lines += &format!("{}\n", line);
        }
        insta::assert_snapshot!(lines);
    }

    #[test]
    fn a_negative_number_is_a_value() {
        assert!(parse(["linerate", "bench", "--repeat", "-3"].map(Into::into)).is_ok(), "the command refuses it");
        assert_eq!(refused(&["bench", "--descriptors", "-3"]).0, ErrorKind::ValueValidation);
        assert_eq!(refused(&["bench", "-3"]).0, ErrorKind::UnknownArgument);
    }

    #[test]
    fn help_is_none_of_them() {
        assert_eq!(refused(&["--help"]).0, ErrorKind::DisplayHelp);
        Cli::command().debug_assert();
    }
}
