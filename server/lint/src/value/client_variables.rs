//! Possible contents of nginx's variables that a client controls.
//!
//! Only variables with parts of the request are listed; all others are set by the server and harmless. Source: nginx
//! documentation, "Alphabetical index of variables".

use crate::bytes::ByteSet;

/// The possible contents of a run-time value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Contents {
    /// The bytes it may have.
    pub(crate) bytes: ByteSet,
    /// A client controls it.
    pub(crate) client: bool,
    /// It begins with a slash, always.
    pub(crate) slash: bool,
}

/// Decoded paths: any byte but NUL.
const DECODED: ByteSet = ByteSet::ALL.without(b"\0");

/// Parts of the request line as they came: no blank, no line end.
const RAW: ByteSet = ByteSet::ALL.without(b"\0\t\n\r ");

/// The value of a field: no line end.
const FIELD: ByteSet = ByteSet::ALL.without(b"\0\n\r");

/// A host without its port.
const HOST: ByteSet = ByteSet::range(0x21, 0x7e).without(b"/:?#@\\");

const fn client(bytes: ByteSet) -> Contents {
    Contents {
        bytes,
        client: true,
        slash: false,
    }
}

const fn path(bytes: ByteSet) -> Contents {
    Contents {
        bytes,
        client: true,
        slash: true,
    }
}

const VARIABLES: &[(&str, Contents)] = &[
    ("args", client(RAW)),
    ("content_type", client(FIELD)),
    ("document_uri", path(DECODED)),
    ("fastcgi_path_info", client(DECODED)),
    ("fastcgi_script_name", path(DECODED)),
    ("host", client(HOST)),
    ("query_string", client(RAW)),
    ("request", client(FIELD)),
    ("request_body", client(ByteSet::ALL)),
    // It is below the root of the location, which no client controls.
    (
        "request_filename",
        Contents {
            bytes: DECODED,
            client: false,
            slash: true,
        },
    ),
    ("request_uri", path(RAW)),
    ("uri", path(DECODED)),
];

/// Names that begin like this are parts of the request.
const PREFIXES: &[(&str, Contents)] = &[
    ("arg_", client(RAW)),
    ("cookie_", client(FIELD)),
    ("http_", client(FIELD)),
];

/// The possible contents of a variable of nginx; `None` for one that no client controls.
pub(crate) fn of_variable(name: &str) -> Option<Contents> {
    let exact = VARIABLES.iter().find(|(known, _)| *known == name);
    let prefix = || PREFIXES.iter().find(|(known, _)| name.starts_with(known));
    exact.or_else(prefix).map(|(_, contents)| *contents)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_decoded_may_have_a_line_end() {
        let may = |name| of_variable(name).is_some_and(|contents| contents.bytes.has(b'\n'));
        assert!(may("uri") && may("document_uri") && may("request_filename"));
        for name in [
            "request_uri",
            "args",
            "arg_x",
            "http_referer",
            "host",
            "status",
        ] {
            assert!(!may(name), "{name}");
        }
    }
}
