//! The `host[:port]` of a Host field or of an absolute-form target.
//!
//! Accepts the hosts of nginx's `ngx_http_validate_host`, except that a comma outside of an IP
//! literal is refused: readers that join fields would see two hosts. Source: RFC 9110 section 7.2,
//! RFC 3986 section 3.2.2.

use super::class::alphanumeric_and;

/// The text is not a host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BadHost;

/// Puts the host of `raw` into `name` (cleared first): lower case, without the port and without one trailing dot.
/// Returns the port, `None` if there is none or it is empty.
///
/// # Errors
/// [`BadHost`] if the host is empty or has an invalid byte, two dots in a row, an unclosed IP
/// literal, or a port that is not a number below 65536.
pub fn parse_host(raw: &[u8], name: &mut Vec<u8>) -> Result<Option<u16>, BadHost> {
    name.clear();
    let (len, port) = check_host(raw)?;
    name.extend(raw[..len].iter().map(u8::to_ascii_lowercase));
    Ok(port)
}

/// The length of the name in `raw`, and the port; see [`parse_host`].
pub(crate) fn check_host(raw: &[u8]) -> Result<(usize, Option<u16>), BadHost> {
    let (name_len, rest) = match raw.first() {
        Some(b'[') => literal(raw)?,
        _ => registered_name(raw)?,
    };
    let port = match rest.split_first() {
        None => None,
        Some((b':', digits)) => port(digits)?,
        Some(_) => return Err(BadHost),
    };
    if name_len == 0 {
        Err(BadHost)
    } else {
        Ok((name_len, port))
    }
}

/// The length of a name without its trailing dot, and the rest behind the name.
fn registered_name(raw: &[u8]) -> Result<(usize, &[u8]), BadHost> {
    // Permitted classes of the next byte: a dot must not follow a dot.
    let mut allowed = INSIDE | DOT;
    let mut end = 0;
    for &byte in raw {
        let class = NAME[byte as usize];
        if class & allowed == 0 {
            break;
        }
        allowed = (INSIDE | DOT) ^ (class & DOT);
        end += 1;
    }
    let rest = &raw[end..];
    if rest.first().is_some_and(|byte| *byte != b':') {
        return Err(BadHost);
    }
    Ok((end - usize::from(allowed & DOT == 0), rest))
}

/// The length of an IP literal with its brackets, and the rest behind it.
fn literal(raw: &[u8]) -> Result<(usize, &[u8]), BadHost> {
    let end = memchr::memchr(b']', raw).ok_or(BadHost)?;
    let inner = &raw[1..end];
    let valid = inner.iter().all(|&byte| LITERAL[byte as usize])
        && !inner.windows(2).any(|pair| pair == b"..");
    if valid {
        Ok((end + 1, &raw[end + 1..]))
    } else {
        Err(BadHost)
    }
}

fn port(digits: &[u8]) -> Result<Option<u16>, BadHost> {
    if digits.is_empty() {
        return Ok(None);
    }
    let mut port = 0_u16;
    for byte in digits {
        if !byte.is_ascii_digit() {
            return Err(BadHost);
        }
        let digit = u16::from(byte - b'0');
        port = port
            .checked_mul(10)
            .and_then(|port| port.checked_add(digit))
            .ok_or(BadHost)?;
    }
    Ok(Some(port))
}

/// Class of a byte of a name that is no dot.
const INSIDE: u8 = 1;
/// Class of the dot.
const DOT: u8 = 2;

/// The classes of unreserved bytes, sub-delimiters but the comma, and `%`; 0 for others.
const NAME: [u8; 256] = {
    let in_names = alphanumeric_and(b"-._~!$&'()*+;=%");
    let mut classes = [0; 256];
    let mut byte = 0;
    while byte < 256 {
        classes[byte] = if in_names[byte] { INSIDE } else { 0 };
        byte += 1;
    }
    classes[b'.' as usize] = DOT;
    classes
};

/// Unreserved bytes, sub-delimiters, and `:`.
const LITERAL: [bool; 256] = alphanumeric_and(b"-._~!$&'()*+,;=:");

#[cfg(test)]
mod tests {
    use super::*;

    fn host(raw: &str) -> Option<(String, Option<u16>)> {
        let mut name = b"old".to_vec();
        let port = parse_host(raw.as_bytes(), &mut name).ok()?;
        Some((String::from_utf8(name).unwrap(), port))
    }

    #[test]
    fn names_are_lower_case_without_port_and_dot() {
        let is =
            |raw, name: &str, port| assert_eq!(host(raw), Some((name.to_owned(), port)), "{raw}");
        is("l", "l", None);
        is("L", "l", None);
        is(
            "AbC-d93.0.34ZhGt-s.nk.Ru:88",
            "abc-d93.0.34zhgt-s.nk.ru",
            Some(88),
        );
        is("abcd-ef.g02.xyz:", "abcd-ef.g02.xyz", None);
        is("abcd-ef.g02.xyz.:88", "abcd-ef.g02.xyz", Some(88));
        is("example.com.", "example.com", None);
        is("a_b", "a_b", None);
        is("123.49.0.78:987", "123.49.0.78", Some(987));
        is("x:65535", "x", Some(65535));
    }

    #[test]
    fn ip_literals_keep_their_brackets() {
        let is =
            |raw, name: &str, port| assert_eq!(host(raw), Some((name.to_owned(), port)), "{raw}");
        is("[abcd::EF98:0:7654:321]", "[abcd::ef98:0:7654:321]", None);
        is(
            "[abcd::ef98:0:7654:321]:80",
            "[abcd::ef98:0:7654:321]",
            Some(80),
        );
        is("[::123.45.67.89]:4321", "[::123.45.67.89]", Some(4321));
        is("[v0F.!$&'()*+,;=-._~aZ:]", "[v0f.!$&'()*+,;=-._~az:]", None);
    }

    /// nginx's http_host.t, and the stricter rule for the comma.
    #[test]
    fn what_is_no_host_is_refused() {
        for raw in [
            "",
            ".",
            ":80",
            "a..b",
            "..a",
            "a..",
            "a/b",
            "a@b",
            "a b",
            "a,b",
            "a\0",
            "a\x02",
            "a\u{e4}",
            "a\\b",
            "a:1.2",
            "a.:1.2",
            "a:80:80",
            "a:65536",
            "a:98777",
            "a:x",
            "a:-1",
            "a#b",
            "a?b",
            "[::1",
            "[::1].",
            "[::1].:98",
            "[::1]..:98",
            "[a..b]",
            "[a/b]",
            "[a\\b]",
            "x[::1]",
            "[::1]x",
            "[::1]:65536",
        ] {
            assert_eq!(host(raw), None, "{raw:?}");
        }
    }

    #[test]
    fn the_name_is_empty_after_an_error() {
        let mut name = b"old".to_vec();
        assert_eq!(parse_host(b"a/b", &mut name), Err(BadHost));
        assert!(name.is_empty());
    }
}
