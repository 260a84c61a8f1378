//! `via`: a command behind a link with delay, rate, queue, loss and jitter, as a site's visitors have it.
//!
//! The command runs in a network of its own, with the link as its only route. The far end is the network of this
//! machine or, with `--server`, a network with servers that run as long as the command. The crate `link` does the work;
//! the command line and the report at the end are here.
//!
//! Source: of our own; docs/link.md.

mod report;

use std::ffi::OsString;
use std::io::{self, Write};
use std::path::PathBuf;
use std::process::ExitCode;

use link::Spec;
use link::via::run::{self, Commands, Outcome};
use link::via::{self, Far, Inside, Wanted};
use sys::os_error;

pub(super) use link::via::FAILED;

use super::carried::remark;
use super::values::whole;
use super::{files, output};
use crate::terminal::{broken, stderr_columns};

/// run a command behind a link with delay, rate, loss and jitter
///
/// Runs a command behind a link. Servers of this machine are reached over the link, by an address of the machine or by
/// localhost and a port below 32768; with --server, only the servers started by the --server commands. The status is that of
/// the command. A report about the link is printed on standard error at the end.
#[derive(Debug, clap::Args)]
#[command(after_help = SPEC)]
pub(super) struct Options {
    /// The link: a round-trip time such as 50ms, then more, separated by commas
    #[arg(value_name = "SPEC")]
    spec: Spec,
    /// The command, after "--"
    #[arg(value_name = "COMMAND", last = true, required = true)]
    client: Vec<OsString>,
    /// A shell command that serves at the other end; may be repeated
    #[arg(long = "server", value_name = "COMMAND")]
    servers: Vec<OsString>,
    /// A port of localhost, from 32768 on, that is also reached over the link; may be repeated
    #[arg(long = "port", value_name = "N", value_parser = |text: &str| whole::<u16>(text, 1..=u64::from(u16::MAX)))]
    ports: Vec<u16>,
    /// Write packets to FILE as they leave the link
    #[arg(long, value_name = "FILE")]
    pcap: Option<PathBuf>,
    /// Write the report to FILE as JSON
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Print no report at the end
    #[arg(long)]
    quiet: bool,
}

impl Options {
    /// Returns the link, with the file for packets of an option.
    ///
    /// # Errors
    /// Too many options, or one given twice.
    fn link(&self) -> Result<Spec, String> {
        if self.servers.len() > SERVERS_MAX {
            return Err(format!("more than {SERVERS_MAX} servers"));
        }
        if self.ports.len() > PORTS_MAX {
            return Err(format!("more than {PORTS_MAX} ports"));
        }
        let mut spec = self.spec.clone();
        // The text of the link can also have a file (`pcap=`).
        if spec.pcap.is_some() && self.pcap.is_some() {
            return Err("two files for packets were requested".to_owned());
        }
        spec.pcap = spec.pcap.or_else(|| self.pcap.clone());
        Ok(spec)
    }
}

/// Runs the verb.
pub(super) fn run(options: &Options) -> ExitCode {
    let spec = match options.link() {
        Ok(spec) => spec,
        Err(why) => return fail(&why),
    };
    let far = if options.servers.is_empty() {
        Far::Here
    } else {
        Far::Apart
    };
    let wanted = Wanted {
        spec,
        far,
        ports: options.ports.clone(),
    };
    match via::enter(&wanted, |inside| within(options, far, inside)) {
        Ok(status) => ExitCode::from(status),
        Err(error) => fail(&os_error(&error)),
    }
}

/// Runs the command in the process that holds the networks; returns the status.
fn within(options: &Options, far: Far, inside: io::Result<Inside>) -> u8 {
    let ran = inside.and_then(|inside| {
        let commands = Commands {
            client: options.client.clone(),
            servers: options.servers.clone(),
        };
        let outcome = run::run(&inside, &commands)?;
        Ok((inside, outcome))
    });
    let (inside, outcome) = match ran {
        Ok(ran) => ran,
        Err(error) => {
            let mut why = os_error(&error);
            if far == Far::Here && error.kind() == io::ErrorKind::Unsupported {
                why += "; with --server both ends have networks of their own, for which user namespaces are enough";
            }
            fail(&why);
            return FAILED;
        }
    };
    match report_outcome(options, &inside, &outcome) {
        Ok(()) => outcome.status,
        Err(why) => {
            fail(&why);
            FAILED
        }
    }
}

/// Reports the outcome of the command and the link.
fn report_outcome(options: &Options, inside: &Inside, outcome: &Outcome) -> Result<(), String> {
    let mut text = String::new();
    let words: Vec<_> = options
        .client
        .iter()
        .map(|word| word.to_string_lossy())
        .collect();
    for note in outcome.notes.iter().chain(&remark(&words)) {
        text.push_str(&format!("firstbyte {NAME}: {note}\n"));
    }
    if !options.quiet {
        text.push_str(&report::text(inside, outcome));
    }
    let text = broken(&text, stderr_columns(), 2);
    let _ = io::stderr().write_all(text.as_bytes());
    let captured = inside.link.captured();
    let Some(path) = &options.json else {
        return captured;
    };
    let json = report::json(inside, (&options.client, &options.servers), outcome);
    output::all([captured, files::write(path, &json)])
}

/// Reports an error like the other tools, but with a status that distinguishes this failure from the command's.
fn fail(why: &str) -> ExitCode {
    output::fail(NAME, why);
    ExitCode::from(FAILED)
}

/// The verb.
pub(super) const NAME: &str = "via";

/// More servers than this are a mistake.
const SERVERS_MAX: usize = 64;

/// Most ports of a link in addition to its default ones.
const PORTS_MAX: usize = 63;

const SPEC: &str = "\
SPEC is the round-trip time, then options in any order, separated by commas:
  50ms             : round-trip time; half of it in each direction
  20mbit           : rate in each direction; or up=5mbit and down=50mbit
  queue=100        : packets that may wait for the rate (default: 100)
  loss=0.1%        : share of lost packets in each direction
  jitter=2ms       : largest deviation of the round-trip time, up or down
  reorder          : allow jitter to reorder packets
  delack=200ms     : longest delay of acknowledgements at each end
  seed=7           : seed of loss and jitter (default: random)
  mtu=1500         : largest packet in bytes, with its IP header
  pcap=FILE        : write packets to FILE as they leave the link";

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::values::parsed;

    fn words(text: &str) -> Vec<OsString> {
        text.split_whitespace().map(OsString::from).collect()
    }

    fn refused(line: &str) -> String {
        let options = parsed::<Options>(line).map_err(|error| error + "\n");
        options
            .and_then(|options| options.link())
            .expect_err("it is refused")
    }

    #[test]
    fn options_are_read() {
        let line = "50ms,seed=7 --server a --json=x --server=b --quiet --port 1 --port=65535 --pcap p \
                    -- c -- --quiet -h";
        let options: Options = parsed(line).expect("it is accepted");
        let spec = options.link().map(|spec| spec.to_string());
        assert_eq!(spec.as_deref(), Ok("50ms,seed=7,pcap=p"));
        assert_eq!(options.ports, [1, 65_535]);
        assert_eq!(options.servers, words("a b"));
        assert_eq!(options.client, words("c -- --quiet -h"));
        assert!(options.quiet && options.json == Some("x".into()));
    }

    #[test]
    fn what_is_wrong_is_said() {
        for (line, why) in [
            ("", "SPEC"),
            ("50ms", "COMMAND"),
            ("50ms --", "COMMAND"),
            ("50ms curl x", "unexpected argument 'curl'"),
            ("5ms --wrong=1 -- x", "unexpected argument '--wrong'"),
            ("5ms --quiet=1 -- x", "unexpected value '1' for '--quiet'"),
            ("5ms --json", "a value is required for '--json <FILE>'"),
            (
                "5ms,pcap=a --pcap b -- x",
                "two files for packets were requested",
            ),
            ("5ms --port 0 -- x", "0 is not in 1..=65535"),
            ("5ms --port +80 -- x", "+80 is not in 1..=65535"),
            ("5ms --port 65536 -- x", "65536 is not in 1..=65535"),
            ("50 -- x", "\"50\" at character 1: "),
        ] {
            assert!(refused(line).contains(why), "{line}: {}", refused(line));
        }
        for (option, most, what) in [
            ("--port 1 ", PORTS_MAX, "ports"),
            ("--server a ", SERVERS_MAX, "servers"),
        ] {
            let line = |n: usize| format!("5ms {} -- x", option.repeat(n));
            assert!(parsed::<Options>(&line(most)).is_ok_and(|options| options.link().is_ok()));
            assert_eq!(refused(&line(most + 1)), format!("more than {most} {what}"));
        }
    }
}
