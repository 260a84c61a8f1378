//! A stall: a pause within a response, with its cause.

/// A pause within a response.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Stall {
    /// The place of the resource in [`crate::page::Visit::resources`].
    pub resource: usize,
    /// Begin of the pause: time of the byte before it, ms.
    pub from_ms: f64,
    /// End of the pause: time of the next byte, ms.
    pub to_ms: f64,
    /// Bytes of the body after the pause; 0 only with a capture.
    pub rest_bytes: u64,
    /// Its cause, as far as the evidence goes.
    pub cause: StallCause,
}

impl Stall {
    /// How long it was, ms.
    #[must_use]
    pub fn length_ms(&self) -> f64 {
        self.to_ms - self.from_ms
    }
}

/// The cause of a stall.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StallCause {
    /// The sender waited for an acknowledgement that the receiver held back. A capture shows it. Without one, the
    /// length fits the timer and a round trip, and less than a segment was left.
    DelayedAck,
    /// The cause is not known.
    Gap,
}

impl StallCause {
    /// Its name in pictures and reports.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::DelayedAck => "delayed acknowledgement",
            Self::Gap => "gap",
        }
    }
}

/// Least time by which a pause is longer than a round trip, ms. The congestion window explains a round trip. The shortest hold of
/// acknowledgements in use is that of Linux, 40 ms.
pub(super) const PAUSE_LEAST_MS: f64 = 30.0;
