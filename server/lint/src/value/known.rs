//! Possible contents of nginx's own variables, as far as a client controls them.
//!
//! Only variables that carry something of the request are listed; all others are the server's own and harmless.
//! Source: nginx documentation, "Alphabetical index of variables".

use crate::bytes::ByteSet;

/// The possible contents of a value that is known only at run time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Holds {
    /// The bytes it may have.
    pub(crate) bytes: ByteSet,
    /// The client decides its value.
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

const fn client(bytes: ByteSet) -> Holds {
    Holds {
        bytes,
        client: true,
        slash: false,
    }
}

const fn path(bytes: ByteSet) -> Holds {
    Holds {
        bytes,
        client: true,
        slash: true,
    }
}

const VARIABLES: &[(&str, Holds)] = &[
    ("args", client(RAW)),
    ("content_type", client(FIELD)),
    ("document_uri", path(DECODED)),
    ("fastcgi_path_info", client(DECODED)),
    ("fastcgi_script_name", path(DECODED)),
    ("host", client(HOST)),
    ("query_string", client(RAW)),
    ("request", client(FIELD)),
    ("request_body", client(ByteSet::ALL)),
    // It is below the root of the location, which the client does not control.
    (
        "request_filename",
        Holds {
            bytes: DECODED,
            client: false,
            slash: true,
        },
    ),
    ("request_uri", path(RAW)),
    ("uri", path(DECODED)),
];

/// Names that begin like this are parts of the request.
const PREFIXES: &[(&str, Holds)] = &[
    ("arg_", client(RAW)),
    ("cookie_", client(FIELD)),
    ("http_", client(FIELD)),
];

/// The possible contents of a variable of nginx; `None` for one that no client controls.
pub(crate) fn known(name: &str) -> Option<Holds> {
    let exact = VARIABLES.iter().find(|(known, _)| *known == name);
    let prefix = || PREFIXES.iter().find(|(known, _)| name.starts_with(known));
    exact.or_else(prefix).map(|(_, holds)| *holds)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_decoded_may_have_a_line_end() {
        let may = |name| known(name).is_some_and(|holds| holds.bytes.has(b'\n'));
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
