//! Flags of earlier versions, refused with their new names before anything else is read.

use std::ffi::OsString;

use failure::Failure;

/// A flag that has a new name.
struct Renamed {
    /// The subcommands that had it.
    commands: &'static [&'static str],
    /// The old flag.
    old: &'static str,
    /// The new flag; for a command instead of a flag, how it is typed.
    new: &'static str,
    /// Old values and their new names; empty when the values did not change.
    values: &'static [(&'static str, &'static str)],
}

/// Every flag that was renamed.
const RENAMED: &[Renamed] = &[
    Renamed { commands: &["bench", "runs"], old: "--against", new: "--baseline", values: &[] },
    Renamed { commands: &["bench", "trial"], old: "--dut-tx", new: "--dut-tx-policy", values: &[] },
    Renamed {
        commands: &["flowlog"],
        old: "--directions",
        new: "--biflow",
        values: &[("joined", "on"), ("apart", "off")],
    },
    Renamed {
        commands: &["flowlog"],
        old: "--full",
        new: "--table-full",
        values: &[("refuse", "drop-new"), ("evict", "evict")],
    },
    Renamed { commands: &["bench"], old: "--flow-logger", new: "linerate flowlog score --logger", values: &[] },
];

/// Looks for an old flag among the arguments. The first argument is the program.
///
/// # Errors
///
/// (usage) for the first old flag, with its new name, and the new name of its value if the value changed.
pub fn check(args: impl IntoIterator<Item = OsString>) -> Result<(), Failure> {
    let words: Vec<String> = args.into_iter().skip(1).map(|arg| arg.to_string_lossy().into_owned()).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).take_while(|word| *word != "--").collect();
    let Some((command, words)) = words.split_first() else { return Ok(()) };
    for (n, word) in words.iter().enumerate() {
        let (flag, value) = match word.split_once('=') {
            Some((flag, value)) => (flag, Some(value)),
            None => (*word, words.get(n + 1).copied()),
        };
        let Some(renamed) = RENAMED.iter().find(|r| r.old == flag) else { continue };
        return Err(match renamed.commands.contains(command) {
            true => renamed.refusal(value),
            false => Failure::usage(format!(
                "{flag} belonged to linerate {}: it is now {}",
                renamed.commands.join(" and "),
                renamed.new
            )),
        });
    }
    Ok(())
}

impl Renamed {
    fn refusal(&self, value: Option<&str>) -> Failure {
        let Self { old, new, values, .. } = self;
        Failure::usage(match values.iter().find(|(value_old, _)| value == Some(value_old)) {
            Some((value, now)) => format!("{old} {value} is now {new} {now}"),
            None => format!("{old} is now {new}"),
        })
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;
    use failure::Exit;

    use super::*;
    use crate::cli::Cli;

    fn checked(line: &str) -> Result<(), Failure> {
        check(line.split_whitespace().map(OsString::from))
    }

    fn refused(line: &str) -> String {
        let failure = checked(line).unwrap_err();
        assert_eq!(failure.exit, Exit::Usage, "{line}");
        assert!(Cli::command().try_get_matches_from(line.split_whitespace()).is_err(), "{line}: the parser knows it");
        failure.to_string()
    }

    #[test]
    fn old_flags_are_refused_with_the_new_ones() {
        insta::assert_snapshot!(refused("linerate bench --against old.json"), @"--against is now --baseline");
        insta::assert_snapshot!(refused("linerate runs show new.json --against=old.json"), @"--against is now --baseline");
        insta::assert_snapshot!(refused("linerate bench --dut l3 --dut-tx now"), @"--dut-tx is now --dut-tx-policy");
        insta::assert_snapshot!(refused("linerate trial --load 1Mpps --dut-tx=now"), @"--dut-tx is now --dut-tx-policy");
        insta::assert_snapshot!(refused("linerate flowlog --port null --directions apart"), @"--directions apart is now --biflow off");
        insta::assert_snapshot!(refused("linerate flowlog --directions=joined"), @"--directions joined is now --biflow on");
        insta::assert_snapshot!(refused("linerate flowlog --directions"), @"--directions is now --biflow");
        insta::assert_snapshot!(refused("linerate flowlog --full refuse --directions apart"), @"--full refuse is now --table-full drop-new");
        insta::assert_snapshot!(refused("linerate flowlog --full panic"), @"--full is now --table-full");
        insta::assert_snapshot!(refused("linerate bench --flow-logger ours=a:1"), @"--flow-logger is now linerate flowlog score --logger");
    }

    #[test]
    fn new_flags_and_other_words_pass() {
        for line in [
            "linerate",
            "linerate bench --baseline old.json",
            "linerate trial --load 1Mpps --dut-tx-policy now",
            "linerate flowlog --port null --biflow off --table-full drop-new",
            "linerate forward load -- --against",
        ] {
            assert!(checked(line).is_ok(), "{line}");
        }
    }

    /// The parser knows the new flag and the new values of each row.
    #[test]
    fn every_new_flag_exists() {
        let root = Cli::command();
        for Renamed { commands, new, values, .. } in RENAMED {
            if let Some(line) = new.strip_prefix("linerate flowlog score ") {
                let score = root.find_subcommand("flowlog").unwrap().find_subcommand("score").unwrap();
                assert!(score.get_arguments().any(|a| a.get_long() == line.strip_prefix("--")), "{new}");
                continue;
            }
            for command in *commands {
                let command = root.find_subcommand(command).unwrap();
                let parsers: Vec<_> = std::iter::once(command).chain(command.get_subcommands()).collect();
                let name = new.trim_start_matches("--");
                let flag = parsers.iter().find_map(|c| c.get_arguments().find(|a| a.get_long() == Some(name)));
                let legal: Vec<_> = flag.unwrap_or_else(|| panic!("{new}")).get_possible_values();
                for (_, value) in *values {
                    assert!(legal.iter().any(|l| l.get_name() == *value), "{new} {value}");
                }
            }
        }
    }
}
