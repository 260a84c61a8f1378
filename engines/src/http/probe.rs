//! Named events of a connection and its requests, and when they happened.
//!
//! A server emits them while it serves, a client while it sends requests; logs, metrics and
//! waterfalls are made from them. Times are monotonic microseconds from an arbitrary start before
//! all of them; 0 is an unknown time.

/// An event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProbeEvent {
    /// The event's name.
    pub point: Point,
    /// Serial number of the connection.
    pub connection: u64,
    /// Stream of the request; 0 for an event of the connection.
    pub stream: u32,
    /// Time of the event, microseconds.
    pub at_us: u64,
    /// Time of reading the last byte of the request head, microseconds.
    pub head_us: u64,
}

/// Names of events, in chronological order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Point {
    /// The connection was accepted.
    Accepted,
    /// The TLS handshake ended.
    Handshake {
        /// When its ClientHello was read.
        client_hello_us: u64,
    },
    /// The last byte of the request head was read.
    Head,
    /// The request's wait ended: work on it began.
    Wait,
    /// The first byte of the response was passed to the kernel.
    FirstByte {
        /// Whether nothing else was in flight, for a response with kernel timestamps.
        idle: Option<bool>,
    },
    /// The first byte left the machine.
    Sent,
    /// The client acknowledged the first byte.
    Acknowledged,
    /// The acknowledgement is late for this reason, or was on time.
    Stall(Option<Stall>),
    /// The exchange ended.
    End,
}

/// Why the acknowledgement of a first byte came late.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stall {
    /// The byte arrived, and the client delayed its acknowledgement.
    DelayedAck,
    /// The byte was lost and sent again.
    Retransmit,
    /// The client's window had no room for it.
    Window,
}

impl ProbeEvent {
    /// Time from the end of the request head to the event, microseconds; `None` if either is
    /// unknown.
    pub fn since_head_us(&self) -> Option<u64> {
        between(self.head_us, self.at_us)
    }
}

impl Stall {
    /// Its name, in variables and metrics.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::DelayedAck => "delayed_ack",
            Self::Retransmit => "retransmit",
            Self::Window => "window",
        }
    }
}

/// Time between two times, microseconds; `None` if either is unknown.
pub fn between(earlier_us: u64, later_us: u64) -> Option<u64> {
    if earlier_us == 0 || later_us == 0 {
        return None;
    }
    Some(later_us.saturating_sub(earlier_us))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_that_is_not_known_has_no_distance() {
        let event = |head_us, at_us| ProbeEvent {
            point: Point::FirstByte { idle: None },
            connection: 1,
            stream: 1,
            at_us,
            head_us,
        };
        assert_eq!(event(5, 7).since_head_us(), Some(2));
        assert_eq!(event(5, 0).since_head_us(), None);
        assert_eq!(event(5, 4).since_head_us(), Some(0));
        assert_eq!(event(0, 7).since_head_us(), None);
    }
}
