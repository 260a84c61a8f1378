//! Visits of a page by Chromium: a small client of the DevTools protocol that returns a [`Visit`].
//!
//! Commands and events are JSON on two pipes (`--remote-debugging-pipe`). So there is no port for others to connect to
//! and no WebSocket, and a closed pipe is the end of the browser. Each view starts a browser in a directory of its own
//! with profile, home and temporary files. The directory is removed afterwards. A cold view has a new profile. A warm
//! view is a new browser in the profile of the cold one: it finds the disk cache, but neither connections nor TLS
//! sessions.
//!
//! The browser is a child of the thread that calls [`visits`]. It is in the network namespace of that thread, and the
//! kernel kills it if the thread ends. To visit a page through an emulated link, call [`visits`] on a thread that has
//! entered the network of the link.
//!
//! The browser makes no requests of its own: hosts of its vendor do not resolve unless the page uses them (`vendor`),
//! and switches disable its services (`flags`).
//!
//! Times are those of Chromium's network process if it reports them, on the monotonic clock from the request of the
//! document. Predictions are off, because a connection that was opened ahead of its request has no phases in the
//! request.
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
