//! Core settings at server scope: names, request head limits.

use conf::Contexts;
use server_base::from_args::{Buffers, Millis, Number, Size};
use server_base::regex::Regex;

use crate::settings;

const HS: Contexts = Contexts::HTTP_SERVER;

/// One name of a server.
#[derive(Debug)]
pub struct ServerName {
    /// The text as written, lower-cased; a regular expression without its tilde.
    pub text: Vec<u8>,
    /// The way it matches.
    pub kind: NameKind,
}

impl ServerName {
    /// The empty name, which matches requests without a host.
    pub fn empty() -> Self {
        Self {
            text: Vec::new(),
            kind: NameKind::Exact,
        }
    }
}

/// The ways in which a server name matches.
#[derive(Debug)]
pub enum NameKind {
    /// The whole name.
    Exact,
    /// `*.example.com`.
    Head,
    /// `.example.com`.
    Dot,
    /// `www.example.*`.
    Tail,
    /// `~expression`.
    Regex(Regex),
    /// A wildcard in the wrong place: an error as soon as the address has a choice of servers.
    Invalid,
}

settings! {
    /// Settings of a server that are not inherited into locations.
    pub struct CoreSrv: Server / PLAIN {
        /// Size of the first buffer for a request head.
        client_header_buffer_size "client_header_buffer_size": Size = Size(1024), "1k", HS;
        /// Number and size of the buffers for large request heads.
        large_client_header_buffers "large_client_header_buffers": Buffers = Buffers { number: 4, size: 8192 }, "4 8k", HS;
        /// How long a client may take to send a request head.
        client_header_timeout "client_header_timeout": Millis = Millis(60_000), "60s", HS;
        /// Whether fields with invalid names are dropped rather than refused.
        ignore_invalid_headers "ignore_invalid_headers": bool = true, "on", HS;
        /// Whether underscores are valid in names of request fields.
        underscores_in_headers "underscores_in_headers": bool = false, "off", HS;
        /// Most fields of a request head.
        max_headers "max_headers": Number = Number(1000), "1000", HS;
        /// Whether adjacent slashes in a URI become one.
        merge_slashes "merge_slashes": bool = true, "on", HS;
        /// Whether HTTP/0.9 requests (a line without a version) are answered.
        http_0_9 "http_0_9": bool = true, "on", HS;
    }
    extra {
        /// The names; the first is `$server_name`.
        names: Vec<ServerName>,
        /// `$server_name`: the first name, where it is one.
        name: Vec<u8>
    }
    merge merge_names;
}

fn merge_names(own: &mut CoreSrv, _parent: Option<&CoreSrv>) {
    if let Some(first) = own.names.first() {
        own.name = match &first.kind {
            NameKind::Dot => first.text[1..].to_vec(),
            NameKind::Regex(_) => [b"~", first.text.as_slice()].concat(),
            _ => first.text.clone(),
        };
    }
}

impl CoreSrv {
    /// Whether a name is a regular expression, whose captures a request may need.
    pub fn has_regex_name(&self) -> bool {
        self.names
            .iter()
            .any(|n| matches!(n.kind, NameKind::Regex(_)))
    }
}

impl NameKind {
    /// The kind of a name in lower case that is no expression.
    pub fn of(text: &[u8]) -> Self {
        let stars = text.iter().filter(|b| **b == b'*').count();
        let empty_label = text.windows(2).any(|w| w == b"..");
        match text {
            _ if empty_label || stars > 1 => Self::Invalid,
            [b'.', _, ..] if stars == 0 => Self::Dot,
            [b'*', b'.', _, ..] => Self::Head,
            [first, .., b'.', b'*'] if *first != b'.' => Self::Tail,
            _ if stars == 0 => Self::Exact,
            _ => Self::Invalid,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wildcards_stand_at_an_end_only() {
        assert!(matches!(NameKind::of(b"*.a.b"), NameKind::Head));
        assert!(matches!(NameKind::of(b".a.b"), NameKind::Dot));
        assert!(matches!(NameKind::of(b"a.*"), NameKind::Tail));
        assert!(matches!(NameKind::of(b""), NameKind::Exact));
        for wrong in [&b"a.*.b"[..], b"*a.b", b"*.a.*", b"a..b", b".*"] {
            assert!(matches!(NameKind::of(wrong), NameKind::Invalid));
        }
    }
}
