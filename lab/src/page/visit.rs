//! A visit: one view of a page by one agent.

use serde::Serialize;

use super::resource::Resource;

/// One view of a page.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Visit {
    /// The requested URL of the page.
    pub url: String,
    /// Title of the document, if it has one.
    pub title: Option<String>,
    /// Who visited it.
    pub agent: Agent,
    /// Whether caches were empty.
    pub view: View,
    /// When it began: milliseconds since 1970 in UTC.
    pub started_unix_ms: f64,
    /// Its resources, in the order of their requests.
    pub resources: Vec<Resource>,
    /// Moments of the page.
    pub timings: PageTimings,
    /// Pictures of the page while it was built, in order.
    pub filmstrip: Vec<Frame>,
    /// Shortest round trip to the server of the page, ms, if measured.
    pub round_trip_ms: Option<f64>,
    /// Pauses of servers that packets of the visit prove, in order; `None` without a capture.
    pub withheld: Option<Vec<Withheld>>,
    /// Remarks that a reader needs to interpret the figures.
    pub notes: Vec<String>,
}

/// A time for which a server kept bytes back until a late acknowledgement, from a capture; ms from the start of the
/// visit.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Withheld {
    /// Port of the server. The link of a visit may change addresses, but no ports of servers.
    pub port: u16,
    /// Method and target of the request, such as `GET /a`; `None` if the capture does not show it.
    pub request: Option<String>,
    /// When the segment with the late acknowledgement was received.
    pub from_ms: f64,
    /// When the delayed bytes were received.
    pub to_ms: f64,
    /// Bytes of their packet.
    pub bytes: u64,
}

/// The program that visited a page.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Agent {
    /// Its name, such as `Chromium` or `firstbyte`.
    pub name: String,
    /// Its version.
    pub version: String,
    /// Whether it is a browser, which runs scripts and paints; else requests are made by the clients of this crate.
    pub is_browser: bool,
}

impl Agent {
    /// Returns whether the pieces of its resources are single reads of a socket, by the clients of this crate.
    #[must_use]
    pub fn reads_sockets(&self) -> bool {
        !self.is_browser && self.name == PROGRAM
    }
}

/// The name of visits by the clients of this crate.
pub const PROGRAM: &str = "firstbyte";

/// Contents of the caches at the start of a visit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum View {
    /// Nothing: neither responses, nor connections, nor TLS sessions.
    #[default]
    Cold,
    /// Responses, and perhaps more, of the visit before.
    Warm,
}

impl View {
    /// Its name in archives and reports.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Cold => "cold",
            Self::Warm => "warm",
        }
    }
}

/// Events of a page, ms from the start of the visit; `None` if the page did not reach one or the agent has none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct PageTimings {
    /// The first byte of the document.
    pub first_byte_ms: Option<f64>,
    /// Something was painted (W3C Paint Timing).
    pub first_paint_ms: Option<f64>,
    /// Text or an image was painted.
    pub first_contentful_paint_ms: Option<f64>,
    /// The largest of these was painted.
    pub largest_contentful_paint_ms: Option<f64>,
    /// The document was parsed.
    pub dom_content_loaded_ms: Option<f64>,
    /// The document and its resources are loaded.
    pub load_ms: Option<f64>,
}

/// A picture of the page.
#[derive(Clone, Debug, PartialEq)]
pub struct Frame {
    /// When it was on the screen, ms.
    pub at_ms: f64,
    /// The picture, JPEG.
    pub jpeg: Vec<u8>,
}

/// Longest stored title, bytes.
pub const TITLE_BYTES_MAX: usize = 4096;
