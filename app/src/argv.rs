//! The command line, read the way nginx reads it.
//!
//! Flags can stand together (`-tq`); a value is the rest of its word (`-sreload`) or the next word. Values are stored,
//! not yet interpreted: paths are made absolute in `paths`. Source: nginx documentation, "Command-line parameters".

use std::ffi::{OsStr, OsString};
use std::fmt;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::Path;

use sys::signal;

/// Parsed command line.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Options {
    /// `-v`, `-V`, `-h`: print about the program.
    pub(crate) show: Option<Show>,
    /// `-t`: test the configuration and exit.
    pub(crate) test: bool,
    /// `-T`: print the configuration, after its test.
    pub(crate) dump: bool,
    /// `-q`: print errors only, while testing.
    pub(crate) quiet: bool,
    /// `-p`.
    pub(crate) prefix: Option<OsString>,
    /// `-e`; empty for standard error.
    pub(crate) error_log: Option<OsString>,
    /// `-c`.
    pub(crate) conf: Option<OsString>,
    /// `-g`.
    pub(crate) globals: Option<OsString>,
    /// `-s`.
    pub(crate) signal: Option<Command>,
}

impl Options {
    /// Requests the version, and with `help` the help, on standard output.
    fn show_on_stdout(&mut self, help: bool) {
        let show = self.show.get_or_insert_default();
        show.help |= help;
        show.on_stdout = true;
    }
}

/// Information to print about the program; the version always.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Show {
    /// The options, with `-h`.
    pub(crate) help: bool,
    /// The compiler and the build's settings, with `-V`.
    pub(crate) configure: bool,
    /// On standard output, with `--help` and `--version`; nginx's options print on standard error.
    pub(crate) on_stdout: bool,
}

/// Signal that `-s` sends to the running supervisor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Command {
    Stop,
    Quit,
    Reopen,
    Reload,
}

impl Command {
    /// Returns the signal of the command.
    pub(crate) fn signo(self) -> i32 {
        match self {
            Self::Stop => signal::TERM,
            Self::Quit => signal::QUIT,
            Self::Reopen => signal::USR1,
            Self::Reload => signal::HUP,
        }
    }

    fn parse(text: &[u8]) -> Option<Self> {
        let named = |(name, ..): &&(&str, Self, &str)| name.as_bytes() == text;
        COMMANDS.iter().find(named).map(|(_, command, _)| *command)
    }
}

/// The commands of `-s` by name, with their descriptions.
pub(crate) const COMMANDS: [(&str, Command, &str); 4] = [
    ("stop", Command::Stop, "fast shutdown"),
    ("quit", Command::Quit, "graceful shutdown"),
    ("reopen", Command::Reopen, "reopen log files"),
    ("reload", Command::Reload, "reload the configuration"),
];

/// As the first word: prints the help, or the help of the verb in the second word.
pub(crate) const HELP: &str = "help";

/// Error in the command line, in nginx's words.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum ArgvError {
    NotAnOption(String),
    UnknownFlag(char),
    NoValue { flag: char, what: &'static str },
    UnknownSignal(String),
}

impl fmt::Display for ArgvError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotAnOption(word) => write!(f, "invalid option: \"{word}\""),
            Self::UnknownFlag(flag) => write!(f, "invalid option: \"{flag}\""),
            Self::NoValue { flag, what } => write!(f, "option \"-{flag}\" requires {what}"),
            Self::UnknownSignal(name) => write!(f, "invalid option: \"-s {name}\""),
        }
    }
}

/// Returns the name under which the program was started, for usage lines.
pub(crate) fn program() -> String {
    let called = std::env::args_os().next().unwrap_or_default();
    let name = Path::new(&called).file_name();
    name.map_or("firstbyte".into(), OsStr::to_string_lossy)
        .into_owned()
}

/// Parses the command line; the first word is the name of the program.
///
/// # Errors
/// The first error.
pub(crate) fn parse(arguments: &[OsString]) -> Result<Options, ArgvError> {
    let mut options = Options::default();
    let mut words = arguments.iter().skip(1);
    if arguments.get(1).is_some_and(|word| word == HELP) {
        words.next();
        options.show_on_stdout(true);
    }
    while let Some(word) = words.next() {
        if let Some(help) = long_flag(word) {
            options.show_on_stdout(help);
            continue;
        }
        let Some(flags) = word.as_bytes().strip_prefix(b"-") else {
            return Err(ArgvError::NotAnOption(word.to_string_lossy().into_owned()));
        };
        parse_word(flags, &mut words, &mut options)?;
    }
    Ok(options)
}

/// Returns whether a long option is `--help`; `None` for a word that is no long option.
fn long_flag(word: &OsStr) -> Option<bool> {
    match word.as_bytes() {
        b"--help" => Some(true),
        b"--version" => Some(false),
        _ => None,
    }
}

fn parse_word<'a>(
    mut flags: &[u8],
    words: &mut impl Iterator<Item = &'a OsString>,
    options: &mut Options,
) -> Result<(), ArgvError> {
    while let Some((flag, rest)) = flags.split_first() {
        match flag {
            b'?' | b'h' => options.show.get_or_insert_default().help = true,
            b'v' => _ = options.show.get_or_insert_default(),
            b'V' => options.show.get_or_insert_default().configure = true,
            b't' => options.test = true,
            b'T' => (options.test, options.dump) = (true, true),
            b'q' => options.quiet = true,
            b'p' | b'e' | b'c' | b'g' => return parse_place(*flag, rest, words, options),
            b's' => {
                let name = value('s', "parameter", rest, words)?;
                options.signal = Some(command(&name)?);
                return Ok(());
            }
            other => return Err(ArgvError::UnknownFlag(char::from(*other))),
        }
        flags = rest;
    }
    Ok(())
}

/// Parses the flags that select the configuration, `-p -e -c -g`; tools have them, too.
pub(crate) fn parse_place<'a>(
    flag: u8,
    rest: &[u8],
    words: &mut impl Iterator<Item = &'a OsString>,
    options: &mut Options,
) -> Result<(), ArgvError> {
    match flag {
        b'p' => options.prefix = Some(value('p', "directory name", rest, words)?),
        b'e' => options.error_log = Some(error_log(value('e', "file name", rest, words)?)),
        b'c' => options.conf = Some(value('c', "file name", rest, words)?),
        b'g' => options.globals = Some(value('g', "parameter", rest, words)?),
        other => return Err(ArgvError::UnknownFlag(char::from(other))),
    }
    Ok(())
}

/// The value of `-e` as [`Options::error_log`] has it.
pub(crate) fn error_log(name: OsString) -> OsString {
    match name == "stderr" {
        true => OsString::new(),
        false => name,
    }
}

/// The value of a flag: the rest of its word, or the next word.
pub(crate) fn value<'a>(
    flag: char,
    what: &'static str,
    rest: &[u8],
    words: &mut impl Iterator<Item = &'a OsString>,
) -> Result<OsString, ArgvError> {
    if !rest.is_empty() {
        return Ok(OsString::from_vec(rest.to_vec()));
    }
    words
        .next()
        .cloned()
        .ok_or(ArgvError::NoValue { flag, what })
}

fn command(name: &OsStr) -> Result<Command, ArgvError> {
    Command::parse(name.as_bytes())
        .ok_or_else(|| ArgvError::UnknownSignal(name.to_string_lossy().into_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(words: &[&str]) -> Result<Options, String> {
        let words: Vec<OsString> = std::iter::once(&"nginx")
            .chain(words)
            .map(OsString::from)
            .collect();
        parse(&words).map_err(|error| error.to_string())
    }

    #[test]
    fn flags_stand_together_or_apart() {
        let expected = Options {
            test: true,
            quiet: true,
            ..Options::default()
        };
        assert_eq!(parsed(&["-tq"]), Ok(Options { ..expected }));
        assert_eq!(parsed(&["-t", "-q"]).map(|options| options.quiet), Ok(true));
        let dump = parsed(&["-qT"]).expect("flags");
        assert!(dump.test && dump.dump && dump.quiet);
        assert_eq!(parsed(&["-"]), Ok(Options::default()));
    }

    #[test]
    fn value_is_the_rest_of_the_word_or_the_next_word() {
        for words in [
            &["-sreload", "-ccnf"][..],
            &["-s", "reload", "-c", "cnf"][..],
        ] {
            let options = parsed(words).expect("options");
            assert_eq!(options.signal, Some(Command::Reload));
            assert_eq!(options.conf.as_deref(), Some(OsStr::new("cnf")));
        }
        let options = parsed(&["-tp", "/x", "-gdaemon off;", "-e", "stderr"]).expect("options");
        assert!(options.test);
        assert_eq!(options.prefix.as_deref(), Some(OsStr::new("/x")));
        assert_eq!(options.globals.as_deref(), Some(OsStr::new("daemon off;")));
        assert_eq!(options.error_log.as_deref(), Some(OsStr::new("")));
    }

    #[test]
    fn every_command_has_its_signal() {
        for (name, signo) in [
            ("stop", signal::TERM),
            ("quit", signal::QUIT),
            ("reopen", signal::USR1),
            ("reload", signal::HUP),
        ] {
            let options = parsed(&["-s", name]).expect("options");
            assert_eq!(options.signal.map(Command::signo), Some(signo));
        }
    }

    #[test]
    fn version_and_help_are_noted() {
        let show = |word| parsed(&[word]).expect("options").show;
        assert_eq!(show("-v"), Some(Show::default()));
        assert_eq!(
            show("-V"),
            Some(Show {
                configure: true,
                ..Show::default()
            })
        );
        assert_eq!(
            show("-?"),
            Some(Show {
                help: true,
                ..Show::default()
            })
        );
        assert_eq!(
            show("-hV"),
            Some(Show {
                help: true,
                configure: true,
                on_stdout: false
            })
        );
        let named = parsed(&["--version"]).expect("options").show;
        assert_eq!(
            named.map(|show| (show.help, show.on_stdout)),
            Some((false, true))
        );
        let named = parsed(&["-q", "--help"]).expect("options").show;
        assert_eq!(
            named.map(|show| (show.help, show.on_stdout)),
            Some((true, true))
        );
        assert_eq!(parsed(&["help"]), parsed(&["--help"]));
        assert_eq!(
            parsed(&["help", "nonsense"]),
            Err("invalid option: \"nonsense\"".to_owned())
        );
        assert_eq!(
            parsed(&["--helpx"]),
            Err("invalid option: \"-\"".to_owned())
        );
    }

    #[test]
    fn table_of_options_is_what_is_read() {
        for byte in b'!'..=b'~' {
            let flag = char::from(byte);
            let mut table = crate::flags::FLAGS.iter();
            let known = table.find(|known| known.letters.contains(&flag));
            let error = parsed(&[&format!("-{flag}")]).err().unwrap_or_default();
            let expected = match known.map(|known| known.value) {
                Some(None) => "",
                Some(Some(_)) => "requires",
                None => "invalid option",
            };
            assert_eq!(error.is_empty(), expected.is_empty(), "-{flag}: {error}");
            assert!(error.contains(expected), "-{flag}: {error}");
        }
    }

    #[test]
    fn errors_are_worded_as_in_nginx() {
        let error = |words| parsed(words).expect_err("wrong");
        assert_eq!(error(&["start"]), "invalid option: \"start\"");
        assert_eq!(error(&["-tx"]), "invalid option: \"x\"");
        assert_eq!(error(&["-s", "restart"]), "invalid option: \"-s restart\"");
        assert_eq!(error(&["-s"]), "option \"-s\" requires parameter");
        assert_eq!(error(&["-p"]), "option \"-p\" requires directory name");
        assert_eq!(error(&["-c"]), "option \"-c\" requires file name");
        assert_eq!(error(&["-e"]), "option \"-e\" requires file name");
        assert_eq!(error(&["-g"]), "option \"-g\" requires parameter");
    }
}
