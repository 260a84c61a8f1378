//! Visits of pages by the clients of this crate: a network waterfall, without scripts and layout.
//!
//! [`visit`] fetches a document, then the resources named in it while it streams in, then those of its style sheets, as
//! browsers do. HTTP/1.1 has at most 6 connections for a server, HTTP/2 and SPDY one. Connections are reused. Documents
//! have priority over style sheets, and these over scripts, fonts and images. One loop drives all connections.
//!
//! [`Kept`] is the state after a visit. A visit with the state of an earlier one is warm: it resumes TLS sessions and
//! takes fresh responses from the cache.
//!
//! Absent: scripts and their requests, frames, cookies, conditional requests, heuristic freshness, `Link` fields,
//! `refresh`, images that load when they become visible. So is a race of two addresses (RFC 8305): the next address is
//! tried only if one refuses. Images of style sheets are all requested, whether an element uses them or not, and one
//! source of each font.
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

/// Visits a page: cold if `kept` is empty, else warm. `progress` is called from time to time, and ends the visit by
/// `false`.
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
