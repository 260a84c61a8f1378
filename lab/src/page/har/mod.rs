//! HAR 1.2, the archive format of browsers: writes visits, and reads our archives and those of other programs.
//!
//! [`write()`] makes a page of each visit, and [`read()`] a visit of each page. A visit that was written reads as an
//! equal one, but without its filmstrip. Data without a member in HAR are in custom members with names that begin with
//! `_`:
//!
//! | member | of | meaning |
//! |---|---|---|
//! | `_url`, `_view`, `_roundTripMs`, `_startedUnixMs`, `_notes`, `_agent` | page | [`Visit`](super::Visit)'s fields |
//! | `_withheld` | page | pauses of servers that a capture proves, `[{"port", "request", "fromMs", "toMs", "bytes"}]` |
//! | `_firstByte`, `_firstPaint`, `_firstContentfulPaint`, `_largestContentfulPaint` | pageTimings | ms, as browsertime has them |
//! | `_startMs` | entry | exact start after the page's, ms; archives of ours are known by it |
//! | `_priority`, `_resourceType`, `_fromCache`, `_initiator` | entry | as Chrome has them; `_index` of the initiator is its place among the page's entries |
//! | `_chunks` | entry | pieces of the body, `[{"ts", "bytes"}]`, as WebPageTest has them |
//! | `_remote`, `_serverPort` | entry | the server's address as text where it is no IP address; its port |
//! | `_tcp`, `_absent` | timings | `connect` without `ssl`; which of the three mandatory times are unknown, and written as 0 |
//! | `_error`, `_transferSize` | response | as Chrome has them |
//!
//! Archives of other programs are read leniently: missing members are unknown, numbers may be texts, members with
//! unknown names are skipped, however deep. An invalid value is a [`Fault`] with its path. Bodies are never kept.
//!
//! Source: HAR 1.2 (softwareishard.com/blog/har-12-spec).

mod date;
mod entry;
mod lenient;
mod log;
mod names;
mod read;
mod write;

use std::fmt;

use engines::http::parse_decimal;

use super::visit::Visit;

pub(crate) use date::parse as parse_date;
pub use read::read;
pub use write::write;

/// A page of an archive.
#[derive(Clone, Debug, PartialEq)]
pub struct Page {
    /// Its id in the archive; empty if the archive has no pages.
    pub id: String,
    /// The visit to it.
    pub visit: Visit,
}

/// Why an archive cannot be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// The member in question, such as `log.entries[3].timings.wait`; empty for the file as a whole.
    pub path: String,
    /// The fault, as the end of a sentence.
    pub why: String,
}

impl Fault {
    fn new(path: impl Into<String>, why: impl Into<String>) -> Self {
        let (path, why) = (path.into(), why.into());
        Self { path, why }
    }

    /// The fault with its path inside of another member.
    fn within(mut self, outer: &str) -> Self {
        self.path = match self.path.as_str() {
            "" => outer.to_owned(),
            path if path.starts_with('[') => format!("{outer}{path}"),
            path => format!("{outer}.{path}"),
        };
        self
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.path.as_str() {
            "" => out.write_str(&self.why),
            path => write!(out, "{path}: {}", self.why),
        }
    }
}

/// Returns the place of a page by its id, or by its number from 1.
///
/// # Errors
/// There is no such page.
pub fn find(pages: &[Page], wanted: &str) -> Result<usize, String> {
    let named = pages.iter().position(|page| page.id == wanted);
    let numbered = || {
        let place = parse_decimal::<usize>(wanted.as_bytes())?.checked_sub(1)?;
        (place < pages.len()).then_some(place)
    };
    named.or_else(numbered).ok_or_else(|| {
        let some = pages.iter().take(PAGES_NAMED);
        let names: Vec<String> = some.map(|page| quoted(&page.id)).collect();
        let more = if pages.len() > PAGES_NAMED {
            ", ..."
        } else {
            ""
        };
        let plural = if pages.len() == 1 { "" } else { "s" };
        format!(
            "no page {}; the file has {} page{plural}: {}{more}",
            quoted(wanted),
            pages.len(),
            names.join(", ")
        )
    })
}

/// The begin of a text of a file in quotes; characters that a reader does not see are written out.
fn quoted(text: &str) -> String {
    let start: String = text.chars().take(QUOTED_CHARS).collect();
    let dots = if start.len() < text.len() { "..." } else { "" };
    format!("{start:?}{dots}")
}

/// The largest archive that is read, bytes: 128 MiB.
pub const FILE_BYTES_MAX: u64 = 128 << 20;
/// The most entries of an archive.
pub const ENTRIES_MAX: usize = 100_000;
/// The most pages of an archive.
pub const PAGES_MAX: usize = 1000;
/// The most fields of a message.
pub const FIELDS_MAX: usize = 1000;
/// The most pieces of a body.
pub const PIECES_MAX: usize = 100_000;
/// The most notes of a page.
pub const NOTES_MAX: usize = 1000;
/// Most proven pauses read for a page.
pub const WITHHELD_MAX: usize = 10_000;
/// Longest accepted time, ms: a week.
pub const TIME_MS_MAX: f64 = 604_800_000.0;
/// Largest accepted size, bytes: a pebibyte, which a JSON number represents exactly.
pub const BYTES_MAX: u64 = 1 << 50;
/// Most ids in the message about an unknown page.
const PAGES_NAMED: usize = 10;
/// Characters of a text that are quoted in a fault.
const QUOTED_CHARS: usize = 40;

#[cfg(test)]
mod tests;
