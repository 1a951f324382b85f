//! Command lines as pflag and cobra read them, which Makefiles and scripts for operator-sdk and opm rely on:
//!
//! - A flag may be repeated. The last value wins, and list flags append.
//! - A boolean flag takes a value after `=`: `--verbose=true`, `-q=0`.
//! - A subcommand's flags may precede its name: `operator-sdk -n operators run bundle IMAGE`.
//!
//! All commands parse through [`parse`], so the syntax applies to each of them.

use std::any::TypeId;
use std::ffi::{OsStr, OsString};

use clap::{Arg, ArgAction, Command, Parser};

/// Parses a command line. The first argument is the program's name.
///
/// # Errors
/// Usage errors, and requests for help or the version.
pub fn parse<P: Parser>(arguments: &[OsString]) -> Result<P, clap::Error> {
    let first = match matches::<P>(P::command(), arguments) {
        Err(error) if error.use_stderr() => error,
        other => return other,
    };
    // clap rejects the rest of the syntax, so that only these command lines pay for a complete command tree.
    let mut command = P::command().args_override_self(true);
    command.build();
    match rewrite(&command, arguments) {
        Some(rewritten) => matches::<P>(P::command(), &rewritten),
        None => Err(first),
    }
}

fn matches<P: Parser>(command: Command, arguments: &[OsString]) -> Result<P, clap::Error> {
    let mut command = command.args_override_self(true);
    let mut matches = command.try_get_matches_from_mut(arguments)?;
    P::from_arg_matches_mut(&mut matches).map_err(|error| error.format(&mut command))
}

/// A flag as written: `--name`, `--name=value`, `-n`, `-nvalue`, `-n=value`.
struct WrittenFlag<'a> {
    name: Name<'a>,
    /// The value after `=`.
    value: Option<&'a str>,
}

#[derive(PartialEq)]
enum Name<'a> {
    Long(&'a str),
    /// One or more single-letter flags.
    Short(&'a str),
}

impl<'a> WrittenFlag<'a> {
    fn parse(argument: &'a OsStr) -> Option<Self> {
        let text = argument.to_str()?;
        let (dashes, rest) = match (text.strip_prefix("--"), text.strip_prefix('-')) {
            (Some(rest), _) => (2, rest),
            (None, Some(rest)) => (1, rest),
            (None, None) => return None,
        };
        let (name, value) = match rest.split_once('=') {
            Some((name, value)) => (name, Some(value)),
            None => (rest, None),
        };
        let name = if dashes == 2 {
            Name::Long(name)
        } else {
            Name::Short(name)
        };
        (!rest.is_empty()).then_some(Self { name, value })
    }

    /// The one flag of the command that this names. Several letters after one dash name none.
    fn of<'c>(&self, command: &'c Command) -> Option<&'c Arg> {
        command.get_arguments().find(|argument| match self.name {
            Name::Long(name) => {
                argument.get_long() == Some(name)
                    || argument
                        .get_all_aliases()
                        .is_some_and(|aliases| aliases.contains(&name))
            }
            Name::Short(letters) => {
                let mut letters = letters.chars();
                let letter = letters.next().filter(|_| letters.next().is_none());
                letter.is_some_and(|letter| {
                    argument.get_short() == Some(letter)
                        || argument
                            .get_all_short_aliases()
                            .is_some_and(|aliases| aliases.contains(&letter))
                })
            }
        })
    }
}

/// Returns true if clap expects no value for this flag.
fn is_switch(argument: &Arg) -> bool {
    matches!(argument.get_action(), ArgAction::SetTrue)
        && argument.get_num_args().is_none_or(|values| values.max_values() == 0)
}

/// Returns true if the argument after the flag is its value.
fn takes_next(argument: &Arg) -> bool {
    argument.get_action().takes_values()
        && !argument.is_require_equals_set()
        && argument.get_num_args().is_none_or(|values| values.min_values() > 0)
}

fn is_bool(argument: &Arg) -> bool {
    argument.get_value_parser().type_id() == TypeId::of::<bool>()
}

/// The same command line in clap's syntax, or `None` if it is not different.
fn rewrite(root: &Command, arguments: &[OsString]) -> Option<Vec<OsString>> {
    let (program, rest) = arguments.split_first()?;
    let mut command = root;
    let mut words = vec![program.clone()];
    // Flags before the name of the subcommand that defines them.
    let mut early = Vec::new();
    let mut flags: Vec<OsString> = Vec::new();
    // The indices of switches in `flags`, and whether each is on.
    let mut switches: Vec<(&Arg, usize, bool)> = Vec::new();
    let mut rest = rest.iter();
    let mut queue: Vec<&OsString> = Vec::new();
    let mut below = command.has_subcommands();
    // First pass: find the command. cobra assumes that an unknown flag has a value after it.
    while below && let Some(argument) = rest.next() {
        if argument == "--" {
            queue.push(argument);
            break;
        }
        if let Some(flag) = WrittenFlag::parse(argument) {
            early.push(argument);
            let known = flag.of(command);
            if flag.value.is_none() && known.is_none_or(takes_next) && !is_help(&flag) {
                early.extend(rest.next());
            }
        } else if let Some(found) = argument.to_str().and_then(|name| command.find_subcommand(name)) {
            words.push(argument.clone());
            command = found;
            below = command.has_subcommands();
        } else {
            queue.push(argument);
            break;
        }
    }
    let mut after: Vec<&OsString> = early;
    after.append(&mut queue);
    after.extend(rest);
    // Second pass: translate the flags.
    let mut after = after.into_iter().flat_map(|argument| split(command, argument));
    while let Some(argument) = after.next() {
        if argument == "--" {
            flags.push(argument);
            flags.extend(after.by_ref());
            break;
        }
        let found = WrittenFlag::parse(&argument).and_then(|flag| Some((flag.of(command)?, flag.value)));
        match found {
            Some((known, value)) if is_switch(known) => {
                let on = match value.map(go_bool) {
                    None => true,
                    Some(Some(on)) => on,
                    // clap reports the invalid value.
                    Some(None) => return None,
                };
                switches.push((known, flags.len(), on));
                flags.push(name_only(&argument));
            }
            Some((known, Some(value))) if is_bool(known) => {
                let on = go_bool(value)?;
                let mut text = name_only(&argument);
                text.push(format!("={on}"));
                flags.push(text);
            }
            Some((known, None)) if takes_next(known) => {
                flags.push(argument.clone());
                flags.extend(after.next());
            }
            _ => flags.push(argument),
        }
    }
    // Only the last of several counts, and only if it is on.
    let mut dropped = Vec::new();
    for (number, (known, place, on)) in switches.iter().enumerate() {
        let is_last = !switches
            .iter()
            .skip(number + 1)
            .any(|(other, ..)| other.get_id() == known.get_id());
        if !(is_last && *on) {
            dropped.push(*place);
        }
    }
    let kept = flags
        .into_iter()
        .enumerate()
        .filter(|(place, _)| !dropped.contains(place));
    words.extend(kept.map(|(_, argument)| argument));
    (words != arguments).then_some(words)
}

/// Splits `-qf=false` into `-q`, `-f=false`, if all its letters are switches. Other arguments are not changed.
fn split(command: &Command, argument: &OsStr) -> Vec<OsString> {
    if let Some(WrittenFlag {
        name: Name::Short(letters),
        value: Some(value),
    }) = WrittenFlag::parse(argument)
    {
        let switches = letters.chars().all(|letter| {
            let mut arguments = command.get_arguments();
            arguments.any(|argument| argument.get_short() == Some(letter) && is_switch(argument))
        });
        if switches {
            let mut words: Vec<String> = letters.chars().map(|letter| format!("-{letter}")).collect();
            if let Some(last) = words.last_mut() {
                last.push('=');
                last.push_str(value);
            }
            return words.into_iter().map(OsString::from).collect();
        }
    }
    vec![argument.to_owned()]
}

fn is_help(flag: &WrittenFlag<'_>) -> bool {
    flag.name == Name::Long("help") || flag.name == Name::Short("h")
}

/// The flag without its value.
fn name_only(argument: &OsStr) -> OsString {
    let text = argument.to_string_lossy();
    text.split('=').next().unwrap_or_default().into()
}

/// The values that Go's `strconv.ParseBool` accepts.
fn go_bool(text: &str) -> Option<bool> {
    match text {
        "1" | "t" | "T" | "TRUE" | "true" | "True" => Some(true),
        "0" | "f" | "F" | "FALSE" | "false" | "False" => Some(false),
        _ => None,
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)] // a test fails by panicking
mod tests {
    use clap::{CommandFactory as _, Subcommand};

    use super::*;

    #[derive(Parser, Debug, PartialEq)]
    struct Program {
        #[arg(long, short, global = true)]
        quiet: bool,
        #[command(subcommand)]
        command: Group,
    }

    #[derive(Subcommand, Debug, PartialEq)]
    #[command(defer = true)]
    enum Group {
        Run(Run),
        #[command(subcommand)]
        Deep(Deep),
    }

    #[derive(Subcommand, Debug, PartialEq)]
    #[command(defer = true)]
    enum Deep {
        Run(Run),
    }

    #[derive(clap::Args, Debug, PartialEq, Default, Clone)]
    struct Run {
        place: Option<String>,
        #[arg(short, long)]
        name: Option<String>,
        #[arg(long, value_delimiter = ',')]
        list: Vec<String>,
        #[arg(short, long, conflicts_with = "name")]
        fast: bool,
        #[arg(long, num_args = 0..=1, require_equals = true, default_value = "true", default_missing_value = "true")]
        write: bool,
    }

    fn run(arguments: &str) -> Result<(bool, Run), clap::Error> {
        let words: Vec<OsString> = std::iter::once("program")
            .chain(arguments.split_whitespace())
            .map(OsString::from)
            .collect();
        parse::<Program>(&words).map(|program| match program.command {
            Group::Run(run) | Group::Deep(Deep::Run(run)) => (program.quiet, run),
        })
    }

    fn base() -> Run {
        Run {
            write: true,
            ..Run::default()
        }
    }

    fn named(name: &str) -> Run {
        Run {
            name: Some(name.to_owned()),
            ..base()
        }
    }

    #[test]
    fn last_value_wins_and_lists_append() {
        for group in ["run", "deep run"] {
            for (flags, name) in [
                ("-n a -n b", "b"),
                ("--name a --name=b", "b"),
                ("-na -n=b", "b"),
                ("--name b --quiet=false", "b"),
            ] {
                assert_eq!(
                    run(&format!("{group} {flags}")).unwrap(),
                    (false, named(name)),
                    "{flags}"
                );
            }
            let listed = run(&format!("{group} --list a,b --list c --quiet=0")).unwrap().1;
            assert_eq!(listed.list, ["a", "b", "c"]);
        }
    }

    #[test]
    fn boolean_flags_take_a_value_after_the_equals_sign() {
        for group in ["run", "deep run"] {
            for (flags, quiet, fast, write) in [
                ("--fast=true", false, true, true),
                ("--fast=false", false, false, true),
                ("--fast=T -q=1", true, true, true),
                ("-f=0 -q=F", false, false, true),
                ("--fast --fast=false", false, false, true),
                ("--fast=false --fast", false, true, true),
                ("-f -f -q -q", true, true, true),
                ("--write=0", false, false, false),
                ("--write=False --fast=1", false, true, false),
                ("--write=false --write", false, false, true),
                ("-qf=false", true, false, true),
                ("-fq=false", false, true, true),
            ] {
                let wanted = (
                    quiet,
                    Run {
                        fast,
                        write,
                        ..Run::default()
                    },
                );
                assert_eq!(run(&format!("{group} {flags}")).unwrap(), wanted, "{flags}");
            }
        }
    }

    #[test]
    fn a_flag_that_is_off_conflicts_with_nothing() {
        assert_eq!(run("run --name a --fast=false").unwrap(), (false, named("a")));
        assert!(run("run --name a --fast=true").is_err());
    }

    #[test]
    fn values_that_look_like_flags_stay_values() {
        assert_eq!(
            run("run --quiet=1 --name=--fast=true").unwrap(),
            (true, named("--fast=true"))
        );
        let (quiet, values) = run("run --quiet=1 -- --fast=true").unwrap();
        assert_eq!((quiet, values.place.as_deref()), (true, Some("--fast=true")));
    }

    #[test]
    fn flags_may_precede_their_command() {
        for line in [
            "-n a run",
            "--name a run",
            "-q=false --name=a deep run",
            "deep -n a run",
            "deep --name=a run -q=f",
        ] {
            assert_eq!(run(line).unwrap(), (false, named("a")), "{line}");
        }
    }

    #[test]
    fn wrong_values_and_unknown_flags_are_usage_errors() {
        for line in [
            "run --fast=maybe",
            "run --fast=",
            "run --unknown=true",
            "run --unknown",
            "-x run",
        ] {
            assert!(run(line).is_err(), "{line}");
        }
        let help = run("run --fast=true --help").unwrap_err();
        assert_eq!(help.kind(), clap::error::ErrorKind::DisplayHelp);
        // The help does not show the values that pflag's does not show.
        assert!(help.to_string().contains("--fast  "), "{help}");
        assert!(Program::command().find_subcommand("run").is_some());
    }
}
