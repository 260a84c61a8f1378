//! `fastcgi_pass`: passes requests to FastCGI applications.
//!
//! ```text
//! conf   settings of a location      split   the name of a script and what follows it in the URI
//! ```
//!
//! Parameters come from [`gateways`](crate::gateways), records from the engine, servers and responses from
//! [`server_http::upstream`]. Absent: roles other than the responder.
//!
//! Source: nginx documentation, `ngx_http_fastcgi_module`; FastCGI Specification 1.0.

mod conf;
mod split;

use server_base::errlog::{Level, Printable};
use server_http::cache::HeadFormat;
use server_http::exchange::Exchange;
use server_http::upstream::{Note, Verdict};
use server_http::upstream_rows;
use server_upstream::protocol::{self, ProtocolSpec};

use crate::gateways::params::Encoding;
use crate::gateways::{Application, application};
use conf::{FastCgiLoc, PLAIN};

application!(
    "fastcgi", "fastcgi_" FastCgiLoc, "Passes requests on to a FastCGI application or a group of them.",
    temp_path "fastcgi_temp 1 2" at "FIRSTBYTE_FASTCGI_TEMP_PATH", hidden ["status"],
    rows upstream_rows!(send_lowat "fastcgi_" FastCgiLoc),
    variables split::VARIABLES,
);

impl Application for FastCgiLoc {
    /// Lengths have one byte, or four from 128 on.
    const ENCODING: Encoding = Encoding {
        overhead: |name, value| length_bytes(name) + length_bytes(value),
        too_big: "fastcgi request record",
    };
    const HEAD_FORMAT: HeadFormat = HeadFormat::Fcgi;
    const PROTOCOL: &'static ProtocolSpec = &protocol::FASTCGI;
    const SENDS_UNKNOWN_LENGTH: bool = true;
    const UPGRADES: bool = false;

    fn keeps(&self) -> bool {
        *self.keep_conn
    }

    fn note(x: &Exchange, note: &Note<'_>) -> Verdict {
        let text = without_end(note.text);
        if note.loggable_bytes > 0 {
            let shown = &text[..text.len().min(note.loggable_bytes)];
            let text = format_args!("FastCGI sent in stderr: \"{}\"", Printable(shown));
            x.log_while(Level::Error, note.action, text);
        }
        let caught = &x.route.loc::<Self>().catch_stderr.0;
        match caught
            .iter()
            .any(|part| memchr::memmem::find(text, part).is_some())
        {
            true => Verdict::Invalid("sent a string listed in \"fastcgi_catch_stderr\" to stderr"),
            false => Verdict::Pass,
        }
    }
}

/// Removes the line end, final dots and spaces from an error text.
fn without_end(text: &[u8]) -> &[u8] {
    let end = text.iter().rposition(|byte| !b"\n\r. ".contains(byte));
    &text[..end.map_or(0, |at| at + 1)]
}

fn length_bytes(length: usize) -> usize {
    if length > 127 { 4 } else { 1 }
}
