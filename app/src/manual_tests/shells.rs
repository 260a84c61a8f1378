//! Completions of shells, by clap_complete.

use clap::builder::PossibleValuesParser;
use clap::{Arg, ArgAction, Command, ValueHint};
use clap_complete::{Generator, generate};

use crate::argv::COMMANDS;
use crate::cli;
use crate::flags::{FLAGS, Flag, LONG_FLAGS};

/// The completion for a shell.
pub(super) fn completion(shell: impl Generator, directives: &[&'static str]) -> String {
    let mut out = Vec::new();
    generate(shell, &mut whole(directives), "firstbyte", &mut out);
    String::from_utf8(out).expect("it is text")
}

/// The command line of verbs with nginx's options before them.
fn whole(directives: &[&'static str]) -> Command {
    let flags = FLAGS.iter().flat_map(|flag| {
        let letters = flag.letters.iter();
        letters.map(|letter| argument(flag, *letter, directives))
    });
    let long = |(name, doc): (&'static str, &'static str)| {
        Arg::new(name)
            .long(name)
            .help(doc)
            .action(ArgAction::SetTrue)
    };
    let command = cli::command().disable_help_flag(true);
    command.args(flags).args(LONG_FLAGS.map(long))
}

fn argument(flag: &Flag, letter: char, directives: &[&'static str]) -> Arg {
    let argument = Arg::new(letter.to_string()).short(letter).help(flag.doc);
    let Some(value) = flag.value else {
        return argument.action(ArgAction::SetTrue);
    };
    let argument = argument.value_name(value);
    match value {
        "signal" => {
            let names = COMMANDS.iter().map(|(name, ..)| *name);
            argument.value_parser(PossibleValuesParser::new(names))
        }
        "directives" => {
            let names = directives.iter().copied();
            argument.value_parser(PossibleValuesParser::new(names))
        }
        "prefix" => argument.value_hint(ValueHint::DirPath),
        _ => argument.value_hint(ValueHint::FilePath),
    }
}
