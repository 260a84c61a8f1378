//! Options of a link: delay, jitter, loss, rate, queue, acknowledgements, packet size.

use std::io;
use std::path::PathBuf;
use std::time::Duration;

use crate::quantity::{Loss, Rate};

/// Options of a link; the default has a round trip of 50 ms and delays no acknowledgement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// The delay of each packet, each way; at most 10 s.
    pub one_way: Duration,
    /// Deviation of a packet's delay, uniformly distributed in both directions; at most the delay.
    pub jitter: Duration,
    /// Whether jitter lets packets overtake each other.
    pub reorder: bool,
    /// Share of packets lost, each way.
    pub loss: Loss,
    /// Seed of loss and jitter.
    pub seed: u64,
    /// Time for which pure acknowledgements of the client are held back unless they can leave with data, at most 1 s;
    /// `None` sends each at once. A server that waits for one before it sends the rest of a response is late by
    /// this and a round trip.
    pub client_ack_hold: Option<Duration>,
    /// Delay of the server's acknowledgements: for clients that wait.
    pub server_ack_hold: Option<Duration>,
    /// The rate from the client to the server; `None` is unlimited.
    pub up: Option<Rate>,
    /// The rate from the server to the client.
    pub down: Option<Rate>,
    /// Maximum number of packets that wait before a rate while one is being sent; further ones are dropped. At most 10,000.
    pub queue_packets: u32,
    /// The largest packet, bytes with IP header: 576 to 9216.
    pub mtu: u16,
    /// File to which packets are written as they leave the link, for tcpdump and Wireshark.
    pub pcap: Option<PathBuf>,
    /// Ports of 127.0.0.0/8, first and last, at which the client's connections go to the server over the link; its
    /// other ports are its own. At most 64 pairs.
    pub localhost: Vec<(u16, u16)>,
    /// Whether each packet is recorded, for [`Link::take_trace`](crate::Link::take_trace).
    pub trace: bool,
    /// Whether programs in the server's namespace run in real time, if permitted, so that their own waits are measured
    /// and not waits for a CPU.
    pub realtime_server: bool,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            one_way: Duration::from_millis(25),
            jitter: Duration::ZERO,
            reorder: false,
            loss: Loss::default(),
            seed: 0,
            client_ack_hold: None,
            server_ack_hold: None,
            up: None,
            down: None,
            queue_packets: QUEUE_DEFAULT,
            mtu: 1500,
            pcap: None,
            localhost: Vec::new(),
            trace: false,
            realtime_server: true,
        }
    }
}

impl Options {
    /// Refuses options outside their limits.
    pub(crate) fn check(&self) -> io::Result<()> {
        let holds = [self.client_ack_hold, self.server_ack_hold];
        let wrong = if self.one_way > ONE_WAY_MAX {
            "a one-way delay is at most 10 s"
        } else if self.jitter > self.one_way {
            "jitter is at most the delay"
        } else if holds.iter().flatten().any(|hold| *hold > ACK_HOLD_MAX) {
            "acknowledgements are held for at most 1 s"
        } else if !(MTU_MIN..=MTU_MAX).contains(&self.mtu) {
            "an MTU is between 576 and 9216"
        } else if self.queue_packets > QUEUE_MAX {
            "a queue has at most 10000 packets"
        } else if self.localhost.len() > LOCALHOST_MAX {
            "at most 64 pairs of ports are the server's"
        } else {
            return Ok(());
        };
        Err(io::Error::new(io::ErrorKind::InvalidInput, wrong))
    }
}

/// The longest delay each way; more would be a mistake in units.
pub(crate) const ONE_WAY_MAX: Duration = Duration::from_secs(10);
/// The longest that an acknowledgement is held; RFC 1122 section 4.2.3.2 has receivers delay it less than 500 ms,
/// and some delay it so long.
pub(crate) const ACK_HOLD_MAX: Duration = Duration::from_secs(1);
/// Packet sizes: IPv4's least that every network takes is 576, and the forwarder's buffer has 9216.
pub(crate) const MTU_MIN: u16 = 576;
pub(crate) const MTU_MAX: u16 = 9216;
/// The most packets that may wait before a rate.
pub(crate) const QUEUE_MAX: u32 = 10_000;
/// Default length of the queue before a rate, in packets: 60 ms of full packets at 20 mbit.
pub(crate) const QUEUE_DEFAULT: u32 = 100;
/// The most pairs of ports of `localhost` that are the server's.
pub(crate) const LOCALHOST_MAX: usize = 64;
/// The ports of the client's `localhost` that are the server's in emulations of visitors. Linux assigns ports from
/// 32768 on to programs that request any; programs at one end use them among themselves.
pub const LOCALHOST_PORTS: (u16, u16) = (1, 32_767);

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns whether a link may have the default options with this change.
    fn allowed(change: impl FnOnce(&mut Options)) -> bool {
        let mut options = Options::default();
        change(&mut options);
        options.check().is_ok()
    }

    #[test]
    fn limits_are_exact() {
        const NANO: Duration = Duration::from_nanos(1);
        assert!(allowed(|_| ()));
        assert!(allowed(|options| options.one_way = ONE_WAY_MAX));
        assert!(!allowed(|options| options.one_way = ONE_WAY_MAX + NANO));
        assert!(allowed(|options| options.jitter = options.one_way));
        assert!(!allowed(|options| options.jitter = options.one_way + NANO));
        for hold in [
            |options: &mut Options, time| options.client_ack_hold = Some(time),
            |options: &mut Options, time| options.server_ack_hold = Some(time),
        ] {
            assert!(allowed(|options| hold(options, ACK_HOLD_MAX)));
            assert!(!allowed(|options| hold(options, ACK_HOLD_MAX + NANO)));
        }
        for (mtu, good) in [(575, false), (576, true), (9216, true), (9217, false)] {
            assert_eq!(allowed(|options| options.mtu = mtu), good, "{mtu}");
        }
        assert!(allowed(|options| options.queue_packets = QUEUE_MAX));
        assert!(!allowed(|options| options.queue_packets = QUEUE_MAX + 1));
        for (pairs, good) in [(LOCALHOST_MAX, true), (LOCALHOST_MAX + 1, false)] {
            assert_eq!(
                allowed(|options| options.localhost = vec![(1, 1); pairs]),
                good
            );
        }
    }
}
