//! The command line of `bench`.

use std::ffi::OsString;
use std::path::PathBuf;

use lab::engine::Protocol;
use lab::url::Url;
use lab::{Connect, mix};
use link::Spec;

use super::threshold::Threshold;
use crate::tools::long::{Asked, Long, Said, plain, read, with};

/// What is to be measured, and how.
#[derive(Debug)]
pub(super) struct Options {
    /// The URLs of the server, or a server each with `table`.
    pub(super) urls: Vec<String>,
    pub(super) against: Option<Url>,
    pub(super) table: bool,
    pub(super) protocol: Option<Protocol>,
    pub(super) connections: usize,
    pub(super) streams: usize,
    pub(super) threads: usize,
    pub(super) requests: Option<u64>,
    pub(super) duration_s: Option<f64>,
    pub(super) rate: Option<f64>,
    pub(super) connect: Connect,
    pub(super) method: String,
    pub(super) fields: Vec<(String, String)>,
    pub(super) body: Vec<u8>,
    pub(super) mix: Option<PathBuf>,
    pub(super) access_log: Option<PathBuf>,
    pub(super) timeout_s: f64,
    pub(super) warm_up_s: f64,
    pub(super) blocks: Option<usize>,
    pub(super) seed: Option<u64>,
    /// Processes of the servers, in their order.
    pub(super) pids: Vec<u32>,
    pub(super) insecure: bool,
    pub(super) cacert: Option<PathBuf>,
    pub(super) spdy_level: u8,
    /// The link to be measured through.
    pub(super) via: Option<Spec>,
    pub(super) json: bool,
    pub(super) html: Option<PathBuf>,
    pub(super) hdr: Option<PathBuf>,
    pub(super) thresholds: Vec<Threshold>,
}

/// The options, in the order of the help.
pub(crate) const LONGS: &[Long] = &[
    with("connections", "N", "connections at a time (default: 10)"),
    with(
        "streams",
        "N",
        "requests at a time on a connection of HTTP/2 or SPDY (default: 1)",
    ),
    with("threads", "N", "threads of the client (default: 1)"),
    with("requests", "N", "how many requests a run has"),
    with(
        "duration",
        "SECONDS",
        "how long a run begins requests (default: 10, without --requests)",
    ),
    with(
        "rate",
        "N",
        "requests a second, timed from when each should be sent (default: a closed loop)",
    ),
    with(
        "protocol",
        "NAME",
        "h1, h2, spdy, or auto, which lets TLS choose of h2 and h1 (default: auto)",
    ),
    with(
        "connect",
        "KIND",
        "warm, cold or resumed: connections that are kept, or one for each request (default: warm)",
    ),
    with(
        "method",
        "NAME",
        "the method of the requests (default: GET, with --body POST)",
    ),
    with(
        "header",
        "FIELD",
        "a field, \"name: value\", of each request; may be repeated",
    ),
    with("body", "FILE", "the body of each POST, PUT and PATCH"),
    with(
        "mix",
        "FILE",
        "requests from a file: on each line a method and a path, or a path",
    ),
    with(
        "access-log",
        "FILE",
        "the GET and HEAD requests of an access log",
    ),
    with(
        "timeout",
        "SECONDS",
        "how long a connection or a response may take (default: 30)",
    ),
    with(
        "warm-up",
        "SECONDS",
        "load each server first for so long, unmeasured (default: 0)",
    ),
    with(
        "blocks",
        "N",
        "runs of each server, in random turns (default: 1, with --against and --table 10)",
    ),
    with(
        "against",
        "URL",
        "another server, loaded in turn and compared",
    ),
    with(
        "seed",
        "N",
        "where the order of turns comes from (default: the time)",
    ),
    with(
        "pid",
        "PID",
        "a server's process, whose CPU time and memory are told; again for the next server",
    ),
    with(
        "cacert",
        "FILE",
        "certificates of authorities that are trusted, PEM (default: those of browsers)",
    ),
    plain("insecure", "take any certificate; also -k"),
    with(
        "spdy-level",
        "N",
        "zlib's level for request heads of SPDY, 0 to 9 (default: 6)",
    ),
    with(
        "via",
        "SPEC",
        "measure through an emulated link, such as 50ms,20mbit; firstbyte via -h says what else",
    ),
    with(
        "fail-if",
        "CONDITION",
        "end with status 2 if so: \"p99>50\", \"rate<1000\", \"errors>0\"; may be repeated",
    ),
    plain(
        "table",
        "a row for each of HTTP/2, HTTP/1.1 over TLS and plain, of servers NAME=HTTPS-URL,HTTP-URL",
    ),
    plain("json", "print the report as JSON"),
    with("html", "FILE", "write the report as a page"),
    with("hdr", "FILE", "write all times as a log of HdrHistogram"),
];

/// Reads the words after the tool's name.
///
/// # Errors
/// What is wrong with them.
pub(super) fn parse(words: &[OsString]) -> Result<Asked<Options>, String> {
    let mut options = Options {
        urls: Vec::new(),
        against: None,
        table: false,
        protocol: None,
        connections: 10,
        streams: 1,
        threads: 1,
        requests: None,
        duration_s: None,
        rate: None,
        connect: Connect::Warm,
        method: String::new(),
        fields: Vec::new(),
        body: Vec::new(),
        mix: None,
        access_log: None,
        timeout_s: 30.0,
        warm_up_s: 0.0,
        blocks: None,
        seed: None,
        pids: Vec::new(),
        insecure: false,
        cacert: None,
        spdy_level: 6,
        via: None,
        json: false,
        html: None,
        hdr: None,
        thresholds: Vec::new(),
    };
    for said in read(words, LONGS, &[("-k", "insecure")])? {
        match said {
            Said::Help => return Ok(Asked::Help),
            Said::Operand(url) => options.urls.push(url),
            Said::Option(name, value) => options.set(name, &value)?,
        }
    }
    options.check()?;
    Ok(Asked::Work(Box::new(options)))
}

impl Options {
    // Long: an arm for each option, as in the table of them.
    fn set(&mut self, name: &str, value: &str) -> Result<(), String> {
        let wrong = || format!("\"{value}\" is no value of \"--{name}\"");
        let count = |most: usize| {
            let number = value.parse().ok().filter(|n| (1..=most).contains(n));
            number.ok_or_else(wrong)
        };
        let positive = || {
            let number = value
                .parse()
                .ok()
                .filter(|n: &f64| n.is_finite() && *n > 0.0);
            number.ok_or_else(wrong)
        };
        // Names were checked against the table of options, so the last arm needs no name.
        match name {
            "connections" => self.connections = count(CONNECTIONS_MAX)?,
            "streams" => self.streams = count(STREAMS_MAX)?,
            "threads" => self.threads = count(THREADS_MAX)?,
            "blocks" => self.blocks = Some(count(BLOCKS_MAX)?),
            "requests" => {
                let number = value.parse().ok().filter(|n| *n > 0);
                self.requests = Some(number.ok_or_else(wrong)?);
            }
            "duration" => self.duration_s = Some(positive()?),
            "rate" => self.rate = Some(positive()?),
            "timeout" => self.timeout_s = positive()?,
            "warm-up" => self.warm_up_s = positive()?,
            "protocol" => {
                self.protocol = match value {
                    "auto" => None,
                    "h1" => Some(Protocol::H1),
                    "h2" => Some(Protocol::H2),
                    "spdy" => Some(Protocol::Spdy),
                    _ => return Err(wrong()),
                }
            }
            "connect" => {
                self.connect = match value {
                    "warm" => Connect::Warm,
                    "cold" => Connect::Cold,
                    "resumed" => Connect::Resumed,
                    _ => return Err(wrong()),
                }
            }
            "method" => self.method = value.to_owned(),
            "header" => {
                let (name, text) = value.split_once(':').ok_or_else(wrong)?;
                self.fields
                    .push((name.trim().to_owned(), text.trim().to_owned()));
            }
            "body" => {
                let read = std::fs::read(value);
                self.body = read.map_err(|error| format!("cannot read {value}: {error}"))?;
            }
            "mix" => self.mix = Some(value.into()),
            "access-log" => self.access_log = Some(value.into()),
            "against" => self.against = Some(Url::parse(value)?),
            "seed" => self.seed = Some(value.parse().map_err(|_| wrong())?),
            "pid" => self.pids.push(value.parse().map_err(|_| wrong())?),
            "cacert" => self.cacert = Some(value.into()),
            "insecure" => self.insecure = true,
            "spdy-level" => {
                let level = value.parse().ok().filter(|level| *level <= 9);
                self.spdy_level = level.ok_or_else(wrong)?;
            }
            "via" => {
                let text = value.to_string();
                let spec = text.parse::<Spec>().map_err(|error| error.to_string())?;
                self.via = Some(spec);
            }
            "fail-if" => self.thresholds.push(Threshold::parse(value)?),
            "table" => self.table = true,
            "json" => self.json = true,
            "html" => self.html = Some(value.into()),
            _ => self.hdr = Some(value.into()),
        }
        Ok(())
    }

    fn check(&mut self) -> Result<(), String> {
        if self.urls.is_empty() {
            return Err("no URL is given".to_owned());
        }
        if self.table && self.against.is_some() {
            return Err(
                "\"--table\" takes its servers as operands, not by \"--against\"".to_owned(),
            );
        }
        if self.table && (self.protocol.is_some() || self.rate.is_some()) {
            return Err("\"--table\" chooses protocols itself, in a closed loop".to_owned());
        }
        if self.mix.is_some() && self.access_log.is_some() {
            return Err("\"--mix\" and \"--access-log\" both say what is asked for".to_owned());
        }
        if self.insecure && self.cacert.is_some() {
            return Err("\"--insecure\" trusts anybody, \"--cacert\" does not".to_owned());
        }
        if self.method.is_empty() {
            let method = if self.body.is_empty() { "GET" } else { "POST" };
            self.method = method.to_owned();
        }
        if !self.body.is_empty() && !mix::has_body(&self.method) && self.mix.is_none() {
            return Err(format!("{} has no body", self.method));
        }
        if self.threads > self.connections {
            return Err("there are more threads than connections".to_owned());
        }
        Ok(())
    }
}

/// More than these are a mistake.
const CONNECTIONS_MAX: usize = 100_000;
const STREAMS_MAX: usize = 100_000;
const THREADS_MAX: usize = 256;
const BLOCKS_MAX: usize = 10_000;

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(line: &str) -> Result<Asked<Options>, String> {
        let words: Vec<OsString> = line.split(' ').map(OsString::from).collect();
        parse(&words)
    }

    #[test]
    fn options_are_read() {
        let line =
            "http://h/ --connections 5 --rate=500 --connect cold -k --fail-if p99>5 --header A:b";
        let Ok(Asked::Work(options)) = parsed(line) else {
            panic!("it is accepted")
        };
        assert_eq!((options.connections, options.rate), (5, Some(500.0)));
        assert!(options.insecure && options.connect == Connect::Cold);
        assert_eq!(options.fields, [("A".to_owned(), "b".to_owned())]);
        assert_eq!(options.method, "GET");
    }

    #[test]
    fn what_is_wrong_is_said() {
        let wrong = |line: &str| parsed(line).expect_err("it is refused");
        assert_eq!(wrong("--json"), "no URL is given");
        assert_eq!(
            wrong("http://h --streams 0"),
            "\"0\" is no value of \"--streams\""
        );
        assert_eq!(
            wrong("http://h --rate -1"),
            "\"-1\" is no value of \"--rate\""
        );
        assert_eq!(
            wrong("http://h --threads 11"),
            "there are more threads than connections"
        );
        assert_eq!(
            wrong("http://h --fail-if p99"),
            "\"p99\" is no condition such as \"p99>50\""
        );
        assert!(wrong("http://h --table --rate 5").starts_with("\"--table\" chooses"));
    }
}
