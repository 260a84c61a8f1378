//! Core settings at server scope: names, request head limits.

use conf::Contexts;
use server_base::from_args::{Buffers, Millis, Number, Size};

use crate::names::{NameKind, ServerName};
use crate::settings;

const HS: Contexts = Contexts::HTTP_SERVER;

settings! {
    /// Settings of a server that are not inherited into locations.
    pub struct CoreSrv: Server {
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
        /// Maximum number of fields of a request head.
        max_headers "max_headers": Number = Number(1000), "1000", HS;
        /// Whether adjacent slashes in a URI become one.
        merge_slashes "merge_slashes": bool = true, "on", HS;
        /// Whether HTTP/0.9 requests (a line without a version) are answered.
        http_0_9 "http_0_9": bool = true, "on", HS;
    }
    extra {
        /// The names; the first is `$server_name`.
        names: Vec<ServerName>,
        /// `$server_name`: the first name; empty if that is a regular expression.
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
