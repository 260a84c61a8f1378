//! `explain`: the response to a request, and the configuration lines that decide it.
//!
//! The configuration is loaded as for `-t`, and the request runs through the phases of a server (`request`). The
//! recorded steps are reported with their configuration lines (`steps`). Nothing is opened for listening, connected to,
//! logged or written. Absent: request bodies, and state of a running server (counters of limits, caches).

use std::ffi::OsString;
use std::net::{IpAddr, SocketAddr};
use std::process::ExitCode;

use engines::http::is_token;
use server_http::exchange::Peer;

use super::output::{fail, json, status};
use crate::argv;
use crate::console::Console;
use crate::explain::{CLIENT_PORT, ExplainRequest, Url, explain, render};
use crate::paths::Paths;
use crate::terminal::stdout_columns;
use crate::{load, stdout, supervisor};

/// explain how a request is handled and which configuration lines decide it
///
/// Explains how a request is handled under a configuration, and which lines decide it: the server, the search for a location,
/// each step through the phases, the answer, and the settings in effect. Nothing is listened on, connected to or written.
#[derive(Debug, clap::Args)]
pub(super) struct Options {
    /// The request: http[s]://host[:port]/path, or http[s]://unix:/path/of/socket:/path
    #[arg(value_name = "URL", value_parser = Url::parse)]
    url: Url,
    /// Configuration file, as for serving
    #[arg(short = 'c', value_name = "filename")]
    conf: Option<OsString>,
    /// Prefix path, as for serving
    #[arg(short = 'p', value_name = "prefix")]
    prefix: Option<OsString>,
    /// Global directives, as for serving
    #[arg(short = 'g', value_name = "directives")]
    globals: Option<OsString>,
    /// Error log file, as for serving
    #[arg(short = 'e', value_name = "filename")]
    error_log: Option<OsString>,
    /// A field of the request, "Name: value"; may be repeated
    #[arg(short = 'H', value_name = "FIELD", value_parser = checked_field)]
    fields: Vec<String>,
    /// The method of the request
    #[arg(long, value_name = "NAME", default_value = "GET", value_parser = method)]
    method: String,
    /// The client, with or without a port, or unix: (127.0.0.1)
    #[arg(long, value_name = "ADDRESS", value_parser = peer)]
    from: Option<Peer>,
    /// The address of the server, with or without a port (from the URL)
    #[arg(long, value_name = "ADDRESS", value_parser = address)]
    to: Option<(IpAddr, Option<u16>)>,
    /// Print settings at their default, too
    #[arg(long)]
    all: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

impl Options {
    /// Returns the options that select the configuration.
    fn place(&self) -> argv::Options {
        argv::Options {
            conf: self.conf.clone(),
            prefix: self.prefix.clone(),
            globals: self.globals.clone(),
            error_log: self.error_log.clone().map(argv::error_log),
            ..argv::Options::default()
        }
    }
}

fn method(text: &str) -> Result<String, String> {
    match is_token(text.as_bytes()) {
        true => Ok(text.to_owned()),
        false => Err("not a method".to_owned()),
    }
}

/// An address with or without a port; one of IPv6 may have brackets, and has them before a port.
fn address(text: &str) -> Result<(IpAddr, Option<u16>), String> {
    let bare = text
        .strip_prefix('[')
        .and_then(|rest| rest.strip_suffix(']'));
    if let Ok(ip) = bare.unwrap_or(text).parse::<IpAddr>() {
        return Ok((ip, None));
    }
    let addr = text
        .parse::<SocketAddr>()
        .ok()
        .filter(|addr| addr.port() != 0);
    let parts = addr.map(|addr| (addr.ip(), Some(addr.port())));
    parts.ok_or_else(|| "not an address".to_owned())
}

/// Checks a field: a name, a colon and a value, in one line.
fn checked_field(field: &str) -> Result<String, String> {
    let name = field.split_once(':').map(|(name, _)| name);
    if !name.is_some_and(|name| is_token(name.as_bytes())) {
        return Err("expected \"Name: value\"".to_owned());
    }
    if field.contains(['\r', '\n', '\0']) {
        return Err("a field must be one line".to_owned());
    }
    Ok(field.to_owned())
}

/// An address with or without a port, or `unix:`.
fn peer(text: &str) -> Result<Peer, String> {
    if text == "unix:" {
        return Ok(Peer::Unix);
    }
    let (ip, port) = address(text).map_err(|why| format!("{why} of a client"))?;
    let addr = SocketAddr::new(ip, port.unwrap_or(CLIENT_PORT));
    Ok(Peer::Inet(addr))
}

/// Runs the verb.
pub(super) fn run(options: &Options) -> ExitCode {
    let console = Console::of_tool();
    let place = options.place();
    let paths = Paths::new(&place);
    let (cycle, written) = match load::for_tool(&paths.load_options(&place)) {
        Ok(loaded) => loaded,
        Err(refused) => {
            console.refused(&refused);
            return fail(NAME, "the configuration has an error");
        }
    };
    console.warnings(&cycle.warnings);
    let Some(http) = &cycle.http else {
        return fail(NAME, "the configuration has no \"http\" block");
    };
    if supervisor::take_on_user(&cycle.main, &console).is_err() {
        return fail(NAME, "cannot switch to the user of the worker");
    }
    let asked = ExplainRequest {
        url: &options.url,
        method: &options.method,
        fields: &options.fields,
        from: options.from,
        to: options.to,
        all: options.all,
    };
    let explained = explain(&asked, http, &written, &cycle.files);
    let text = explained.and_then(|report| match options.json {
        true => json(&report),
        false => Ok(render(&report, stdout_columns())),
    });
    status(NAME, text.and_then(|text| stdout::write(&text)))
}

/// The verb.
const NAME: &str = "explain";

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::values::parsed;

    #[test]
    fn options_stand_before_and_after_the_url() {
        let line =
            "-c a.conf --json http://a/ -HX-A:b --method=POST --from 192.0.2.1 --all -estderr";
        let options: Options = parsed(line).expect("sound words");
        let place = options.place();
        assert_eq!(place.conf.as_deref(), Some("a.conf".as_ref()));
        assert_eq!(place.error_log.as_deref(), Some("".as_ref()));
        assert_eq!(options.fields, ["X-A:b"]);
        assert_eq!(options.method, "POST");
        assert!(options.json && options.all);
        let client = "192.0.2.1:40000".parse().expect("an address");
        assert_eq!(options.from, Some(Peer::Inet(client)));
    }

    #[test]
    fn clients_have_addresses_with_or_without_ports() {
        assert_eq!(peer("unix:"), Ok(Peer::Unix));
        let with_port = "[::1]:5".parse().expect("one");
        assert_eq!(peer("[::1]:5"), Ok(Peer::Inet(with_port)));
        let bare = Peer::Inet("[::1]:40000".parse().expect("one"));
        assert_eq!((peer("::1"), peer("[::1]")), (Ok(bare), Ok(bare)));
        assert!(peer("localhost").is_err());
    }

    #[test]
    fn destinations_have_addresses_with_or_without_ports() {
        let ip = |text: &str| text.parse::<IpAddr>().expect("one");
        for (text, expected) in [
            ("127.0.0.1", (ip("127.0.0.1"), None)),
            ("127.0.0.1:1", (ip("127.0.0.1"), Some(1))),
            ("127.0.0.1:65535", (ip("127.0.0.1"), Some(65535))),
            ("::1", (ip("::1"), None)),
            ("[::1]", (ip("::1"), None)),
            ("[::1]:8080", (ip("::1"), Some(8080))),
        ] {
            assert_eq!(address(text), Ok(expected), "{text}");
        }
        for wrong in [
            "",
            "127.0.0.1:0",
            "127.0.0.1:65536",
            "127.0.0.1:",
            "[::1",
            "::1]",
            "[::1]:0",
            "a:80",
        ] {
            assert!(address(wrong).is_err() && peer(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn each_wrong_word_is_named() {
        for (line, why) in [
            ("", "<URL>"),
            ("http://a/ http://b/", "unexpected argument 'http://b/'"),
            ("http://a/ -x", "unexpected argument '-x'"),
            ("http://a/ --json=1", "unexpected value '1' for '--json'"),
            (
                "http://a/ --from",
                "a value is required for '--from <ADDRESS>'",
            ),
            ("http://a/ --from localhost", "not an address of a client"),
            ("http://a/ --to x", "not an address"),
            ("http://a/ --method A,B", "not a method"),
            ("http://a/ -H a,b:c", "expected \"Name: value\""),
        ] {
            let told = parsed::<Options>(line)
                .map(|_| ())
                .expect_err("it is refused");
            assert!(told.contains(why), "{line}: {told}");
        }
        assert_eq!(
            checked_field("a: c\r\nb: d"),
            Err("a field must be one line".to_owned())
        );
    }
}
