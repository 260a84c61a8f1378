//! The command line of `explain`.

use std::ffi::OsString;
use std::net::{IpAddr, SocketAddr};
use std::os::unix::ffi::OsStrExt;

use engines::http::is_token;
use server_http::exchange::Peer;

use super::url::Url;
use crate::argv;
use crate::tools::long::Asked;

/// What is to be explained, and how.
#[derive(Debug)]
pub(super) struct Options {
    /// The request's URL.
    pub(super) url: Url,
    /// Its method.
    pub(super) method: String,
    /// Its fields but for those that the URL makes: `Name: value`.
    pub(super) fields: Vec<String>,
    /// Where it comes from, where that is said.
    pub(super) from: Option<Peer>,
    /// The address it is sent to.
    pub(super) to: Option<IpAddr>,
    /// Print JSON.
    pub(super) json: bool,
    /// Settings at their default, too.
    pub(super) all: bool,
    /// Which configuration is meant.
    pub(super) place: argv::Options,
}

/// Reads the words after the tool's name.
///
/// # Errors
/// What is wrong with them.
pub(super) fn parse(words: &[OsString]) -> Result<Asked<Options>, String> {
    let mut found = Found {
        method: "GET".to_owned(),
        ..Found::default()
    };
    let mut words = words.iter();
    while let Some(word) = words.next() {
        let bytes = word.as_bytes();
        if let Some(name) = bytes.strip_prefix(b"--") {
            found.long(&String::from_utf8_lossy(name), &mut words)?;
            continue;
        }
        match bytes {
            [b'-', b'h' | b'?'] => found.help = true,
            [b'-', b'H', rest @ ..] => {
                let field = argv::value('H', "a field", rest, &mut words);
                let field = text(&field.map_err(|error| error.to_string())?)?;
                found.fields.push(checked_field(field)?);
            }
            [b'-', flag, rest @ ..] => {
                argv::parse_place(*flag, rest, &mut words, &mut found.place)
                    .map_err(|error| error.to_string())?;
            }
            _ if found.url.is_some() => {
                return Err(format!("one URL at a time: \"{}\" is another", text(word)?));
            }
            _ => found.url = Some(text(word)?),
        }
    }
    found.finish()
}

/// What has been read.
#[derive(Default)]
struct Found {
    help: bool,
    url: Option<String>,
    method: String,
    fields: Vec<String>,
    from: Option<Peer>,
    to: Option<IpAddr>,
    json: bool,
    all: bool,
    place: argv::Options,
}

impl Found {
    /// An option of the form `--name value` or `--name=value`.
    fn long<'a>(
        &mut self,
        word: &str,
        words: &mut impl Iterator<Item = &'a OsString>,
    ) -> Result<(), String> {
        let (name, given) = match word.split_once('=') {
            Some((name, value)) => (name, Some(value.to_owned())),
            None => (word, None),
        };
        let alone = given.is_none();
        let mut value = || match given.clone() {
            Some(value) => Ok(value),
            None => match words.next() {
                Some(word) => text(word),
                None => Err(format!("option \"--{name}\" requires a value")),
            },
        };
        match name {
            "json" if alone => self.json = true,
            "all" if alone => self.all = true,
            "help" if alone => self.help = true,
            "method" => {
                self.method = value()?;
                if !is_token(self.method.as_bytes()) {
                    return Err(format!("\"{}\" is no method", self.method));
                }
            }
            "from" => self.from = Some(peer(&value()?)?),
            "to" => {
                let value = value()?;
                let bare = value.trim_start_matches('[').trim_end_matches(']');
                let addr = bare.parse();
                self.to = Some(addr.map_err(|_| format!("\"{value}\" is no address"))?);
            }
            _ => return Err(format!("invalid option: \"--{word}\"")),
        }
        Ok(())
    }

    fn finish(self) -> Result<Asked<Options>, String> {
        if self.help {
            return Ok(Asked::Help);
        }
        let url = self.url.ok_or("no URL is given")?;
        Ok(Asked::Work(Box::new(Options {
            url: Url::parse(&url)?,
            method: self.method,
            fields: self.fields,
            from: self.from,
            to: self.to,
            json: self.json,
            all: self.all,
            place: self.place,
        })))
    }
}

fn text(word: &OsString) -> Result<String, String> {
    match word.to_str() {
        Some(text) => Ok(text.to_owned()),
        None => Err(format!("\"{}\" is not UTF-8", word.to_string_lossy())),
    }
}

/// A field is a name, a colon and a value, and one line.
fn checked_field(field: String) -> Result<String, String> {
    let name = field.split_once(':').map(|(name, _)| name);
    if !name.is_some_and(|name| is_token(name.as_bytes())) {
        return Err(format!(
            "\"{field}\" is no field: it is written \"Name: value\""
        ));
    }
    if field.contains(['\r', '\n', '\0']) {
        return Err("a field is one line".to_owned());
    }
    Ok(field)
}

/// An address with or without a port, or `unix:`.
fn peer(text: &str) -> Result<Peer, String> {
    if text == "unix:" {
        return Ok(Peer::Unix);
    }
    let bare = text.trim_start_matches('[').trim_end_matches(']');
    if let Ok(ip) = bare.parse::<IpAddr>() {
        return Ok(Peer::Inet(SocketAddr::new(ip, CLIENT_PORT)));
    }
    let addr = text.parse().map(Peer::Inet);
    addr.map_err(|_| format!("\"{text}\" is no address of a client"))
}

/// The port that requests come from unless one is said.
pub(super) const CLIENT_PORT: u16 = 40_000;

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(words: &[&str]) -> Result<Options, String> {
        let words: Vec<OsString> = words.iter().map(OsString::from).collect();
        match parse(&words)? {
            Asked::Help => Err("help".to_owned()),
            Asked::Work(options) => Ok(*options),
        }
    }

    #[test]
    fn options_stand_before_and_after_the_url() {
        let options = parsed(&[
            "-c",
            "a.conf",
            "--json",
            "http://a/",
            "-HX-A: b",
            "--method=POST",
            "--from",
            "192.0.2.1",
            "--all",
        ])
        .expect("sound words");
        assert_eq!(options.place.conf.as_deref(), Some("a.conf".as_ref()));
        assert_eq!(options.fields, ["X-A: b"]);
        assert_eq!(options.method, "POST");
        assert!(options.json && options.all);
        let client = "192.0.2.1:40000".parse().expect("an address");
        assert_eq!(options.from, Some(Peer::Inet(client)));
    }

    #[test]
    fn clients_have_addresses_with_or_without_ports() {
        let from =
            |text| parsed(&["http://a/", "--from", text]).map(|o| o.from.expect("it is said"));
        assert_eq!(from("unix:"), Ok(Peer::Unix));
        assert_eq!(
            from("[::1]:5"),
            Ok(Peer::Inet("[::1]:5".parse().expect("one")))
        );
        let bare = Peer::Inet("[::1]:40000".parse().expect("one"));
        assert_eq!((from("::1"), from("[::1]")), (Ok(bare), Ok(bare)));
        assert!(from("localhost").is_err());
    }

    #[test]
    fn each_wrong_word_is_named() {
        let wrong = |words: &[&str]| parsed(words).expect_err("they are wrong");
        assert_eq!(wrong(&[]), "no URL is given");
        assert_eq!(
            wrong(&["http://a/", "http://b/"]),
            "one URL at a time: \"http://b/\" is another"
        );
        assert_eq!(wrong(&["-x"]), "invalid option: \"x\"");
        assert_eq!(wrong(&["--xy"]), "invalid option: \"--xy\"");
        assert_eq!(wrong(&["--json=1"]), "invalid option: \"--json=1\"");
        assert_eq!(wrong(&["--from"]), "option \"--from\" requires a value");
        assert_eq!(wrong(&["-c"]), "option \"-c\" requires file name");
        assert_eq!(wrong(&["--method", "A B"]), "\"A B\" is no method");
        assert_eq!(
            wrong(&["-H", "a b: c"]),
            "\"a b: c\" is no field: it is written \"Name: value\""
        );
        assert_eq!(wrong(&["-H", "a: c\r\nb: d"]), "a field is one line");
        assert_eq!(wrong(&["-h"]), "help");
    }
}
