//! The target of a request: method, host, URI and arguments, as they are processed.

use engines::http::Method;

use super::part::part;
use crate::host_cache::HostCache;

part! {
    /// The target of a request, first as the client sent it, then as redirections and rewriting changed it.
    pub struct RequestTarget() {
        /// Method used for processing (error pages turn it into GET; that of a subrequest is GET).
        pub method: Method => keep,
        /// `$host` as the client named it, lower-cased and without port; empty if it named none.
        pub host: Vec<u8> => clear,
        /// The host that was read last in this memory.
        pub(crate) host_cache: HostCache => keep,
        /// Port in the request's host, if there was one.
        pub host_port: Option<u16>,
        /// `$uri`: normalised, then rewritten.
        pub uri: Vec<u8> => clear,
        /// `$args`.
        pub args: Vec<u8> => clear,
        /// There are arguments, if empty ones.
        pub has_args: bool,
        /// Bytes at the end of `uri` that are its extension; places in a head are 32 bits wide, too.
        pub(crate) ext_len: u32,
        /// The target held escapes or a plus sign.
        pub quoted_uri: bool,
        /// Relation of URI and arguments to the request line and to the location.
        pub origin: UriOrigin,
        /// `try_files` found a file below the `alias` of a regular expression: the URI is appended to it.
        pub uri_below_alias: bool,
    }
}

/// Relation of URI and arguments to the request line and to the location.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum UriOrigin {
    /// Both are those of the request line; never in a subrequest.
    RequestLine,
    /// They were changed, and the URI is in the location that it was found for.
    #[default]
    Location,
    /// `rewrite ... break` has moved the URI out of its location.
    Elsewhere,
}

impl RequestTarget {
    /// Notes that URI or arguments are no longer those of the request line.
    pub fn differ(&mut self) {
        if self.origin == UriOrigin::RequestLine {
            self.origin = UriOrigin::Location;
        }
    }

    /// Replaces the URI and its extension: the text after the last dot of the last segment, unless the segment
    /// begins with it.
    pub fn set_uri(&mut self, uri: &[u8]) {
        self.uri.clear();
        self.uri.extend_from_slice(uri);
        let segment = memchr::memrchr(b'/', uri).map_or(uri, |at| &uri[at + 1..]);
        self.ext_len = match memchr::memrchr(b'.', segment) {
            Some(at) if at > 0 => (segment.len() - at - 1) as u32,
            _ => 0,
        };
    }

    /// Replaces the arguments.
    pub(crate) fn set_args(&mut self, args: &[u8]) {
        self.args.clear();
        self.args.extend_from_slice(args);
        self.has_args = !args.is_empty();
    }

    /// The extension of the URI, empty if none.
    pub fn extension(&self) -> &[u8] {
        &self.uri[self.uri.len() - self.ext_len as usize..]
    }
}
