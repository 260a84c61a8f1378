//! Requests that wait for a number of milliseconds (`?wait=`): by a timer, or until a [`Waker`] or [`RemoteWaker`]
//! wakes them. Wakes also come before the wait, twice, or long after the request.
//!
//! The runner calls [`wake_due`] before each turn of the loop.

use std::cell::RefCell;
use std::collections::HashMap;

use server_base::waker::{RemoteWaker, Waker};
use server_http::exchange::{Ctx, Exchange, State, Wait};
use server_http::module::Step;

#[derive(Default)]
struct Waits {
    /// End of each exchange's wait, by connection and request.
    until_ms: HashMap<(u64, u64), u64>,
    /// Wakers with the times of their wakes.
    scheduled: Vec<(u64, ScheduledWake)>,
}

enum ScheduledWake {
    Here(Waker),
    Elsewhere(RemoteWaker),
}

impl ScheduledWake {
    fn wake(&self) {
        match self {
            Self::Here(waker) => waker.wake(),
            Self::Elsewhere(waker) => waker.wake(),
        }
    }
}

thread_local! {
    static WAITS: RefCell<Waits> = RefCell::default();
}

/// Forgets the waits of the previous run.
pub(crate) fn forget_waits() {
    WAITS.take();
}

/// Calls the wakers that are due.
pub(crate) fn wake_due(now_ms: u64) {
    WAITS.with_borrow_mut(|waits| {
        let due = waits
            .scheduled
            .extract_if(.., |(at_ms, _)| *at_ms <= now_ms);
        due.for_each(|(_, scheduled)| scheduled.wake());
    });
}

/// Returns the time of the next wake.
pub(crate) fn next_wake() -> Option<u64> {
    WAITS.with_borrow(|waits| waits.scheduled.iter().map(|(at_ms, _)| *at_ms).min())
}

/// Makes a request with `?wait=` wait, even if it is resumed early.
pub(crate) fn wait(x: &mut Exchange, cx: &mut Ctx<'_>) -> Step {
    let Some(ms) = x
        .target
        .args
        .strip_prefix(b"wait=")
        .and_then(|n| std::str::from_utf8(n).ok()?.parse::<u64>().ok())
    else {
        return Step::Next;
    };
    let now_ms = cx.clock.mono_ms;
    let key = (x.client.connection, x.client.requests);
    let known = WAITS.with_borrow(|waits| waits.until_ms.get(&key).copied());
    let until_ms = known.unwrap_or(now_ms + ms);
    if until_ms <= now_ms {
        return Step::Next;
    }
    let way = (key.0 + key.1) % WAYS;
    if known.is_none() {
        begin(x, cx, key, until_ms, way);
    }
    x.progress.state = State::Waiting(match way {
        FOR_THE_TIME => Wait::until(until_ms),
        WOKEN_BEFORE => Wait::woken_or_until(until_ms),
        _ => Wait::woken(),
    });
    Step::Wait
}

fn begin(x: &mut Exchange, cx: &Ctx<'_>, key: (u64, u64), until_ms: u64, way: u64) {
    let mut scheduled = Vec::new();
    match way {
        FOR_THE_TIME => {}
        WOKEN_BEFORE => x.waker(cx).wake(),
        ELSEWHERE => scheduled.push((until_ms, ScheduledWake::Elsewhere(x.waker(cx).remote()))),
        _ => {
            // Too early, on time, twice, and during or after the response.
            let ms = until_ms - cx.clock.mono_ms;
            for at_ms in [until_ms - ms / 2, until_ms, until_ms, until_ms + ms] {
                scheduled.push((at_ms, ScheduledWake::Here(x.waker(cx))));
            }
        }
    }
    WAITS.with_borrow_mut(|waits| {
        waits.until_ms.insert(key, until_ms);
        waits.scheduled.extend(scheduled);
    });
}

const FOR_THE_TIME: u64 = 0;
const WOKEN_BEFORE: u64 = 1;
const ELSEWHERE: u64 = 2;
/// With the last way, it is woken repeatedly.
const WAYS: u64 = 4;
