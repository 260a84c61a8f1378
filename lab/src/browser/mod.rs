//! Real Chromium visits a page: a thin client of the DevTools protocol, and what it saw as a [`Visit`].
//!
//! Commands and events are JSON between two pipes (`--remote-debugging-pipe`): no port that others could connect to, no
//! WebSocket, and the end of the browser is the end of the pipe. A browser is started for each view, in a directory that
//! holds its profile, home and temporary files and is removed with it. A cold view has a new profile; a warm one is the next
//! browser's in the same profile, so that it finds what caches on the disk have kept, and neither connections nor TLS sessions.
//!
//! The browser is a child of the thread that calls [`visits`]: it is in that thread's network namespace, and the kernel
//! kills it when the thread ends. So a page is visited through an emulated link by calling [`visits`] on a thread that has
//! entered the link's network.
//!
//! The browser connects to nobody for itself: its vendor's hosts have no address unless the page uses them (`vendor`), and
//! switches turn its services off (`flags`).
//!
//! Times are Chromium's own, of its network process where it has them: the monotonic clock, from when the document was asked
//! for. Its predictor, which opens connections before a request needs one, is off, because connections that were opened ahead
//! show no phases of their own.
//!
//! Source: <https://chromedevtools.github.io/devtools-protocol/>.

mod devtools;
mod events;
mod fields;
mod find;
mod flags;
mod message;
mod options;
mod phases;
mod pipe;
mod process;
mod profile;
mod record;
mod recorder;
mod request;
mod timings;
mod trace;
mod vendor;
mod view;
mod visits;

pub use find::find;
pub use options::{Options, RUNS_MAX, Step};
pub use visits::{Run, visits};

#[cfg(doc)]
use crate::page::Visit;
