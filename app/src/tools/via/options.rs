//! The command line of `via`.

use std::ffi::OsString;
use std::path::PathBuf;

use link::Spec;
use link::via::run::Commands;

use crate::tools::long::{Asked, Long, plain, with};

/// What is to be run, and behind what.
#[derive(Debug, Default)]
pub(super) struct Options {
    /// The link.
    pub(super) spec: Spec,
    /// Ports of localhost that are the server's, too.
    pub(super) ports: Vec<u16>,
    /// What runs at its ends.
    pub(super) commands: Commands,
    /// Where the figures go.
    pub(super) json: Option<PathBuf>,
    /// Say nothing of the link at the end.
    pub(super) quiet: bool,
}

/// The options, in the order of the help.
pub(crate) const LONGS: &[Long] = &[
    with(
        "server",
        "COMMAND",
        "a command for the shell that serves at the other end; may be repeated",
    ),
    with(
        "port",
        "N",
        "a port of localhost from 32768 on that is reached over the link, too; may be repeated",
    ),
    with("pcap", "FILE", "write packets there as they leave the link"),
    with("json", "FILE", "write there as JSON what the link did"),
    plain("quiet", "say nothing of the link at the end"),
];

/// More servers than this are a mistake.
const SERVERS_MAX: usize = 64;

/// The most ports that a link takes in addition to those it always has.
const PORTS_MAX: usize = 63;

/// Reads the words after the tool's name.
///
/// # Errors
/// What is wrong with them.
pub(super) fn parse(words: &[OsString]) -> Result<Asked<Options>, String> {
    let mut options = Options::default();
    let mut spec = None;
    let mut pcap = None;
    let mut words = words.iter();
    while let Some(word) = words.next() {
        let text = word.to_string_lossy();
        // The client's command has options of its own, so ours end at `--` and are read here, not by `long::read`.
        if text == "--" {
            break;
        }
        if ["-h", "-?", "--help"].contains(&&*text) {
            return Ok(Asked::Help);
        }
        if let Some(long) = text.strip_prefix("--") {
            let (name, given) = match long.split_once('=') {
                Some((name, value)) => (name, Some(OsString::from(value))),
                None => (long, None),
            };
            let known = LONGS.iter().find(|known| known.name == name);
            let known = known.ok_or_else(|| format!("invalid option: \"--{long}\""))?;
            if known.value.is_none() {
                if given.is_some() {
                    return Err(format!("option \"--{name}\" takes no value"));
                }
                options.quiet = true;
                continue;
            }
            let value = given.or_else(|| words.next().cloned());
            let value = value
                .filter(|value| !value.is_empty())
                .ok_or_else(|| format!("option \"--{name}\" requires a value"))?;
            match name {
                "server" => options.commands.servers.push(value),
                "port" => options.ports.push(port(&value)?),
                "pcap" => pcap = Some(PathBuf::from(value)),
                _ => options.json = Some(value.into()),
            }
        } else if text.starts_with('-') && text.len() > 1 {
            return Err(format!("invalid option: \"{text}\""));
        } else if spec.is_some() {
            return Err(format!(
                "the command stands behind \"--\": \"{text}\" is before it"
            ));
        } else {
            spec = Some(text.parse::<Spec>().map_err(|error| error.to_string())?);
        }
    }
    options.spec = spec.ok_or("no link is given, such as 50ms,20mbit")?;
    options.commands.client = words.cloned().collect();
    if options.commands.client.is_empty() {
        return Err("no command is given; it stands behind \"--\"".to_owned());
    }
    if options.commands.servers.len() > SERVERS_MAX {
        return Err(format!("more than {SERVERS_MAX} servers"));
    }
    if options.ports.len() > PORTS_MAX {
        return Err(format!("more than {PORTS_MAX} ports"));
    }
    // The link's text can name a file too (`pcap=`).
    if options.spec.pcap.is_some() && pcap.is_some() {
        return Err("two files for packets are given".to_owned());
    }
    options.spec.pcap = options.spec.pcap.or(pcap);
    Ok(Asked::Work(Box::new(options)))
}

fn port(value: &OsString) -> Result<u16, String> {
    let port = value.to_str().and_then(|text| text.parse().ok());
    let port = port.filter(|port| *port != 0);
    port.ok_or_else(|| format!("{value:?} is no port"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> Vec<OsString> {
        text.split_whitespace().map(OsString::from).collect()
    }

    fn refused(text: &str) -> String {
        parse(&words(text)).expect_err("it is refused")
    }

    #[test]
    fn options_are_read() {
        let line = "50ms,seed=7 --server a --json=x --server=b --quiet --port 1 --port=65535 --pcap p \
                    -- c -- --quiet -h";
        let Ok(Asked::Work(options)) = parse(&words(line)) else {
            panic!("it is accepted")
        };
        assert_eq!(options.spec.to_string(), "50ms,seed=7,pcap=p");
        assert_eq!(options.ports, [1, 65_535]);
        assert_eq!(options.commands.servers, words("a b"));
        assert_eq!(options.commands.client, words("c -- --quiet -h"));
        assert!(options.quiet && options.json == Some("x".into()));
        assert!(matches!(parse(&words("50ms -h -- x")), Ok(Asked::Help)));
    }

    #[test]
    fn what_is_wrong_is_said() {
        assert_eq!(refused(""), "no link is given, such as 50ms,20mbit");
        let no_command = "no command is given; it stands behind \"--\"";
        assert_eq!(refused("50ms"), no_command);
        assert_eq!(refused("50ms --"), no_command);
        assert_eq!(
            refused("50ms curl x"),
            "the command stands behind \"--\": \"curl\" is before it"
        );
        assert_eq!(refused("-x"), "invalid option: \"-x\"");
        assert_eq!(
            refused("5ms --wrong=1 -- x"),
            "invalid option: \"--wrong=1\""
        );
        assert_eq!(
            refused("5ms --quiet=1 -- x"),
            "option \"--quiet\" takes no value"
        );
        assert_eq!(refused("5ms --json"), "option \"--json\" requires a value");
        assert_eq!(
            refused("5ms,pcap=a --pcap b -- x"),
            "two files for packets are given"
        );
        assert_eq!(refused("5ms --port 0 -- x"), "\"0\" is no port");
        assert_eq!(refused("5ms --port 65536 -- x"), "\"65536\" is no port");
        let many = "--port 1 ".repeat(PORTS_MAX);
        assert!(parse(&words(&format!("5ms {many} -- x"))).is_ok());
        assert_eq!(
            refused(&format!("5ms {many} --port 1 -- x")),
            "more than 63 ports"
        );
        assert!(refused("50 -- x").starts_with("\"50\" at character 1: "));
        let many = "--server a ".repeat(SERVERS_MAX);
        assert!(parse(&words(&format!("5ms {many} -- x"))).is_ok());
        assert_eq!(
            refused(&format!("5ms {many} --server a -- x")),
            "more than 64 servers"
        );
    }
}
