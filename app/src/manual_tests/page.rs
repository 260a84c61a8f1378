//! The man page firstbyte(8), in the macros of man(7).

use clap::Command;
use clap_mangen::Man;

use super::statuses::TABLE;
use crate::argv::COMMANDS;
use crate::cli;
use crate::cli::manual::Manual;
use crate::flags::{FLAGS, Flag, LONG_FLAGS};

/// The page.
pub(super) fn render() -> String {
    let version = env!("CARGO_PKG_VERSION");
    let mut page =
        String::from(".\\\" Generated from the tables of options; see app/src/manual_tests.\n");
    page.push_str(&format!(
        ".TH FIRSTBYTE 8 \"\" \"firstbyte {version}\" \"System Administration\"\n"
    ));
    page.push_str(&named(
        "NAME",
        "firstbyte \\- web server that reads nginx.conf",
    ));
    page.push_str(".SH SYNOPSIS\n.SY firstbyte\n");
    for flag in FLAGS {
        page.push_str(&format!(".OP {}\n", usage(flag)));
    }
    page.push_str(".YS\n");
    page.push_str(&named("DESCRIPTION", DESCRIPTION));
    page.push_str(".SH OPTIONS\n");
    for flag in FLAGS {
        page.push_str(&format!(".TP\n{}\n{}.\n", head(flag), capital(flag.doc)));
        if flag.letters.contains(&'s') {
            page.push_str(&commands());
        }
    }
    for (name, doc) in LONG_FLAGS {
        page.push_str(&format!(".TP\n\\fB\\-\\-{name}\\fR\n{}.\n", capital(doc)));
    }
    page.push_str(&verbs());
    page.push_str(&table("SIGNALS", SIGNALS_HEAD, SIGNALS));
    page.push_str(&table("FILES", FILES_HEAD, FILES));
    page.push_str(&table("ENVIRONMENT", "", ENVIRONMENT));
    page.push_str(&table("EXIT STATUS", EXIT_STATUS, &TABLE));
    page.push_str(&named("SEE ALSO", SEE_ALSO));
    page
}

/// The page of a verb.
pub(super) fn of_verb(verb: &Command, name: &str) -> String {
    let mut page = Vec::new();
    let version = env!("CARGO_PKG_VERSION");
    let command = verb
        .clone()
        .name(name.to_owned())
        .bin_name(name.replace('-', " "));
    // The sections of the long help follow in the page's own form.
    let command = command.after_long_help(None);
    let more = command.get_after_help().map(ToString::to_string);
    let man = Man::new(command).source(format!("firstbyte {version}"));
    let mut render = || -> std::io::Result<()> {
        man.render_title(&mut page)?;
        man.render_name_section(&mut page)?;
        man.render_synopsis_section(&mut page)?;
        man.render_description_section(&mut page)?;
        man.render_options_section(&mut page)
    };
    render().expect("memory takes everything");
    let mut page = String::from_utf8(page).expect("it is text");
    if let Some(more) = more {
        // Its lines are columns, which must not be filled.
        page.push_str(&format!(
            ".SH \"ARGUMENTS\"\n.EX\n{}\n.EE\n",
            escaped(&more)
        ));
    }
    page + &manual(verb.get_name())
}

/// Exit status, examples and references of a verb.
fn manual(verb: &str) -> String {
    let manual = Manual::of(verb).unwrap_or_else(|| panic!("{verb} has no manual"));
    let statuses: Vec<(&str, String)> = manual
        .statuses
        .iter()
        .map(|(status, meaning)| (*status, format!("{}.", capital(meaning))))
        .collect();
    let rows: Vec<(&str, &str)> = statuses.iter().map(|(term, doc)| (*term, &**doc)).collect();
    let mut text = table("EXIT STATUS", "", &rows) + ".SH \"EXAMPLES\"\n";
    for (line, purpose) in manual.examples {
        let line = escaped(line).replace('\'', "\\(aq");
        let purpose = capital(purpose);
        text.push_str(&format!(".TP\n{purpose}:\n.EX\n{line}\n.EE\n"));
    }
    text + &named(
        "SEE ALSO",
        &manual
            .see_also
            .iter()
            .map(|place| escaped(place))
            .collect::<Vec<_>>()
            .join(",\n"),
    )
}

/// Describes the verbs of the program: command lines that begin with a verb.
fn verbs() -> String {
    let command = cli::command();
    let rows = command.get_subcommands().map(|verb| {
        let about = verb
            .get_about()
            .map(ToString::to_string)
            .unwrap_or_default();
        let name = verb.get_name();
        (
            name.to_owned(),
            format!("{}; see\n.BR firstbyte\\-{name} (1).", capital(&about)),
        )
    });
    let rows: Vec<(String, String)> = rows.collect();
    let rows: Vec<(&str, &str)> = rows
        .iter()
        .map(|(name, about)| (&**name, &**about))
        .collect();
    table("VERBS", VERBS_HEAD, &rows)
}

fn named(title: &str, text: &str) -> String {
    format!(".SH \"{title}\"\n{text}\n")
}

/// `\-?` or `\-s signal`, as the synopsis macro takes it.
fn usage(flag: &Flag) -> String {
    let letter = flag.letters[0];
    match flag.value {
        Some(value) => format!("\\-{letter} {value}"),
        None => format!("\\-{letter}"),
    }
}

fn head(flag: &Flag) -> String {
    let letters: Vec<String> = flag
        .letters
        .iter()
        .map(|letter| format!("\\fB\\-{letter}\\fR"))
        .collect();
    let value = flag.value.map(|value| format!(" \\fI{value}\\fR"));
    letters.join(", ") + &value.unwrap_or_default()
}

fn commands() -> String {
    let mut text = String::from(".RS\n");
    for (name, _, doc) in COMMANDS {
        text.push_str(&format!(".TP\n\\fB{name}\\fR\n{}.\n", capital(doc)));
    }
    text + ".RE\n"
}

/// Makes a section of terms and their meanings.
fn table(title: &str, head: &str, rows: &[(&str, &str)]) -> String {
    let mut text = format!(".SH \"{title}\"\n{head}");
    for (term, doc) in rows {
        text.push_str(&format!(".TP\n\\fB{}\\fR\n{doc}\n", escaped(term)));
    }
    text
}

/// Text in which a hyphen is one that can be copied.
fn escaped(text: &str) -> String {
    text.replace('-', "\\-")
}

fn capital(text: &str) -> String {
    let escaped = escaped(text);
    let mut letters = escaped.chars();
    let first = letters.next().map(|first| first.to_ascii_uppercase());
    first.into_iter().chain(letters).collect()
}

const DESCRIPTION: &str = "\\
A web server that takes nginx's place: the same configuration, command line, signals, variables and logs.
Called by the name
.B nginx
it looks where nginx does.
.P
A supervisor process keeps root's rights, reads the configuration and opens what only it may; one worker process
without rights serves, with a thread for each of
.BR worker_processes .
Started without
.B \\-t
or
.B \\-s
it goes to the background, unless the configuration or
.B \\-g
has
.BR \"daemon off;\" .
.P
The directives are in
.BR firstbyte.conf (5).";

const VERBS_HEAD: &str = "The first word may be a verb; its options follow, and \\fBhelp\\fR before it shows all of them:\n";

const SIGNALS_HEAD: &str = "Sent to the supervisor, whose number is in the pid file:\n";

const SIGNALS: &[(&str, &str)] = &[
    ("TERM, INT", "End at once."),
    ("QUIT", "Finish what runs, then end."),
    (
        "HUP",
        "Take the changed configuration; a wrong one is refused, and the one before serves on. Connections stay open.",
    ),
    ("USR1", "Open the logs anew."),
    (
        "WINCH",
        "Finish what runs and take nothing new, without ending; HUP serves again. Only in the background.",
    ),
];

const FILES_HEAD: &str =
    "The paths a build has are what \\fBfirstbyte \\-h\\fR shows. In Debian's packages:\n";

const FILES: &[(&str, &str)] = &[
    (
        "/etc/firstbyte/nginx.conf",
        "The configuration of the package firstbyte, which runs beside nginx.",
    ),
    ("/var/log/firstbyte/", "Its logs."),
    ("/run/firstbyte.pid", "The number of its supervisor."),
    (
        "/etc/nginx/nginx.conf",
        "The configuration of the package firstbyte\\-nginx, which takes nginx's place, and of a build without \
         other paths.",
    ),
    ("/var/log/nginx/", "Its logs."),
    ("/run/nginx.pid", "The number of its supervisor."),
];

const ENVIRONMENT: &[(&str, &str)] = &[
    (
        "COLUMNS",
        "The width of help and of the reports of verbs, if the terminal is not to be asked; at most 100.",
    ),
    (
        "NOTIFY_SOCKET",
        "The service manager's socket, as sd_notify(3) has it. It is told when the server is ready, reloads or \
         stops, and which process is the main one.",
    ),
    (
        "TZ",
        "The time zone of the logs. The worker gets this variable and those that the directive \\fBenv\\fR names.",
    ),
];

const EXIT_STATUS: &str = "\
0 when all went well, and when the server was told to end. 1 when the configuration is refused, when something it
needs cannot be opened, when an output cannot be written, or when
.B \\-s
finds no server. Verbs have these statuses; the page of a verb
has its own:
";

const SEE_ALSO: &str = "\\
.BR firstbyte.conf (5),
.BR systemd.service (5),
.BR logrotate (8)
.P
nginx's documentation, https://nginx.org/en/docs/, describes every directive; docs/differences.md what firstbyte does
otherwise on purpose.";
