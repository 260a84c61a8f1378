//! Visits of pages by the clients of this crate: a network waterfall, for which no script runs and nothing is laid out.
//!
//! [`visit`] fetches a document, asks for what it names while it streams in, then for what its style sheets name, as browsers
//! do: HTTP/1.1 on at most 6 connections a server, one connection a server for HTTP/2 and SPDY, connections are used again,
//! documents come before style sheets, these before scripts, fonts and images. All connections are driven in one loop.
//!
//! [`Kept`] is what a visit leaves: with the same one again a visit is a warm one, whose TLS sessions are resumed and whose
//! fresh responses come from the cache.
//!
//! Absent: scripts and what they ask for, frames, cookies, conditional requests, freshness by heuristics, `Link` fields, `refresh`,
//! images that are loaded when they are shown, a second address of a host beside one that is silent (RFC 8305; the next is tried
//! where one refuses). Images of style sheets are all asked for, whether an element uses them or not, and one source of each font.
//!
//! Source: WHATWG HTML, CSS Syntax Module Level 3, RFC 9111, RFC 9218.

mod css;
mod find;
mod hosts;
mod kept;
mod options;
mod progress;
mod request;
mod row;
mod scan;
mod visitor;

use crate::page::Visit;
pub(crate) use find::resources;
pub use kept::Kept;
pub use options::{HostOverride, MAX_RESOURCES, MAX_VISIT_BYTES, Options};
pub use progress::Progress;
use visitor::Visitor;

/// Visits a page: cold where nothing is kept, else warm. `progress` is called from time to time, and ends the visit by `false`.
///
/// # Errors
/// There is no document, or `progress` has ended the visit.
pub fn visit(
    options: &Options,
    kept: &mut Kept,
    progress: &mut dyn FnMut(&Progress) -> bool,
) -> Result<Visit, String> {
    Visitor::new(options, kept)?.run(progress)
}

#[cfg(test)]
mod tests;
