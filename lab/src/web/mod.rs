//! The dashboard: pages over a store of visitors, their small HTTP server, and events with the figures of this moment.
//!
//! A request goes from [`http`] to `pages`, there to a view, and a view's tables become HTML, CSV or JSON. Pages need no script.
//! No output has a full address, since stores have none. Texts of others are escaped by templates and by `table`.
//!
//! Source: docs/dashboard.md.

mod analyses;
mod assets;
mod chart;
mod choices;
mod data;
mod events;
mod http;
mod layout;
mod live;
mod pages;
mod panel;
mod params;
mod site;
mod standalone;
mod table;
mod verdict;
mod views;

#[cfg(test)]
mod tests;

use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;

pub use http::{CONNECTIONS_MAX, STREAMS_MAX};
pub use live::Live;
pub use site::{Site, Source};
pub use standalone::experiment_page;

/// Serves the pages on a listener until `stop` can be read or its other end is closed. The listener is of a UNIX-domain socket;
/// one of TCP works too.
///
/// The calling thread handles all connections. Queries in progress at the end are not waited for.
///
/// # Errors
/// If the listener cannot be polled, or the system has no room for threads.
pub fn serve(listener: impl Into<OwnedFd>, site: Site, stop: OwnedFd) -> io::Result<()> {
    let handler: Arc<dyn http::Handler> = Arc::new(pages::Pages::new(site));
    http::run(&listener.into(), &handler, &stop)
}

/// Name of the format of JSON and of events.
const FORMAT: &str = "firstbyte-dashboard/1";
