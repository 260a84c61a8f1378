//! The request line: method, target and version.
//!
//! Bytes enter as one line without its LF, or as the received part of a line; ranges into it leave.
//! A part is checked as strictly as a whole line, so that garbage is refused at its first bad byte,
//! not at a line end or a limit. Accepts the lines that nginx accepts
//! (`ngx_http_parse_request_line`), and the target `*` of OPTIONS. Source: RFC 9112 section 3.

use crate::http::{Fault, Method, Version};
use std::ops::Range;

/// The parts of a request line, as ranges of the line.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct RequestLine {
    pub(super) method: Method,
    /// The method's name is the line up to here.
    pub(super) method_end: usize,
    pub(super) target: Target,
    pub(super) version: Version,
}

/// The forms of a target (RFC 9112 section 3.2).
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Target {
    /// A path with an optional query, or "*".
    Origin(Range<usize>),
    /// The path may be empty or begin with '?'.
    Absolute {
        scheme: Range<usize>,
        authority: Range<usize>,
        path: Range<usize>,
    },
    /// Of CONNECT.
    Authority(Range<usize>),
}

/// Why there is no request line.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Stop {
    Fault(Fault),
    /// All bytes are valid so far; the line is not complete.
    Partial,
}

/// Parses `line`. With `complete` it is the whole line without its line end,
/// else the beginning of one.
pub(super) fn parse(line: &[u8], complete: bool) -> Result<RequestLine, Stop> {
    Scanner {
        line,
        at: 0,
        complete,
    }
    .request_line()
}

struct Scanner<'a> {
    line: &'a [u8],
    at: usize,
    complete: bool,
}

impl Scanner<'_> {
    fn request_line(mut self) -> Result<RequestLine, Stop> {
        let method = self.method()?;
        let method_end = self.at;
        self.skip_spaces();
        let target = match self.peek() {
            Some(_) if method == Method::Connect => Target::Authority(self.authority_form()?),
            Some(b'/') => Target::Origin(self.path()?),
            Some(byte) if byte.is_ascii_alphabetic() => self.absolute_form()?,
            Some(b'*') if method == Method::Options => {
                self.at += 1;
                Target::Origin(self.at - 1..self.at)
            }
            Some(_) => return Err(Stop::Fault(Fault::BadRequestLine)),
            None => return Err(self.end(Fault::BadRequestLine)),
        };
        let version = self.version()?;
        if version == Version::Http09 && method != Method::Get {
            return Err(Stop::Fault(Fault::MethodInHttp09));
        }
        Ok(RequestLine {
            method,
            method_end,
            target,
            version,
        })
    }

    /// The method, up to the first space.
    fn method(&mut self) -> Result<Method, Stop> {
        self.at = self
            .line
            .iter()
            .take_while(|&&byte| METHOD[byte as usize])
            .count();
        match self.peek() {
            Some(b' ') if self.at > 0 => Ok(Method::parse(&self.line[..self.at])),
            Some(_) => Err(Stop::Fault(Fault::BadMethod)),
            None => Err(self.end(Fault::BadMethod)),
        }
    }

    /// Path and query: everything up to the next space.
    fn path(&mut self) -> Result<Range<usize>, Stop> {
        let start = self.at;
        let rest = &self.line[start..];
        let len = memchr::memchr(b' ', rest).unwrap_or(rest.len());
        // Written without a branch, so that it is compiled to vector code.
        let bad = rest[..len]
            .iter()
            .fold(false, |bad, &byte| bad | (byte < 0x20) | (byte == 0x7f));
        if bad {
            return Err(Stop::Fault(Fault::BadRequestLine));
        }
        self.at += len;
        Ok(start..self.at)
    }

    /// `scheme://authority` and the path after it.
    fn absolute_form(&mut self) -> Result<Target, Stop> {
        let scheme = self.run(|byte| byte.is_ascii_alphanumeric() || b"+-.".contains(&byte));
        for wanted in *b"://" {
            self.expect(wanted)?;
        }
        let start = self.at;
        self.host()?;
        if self.peek() == Some(b':') {
            self.at += 1;
            self.run(|byte| byte.is_ascii_digit());
        }
        let authority = start..self.at;
        let path = match self.peek() {
            Some(b'/' | b'?') => self.path()?,
            Some(b' ') => self.at..self.at,
            Some(_) => return Err(Stop::Fault(Fault::BadRequestLine)),
            None => return Err(self.end(Fault::BadRequestLine)),
        };
        Ok(Target::Absolute {
            scheme,
            authority,
            path,
        })
    }

    /// `host:port` with a port, as CONNECT needs it.
    fn authority_form(&mut self) -> Result<Range<usize>, Stop> {
        let start = self.at;
        self.host()?;
        self.expect(b':')?;
        let port = self.run(|byte| byte.is_ascii_digit());
        match self.peek() {
            Some(b' ') if !port.is_empty() => Ok(start..self.at),
            Some(_) => Err(Stop::Fault(Fault::BadRequestLine)),
            None => Err(self.end(Fault::BadRequestLine)),
        }
    }

    /// A name or an IP literal. Userinfo is refused (RFC 9110 section 4.2.4).
    fn host(&mut self) -> Result<(), Stop> {
        if self.peek() != Some(b'[') {
            self.run(|byte| byte.is_ascii_alphanumeric() || b".-".contains(&byte));
            return Ok(());
        }
        self.at += 1;
        self.run(|byte| byte.is_ascii_alphanumeric() || b":-._~!$&'()*+,;=".contains(&byte));
        self.expect(b']')
    }

    /// Spaces, the version, spaces; an empty rest means HTTP/0.9.
    fn version(&mut self) -> Result<Version, Stop> {
        if matches!(self.peek(), Some(byte) if byte != b' ') {
            return Err(Stop::Fault(Fault::BadRequestLine));
        }
        self.skip_spaces();
        let rest = &self.line[self.at..];
        if self.complete && rest == b"HTTP/1.1" {
            return Ok(Version::Http11);
        }
        match rest.first() {
            None if self.complete => return Ok(Version::Http09),
            None => return Err(Stop::Partial),
            Some(b'H') => {}
            Some(_) => return Err(Stop::Fault(Fault::BadRequestLine)),
        }
        for wanted in *b"HTTP/" {
            self.expect_or(wanted, Fault::BadVersion)?;
        }
        self.major()?;
        let minor = self.minor()?;
        self.skip_spaces();
        match self.peek() {
            Some(_) => Err(Stop::Fault(Fault::BadRequestLine)),
            None if !self.complete => Err(Stop::Partial),
            None if minor == 0 => Ok(Version::Http10),
            None => Ok(Version::Http11),
        }
    }

    /// The major version and the dot; only 1 is spoken here.
    fn major(&mut self) -> Result<(), Stop> {
        match self.peek() {
            Some(b'1') => self.at += 1,
            Some(b'2'..=b'9') => return Err(Stop::Fault(Fault::UnsupportedVersion)),
            Some(_) => return Err(Stop::Fault(Fault::BadVersion)),
            None => return Err(self.end(Fault::BadVersion)),
        }
        if matches!(self.peek(), Some(byte) if byte.is_ascii_digit()) {
            return Err(Stop::Fault(Fault::UnsupportedVersion));
        }
        self.expect_or(b'.', Fault::BadVersion)
    }

    /// The minor version: at least one digit, below 1000.
    fn minor(&mut self) -> Result<u32, Stop> {
        let mut minor = 0;
        let start = self.at;
        while let Some(byte) = self.peek().filter(|&byte| byte != b' ') {
            if !byte.is_ascii_digit() || minor > 99 {
                return Err(Stop::Fault(Fault::BadVersion));
            }
            minor = minor * 10 + u32::from(byte - b'0');
            self.at += 1;
        }
        match self.peek() {
            Some(_) if self.at == start => Err(Stop::Fault(Fault::BadVersion)),
            None if self.at == start => Err(self.end(Fault::BadVersion)),
            _ => Ok(minor),
        }
    }

    /// Skips the bytes that `wanted` accepts and returns their range.
    fn run(&mut self, wanted: impl Fn(u8) -> bool) -> Range<usize> {
        let start = self.at;
        self.at += self.line[start..]
            .iter()
            .take_while(|&&byte| wanted(byte))
            .count();
        start..self.at
    }

    fn expect(&mut self, wanted: u8) -> Result<(), Stop> {
        self.expect_or(wanted, Fault::BadRequestLine)
    }

    fn expect_or(&mut self, wanted: u8, fault: Fault) -> Result<(), Stop> {
        match self.peek() {
            Some(byte) if byte == wanted => {
                self.at += 1;
                Ok(())
            }
            Some(_) => Err(Stop::Fault(fault)),
            None => Err(self.end(fault)),
        }
    }

    /// Error for a line that ends here: `fault` if it is complete.
    fn end(&self, fault: Fault) -> Stop {
        if self.complete {
            Stop::Fault(fault)
        } else {
            Stop::Partial
        }
    }

    fn peek(&self) -> Option<u8> {
        self.line.get(self.at).copied()
    }

    fn skip_spaces(&mut self) {
        self.run(|byte| byte == b' ');
    }
}

/// Upper-case letters, `_` and `-`: the bytes that nginx accepts in a method.
const METHOD: [bool; 256] = {
    let mut table = [false; 256];
    let mut byte = b'A';
    while byte <= b'Z' {
        table[byte as usize] = true;
        byte += 1;
    }
    table[b'_' as usize] = true;
    table[b'-' as usize] = true;
    table
};

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(line: &str) -> RequestLine {
        parse(line.as_bytes(), true).unwrap_or_else(|stop| panic!("{line}: {stop:?}"))
    }

    fn fault(line: &str) -> Option<Fault> {
        match parse(line.as_bytes(), true) {
            Err(Stop::Fault(fault)) => Some(fault),
            Err(Stop::Partial) => panic!("a complete line is never partial: {line}"),
            Ok(_) => None,
        }
    }

    #[test]
    fn origin_form_gives_method_target_and_version() {
        let line = parsed("GET /a?b HTTP/1.1");
        assert_eq!(line.method, Method::Get);
        assert_eq!(line.method_end, 3);
        assert_eq!(line.target, Target::Origin(4..8));
        assert_eq!(line.version, Version::Http11);
        assert_eq!(parsed("PURGE-X /  HTTP/1.0 ").version, Version::Http10);
        assert_eq!(parsed("GET  / HTTP/1.9").version, Version::Http11);
        assert_eq!(parsed("GET /\u{e4} HTTP/1.1").target, Target::Origin(4..7));
    }

    #[test]
    fn a_line_without_a_version_is_http09_and_only_get() {
        assert_eq!(parsed("GET /x").version, Version::Http09);
        assert_eq!(parsed("GET /x ").version, Version::Http09);
        assert_eq!(fault("POST /x"), Some(Fault::MethodInHttp09));
    }

    /// RFC 9112 section 3.2.2; userinfo: RFC 9110 section 4.2.4.
    #[test]
    fn absolute_form_is_split_and_has_no_userinfo() {
        let target = parsed("GET http://h:80/p?q HTTP/1.1").target;
        assert_eq!(
            target,
            Target::Absolute {
                scheme: 4..8,
                authority: 11..15,
                path: 15..19
            }
        );
        let target = parsed("GET http://[::1]?q HTTP/1.1").target;
        assert_eq!(
            target,
            Target::Absolute {
                scheme: 4..8,
                authority: 11..16,
                path: 16..18
            }
        );
        let target = parsed("GET http://h HTTP/1.1").target;
        assert_eq!(
            target,
            Target::Absolute {
                scheme: 4..8,
                authority: 11..12,
                path: 12..12
            }
        );
        for line in [
            "GET http://u@h/ HTTP/1.1",
            "GET http://u:p@h/ HTTP/1.1",
            "GET http://h:x/ HTTP/1.1",
            "GET http:/h/ HTTP/1.1",
            "GET http//h/ HTTP/1.1",
            "GET http://h_h/ HTTP/1.1",
            "GET http://[::1/ HTTP/1.1",
            "GET http://h",
        ] {
            assert_eq!(fault(line), Some(Fault::BadRequestLine), "{line}");
        }
    }

    /// RFC 9110 section 9.3.6 and nginx's http_method.t.
    #[test]
    fn connect_needs_host_and_port() {
        assert_eq!(
            parsed("CONNECT h:8080 HTTP/1.1").target,
            Target::Authority(8..14)
        );
        for line in [
            "CONNECT / HTTP/1.1",
            "CONNECT h HTTP/1.1",
            "CONNECT h: HTTP/1.1",
            "CONNECT h:8/ HTTP/1.1",
        ] {
            assert_eq!(fault(line), Some(Fault::BadRequestLine), "{line}");
        }
    }

    /// RFC 9112 section 3.2.4.
    #[test]
    fn asterisk_is_a_target_of_options_alone() {
        assert_eq!(parsed("OPTIONS * HTTP/1.1").target, Target::Origin(8..9));
        assert_eq!(fault("GET * HTTP/1.1"), Some(Fault::BadRequestLine));
        assert_eq!(fault("OPTIONS *x HTTP/1.1"), Some(Fault::BadRequestLine));
    }

    #[test]
    fn broken_methods_are_refused() {
        for line in [
            "get / HTTP/1.1",
            " GET / HTTP/1.1",
            "GET\t/ HTTP/1.1",
            "G=\"x / HTTP/1.1",
            "GET",
            "\x16\x03\x01",
        ] {
            assert_eq!(fault(line), Some(Fault::BadMethod), "{line:?}");
        }
    }

    #[test]
    fn controls_and_spaces_in_the_target_are_refused() {
        for line in [
            "GET / / HTTP/1.1",
            "GET /\0 HTTP/1.1",
            "GET /\x02 HTTP/1.1",
            "GET /\x7f HTTP/1.1",
            "GET /\rx HTTP/1.1",
            "GET ",
            "GET x",
            "GET ?x HTTP/1.1",
        ] {
            assert_eq!(fault(line), Some(Fault::BadRequestLine), "{line:?}");
        }
    }

    #[test]
    fn versions_are_one_dot_something() {
        for line in [
            "GET / HTTP/1.",
            "GET / HTTP/01.1",
            "GET / HTTP/1.x",
            "GET / HTTP/",
            "GET / HTTP/.1",
            "GET / HTTP/1.1\r",
            "GET / HTTP/1.1000",
            "GET / HTTP/0.9",
            "GET / HTPP/1.1",
        ] {
            assert_eq!(fault(line), Some(Fault::BadVersion), "{line:?}");
        }
        assert_eq!(fault("GET / HTTP/2.0"), Some(Fault::UnsupportedVersion));
        assert_eq!(fault("GET / HTTP/10.0"), Some(Fault::UnsupportedVersion));
        assert_eq!(fault("GET / http/1.1"), Some(Fault::BadRequestLine));
        assert_eq!(fault("GET / HTTP/1.1 x"), Some(Fault::BadRequestLine));
        assert_eq!(parsed("GET / HTTP/1.00").version, Version::Http10);
        assert_eq!(parsed("GET / HTTP/1.999").version, Version::Http11);
    }

    /// A part of a line never gets another fault than the whole line.
    #[test]
    fn every_beginning_of_a_line_agrees_with_the_line() {
        for line in [
            "GET /a?b HTTP/1.1",
            "GET http://[::1]:80/p HTTP/1.0",
            "CONNECT h:80 HTTP/1.1",
            "OPTIONS * HTTP/1.1",
            "GET / HTTP/2.0",
            "get /",
            "GET /\x02 HTTP/1.1",
            "GET http://u@h/ HTTP/1.1",
            "GET / HTTP/1.1x",
            "CONNECT / H",
        ] {
            let whole = parse(line.as_bytes(), true);
            for end in 0..=line.len() {
                match parse(&line.as_bytes()[..end], false) {
                    Err(Stop::Partial) => {}
                    Err(fault) => assert_eq!(Err(fault), whole, "{line} cut at {end}"),
                    Ok(_) => panic!("a beginning is never complete"),
                }
            }
        }
    }
}
