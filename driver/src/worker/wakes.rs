//! Turns of connections whose exchanges were woken: in rounds, since a turn may wake others.

use server_base::waker::{WakeKey, WakeQueue};

use super::slab::Key;

/// Takes what was woken and gives each connection one turn for all of its streams, again while there are wakes, up to
/// [`ROUNDS_MAX`] times: then sockets and timers have their turn.
pub fn run_woken(queue: &WakeQueue, mut turn: impl FnMut(Key, &[WakeKey])) {
    for _ in 0..ROUNDS_MAX {
        if queue.is_empty() {
            return;
        }
        let woken = queue.take();
        for keys in woken.chunk_by(|a, b| a.owner == b.owner) {
            turn(Key::from_token(keys[0].owner), keys);
        }
    }
}

/// Rounds in one turn of the loop.
pub const ROUNDS_MAX: usize = 16;

#[cfg(test)]
mod tests {
    use super::*;

    fn key(index: u32, stream: u32) -> WakeKey {
        let owner = Key { index, life: 1 }.token();
        WakeKey { owner, stream }
    }

    #[test]
    fn a_connection_has_one_turn_for_all_its_streams() {
        let queue = WakeQueue::default();
        for woken in [key(2, 3), key(1, 5), key(2, 1), key(2, 3)] {
            queue.push(woken);
        }
        let mut turns = Vec::new();
        run_woken(&queue, |key, keys| {
            let streams: Vec<u32> = keys.iter().map(|key| key.stream).collect();
            turns.push((key.index, streams));
        });
        assert_eq!(turns, [(1, vec![5]), (2, vec![1, 3])]);
    }

    #[test]
    fn those_who_wake_each_other_leave_the_loop_to_others_after_the_last_round() {
        for (wakes, turns, left) in [
            (ROUNDS_MAX, ROUNDS_MAX, false),
            (ROUNDS_MAX + 1, ROUNDS_MAX, true),
        ] {
            let queue = WakeQueue::default();
            queue.push(key(1, 0));
            let mut count = 0;
            run_woken(&queue, |_, keys| {
                count += 1;
                if count < wakes {
                    queue.push(keys[0]);
                }
            });
            assert_eq!((count, !queue.is_empty()), (turns, left));
        }
    }
}
