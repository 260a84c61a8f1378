//! One direction of the link: packets in order, each with the time at which it leaves.
//!
//! With a bandwidth a packet first waits until those before it have been sent, then takes the time of its own
//! bytes, then the delay. Time is an argument.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use crate::options::Bandwidth;
use crate::segment::Segment;

/// The most packets on their way; a full one drops what comes. It is far above what a fast sender has under way
/// with the largest windows.
const PACKETS_MAX: usize = 65_536;

/// A packet on its way.
#[derive(Debug)]
pub(crate) struct Moving {
    /// The packet.
    pub(crate) packet: Vec<u8>,
    /// What it says, if it is TCP.
    pub(crate) segment: Option<Segment>,
    /// When it was read from its device.
    pub(crate) came: Instant,
    /// When it is to be delivered.
    pub(crate) due: Instant,
    /// How long it may have waited in its device before it was read.
    pub(crate) unread: Duration,
}

/// One direction.
#[derive(Debug)]
pub(crate) struct Pipe {
    delay: Duration,
    bandwidth: Option<Bandwidth>,
    /// When all that came so far has been sent.
    sent: Option<Instant>,
    queue: VecDeque<Moving>,
}

impl Pipe {
    pub(crate) fn new(delay: Duration, bandwidth: Option<Bandwidth>) -> Self {
        Self {
            delay,
            bandwidth,
            sent: None,
            queue: VecDeque::new(),
        }
    }

    /// Takes a packet that enters at `moving.due`; gives it back where there is no room for it.
    pub(crate) fn push(&mut self, mut moving: Moving) -> Result<(), Moving> {
        if self.queue.len() >= PACKETS_MAX {
            return Err(moving);
        }
        let entered = moving.due;
        let left = match self.bandwidth {
            None => entered,
            Some(bandwidth) => match self.send(bandwidth, entered, moving.packet.len()) {
                Some(left) => left,
                None => return Err(moving),
            },
        };
        let before = self.queue.back().map(|moving| moving.due);
        // Nothing overtakes: an acknowledgement that was held enters at its own time, which may be a little
        // before that of the packet read last.
        let due = left + self.delay;
        moving.due = before.map_or(due, |before| due.max(before));
        self.queue.push_back(moving);
        Ok(())
    }

    /// The packet that is due, if there is one.
    pub(crate) fn pop(&mut self, now: Instant) -> Option<Moving> {
        self.queue.pop_front_if(|moving| moving.due <= now)
    }

    /// When a packet is due next.
    pub(crate) fn next(&self) -> Option<Instant> {
        self.queue.front().map(|moving| moving.due)
    }

    /// When the last byte of a packet has been sent; nothing when too much waits before it.
    fn send(&mut self, bandwidth: Bandwidth, entered: Instant, bytes: usize) -> Option<Instant> {
        let rate = u128::from(bandwidth.bytes_per_second);
        let start = self.sent.map_or(entered, |sent| sent.max(entered));
        let waiting = (start - entered).as_nanos() * rate / 1_000_000_000;
        if waiting > u128::from(bandwidth.queue_bytes) {
            return None;
        }
        let nanos = u64::try_from(bytes as u128 * 1_000_000_000 / rate).ok()?;
        let left = start + Duration::from_nanos(nanos);
        self.sent = Some(left);
        Some(left)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn packet(bytes: usize, enters: Instant) -> Moving {
        Moving {
            packet: vec![0; bytes],
            segment: None,
            came: enters,
            due: enters,
            unread: Duration::ZERO,
        }
    }

    const MS: Duration = Duration::from_millis(1);

    #[test]
    fn packets_leave_in_order_after_the_delay() {
        let start = Instant::now();
        let mut pipe = Pipe::new(25 * MS, None);
        pipe.push(packet(2, start + MS)).expect("room");
        pipe.push(packet(1, start)).expect("room");
        assert_eq!(pipe.next(), Some(start + 26 * MS));
        assert!(
            pipe.pop(start + 26 * MS - Duration::from_nanos(1))
                .is_none()
        );
        let lengths = [(); 2].map(|()| pipe.pop(start + 26 * MS).map(|moving| moving.packet.len()));
        assert_eq!(lengths, [Some(2), Some(1)]);
    }

    #[test]
    fn bandwidth_spaces_packets_and_its_queue_ends() {
        let start = Instant::now();
        let bandwidth = Bandwidth {
            bytes_per_second: 1_000_000,
            queue_bytes: 2000,
        };
        let mut pipe = Pipe::new(10 * MS, Some(bandwidth));
        for _ in 0..3 {
            pipe.push(packet(1000, start)).expect("room");
        }
        // 3000 bytes would wait before the fourth.
        assert!(pipe.push(packet(1, start)).is_err());
        let dues: Vec<_> = pipe.queue.iter().map(|moving| moving.due - start).collect();
        assert_eq!(dues, [11 * MS, 12 * MS, 13 * MS]);
        pipe.push(packet(1000, start + MS))
            .expect("2000 bytes wait");
        pipe.push(packet(1000, start + 20 * MS))
            .expect("idle again");
        assert_eq!(
            pipe.queue.back().map(|moving| moving.due),
            Some(start + 31 * MS)
        );
    }

    #[test]
    fn packets_under_way_are_limited() {
        let start = Instant::now();
        let mut pipe = Pipe::new(MS, None);
        for _ in 0..PACKETS_MAX {
            pipe.push(packet(0, start)).expect("room");
        }
        assert!(pipe.push(packet(0, start)).is_err());
    }
}
