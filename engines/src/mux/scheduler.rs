//! Scheduler of streams: by urgency, then sequentially or in turns.
//!
//! Streams that could send wait in a queue for each urgency. One that shares (`incremental`) moves to the end of
//! its queue after each frame. One that does not share stays in front until it is done; the earliest opened comes
//! first. A number in a queue may be out of date; the caller skips those.
//!
//! Source: RFC 9218 section 10.

use std::collections::VecDeque;

/// Urgency of a stream, and whether it shares.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Priority {
    /// 0 is the most urgent, 7 the least.
    pub urgency: u8,
    /// Whether pieces of it are of use, so that streams of the same urgency take turns.
    pub incremental: bool,
}

impl Default for Priority {
    /// RFC 9218 section 4.
    fn default() -> Self {
        Self {
            urgency: 3,
            incremental: false,
        }
    }
}

impl Priority {
    /// Parses the value of a `Priority` field. Missing parameters keep their defaults; unreadable ones are ignored.
    #[must_use]
    pub fn parse(value: &[u8]) -> Self {
        let mut priority = Self::default();
        for item in value.split(|byte| *byte == b',') {
            let bare = item.split(|byte| *byte == b';').next().unwrap_or(item);
            match bare.trim_ascii() {
                [b'u', b'=', digit @ b'0'..=b'7'] => priority.urgency = digit - b'0',
                b"i" | b"i=?1" => priority.incremental = true,
                b"i=?0" => priority.incremental = false,
                _ => {}
            }
        }
        priority
    }
}

/// The queues.
#[derive(Debug, Default)]
pub struct Scheduler {
    queues: [VecDeque<u32>; URGENCIES],
}

impl Scheduler {
    /// Adds a stream that could send.
    #[inline]
    pub fn push(&mut self, id: u32, priority: Priority) {
        let queue = self.queue(priority);
        let last = priority.incremental || queue.back().is_none_or(|last| *last < id);
        let at = if last {
            queue.len()
        } else {
            queue
                .iter()
                .position(|other| *other > id)
                .unwrap_or(queue.len())
        };
        queue.insert(at, id);
    }

    /// Adds a stream that has sent and could send more.
    #[inline]
    pub fn push_again(&mut self, id: u32, priority: Priority) {
        if priority.incremental {
            self.queue(priority).push_back(id);
        } else {
            self.queue(priority).push_front(id);
        }
    }

    /// Removes and returns the next stream to serve.
    #[inline]
    pub fn pop(&mut self) -> Option<u32> {
        self.queues.iter_mut().find_map(VecDeque::pop_front)
    }

    /// Forgets one stream, which was added with this priority.
    pub fn remove(&mut self, id: u32, priority: Priority) {
        self.queue(priority).retain(|other| *other != id);
    }

    /// Whether a stream waits, for tests and fuzzing.
    #[must_use]
    pub fn contains(&self, id: u32) -> bool {
        self.queues.iter().any(|queue| queue.contains(&id))
    }

    /// Removes all streams.
    pub fn clear(&mut self) {
        self.queues.iter_mut().for_each(VecDeque::clear);
    }

    #[inline]
    fn queue(&mut self, priority: Priority) -> &mut VecDeque<u32> {
        &mut self.queues[usize::from(priority.urgency).min(URGENCIES - 1)]
    }
}

const URGENCIES: usize = 8;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn priority_is_read_as_far_as_it_can_be() {
        let read = |text: &str| {
            let priority = Priority::parse(text.as_bytes());
            (priority.urgency, priority.incremental)
        };
        assert_eq!(read(""), (3, false));
        assert_eq!(read("u=5, i"), (5, true));
        assert_eq!(read("i=?1,u=0"), (0, true));
        assert_eq!(read("u=8, i=1, x"), (3, false));
        assert_eq!(read("u=1, u=2"), (2, false));
        assert_eq!(read("u=1;x=y, i;z"), (1, true));
    }

    #[test]
    fn urgent_streams_first_then_turns_or_one_after_the_other() {
        let mut scheduler = Scheduler::default();
        let at = |urgency, incremental| Priority {
            urgency,
            incremental,
        };
        scheduler.push(1, at(3, true));
        scheduler.push(3, at(3, true));
        scheduler.push(5, at(1, false));
        scheduler.push(7, at(1, false));
        let mut order = Vec::new();
        for _ in 0..2 {
            let id = scheduler.pop().expect("four wait");
            order.push(id);
            scheduler.push_again(id, at(1, false));
        }
        order.extend([scheduler.pop(), scheduler.pop()].map(|id| id.expect("four wait")));
        for _ in 0..3 {
            let id = scheduler.pop().expect("two wait");
            order.push(id);
            scheduler.push_again(id, at(3, true));
        }
        assert_eq!(order, [5, 5, 5, 7, 1, 3, 1]);
    }

    #[test]
    fn stream_that_comes_back_stands_where_its_number_says() {
        let mut scheduler = Scheduler::default();
        let plain = Priority::default();
        for id in [3, 9, 5, 1] {
            scheduler.push(id, plain);
        }
        scheduler.remove(5, plain);
        assert!(scheduler.contains(9) && !scheduler.contains(5));
        let order: Vec<_> = std::iter::from_fn(|| scheduler.pop()).collect();
        assert_eq!(order, [1, 3, 9]);
    }
}
