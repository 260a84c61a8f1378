//! Completions for bash, zsh and fish.

use crate::argv::COMMANDS;
use crate::flags::FLAGS;

/// What a value may be, as far as a shell can complete it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Signal,
    Directory,
    File,
    Directives,
}

/// What completes a value, by the name the help gives it.
fn kind(value: &str) -> Kind {
    match value {
        "signal" => Kind::Signal,
        "prefix" => Kind::Directory,
        "filename" => Kind::File,
        "directives" => Kind::Directives,
        other => panic!("no shell knows how to complete {other}"),
    }
}

/// For bash-completion, which loads it by the command's name.
pub(super) fn bash(directives: &[&str]) -> String {
    let mut cases = String::new();
    let mut flags = Vec::new();
    for flag in FLAGS {
        for letter in flag.letters {
            flags.push(format!("-{letter}"));
        }
        let Some(value) = flag.value else { continue };
        let reply = match kind(value) {
            Kind::Signal => format!("compgen -W '{}' -- \"$cur\"", commands().join(" ")),
            Kind::Directory => "compgen -d -- \"$cur\"".to_owned(),
            Kind::File => "compgen -f -- \"$cur\"".to_owned(),
            Kind::Directives => format!("compgen -W '{}' -- \"$cur\"", directives.join(" ")),
        };
        let paths = matches!(kind(value), Kind::Directory | Kind::File);
        let filenames = if paths {
            "compopt -o filenames\n            "
        } else {
            ""
        };
        // Flags can stand together, so the last letter of the word is the one that takes the value.
        cases.push_str(&format!(
            "        -*{})\n            {filenames}mapfile -t COMPREPLY < <({reply})\n            return ;;\n",
            flag.letters[0]
        ));
    }
    format!(
        "# Completion of firstbyte for bash. {GENERATED}\n\
         _firstbyte() {{\n    local cur=${{COMP_WORDS[COMP_CWORD]}} prev=${{COMP_WORDS[COMP_CWORD - 1]}}\n    \
         COMPREPLY=()\n    case $prev in\n{cases}    esac\n    \
         mapfile -t COMPREPLY < <(compgen -W '{}' -- \"$cur\")\n}}\n\
         complete -F _firstbyte firstbyte\n",
        flags.join(" ")
    )
}

/// For zsh, in a folder of its `fpath`.
pub(super) fn zsh(directives: &[&str]) -> String {
    let mut lines = Vec::new();
    for flag in FLAGS {
        let action = flag.value.map(|value| {
            let choice = match kind(value) {
                Kind::Signal => format!("({})", commands().join(" ")),
                Kind::Directory => "_files -/".to_owned(),
                Kind::File => "_files".to_owned(),
                Kind::Directives => format!("({})", directives.join(" ")),
            };
            format!("+:{value}:{choice}")
        });
        for letter in flag.letters {
            let (before, after) = match &action {
                // The plus says that the value may follow in the same word.
                Some(action) => action.split_at(1),
                None => ("", ""),
            };
            let doc = flag.doc.replace(':', "\\:").replace('\'', "'\\''");
            lines.push(format!("    '-{letter}{before}[{doc}]{after}'"));
        }
    }
    format!(
        "#compdef firstbyte\n# Completion of firstbyte for zsh. {GENERATED}\n_arguments -s \\\n{}\n",
        lines.join(" \\\n")
    )
}

/// For fish.
pub(super) fn fish(directives: &[&str]) -> String {
    let mut text =
        format!("# Completion of firstbyte for fish. {GENERATED}\ncomplete -c firstbyte -f\n");
    for flag in FLAGS {
        let action = flag.value.map(|value| match kind(value) {
            Kind::Signal => format!(" -x -a '{}'", commands().join(" ")),
            Kind::Directory => " -x -a '(__fish_complete_directories)'".to_owned(),
            Kind::File => " -r -F".to_owned(),
            Kind::Directives => format!(" -x -a '{}'", directives.join(" ")),
        });
        for letter in flag.letters {
            let doc = flag.doc.replace('\'', "\\'");
            let action = action.clone().unwrap_or_default();
            text.push_str(&format!(
                "complete -c firstbyte -s '{letter}'{action} -d '{doc}'\n"
            ));
        }
    }
    text
}

fn commands() -> Vec<&'static str> {
    COMMANDS.iter().map(|(name, ..)| *name).collect()
}

const GENERATED: &str = "Generated from the tables of options; see app/src/manual_tests.";
