//! What a link is like: delay, acknowledgements, bandwidth, packet size.

use std::io;
use std::time::Duration;

/// The longest delay each way; more would be a mistake in units.
const ONE_WAY_MAX: Duration = Duration::from_secs(10);

/// The longest that an acknowledgement is held; RFC 1122 section 4.2.3.2 has receivers delay it less than 500 ms,
/// and some delay it so long.
const ACK_HOLD_MAX: Duration = Duration::from_secs(1);

/// Packet sizes: IPv4's least that every network takes is 576, and the forwarder's buffer has 9216.
const MTU_MIN: u16 = 576;
pub(crate) const MTU_MAX: u16 = 9216;

/// What a link is like; the default has a round trip of 50 ms and holds nothing back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// The delay of each packet, each way; at most 10 s.
    pub one_way: Duration,
    /// How long pure acknowledgements of the client are held back unless they can leave with data, at most 1 s;
    /// `None` sends each at once. A server that waits for one before it sends the rest of a response is late by
    /// this and a round trip.
    pub client_ack_hold: Option<Duration>,
    /// The same of the server's acknowledgements: for clients that wait.
    pub server_ack_hold: Option<Duration>,
    /// The bandwidth of each direction; `None` is unlimited.
    pub bandwidth: Option<Bandwidth>,
    /// The largest packet, bytes with IP header: 576 to 9216.
    pub mtu: u16,
    /// Whether each packet is recorded, for [`Link::take_trace`](crate::Link::take_trace).
    pub trace: bool,
    /// Whether what runs in the server's namespace is scheduled in real time, where that is allowed: so that it is
    /// its own waiting that is measured, not that for a CPU of a machine with other work.
    pub realtime_server: bool,
}

/// How fast a direction is, and how much waits before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bandwidth {
    /// Bytes of IP packets a second; not 0.
    pub bytes_per_second: u64,
    /// How many bytes may wait their turn; packets beyond are dropped.
    pub queue_bytes: u64,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            one_way: Duration::from_millis(25),
            client_ack_hold: None,
            server_ack_hold: None,
            bandwidth: None,
            mtu: 1500,
            trace: false,
            realtime_server: true,
        }
    }
}

impl Options {
    /// Refuses what a link cannot be.
    pub(crate) fn check(&self) -> io::Result<()> {
        let holds = [self.client_ack_hold, self.server_ack_hold];
        let wrong = if self.one_way > ONE_WAY_MAX {
            "a one-way delay is at most 10 s"
        } else if holds.iter().flatten().any(|hold| *hold > ACK_HOLD_MAX) {
            "acknowledgements are held for at most 1 s"
        } else if !(MTU_MIN..=MTU_MAX).contains(&self.mtu) {
            "an MTU is between 576 and 9216"
        } else if self.bandwidth.is_some_and(|b| b.bytes_per_second == 0) {
            "a bandwidth is not 0"
        } else {
            return Ok(());
        };
        Err(io::Error::new(io::ErrorKind::InvalidInput, wrong))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_are_exact() {
        let base = Options::default;
        let second = Some(ACK_HOLD_MAX);
        let longer = Some(ACK_HOLD_MAX + Duration::from_nanos(1));
        let rate = |bytes_per_second| {
            Some(Bandwidth {
                bytes_per_second,
                queue_bytes: 0,
            })
        };
        for (good, options) in [
            (true, base()),
            (
                true,
                Options {
                    one_way: ONE_WAY_MAX,
                    ..base()
                },
            ),
            (
                false,
                Options {
                    one_way: ONE_WAY_MAX + Duration::from_nanos(1),
                    ..base()
                },
            ),
            (
                true,
                Options {
                    client_ack_hold: second,
                    ..base()
                },
            ),
            (
                false,
                Options {
                    client_ack_hold: longer,
                    ..base()
                },
            ),
            (
                true,
                Options {
                    server_ack_hold: second,
                    ..base()
                },
            ),
            (
                false,
                Options {
                    server_ack_hold: longer,
                    ..base()
                },
            ),
            (true, Options { mtu: 576, ..base() }),
            (false, Options { mtu: 575, ..base() }),
            (
                true,
                Options {
                    mtu: 9216,
                    ..base()
                },
            ),
            (
                false,
                Options {
                    mtu: 9217,
                    ..base()
                },
            ),
            (
                true,
                Options {
                    bandwidth: rate(1),
                    ..base()
                },
            ),
            (
                false,
                Options {
                    bandwidth: rate(0),
                    ..base()
                },
            ),
        ] {
            assert_eq!(options.check().is_ok(), good, "{options:?}");
        }
    }
}
