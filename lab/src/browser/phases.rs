//! Phases of a resource, from the times that the network process has of its request.

use super::events::Timing;
use crate::page::Phases;

/// Begin, end and events of a request; seconds of one clock.
#[derive(Clone, Copy, Debug)]
pub(super) struct Course<'a> {
    /// When the page made the request.
    pub(super) start: f64,
    /// Time of the last byte, of the failure, or of the end of the view.
    pub(super) end: f64,
    /// Times of its response, if there was one.
    pub(super) timing: Option<&'a Timing>,
    /// When the network process got the request.
    pub(super) requested: Option<f64>,
    /// When the page saw the head of the response, for those without times of their own.
    pub(super) answered: Option<f64>,
    /// Whether it is from a cache.
    pub(super) from_cache: bool,
}

/// Returns the time of the first byte of a response, if there was one; seconds.
pub(super) fn first_byte(timing: &Timing) -> Option<f64> {
    // Older browsers have the end of the head alone.
    let starts = [timing.receive_headers_start, timing.receive_headers_end];
    let ms = starts.into_iter().find(|ms| *ms > 0.0)?;
    Some(timing.request_time + ms / 1000.0)
}

/// Returns the phases. Their sum is the time from start to end, and at least the time to the first byte.
///
/// Time between two phases counts as waiting for a turn, the first phase.
pub(super) fn phases(course: Course<'_>) -> Phases {
    let ms = |from: f64, to: f64| ((to - from) * 1000.0).max(0.0);
    let all = ms(course.start, course.end);
    let Some((timing, first_byte)) = course
        .timing
        .and_then(|timing| Some((timing, first_byte(timing)?)))
    else {
        return seen_by_the_page(course, all);
    };
    let receive = ms(first_byte, course.end);
    let all = all.max(ms(course.start, first_byte));
    if course.from_cache {
        return Phases {
            wait_ms: Some((all - receive).max(0.0)),
            receive_ms: Some(receive),
            ..Phases::default()
        };
    }
    let mut known = Known::of(timing);
    if known.sum() > all - receive + ROUNDING_MS {
        // The connection was begun before this request, so its phases belong to another one.
        (known.dns, known.connect, known.tls) = (None, None, None);
    }
    Phases {
        queued_ms: Some((all - receive - known.sum()).max(0.0)),
        dns_ms: known.dns,
        connect_ms: known.connect,
        tls_ms: known.tls,
        send_ms: known.send,
        wait_ms: known.wait,
        receive_ms: Some(receive),
    }
}

/// Phases of a request without times of its own: it waited for its turn, then for the server, until the page saw the head.
fn seen_by_the_page(course: Course<'_>, all: f64) -> Phases {
    let since = |at: f64| ((at - course.start) * 1000.0).clamp(0.0, all);
    let first = course.answered.map_or(all, since);
    let queued = course.requested.map_or(first, since).min(first);
    let has_waited = course.requested.is_some() || course.from_cache;
    let (queued, wait) = match (has_waited, course.from_cache) {
        (false, _) => (Some(first), None),
        (true, true) => (None, Some(first)),
        (true, false) => (Some(queued), Some(first - queued)),
    };
    Phases {
        queued_ms: queued,
        wait_ms: wait,
        receive_ms: course.answered.map(|_| all - first),
        ..Phases::default()
    }
}

/// Durations that the browser has, ms.
struct Known {
    dns: Option<f64>,
    connect: Option<f64>,
    tls: Option<f64>,
    send: Option<f64>,
    wait: Option<f64>,
}

impl Known {
    fn sum(&self) -> f64 {
        let all = [self.dns, self.connect, self.tls, self.send, self.wait];
        all.into_iter().flatten().sum()
    }

    fn of(timing: &Timing) -> Self {
        let span = |from: f64, to: f64| (from >= 0.0 && to >= from).then_some(to - from);
        let tls = span(timing.ssl_start, timing.ssl_end);
        // The browser's connect has TLS in it.
        let connected = if tls.is_some() {
            timing.ssl_start
        } else {
            timing.connect_end
        };
        let first_byte = [timing.receive_headers_start, timing.receive_headers_end];
        let first_byte = first_byte.into_iter().find(|ms| *ms > 0.0);
        let send = span(timing.send_start, timing.send_end);
        // The first byte may arrive before the end of sending is recorded.
        let send = send.zip(first_byte).map(|(send, first)| {
            let left = (first - timing.send_start).max(0.0);
            send.min(left)
        });
        Self {
            dns: span(timing.dns_start, timing.dns_end),
            connect: span(timing.connect_start, connected),
            tls,
            send,
            wait: first_byte.map(|first| (first - timing.send_end).max(0.0)),
        }
    }
}

/// Parts may be longer than the whole by this, because each is rounded.
const ROUNDING_MS: f64 = 0.01;

#[cfg(test)]
mod tests {
    use super::*;

    fn timing() -> Timing {
        Timing {
            request_time: 100.010,
            dns_start: 1.0,
            dns_end: 3.0,
            connect_start: 3.0,
            connect_end: 63.0,
            ssl_start: 23.0,
            ssl_end: 63.0,
            send_start: 64.0,
            send_end: 65.0,
            receive_headers_start: 90.0,
            receive_headers_end: 91.0,
        }
    }

    fn course(timing: Option<&Timing>) -> Course<'_> {
        Course {
            start: 100.0,
            end: 100.200,
            timing,
            requested: None,
            answered: None,
            from_cache: false,
        }
    }

    #[track_caller]
    fn assert_about(found: Phases, expected: [Option<f64>; 7]) {
        for (found, expected) in found.all().into_iter().zip(expected) {
            let (found, expected) = (found.unwrap_or(-1.0), expected.unwrap_or(-1.0));
            assert!((found - expected).abs() < 1e-6, "{found} {expected}");
        }
    }

    #[test]
    fn phases_are_apart_and_add_up() {
        let some = |values: [f64; 7]| values.map(Some);
        // Queued: 11 ms before the first, and 1 between connection and request.
        let expected = some([12.0, 2.0, 20.0, 40.0, 1.0, 25.0, 100.0]);
        let found = phases(course(Some(&timing())));
        assert_about(found, expected);
        assert!((found.total_ms() - 200.0).abs() < 1e-6);
    }

    #[test]
    fn request_on_an_open_connection_has_no_connection_phases() {
        let open = Timing {
            request_time: 100.010,
            send_start: 1.0,
            send_end: 2.0,
            receive_headers_end: 50.0,
            ..Timing::default()
        };
        let found = phases(course(Some(&open)));
        let expected = [
            Some(11.0),
            None,
            None,
            None,
            Some(1.0),
            Some(48.0),
            Some(140.0),
        ];
        assert_about(found, expected);
    }

    #[test]
    fn connection_that_was_begun_before_belongs_to_no_request() {
        let timing = timing();
        let mut late = course(Some(&timing));
        late.start = 100.050;
        let expected = [
            Some(24.0),
            None,
            None,
            None,
            Some(1.0),
            Some(25.0),
            Some(100.0),
        ];
        assert_about(phases(late), expected);
    }

    #[test]
    fn first_byte_before_the_end_of_sending_ends_it() {
        let early = Timing {
            request_time: 100.0,
            send_start: 1.0,
            send_end: 9.0,
            receive_headers_start: 5.0,
            ..Timing::default()
        };
        let found = phases(course(Some(&early)));
        let expected = [
            Some(1.0),
            None,
            None,
            None,
            Some(4.0),
            Some(0.0),
            Some(195.0),
        ];
        assert_about(found, expected);
    }

    #[test]
    fn request_without_response_waits_for_its_turn_and_for_the_server() {
        let none = [Some(200.0), None, None, None, None, None, None];
        assert_about(phases(course(None)), none);
        let mut requested = course(None);
        requested.requested = Some(100.050);
        let waited = [Some(50.0), None, None, None, None, Some(150.0), None];
        assert_about(phases(requested), waited);
        // A clock that is ahead, and invalid times.
        requested.requested = Some(101.0);
        let queued = [Some(200.0), None, None, None, None, Some(0.0), None];
        assert_about(phases(requested), queued);
    }

    #[test]
    fn response_without_times_is_when_the_page_saw_it() {
        let mut seen = course(None);
        (seen.requested, seen.answered) = (Some(100.050), Some(100.080));
        let expected = [Some(50.0), None, None, None, None, Some(30.0), Some(120.0)];
        assert_about(phases(seen), expected);
        seen.from_cache = true;
        let expected = [None, None, None, None, None, Some(80.0), Some(120.0)];
        assert_about(phases(seen), expected);
        // The page may see a response after its end if it came in one piece.
        (seen.from_cache, seen.answered) = (false, Some(101.0));
        let expected = [Some(50.0), None, None, None, None, Some(150.0), Some(0.0)];
        assert_about(phases(seen), expected);
    }

    #[test]
    fn cached_response_waits_for_the_cache() {
        let timing = timing();
        let mut cached = course(Some(&timing));
        cached.from_cache = true;
        let expected = [None, None, None, None, None, Some(100.0), Some(100.0)];
        assert_about(phases(cached), expected);
    }
}
