//! Access logs as a map: clients by country, with the round-trip times of their connections.
//!
//! Bytes of files, pipes and followed logs are decompressed, cut into blocks of whole lines by one thread, and parsed by several.
//! Each of these has a tally of its own; a report adds them up. Memory depends on the number of threads, not on the logs.
//!
//! Absent: configurations (the caller passes formats), and databases of addresses (it passes a function).
//!
//! Source: nginx documentation, `ngx_http_log_module`; docs/map.md, "Reading logs".

mod advice;
mod client;
mod cutter;
mod detect;
mod feed;
mod follow;
mod format;
mod json_line;
mod line;
mod parsers;
mod pattern;
mod pieces;
mod read;
mod report;
mod rotated;
mod source;
mod stream;
mod tail;
mod tally;
mod users;

use std::net::IpAddr;
use std::path::PathBuf;
use std::sync::Arc;

pub use advice::warnings;
pub use detect::{format_named, names};
pub use format::{Escape, Format};
pub use line::{Fault, Field, LineFormat, Rtt};
pub use pieces::read_pieces;
pub use read::read;
pub use report::{Event, Progress, Report};
pub use tally::{Counts, Damaged};
pub use users::{Users, users};

use crate::map::CountryCode;

/// The most bytes of a line, without its end. A longer line is damaged.
pub const LINE_BYTES_MAX: usize = 64 << 10;

/// Returns the country of an address, `None` if it is unknown.
pub type Countries<'c> = &'c (dyn Fn(IpAddr) -> Option<CountryCode> + Sync);

/// Logs that are read together.
pub struct Job<'c> {
    /// The logs.
    pub inputs: Vec<Input>,
    /// The field of the client's address, for logs of an unknown format.
    pub client: Field,
    /// Threads that parse, from 1.
    pub threads: usize,
    /// Whether to wait for further lines.
    pub follows: bool,
    /// Countries of addresses.
    pub countries: Countries<'c>,
}

/// A log.
#[derive(Clone, Debug)]
pub struct Input {
    /// The file; `None` is standard input.
    pub path: Option<PathBuf>,
    /// Formats of its lines; `None` if they are to be detected.
    pub formats: Option<Arc<Vec<LineFormat>>>,
}

impl Input {
    /// The name in messages.
    #[must_use]
    pub fn name(&self) -> String {
        let named = self.path.as_ref().map(|path| path.display().to_string());
        named.unwrap_or_else(|| "standard input".to_owned())
    }
}

#[cfg(test)]
mod tests;
