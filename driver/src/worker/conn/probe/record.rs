//! State of a recorded connection; [`super::recording`] fills it.

use std::net::IpAddr;

use engines::http::Version;
use server_base::samples::Handshake;

use super::arm_figures::ConnectionArms;

/// Times and counts of a connection that is recorded.
#[derive(Debug, Default)]
pub(crate) struct Recording {
    /// When the first bytes were read, monotonic microseconds.
    pub(super) first_read_us: u64,
    /// When bytes were last read, while the first response has not begun.
    pub(super) read_us: u64,
    /// When the head of the first request ended.
    pub(super) head_us: u64,
    pub(super) first: Option<FirstResponse>,
    pub(super) tls: u16,
    pub(super) handshake: Handshake,
    pub(super) handshake_us: Option<u64>,
    pub(super) stalls: [u16; 3],
    /// Ended requests by class of status: 2xx, 3xx, 4xx, 5xx.
    pub(super) statuses: [u32; 4],
    /// A header of the PROXY protocol comes first.
    pub(super) behind_proxy: bool,
    /// It was drawn for the map (`rtt_map`).
    pub(super) is_drawn: bool,
    /// Processor time, scaled to all steps, nanoseconds.
    pub(super) cpu_ns: u64,
    /// The server has ended the connection because a file became shorter.
    pub(super) has_short_file: bool,
    /// It was accepted while there were experiments.
    pub(super) has_experiments: bool,
    /// Figures for the arms of experiments that it belongs to.
    pub(super) arms: Option<Box<ConnectionArms>>,
    /// Ended requests without an arm.
    pub(super) without_arm: u8,
}

impl Recording {
    /// Returns whether nothing is left to be recorded: the connection was not drawn, and its first requests had no arm. Further
    /// requests of such a connection then cost nothing.
    pub(super) fn is_over(&self) -> bool {
        !self.is_drawn && self.without_arm >= REQUESTS_WITHOUT_ARM
    }
}

/// Number of first requests that can add a connection to an arm. A page that reads its arm is among them.
const REQUESTS_WITHOUT_ARM: u8 = 16;

/// The begin of the first response.
#[derive(Debug)]
pub(super) struct FirstResponse {
    pub(super) client: Option<IpAddr>,
    pub(super) via_proxy: bool,
    /// Later writes that were checked for a proxy.
    pub(super) looks: u8,
    pub(super) version: Version,
    /// Time since the end of the request's head, microseconds.
    pub(super) us: Option<u64>,
}
