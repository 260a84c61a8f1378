//! `via`: a command behind a link with delay, rate, queue, loss and jitter, as a site's visitors have it.
//!
//! The command runs in a network of its own, whose one way out is the link. Its other end is this machine's network,
//! or, with `--server`, a network in which servers run for as long as the command does. The work is that of the crate
//! `link`; here are the command line and what is said at the end.
//!
//! Source: of our own; docs/link.md.

pub(crate) mod options;
mod report;

use std::ffi::OsString;
use std::io::{self, Write};
use std::process::ExitCode;

use link::via::run::{self, Outcome};
use link::via::{self, Far, Inside, Wanted};

use super::long::{self, Asked};
use options::{LONGS, Options};

/// Runs the tool with the words after its name.
pub(super) fn run(words: &[OsString]) -> ExitCode {
    let options = match options::parse(words) {
        Ok(Asked::Help) => return super::help(&(String::from(HELP) + &long::help(LONGS))),
        Ok(Asked::Work(options)) => options,
        Err(why) => {
            super::misused(NAME, &why);
            return ExitCode::from(via::FAILED);
        }
    };
    let far = if options.commands.servers.is_empty() {
        Far::Here
    } else {
        Far::Apart
    };
    let wanted = Wanted {
        spec: options.spec.clone(),
        far,
        ports: options.ports.clone(),
    };
    match via::enter(&wanted, |inside| within(&options, far, inside)) {
        Ok(status) => ExitCode::from(status),
        Err(why) => fail(&why.to_string()),
    }
}

/// What is done in the process that holds the others; gives its status.
fn within(options: &Options, far: Far, inside: io::Result<Inside>) -> u8 {
    let ran = inside.and_then(|inside| {
        let outcome = run::run(&inside, &options.commands)?;
        Ok((inside, outcome))
    });
    let (inside, outcome) = match ran {
        Ok(ran) => ran,
        Err(error) => {
            let mut why = error.to_string();
            if far == Far::Here && error.kind() == io::ErrorKind::Unsupported {
                why += "; with --server both ends have networks of their own, for which user namespaces are enough";
            }
            fail(&why);
            return via::FAILED;
        }
    };
    match tell(options, &inside, &outcome) {
        Ok(()) => outcome.status,
        Err(why) => {
            fail(&why);
            via::FAILED
        }
    }
}

/// Says what became of the command and the link.
fn tell(options: &Options, inside: &Inside, outcome: &Outcome) -> Result<(), String> {
    let mut text = String::new();
    for note in &outcome.notes {
        text.push_str(&format!("firstbyte {NAME}: {note}\n"));
    }
    if !options.quiet {
        text.push_str(&report::text(inside, outcome));
    }
    let _ = io::stderr().write_all(text.as_bytes());
    let Some(path) = &options.json else {
        return Ok(());
    };
    let json = report::json(inside, options, outcome);
    std::fs::write(path, json).map_err(|error| format!("{}: {error}", path.display()))
}

/// As the other tools, but with the status that tells this failure from the command's.
fn fail(why: &str) -> ExitCode {
    super::fail(NAME, why);
    ExitCode::from(via::FAILED)
}

/// The tool's name.
const NAME: &str = "via";

const HELP: &str = "\
Usage: firstbyte via SPEC [options] -- COMMAND [ARGUMENT...]

Runs a command behind a link. What it connects to on this machine, by an address of it or by
localhost and a port below 32768, is reached over the link; with --server, what those commands
listen on. The status is the command's. What the link did is said on standard error at the end.

SPEC is the time of a round trip, then more in any order, separated by commas:
  50ms             : the round trip; each way has half of it
  20mbit           : the rate each way; or up=5mbit and down=50mbit
  queue=100        : how many packets may wait before a rate (default: 100)
  loss=0.1%        : how many packets are lost, each way
  jitter=2ms       : how much a round trip may differ, either way
  reorder          : jitter lets packets overtake each other
  delack=200ms     : how long each end keeps acknowledgements that can leave with data
  seed=7           : what loss and jitter follow from (default: another one each time)
  mtu=1500         : the largest packet, with its IP header
  pcap=FILE        : write packets there as they leave the link

";
