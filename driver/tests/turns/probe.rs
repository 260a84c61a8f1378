//! Events of connections and exchanges for a module.

use std::cell::{Cell, RefCell};

use engines::http::probe::{Point, ProbeEvent};
use server_http::exchange::Exchange;
use server_http::variables;
use server_http::vars::Variable;

use super::site::{TestConnection, get, statuses};

thread_local! {
    static HEARD: RefCell<Vec<(ProbeEvent, u16)>> = const { RefCell::new(Vec::new()) };
    static CLOCK_US: Cell<u64> = const { Cell::new(0) };
}

/// A configuration that uses this variable enables the events.
pub(crate) const VARIABLES: &[Variable] = variables! {
    "heard": "nothing" => |_, _, _, _| true;
};
const WANTED: &str = "root /a/$heard;";

pub(crate) fn observe(event: &ProbeEvent, x: Option<&mut Exchange>) {
    let status = x.map_or(0, |x| x.reply.status);
    HEARD.with_borrow_mut(|heard| heard.push((*event, status)));
}

/// Advances the clock by a microsecond per call.
fn tick() -> u64 {
    CLOCK_US.set(CLOCK_US.get() + 1);
    CLOCK_US.get()
}

fn timed(mut talk: TestConnection) -> TestConnection {
    HEARD.take();
    CLOCK_US.take();
    talk.world.shared.env.clock_us = Some(tick);
    talk
}

fn points() -> Vec<Point> {
    HEARD.with_borrow(|heard| heard.iter().map(|(event, _)| event.point).collect())
}

const WHOLE: [Point; 4] = [
    Point::Head,
    Point::Wait,
    Point::FirstByte { idle: None },
    Point::End,
];

#[test]
fn a_request_is_heard_of_from_its_head_to_its_end() {
    let mut talk = timed(TestConnection::new(WANTED));
    for number in 0..2 {
        talk.send(get("/status/404"));
        assert_eq!(points(), WHOLE, "request {number}");
        let heard = HEARD.take();
        let times: Vec<u64> = heard.iter().map(|(event, _)| event.at_us).collect();
        assert!(times.is_sorted() && times[0] > 0, "{times:?}");
        for (event, _) in &heard {
            assert_eq!((event.stream, event.head_us), (1, times[0]));
            assert_eq!(event.connection, heard[0].0.connection);
        }
        assert_eq!(heard[3].1, 404, "the exchange that ends");
    }
}

#[test]
fn the_first_byte_of_a_response_that_waits_comes_when_it_leaves() {
    let mut talk = timed(TestConnection::new(WANTED));
    talk.send(get("/wait/500"));
    assert_eq!(points(), WHOLE[..2]);
    talk.pass(500);
    assert_eq!(points(), WHOLE);
}

#[test]
fn pipelined_requests_share_the_time_of_their_read() {
    let mut talk = timed(TestConnection::new(WANTED));
    let got = talk.send(get("/text").repeat(2));
    assert_eq!(statuses(&got).len(), 2);
    let heads = HEARD.take();
    let heads: Vec<u64> = heads.iter().map(|(event, _)| event.head_us).collect();
    assert_eq!(heads, [heads[0]; 8]);
}

#[test]
fn without_a_subscriber_no_clock_is_read() {
    let mut talk = timed(TestConnection::new(""));
    let got = talk.send(get("/text"));
    assert_eq!(statuses(&got), ["200"]);
    assert_eq!((points(), CLOCK_US.get()), (Vec::new(), 0));
}
