//! Turns of woken connections: exchanges wake their clients, and mailboxes wake connections to servers.

use server_base::waker::{WakeKey, WakeQueue};

/// Takes the wakes and runs one turn of each connection for all of its streams. Turns are in the order of tokens:
/// clients come first. A turn may wake others, whose turns are in the next round.
pub fn run_woken(queue: &WakeQueue, mut turn: impl FnMut(u64, &[WakeKey])) {
    if queue.is_empty() {
        return;
    }
    let woken = queue.take();
    for keys in woken.chunk_by(|a, b| a.owner == b.owner) {
        turn(keys[0].owner, keys);
    }
    queue.recycle(woken);
}

/// Rounds in one turn of the loop: then sockets and timers have their turn.
pub const ROUNDS_MAX: usize = 16;

#[cfg(test)]
mod tests {
    use super::*;

    fn key(owner: u64, stream: u32) -> WakeKey {
        WakeKey { owner, stream }
    }

    #[test]
    fn a_connection_has_one_turn_for_all_its_streams() {
        let queue = WakeQueue::default();
        for woken in [key(2, 3), key(1, 5), key(2, 1), key(2, 3)] {
            queue.push(woken);
        }
        let mut turns = Vec::new();
        run_woken(&queue, |owner, keys| {
            let streams: Vec<u32> = keys.iter().map(|key| key.stream).collect();
            turns.push((owner, streams));
            queue.push(key(1, 7));
        });
        assert_eq!(turns, [(1, vec![5]), (2, vec![1, 3])]);
        assert_eq!(queue.take(), [key(1, 7)], "it waits for the next round");
    }
}
