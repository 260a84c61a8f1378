//! Responses to several clients that were read in one turn: how many are made before the first one is written.

use std::cell::RefCell;
use std::net::{Ipv4Addr, SocketAddr};
use std::rc::Rc;

use driver::worker::event_loop::WRITTEN_TOGETHER;
use server_http::exchange::Peer;
use sim::{Faults, Random, Wire};

use super::site::{TestConnection, get, log_entries, statuses};

/// Sends each request on its own connection, all in one turn. Returns the number of requests begun when each response
/// was written, in order of writing.
fn begun_at_each_end(requests: &[String]) -> Vec<usize> {
    let mut talk = TestConnection::new("");
    let wires: Vec<Rc<RefCell<Wire>>> = (0..requests.len())
        .map(|n| {
            let (hands, dice) = (Rc::clone(&talk.world.hands), Random::new(3));
            let wire = Wire::new(hands, dice, Faults::default(), 1 << 20);
            let peer = Peer::Inet(SocketAddr::from((Ipv4Addr::LOCALHOST, 40_001 + n as u16)));
            let link = talk.world.accept(wire, 0, peer);
            Rc::clone(&talk.world.links[link].wire)
        })
        .collect();
    // Room in the sockets is reported once, before the turn that counts.
    talk.world.poll(1000);
    for (wire, request) in wires.iter().zip(requests) {
        wire.borrow_mut().push(request.as_bytes());
    }
    talk.world.poll(1000);
    for wire in &wires {
        let said = String::from_utf8_lossy(wire.borrow().sent()).into_owned();
        assert_eq!(statuses(&said), ["200"]);
    }
    log_entries().iter().map(|entry| entry.begun).collect()
}

fn together(count: usize) -> Vec<usize> {
    begun_at_each_end(&vec![get("/text"); count])
}

#[test]
fn responses_are_made_up_to_a_number_before_the_first_is_written() {
    assert_eq!(together(1), [1]);
    assert_eq!(together(2), [2, 2]);
    for count in [WRITTEN_TOGETHER - 1, WRITTEN_TOGETHER] {
        assert_eq!(together(count), vec![count; count]);
    }
    let mut more = vec![WRITTEN_TOGETHER; WRITTEN_TOGETHER];
    more.push(WRITTEN_TOGETHER + 1);
    assert_eq!(together(WRITTEN_TOGETHER + 1), more);
}

/// All use body stages: no response is made before the previous one is written.
#[test]
fn nothing_is_made_between_a_costly_response_and_its_write() {
    assert_eq!(begun_at_each_end(&vec![get("/staged/10"); 3]), [1, 2, 3]);
}

/// One of the two clients is gone when its request is answered.
#[test]
fn a_client_without_an_early_response_delays_no_other() {
    let mut talk = TestConnection::new("");
    let (hands, dice) = (Rc::clone(&talk.world.hands), Random::new(3));
    let wire = Wire::new(hands, dice, Faults::default(), 1 << 20);
    let peer = Peer::Inet(SocketAddr::from((Ipv4Addr::LOCALHOST, 40_001)));
    let link = talk.world.accept(wire, 0, peer);
    let other = Rc::clone(&talk.world.links[link].wire);
    // The pass that makes responses early finds the end within the awaited body.
    talk.push("POST /body HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhe");
    other.borrow_mut().push(get("/text").as_bytes());
    talk.world.poll(1000);
    talk.wire(|wire| wire.end());
    other.borrow_mut().push(get("/text").as_bytes());
    talk.world.poll(1000);
    let said = String::from_utf8_lossy(other.borrow().sent()).into_owned();
    assert_eq!(statuses(&said), ["200", "200"]);
    assert!(talk.is_closed());
    let mut statuses: Vec<u16> = log_entries().iter().map(|entry| entry.status).collect();
    statuses.sort_unstable();
    assert_eq!(statuses, [200, 200, 400]);
}
