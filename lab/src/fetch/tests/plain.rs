//! Records of exchanges without TLS.

use std::io::Write;
use std::sync::{Mutex, mpsc};
use std::time::{Duration, Instant};

use sys::poll::{Events, Interest, Poller};

use super::server::{PATIENCE, dial, get, head, scripted, serve};
use crate::client::Protocol;
use crate::fetch::core::REQUESTS_BEFORE_OPEN;
use crate::fetch::{Acks, Connection, Core, Event, FailureCause, Response};

fn is_ordered(response: &Response) -> bool {
    let first_body = response.first_body.unwrap_or(response.head);
    0 < response.asked
        && response.asked <= response.sent
        && response.sent <= response.head
        && response.head <= first_body
        && first_body <= response.end
}

#[test]
fn responses_are_recorded_over_every_protocol() {
    for protocol in Protocol::ALL {
        let dial = dial(serve(protocol, None), &[protocol], None);
        let mut connection = Connection::open(&dial).expect("it listens");
        for path in ["/first", "/second"] {
            let response = connection.exchange(&get(&dial, path)).expect("a response");
            assert_eq!(response.status, 200);
            assert_eq!(response.body, path.as_bytes());
            assert_eq!(response.body_bytes, path.len() as u64);
            assert_eq!(response.field("x-A"), Some("b"));
            assert!(is_ordered(&response), "{response:?}");
            assert!(response.head_bytes > 0 && response.head_text_bytes > 0);
            let bytes: u64 = response.pieces.iter().map(|piece| piece.bytes).sum();
            assert_eq!(bytes, response.body_bytes);
            assert!(connection.is_open());
        }
        let record = connection.record();
        assert_eq!(record.protocol, Some(protocol));
        assert!(record.handshake.is_none() && record.tls_records.is_empty());
        let read: u64 = record.reads.iter().map(|read| read.bytes).sum();
        assert_eq!(read, record.received_bytes);
        assert!(record.sent_bytes > 0 && record.connect_ns() > 0);
        assert!(record.round_trip_ns() > 0 && record.min_rtt.is_some());
    }
}

#[test]
fn names_of_fields_are_kept_as_they_came() {
    let dial = dial(serve(Protocol::H1, None), &[Protocol::H1], None);
    let mut connection = Connection::open(&dial).expect("it listens");
    let response = connection.exchange(&get(&dial, "/")).expect("a response");
    let fields = [("Content-Length", "1"), ("X-A", "b")];
    assert_eq!(
        response.fields,
        fields.map(|(name, value)| (name.into(), value.into()))
    );
}

#[test]
fn requests_are_sent_at_once_where_there_are_streams_and_else_in_turn() {
    for protocol in Protocol::ALL {
        let dial = dial(serve(protocol, None), &[protocol], None);
        let mut connection = Connection::open(&dial).expect("it listens");
        let paths: Vec<String> = (0..150).map(|n| format!("/{n}")).collect();
        let requests: Vec<_> = paths.iter().map(|path| get(&dial, path)).collect();
        let responses = connection.exchange_all(&requests);
        assert_eq!(responses.len(), paths.len());
        let responses: Vec<Response> = responses
            .into_iter()
            .map(|response| response.expect("a response"))
            .collect();
        for (path, response) in paths.iter().zip(&responses) {
            assert_eq!(response.body, path.as_bytes());
            assert!(is_ordered(response), "{response:?}");
        }
        // Without streams, no request is sent before the previous response is complete.
        let in_turn = responses.windows(2).all(|two| two[0].end <= two[1].asked);
        assert_eq!(in_turn, !protocol.has_streams());
    }
}

/// Drives a connection until an event.
fn until(core: &mut Core, poller: &Poller, found: impl Fn(&Event) -> bool) -> Event {
    let (mut events, mut buffer) = (Events::with_capacity(1), vec![0; 4096]);
    let deadline = Instant::now() + PATIENCE;
    while Instant::now() < deadline {
        core.flush(&mut buffer);
        while let Some(event) = core.event() {
            if found(&event) {
                return event;
            }
        }
        poller.wait(&mut events, Some(100)).expect("epoll");
        for ready in events.iter() {
            core.ready(Some(ready), &mut buffer);
        }
    }
    panic!("it does not happen");
}

#[test]
fn parts_of_a_response_have_their_own_times() {
    let (go, wait) = mpsc::channel();
    let wait = Mutex::new(wait);
    let address = scripted(move |mut stream| {
        let wait = wait.lock().expect("one connection");
        head(&mut stream);
        for part in [
            "HTTP/1.1 103 Early Hints\r\nLink: </a.css>\r\n\r\n",
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n",
            "3\r\nabc\r\n",
            "2\r\nde\r\n",
            "0\r\nX-T: u\r\n\r\n",
        ] {
            stream.write_all(part.as_bytes()).expect("a client");
            if wait.recv().is_err() {
                return;
            }
        }
    });
    let dial = dial(address, &[Protocol::H1], None);
    let mut core = Core::dial(&dial).expect("it listens");
    let poller = Poller::new().expect("epoll");
    let socket = core.socket().expect("it is open");
    poller.add(socket, 0, Interest::Connection).expect("epoll");
    core.request(7, &get(&dial, "/"));
    let mut bodies = Vec::new();
    // An interim response is no event; the record of reads shows it.
    while core.record().reads.is_empty() {
        let mut events = Events::with_capacity(1);
        poller.wait(&mut events, Some(1000)).expect("epoll");
        for ready in events.iter() {
            core.ready(Some(ready), &mut [0; 4096]);
        }
    }
    go.send(()).expect("the server waits");
    until(&mut core, &poller, |event| matches!(event, Event::Head(7)));
    assert!(
        core.response(7)
            .is_some_and(|response| response.body.is_empty())
    );
    for _ in 0..2 {
        go.send(()).expect("the server waits");
        until(&mut core, &poller, |event| matches!(event, Event::Data(7)));
        bodies.push(core.response(7).map(|response| response.body.clone()));
    }
    assert_eq!(bodies, [Some(b"abc".to_vec()), Some(b"abcde".to_vec())]);
    go.send(()).expect("the server waits");
    let done = until(&mut core, &poller, |event| matches!(event, Event::Done(..)));
    let Event::Done(7, Ok(response)) = done else {
        panic!("{done:?}");
    };
    // Neither the interim response nor the trailers are parts of it.
    assert_eq!(response.status, 200);
    let names: Vec<_> = response
        .fields
        .iter()
        .map(|(name, _)| name.as_str())
        .collect();
    assert_eq!(names, ["Transfer-Encoding"]);
    let times = [
        response.sent,
        core.record().reads[0].at,
        response.head,
        response.pieces[0].at,
        response.pieces[1].at,
        response.end,
    ];
    assert!(times.windows(2).all(|two| two[0] < two[1]), "{times:?}");
    assert_eq!(response.first_body, Some(response.pieces[0].at));
    assert_eq!(core.record().reads.len(), 5);
}

#[test]
fn end_of_a_kept_connection_is_noticed() {
    let address = scripted(|mut stream| {
        head(&mut stream);
        let _ = stream.write_all(b"HTTP/1.1 204 No Content\r\n\r\n");
    });
    let dial = dial(address, &[Protocol::H1], None);
    let mut connection = Connection::open(&dial).expect("it listens");
    let response = connection.exchange(&get(&dial, "/")).expect("a response");
    assert_eq!((response.status, response.first_body), (204, None));
    assert!(!connection.watch(PATIENCE));
    assert!(connection.record().closed.is_some());
    let failure = connection
        .exchange(&get(&dial, "/"))
        .expect_err("it is over");
    assert_eq!(failure.cause, FailureCause::Closed);
}

#[test]
fn server_that_closes_after_a_response_answers_no_other() {
    let address = scripted(|mut stream| {
        while !head(&mut stream).is_empty() {
            let answer = b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 1\r\n\r\nx";
            let _ = stream.write_all(answer);
        }
    });
    let dial = dial(address, &[Protocol::H1], None);
    let mut connection = Connection::open(&dial).expect("it listens");
    let results = connection.exchange_all(&[get(&dial, "/a"), get(&dial, "/b")]);
    assert!(results[0].is_ok());
    let failure = results[1].as_ref().expect_err("it takes no more");
    assert_eq!(failure.cause, FailureCause::Closed);
    assert!(!connection.is_open());
}

#[test]
fn requests_that_wait_fail_when_the_server_takes_no_more() {
    let address = scripted(|mut stream| {
        head(&mut stream);
        let answer = b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 1\r\n\r\nx";
        let _ = stream.write_all(answer);
        // The response announces the close, but the connection stays open.
        let _ = std::io::copy(&mut stream, &mut std::io::sink());
    });
    let dial = dial(address, &[Protocol::H1], None);
    let mut core = Core::dial(&dial).expect("it listens");
    let poller = Poller::new().expect("epoll");
    let socket = core.socket().expect("it is open");
    poller.add(socket, 0, Interest::Connection).expect("epoll");
    for token in [0, 1] {
        core.request(token, &get(&dial, "/"));
    }
    let done = |event: &Event| matches!(event, Event::Done(..));
    let first = until(&mut core, &poller, done);
    assert!(matches!(first, Event::Done(0, Ok(_))), "{first:?}");
    match until(&mut core, &poller, done) {
        Event::Done(1, Err(failure)) => assert_eq!(failure.cause, FailureCause::Refused),
        other => panic!("{other:?}"),
    }
}

#[test]
fn as_many_requests_as_there_is_room_for_wait_until_a_connection_is_open() {
    let address = scripted(|mut stream| while !head(&mut stream).is_empty() {});
    let dial = dial(address, &[Protocol::H1], None);
    let mut core = Core::dial(&dial).expect("it listens");
    // Nothing is read from the poller: it does not become open.
    for token in 0..REQUESTS_BEFORE_OPEN {
        assert_eq!(core.room(), REQUESTS_BEFORE_OPEN - token);
        core.request(token, &get(&dial, "/"));
    }
    assert_eq!(core.room(), 0);
    // A request beyond the free room is accepted and waits; it does not add room.
    core.request(REQUESTS_BEFORE_OPEN, &get(&dial, "/"));
    assert_eq!(core.room(), 0);
    assert_eq!(core.in_progress(), REQUESTS_BEFORE_OPEN + 1);
}

/// The longest and the shortest time between head and body of a server that writes them apart and leaves Nagle on.
fn stalls(acks: Acks) -> (Duration, Duration) {
    let address = scripted(|mut stream| {
        while !head(&mut stream).is_empty() {
            let _ = stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\n");
            let _ = stream.write_all(b"x");
        }
    });
    let mut dial = dial(address, &[Protocol::H1], None);
    dial.acks = acks;
    let mut connection = Connection::open(&dial).expect("it listens");
    let waits = (0..20).map(|_| {
        let response = connection.exchange(&get(&dial, "/")).expect("a response");
        response.first_body.expect("a body") - response.head
    });
    let waits: Vec<u64> = waits.collect();
    let longest = waits.iter().copied().max().unwrap_or_default();
    let shortest = waits.iter().copied().min().unwrap_or_default();
    (
        Duration::from_nanos(longest),
        Duration::from_nanos(shortest),
    )
}

#[test]
fn acknowledgements_are_held_or_sent_at_once_as_asked() {
    // The kernel delays acknowledgements by 40 ms. A busy machine only makes waits longer, or hides single ones.
    let (longest, _) = stalls(Acks::Delayed);
    assert!(longest >= Duration::from_millis(30), "{longest:?}");
    let (_, shortest) = stalls(Acks::Quick);
    assert!(shortest < Duration::from_millis(20), "{shortest:?}");
}
