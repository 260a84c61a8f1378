//! `Cache-Status`: how this cache handled a request.
//!
//! Source: RFC 9211 section 2; RFC 8941 section 4.1 for the syntax.

use engines::http::{push_decimal, trim_ows};

use super::reuse::ValidationReason;
use super::structured_field::is_token_byte;

/// The reason to forward a request (RFC 9211 section 2.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ForwardReason {
    /// A configuration bypasses the cache.
    Bypass,
    /// The method.
    Method,
    /// No response is stored for the key.
    UriMiss,
    /// Responses are stored for the key, and none that the request selects.
    VaryMiss,
    /// No response is stored; the cache does not distinguish the two.
    Miss,
    /// A fresh response was stored; directives of the request required validation.
    Request,
    /// The stored response is stale.
    Stale,
    /// A part of the response was stored.
    Partial,
}

impl ForwardReason {
    /// The value of `fwd`.
    const fn token(self) -> &'static str {
        match self {
            Self::Bypass => "bypass",
            Self::Method => "method",
            Self::UriMiss => "uri-miss",
            Self::VaryMiss => "vary-miss",
            Self::Miss => "miss",
            Self::Request => "request",
            Self::Stale => "stale",
            Self::Partial => "partial",
        }
    }
}

impl From<ValidationReason> for ForwardReason {
    /// A stored response that may not be used without validation counts as stale.
    fn from(reason: ValidationReason) -> Self {
        match reason {
            ValidationReason::Stale | ValidationReason::NoCache | ValidationReason::Invalid => {
                Self::Stale
            }
            ValidationReason::Request => Self::Request,
        }
    }
}

/// The answer's origin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// A stored response, without a request to the server.
    Hit,
    /// The server was asked.
    Forward {
        /// The reason.
        reason: ForwardReason,
        /// The status that the server sent, if it differs from that of the response, such as 304.
        status: Option<u16>,
        /// The response was stored.
        stored: bool,
        /// One request was forwarded for several.
        collapsed: bool,
    },
}

/// The report of this cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CacheStatus<'a> {
    /// The name of the cache.
    pub cache: &'a [u8],
    /// The answer's origin.
    pub outcome: Outcome,
    /// Seconds for which the response stays fresh; negative if it is stale.
    pub ttl_s: Option<i64>,
    /// The key.
    pub key: Option<&'a [u8]>,
    /// More about it, such as the reason not to store.
    pub detail: Option<&'a [u8]>,
}

impl CacheStatus<'_> {
    /// Appends the value of the field to send: reports of caches nearer to the server, which were received, then this one.
    pub fn encode<'a>(&self, received: impl Iterator<Item = &'a [u8]>, out: &mut Vec<u8>) {
        for value in received.map(trim_ows).filter(|value| !value.is_empty()) {
            out.extend_from_slice(value);
            out.extend_from_slice(b", ");
        }
        push_token_or_string(self.cache, out);
        match self.outcome {
            Outcome::Hit => out.extend_from_slice(b"; hit"),
            Outcome::Forward {
                reason,
                status,
                stored,
                collapsed,
            } => {
                out.extend_from_slice(b"; fwd=");
                out.extend_from_slice(reason.token().as_bytes());
                if let Some(status) = status {
                    out.extend_from_slice(b"; fwd-status=");
                    push_decimal(out, u64::from(status));
                }
                if stored {
                    out.extend_from_slice(b"; stored");
                }
                if collapsed {
                    out.extend_from_slice(b"; collapsed");
                }
            }
        }
        if let Some(ttl_s) = self.ttl_s {
            out.extend_from_slice(if ttl_s < 0 { b"; ttl=-" } else { b"; ttl=" });
            // An integer has at most 15 digits (RFC 8941 section 3.3.1).
            push_decimal(out, ttl_s.unsigned_abs().min(INTEGER_MAX));
        }
        if let Some(key) = self.key {
            out.extend_from_slice(b"; key=");
            push_string(key, out);
        }
        if let Some(detail) = self.detail {
            out.extend_from_slice(b"; detail=");
            push_token_or_string(detail, out);
        }
    }
}

/// Appends text as a token if it is one, else as a string.
fn push_token_or_string(text: &[u8], out: &mut Vec<u8>) {
    let begins = text
        .first()
        .is_some_and(|byte| byte.is_ascii_alphabetic() || *byte == b'*');
    if begins && text.iter().all(|byte| is_token_byte(*byte)) {
        out.extend_from_slice(text);
    } else {
        push_string(text, out);
    }
}

/// Appends text as a string. Bytes that a string cannot have are percent-encoded.
fn push_string(text: &[u8], out: &mut Vec<u8>) {
    out.push(b'"');
    for &byte in text {
        match byte {
            b'"' | b'\\' => out.extend_from_slice(&[b'\\', byte]),
            b' '..=b'~' => out.push(byte),
            _ => {
                let digit = |four_bits: u8| HEX[usize::from(four_bits)];
                out.extend_from_slice(&[b'%', digit(byte >> 4), digit(byte & 15)]);
            }
        }
    }
    out.push(b'"');
}

const HEX: &[u8; 16] = b"0123456789ABCDEF";

/// The largest integer of a structured field.
const INTEGER_MAX: u64 = 999_999_999_999_999;

#[cfg(test)]
mod tests {
    use super::*;

    const HIT: CacheStatus<'_> = CacheStatus {
        cache: b"firstbyte",
        outcome: Outcome::Hit,
        ttl_s: None,
        key: None,
        detail: None,
    };

    fn encode(status: &CacheStatus<'_>, received: &[&str]) -> String {
        let mut out = Vec::new();
        status.encode(received.iter().map(|value| value.as_bytes()), &mut out);
        String::from_utf8(out).expect("ASCII")
    }

    fn forward(
        reason: ForwardReason,
        status: Option<u16>,
        stored: bool,
        collapsed: bool,
    ) -> String {
        let outcome = Outcome::Forward {
            reason,
            status,
            stored,
            collapsed,
        };
        encode(&CacheStatus { outcome, ..HIT }, &[])
    }

    /// RFC 9211 section 2.
    #[test]
    fn a_report_has_parameters() {
        assert_eq!(encode(&HIT, &[]), "firstbyte; hit");
        for (ttl_s, expected) in [
            (376, "firstbyte; hit; ttl=376"),
            (0, "firstbyte; hit; ttl=0"),
            (-412, "firstbyte; hit; ttl=-412"),
            (i64::MIN, "firstbyte; hit; ttl=-999999999999999"),
        ] {
            let status = CacheStatus {
                ttl_s: Some(ttl_s),
                ..HIT
            };
            assert_eq!(encode(&status, &[]), expected);
        }
        for (reason, token) in [
            (ForwardReason::Bypass, "bypass"),
            (ForwardReason::Method, "method"),
            (ForwardReason::UriMiss, "uri-miss"),
            (ForwardReason::VaryMiss, "vary-miss"),
            (ForwardReason::Miss, "miss"),
            (ForwardReason::Request, "request"),
            (ForwardReason::Stale, "stale"),
            (ForwardReason::Partial, "partial"),
        ] {
            let expected = format!("firstbyte; fwd={token}");
            assert_eq!(forward(reason, None, false, false), expected);
        }
        let validated = "firstbyte; fwd=stale; fwd-status=304; stored; collapsed";
        assert_eq!(
            forward(ForwardReason::Stale, Some(304), true, true),
            validated
        );
    }

    /// RFC 9211 section 2.2.
    #[test]
    fn validation_is_forwarded_as_stale_or_by_request() {
        for (reason, expected) in [
            (ValidationReason::Stale, ForwardReason::Stale),
            (ValidationReason::NoCache, ForwardReason::Stale),
            (ValidationReason::Invalid, ForwardReason::Stale),
            (ValidationReason::Request, ForwardReason::Request),
        ] {
            assert_eq!(ForwardReason::from(reason), expected);
        }
    }

    /// RFC 9211 section 2: the last member is the cache closest to the client.
    #[test]
    fn a_report_is_appended_to_those_received() {
        let received = ["OriginCache; hit; ttl=1100", " ", "CDN; fwd=miss "];
        let expected = "OriginCache; hit; ttl=1100, CDN; fwd=miss, firstbyte; hit";
        assert_eq!(encode(&HIT, &received), expected);
    }

    /// RFC 9211 sections 2.7, 2.8; RFC 8941 section 4.1.
    #[test]
    fn text_is_a_token_or_a_string() {
        for (cache, key, detail, expected) in [
            (
                "a/b:c",
                "k",
                "no-store",
                "a/b:c; hit; key=\"k\"; detail=no-store",
            ),
            (
                "a b",
                "x\"y\\z",
                "",
                "\"a b\"; hit; key=\"x\\\"y\\\\z\"; detail=\"\"",
            ),
            (
                "1a",
                "\u{e9}\r\n",
                "a, b",
                "\"1a\"; hit; key=\"%C3%A9%0D%0A\"; detail=\"a, b\"",
            ),
        ] {
            let status = CacheStatus {
                cache: cache.as_bytes(),
                key: Some(key.as_bytes()),
                detail: Some(detail.as_bytes()),
                ..HIT
            };
            assert_eq!(encode(&status, &[]), expected);
        }
    }
}
