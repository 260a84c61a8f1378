//! One direction of the link: packets, each with the time at which it leaves.
//!
//! A packet may be lost. With a rate, it waits for earlier packets and takes the time of its own bits; then it is
//! delayed. The rate has a clock of its own: the time at which the last bit of each packet leaves. It is ahead of the
//! real clock by the waiting packets, and saves nothing up while nothing is sent. Time is an argument.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use crate::options::Options;
use crate::packet_rng::PacketRng;
use crate::quantity::{Loss, Rate};
use crate::segment::{Direction, Segment, Verdict};

/// A packet in transit.
#[derive(Debug)]
pub(crate) struct Moving {
    /// The packet.
    pub(crate) packet: Vec<u8>,
    /// Its TCP header, if it is TCP and packets are traced.
    pub(crate) segment: Option<Segment>,
    /// When it was read from its device.
    pub(crate) came: Instant,
    /// When it must be delivered.
    pub(crate) due: Instant,
    /// Maximum time that it may have waited in its device before it was read.
    pub(crate) unread: Duration,
}

/// One direction.
#[derive(Debug)]
pub(crate) struct Pipe {
    delay: Duration,
    jitter: Duration,
    reorder: bool,
    loss: Loss,
    packet_rng: PacketRng,
    /// Number of packets received.
    number: u64,
    shaper: Option<Shaper>,
    queue: VecDeque<Moving>,
}

impl Pipe {
    pub(crate) fn new(direction: Direction, options: &Options) -> Self {
        let rate = match direction {
            Direction::ToServer => options.up,
            Direction::ToClient => options.down,
        };
        Self {
            delay: options.one_way,
            jitter: options.jitter,
            reorder: options.reorder,
            loss: options.loss,
            packet_rng: PacketRng::new(options.seed, direction),
            number: 0,
            shaper: rate.map(|rate| Shaper::new(rate, options.queue_packets as usize)),
            queue: VecDeque::new(),
        }
    }

    /// Takes a packet that enters at `moving.due`; returns it with its outcome if it is not forwarded.
    pub(crate) fn push(&mut self, mut moving: Moving) -> Result<(), (Moving, Verdict)> {
        let number = self.number;
        self.number += 1;
        if self.packet_rng.loses(number, self.loss) {
            return Err((moving, Verdict::Lost));
        }
        if self.queue.len() >= PACKETS_MAX {
            return Err((moving, Verdict::Overflowed));
        }
        let left = match &mut self.shaper {
            None => moving.due,
            Some(shaper) => match shaper.send(moving.due, moving.packet.len()) {
                Some(left) => left,
                None => return Err((moving, Verdict::Overflowed)),
            },
        };
        let wavers = self.packet_rng.wavers(number, self.jitter);
        moving.due = left + self.delay.saturating_sub(self.jitter) + wavers;
        if self.reorder {
            let place = self.queue.partition_point(|other| other.due <= moving.due);
            self.queue.insert(place, moving);
            return Ok(());
        }
        // Nothing overtakes: neither by jitter, nor an acknowledgement that was held, which enters at its own time,
        // a little before that of the packet read last.
        if let Some(before) = self.queue.back() {
            moving.due = moving.due.max(before.due);
        }
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
}

/// A rate and the packets that wait before it.
#[derive(Debug)]
struct Shaper {
    rate: Rate,
    queue_packets: usize,
    /// When all packets so far have been sent, and the remainder of the last one in units of a nanosecond divided by
    /// the rate, so that nothing is lost by rounding.
    sent: Option<(Instant, u128)>,
    /// When each packet that waits or is being sent will have been sent.
    ends: VecDeque<Instant>,
}

impl Shaper {
    fn new(rate: Rate, queue_packets: usize) -> Self {
        Self {
            rate,
            queue_packets,
            sent: None,
            ends: VecDeque::new(),
        }
    }

    /// When the last bit of a packet has been sent; nothing when too many wait before it.
    fn send(&mut self, entered: Instant, bytes: usize) -> Option<Instant> {
        while self.ends.front().is_some_and(|end| *end <= entered) {
            self.ends.pop_front();
        }
        if self.ends.len() > self.queue_packets {
            return None;
        }
        let idle = (entered, 0);
        let (start, rest) = self
            .sent
            .filter(|(sent, _)| *sent > entered)
            .unwrap_or(idle);
        let parts = bytes as u128 * 8 * NANOS + rest;
        let rate = u128::from(self.rate.bits());
        let nanos = u64::try_from(parts / rate).ok()?;
        let left = start + Duration::from_nanos(nanos);
        self.sent = Some((left, parts % rate));
        self.ends.push_back(left);
        Some(left)
    }
}

/// Limit of packets on their way; further packets are dropped. It is far above the packets in progress of a fast sender
/// with the largest windows.
const PACKETS_MAX: usize = 65_536;
const NANOS: u128 = 1_000_000_000;

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

    fn pipe(delay: Duration, change: impl FnOnce(&mut Options)) -> Pipe {
        let mut options = Options {
            one_way: delay,
            ..Options::default()
        };
        change(&mut options);
        Pipe::new(Direction::ToServer, &options)
    }

    /// Pushes a packet that must be accepted.
    fn push(pipe: &mut Pipe, bytes: usize, enters: Instant) {
        let pushed = pipe.push(packet(bytes, enters));
        assert!(pushed.is_ok(), "{pushed:?}");
    }

    fn refused(pipe: &mut Pipe, bytes: usize, enters: Instant) -> Option<Verdict> {
        let pushed = pipe.push(packet(bytes, enters));
        pushed.err().map(|(_, verdict)| verdict)
    }

    #[test]
    fn packets_leave_in_order_after_the_delay() {
        let start = Instant::now();
        let mut pipe = pipe(25 * MS, |_| ());
        push(&mut pipe, 2, start + MS);
        push(&mut pipe, 1, start);
        assert_eq!(pipe.next(), Some(start + 26 * MS));
        let before = start + 26 * MS - Duration::from_nanos(1);
        assert!(pipe.pop(before).is_none());
        let lengths = [(); 2].map(|()| pipe.pop(start + 26 * MS).map(|moving| moving.packet.len()));
        assert_eq!(lengths, [Some(2), Some(1)]);
    }

    #[test]
    fn rate_spaces_packets_and_its_queue_ends() {
        let start = Instant::now();
        let mut pipe = pipe(10 * MS, |options| {
            options.up = Rate::from_bits(8_000_000);
            options.down = Rate::from_bits(1000);
            options.queue_packets = 2;
        });
        for _ in 0..3 {
            push(&mut pipe, 1000, start);
        }
        // One packet is being sent, two wait.
        assert_eq!(refused(&mut pipe, 1, start), Some(Verdict::Overflowed));
        let dues: Vec<_> = pipe.queue.iter().map(|moving| moving.due - start).collect();
        assert_eq!(dues, [11 * MS, 12 * MS, 13 * MS]);
        push(&mut pipe, 1000, start + MS);
        // Idle again; nothing was saved up.
        push(&mut pipe, 1000, start + 20 * MS);
        let last = pipe.queue.back().map(|moving| moving.due);
        assert_eq!(last, Some(start + 31 * MS));
    }

    #[test]
    fn rate_is_exact_over_many_packets() {
        let start = Instant::now();
        // A packet of 40 bytes takes 3.2 ns.
        let mut shaper = Shaper::new(Rate::GREATEST, usize::MAX - 1);
        let mut left = None;
        for _ in 0..1000 {
            left = shaper.send(start, 40);
        }
        assert_eq!(left, Some(start + Duration::from_nanos(3200)));
    }

    #[test]
    fn lost_packets_take_no_part_of_the_rate() {
        let start = Instant::now();
        let mut pipe = pipe(MS, |options| {
            options.up = Some(Rate::LEAST);
            options.loss = "100%".parse().expect("a loss");
        });
        for _ in 0..1000 {
            assert_eq!(refused(&mut pipe, 1500, start), Some(Verdict::Lost));
        }
        assert_eq!(pipe.next(), None);
    }

    #[test]
    fn jitter_keeps_the_order_unless_asked() {
        let start = Instant::now();
        for reorder in [false, true] {
            let mut pipe = pipe(10 * MS, |options| {
                options.jitter = 2 * MS;
                options.reorder = reorder;
            });
            for n in 0..1000 {
                push(&mut pipe, n, start + MS / 10 * (n as u32));
            }
            let leaves: Vec<(Duration, usize)> = std::iter::from_fn(|| pipe.pop(start + 999 * MS))
                .map(|moving| (moving.due - moving.came, moving.packet.len()))
                .collect();
            let numbers: Vec<usize> = leaves.iter().map(|(_, n)| *n).collect();
            assert_eq!(numbers.is_sorted(), !reorder);
            let in_reach = |(took, _): &(Duration, usize)| (8 * MS..=12 * MS).contains(took);
            assert!(leaves.iter().all(in_reach), "{leaves:?}");
            let mean = leaves.iter().map(|(took, _)| *took).sum::<Duration>() / 1000;
            // Packets that may not overtake wait for those before them.
            assert_eq!(mean < 10 * MS + MS / 10, reorder, "{mean:?}");
        }
    }

    #[test]
    fn packets_under_way_are_limited() {
        let start = Instant::now();
        let mut pipe = pipe(MS, |_| ());
        for _ in 0..PACKETS_MAX {
            push(&mut pipe, 0, start);
        }
        assert_eq!(refused(&mut pipe, 0, start), Some(Verdict::Overflowed));
    }
}
