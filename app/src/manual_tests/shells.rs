//! Completions for bash, zsh and fish.

use crate::argv::{self, COMMANDS};
use crate::flags::{FLAGS, LONG_FLAGS};
use crate::tools::long::Long;
use crate::tools::{TOOLS, bench, compare, freeze, via};

/// What a tool takes besides options.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Operand {
    Url,
    File,
    Directory,
    Command,
}

/// The tools with options of their own, and what else they take.
const WITH_OPTIONS: [(&str, &[Long], Operand); 4] = [
    ("bench", bench::options::LONGS, Operand::Url),
    ("compare", compare::LONGS, Operand::File),
    ("freeze", freeze::options::LONGS, Operand::Directory),
    ("via", via::options::LONGS, Operand::Command),
];

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

/// What a shell completes the value of an option of a tool with: a kind of path, or words.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Value {
    Directory,
    File,
    Words(&'static str),
}

fn value(long: &Long) -> Option<Value> {
    Some(match long.value? {
        "DIR" => Value::Directory,
        "FILE" => Value::File,
        "LEVEL" => Value::Words("fast good best"),
        "LIST" => Value::Words("br zst gz br,zst,gz none"),
        "KIND" => Value::Words("warm cold resumed"),
        "NAME" if long.name == "protocol" => Value::Words("auto h1 h2 spdy"),
        "NAME" => Value::Words("GET HEAD POST PUT DELETE"),
        "GLOB" | "URL" | "N" | "COMMAND" | "SECONDS" | "PID" | "FIELD" | "CONDITION" | "SPEC" => {
            Value::Words("")
        }
        other => panic!("no shell knows how to complete {other}"),
    })
}

/// The names of the tools.
fn tools() -> String {
    let names = TOOLS.iter().map(|tool| tool.name).chain([argv::HELP]);
    names.collect::<Vec<&str>>().join(" ")
}

/// The part of the completion for bash that is for tools.
fn bash_tools() -> String {
    let mut text = String::new();
    for (tool, longs, operand) in WITH_OPTIONS {
        let mut cases = String::new();
        for long in longs {
            let reply = match value(long) {
                None => continue,
                Some(Value::Directory) => "compgen -d -- \"$cur\"".to_owned(),
                Some(Value::File) => "compgen -f -- \"$cur\"".to_owned(),
                Some(Value::Words(words)) => format!("compgen -W '{words}' -- \"$cur\""),
            };
            let name = long.name;
            cases.push_str(&format!(
                "            --{name})\n                mapfile -t COMPREPLY < <({reply})\n                return ;;\n"
            ));
        }
        let all: Vec<String> = longs
            .iter()
            .map(|long| format!("--{}", long.name))
            .collect();
        let others = match operand {
            Operand::Url => "",
            Operand::File => "-f ",
            Operand::Directory => "-d ",
            Operand::Command => "-c ",
        };
        text.push_str(&format!(
            "    if [[ ${{COMP_WORDS[1]}} == {tool} && $COMP_CWORD -gt 1 ]]; then\n        case $prev in\n{cases}        \
             esac\n        mapfile -t COMPREPLY < <(compgen {others}-W '{}' -- \"$cur\")\n        return\n    fi\n",
            all.join(" ")
        ));
    }
    text
}

/// The part of the completion for zsh that is for tools.
fn zsh_tools() -> String {
    let mut text = String::new();
    for (tool, longs, operand) in WITH_OPTIONS {
        let mut lines = Vec::new();
        for long in longs {
            let doc = long.doc.replace(':', "\\:").replace('\'', "'\\''");
            let name = long.name;
            let action = match (long.value, value(long)) {
                (Some(shown), Some(Value::Directory)) => format!(":{shown}:_files -/"),
                (Some(shown), Some(Value::File)) => format!(":{shown}:_files"),
                (Some(shown), Some(Value::Words(words))) => format!(":{shown}:({words})"),
                _ => String::new(),
            };
            lines.push(format!("        '*--{name}[{doc}]{action}'"));
        }
        let others = match operand {
            Operand::Url => "'*:URL:()'",
            Operand::File => "'*:FILE:_files'",
            Operand::Directory => "'*:DIR:_files -/'",
            Operand::Command => "'*::COMMAND:_normal'",
        };
        text.push_str(&format!(
            "if [[ $words[2] == {tool} ]]; then\n    _arguments \\\n{} \\\n        {others}\n    return\nfi\n",
            lines.join(" \\\n")
        ));
    }
    text
}

/// The part of the completion for fish that is for the tools.
fn fish_tools() -> String {
    let mut text = String::new();
    for tool in TOOLS {
        let (name, doc) = (tool.name, tool.does);
        text.push_str(&format!(
            "complete -c firstbyte -n __fish_use_subcommand -a {name} -d '{doc}'\n"
        ));
    }
    let longs = WITH_OPTIONS
        .iter()
        .flat_map(|(tool, longs, _)| longs.iter().map(move |long| (tool, long)));
    for (tool, long) in longs {
        let action = match value(long) {
            None => String::new(),
            Some(Value::Directory) => " -x -a '(__fish_complete_directories)'".to_owned(),
            Some(Value::File) => " -r -F".to_owned(),
            Some(Value::Words(words)) => format!(" -x -a '{words}'"),
        };
        let (name, doc) = (long.name, long.doc.replace('\'', "\\'"));
        text.push_str(&format!(
            "complete -c firstbyte -n '__fish_seen_subcommand_from {tool}' -l {name}{action} -d '{doc}'\n"
        ));
    }
    text
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
    flags.extend(LONG_FLAGS.map(|(name, _)| format!("--{name}")));
    format!(
        "# Completion of firstbyte for bash. {GENERATED}\n\
         _firstbyte() {{\n    local cur=${{COMP_WORDS[COMP_CWORD]}} prev=${{COMP_WORDS[COMP_CWORD - 1]}}\n    \
         COMPREPLY=()\n{}    case $prev in\n{cases}    esac\n    \
         mapfile -t COMPREPLY < <(compgen -W '{}' -- \"$cur\")\n    \
         [[ $COMP_CWORD -eq 1 ]] && mapfile -t -O \"${{#COMPREPLY[@]}}\" COMPREPLY < <(compgen -W '{}' -- \"$cur\")\n}}\n\
         complete -F _firstbyte firstbyte\n",
        bash_tools(),
        flags.join(" "),
        tools()
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
    lines.extend(LONG_FLAGS.map(|(name, doc)| format!("    '--{name}[{doc}]'")));
    format!(
        "#compdef firstbyte\n# Completion of firstbyte for zsh. {GENERATED}\n{}_arguments -s \\\n{} \\\n    '1::tool:({})'\n",
        zsh_tools(),
        lines.join(" \\\n"),
        tools()
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
    for (name, doc) in LONG_FLAGS {
        text.push_str(&format!("complete -c firstbyte -l {name} -d '{doc}'\n"));
    }
    text + &fish_tools()
}

fn commands() -> Vec<&'static str> {
    COMMANDS.iter().map(|(name, ..)| *name).collect()
}

const GENERATED: &str = "Generated from the tables of options; see app/src/manual_tests.";
