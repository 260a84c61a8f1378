//! Tests of both sides of an attempt: events and wakes.

use super::*;

const EXCHANGE: WakeKey = WakeKey {
    owner: 1,
    stream: 5,
};
const CONNECTION: WakeKey = WakeKey {
    owner: 9,
    stream: 0,
};

/// Makes both sides with an attached connection, and an empty queue.
fn mailbox() -> (UpstreamRequest, UpstreamCall, WakeQueue) {
    let queue = WakeQueue::default();
    let (ours, theirs) = attempt(
        RequestSpec::default(),
        Waker::new(EXCHANGE, &queue),
        &queue,
        70,
    );
    theirs.attach(CONNECTION);
    assert!(queue.is_empty());
    (ours, theirs, queue)
}

fn data(bytes: u64) -> UpstreamEvent {
    UpstreamEvent::Data(Chunk::Owned(vec![b'x'; bytes as usize]))
}

fn is_data(event: Option<UpstreamEvent>, bytes: u64) -> bool {
    matches!(event, Some(UpstreamEvent::Data(chunk)) if chunk.len() == bytes)
}

#[test]
fn the_head_is_taken_once_and_can_be_put_back() {
    let (ours, theirs, _) = mailbox();
    assert_eq!(ours.facts().started_ms, 70);
    let head = theirs.take_head().expect("it is there");
    assert!(theirs.take_head().is_none());
    theirs.put_head_back(head);
    assert!(theirs.take_head().is_some());
}

#[test]
fn body_and_end_wake_the_connection_and_come_in_order() {
    let (ours, theirs, queue) = mailbox();
    assert!(!theirs.has_body());
    ours.send(Chunk::Static(b"abc"));
    assert_eq!(queue.take(), [CONNECTION]);
    ours.end(None);
    assert_eq!(queue.take(), [CONNECTION]);
    assert!(theirs.has_body());
    assert!(theirs.take_body_end().is_none(), "the body comes first");
    assert_eq!(theirs.take_body().map(|chunk| chunk.len()), Some(3));
    assert!(theirs.has_body() && theirs.take_body().is_none());
    assert_eq!(theirs.take_body_end(), Some(None));
    assert!(theirs.take_body_end().is_none() && !theirs.has_body());
    assert!(queue.is_empty(), "there was room all the time");
}

#[test]
fn the_exchange_is_woken_when_a_full_body_window_has_room() {
    let (ours, theirs, queue) = mailbox();
    assert_eq!(ours.room(), BODY_WINDOW_BYTES);
    ours.send(Chunk::Owned(vec![0; BODY_WINDOW_BYTES as usize - 1]));
    assert_eq!(ours.room(), 1);
    ours.send(Chunk::Static(b"ab"));
    assert_eq!(ours.room(), 0, "one byte too many is taken");
    queue.take();
    theirs.take_body();
    assert_eq!(queue.take(), [EXCHANGE]);
    assert_eq!(ours.room(), BODY_WINDOW_BYTES - 2);
    theirs.take_body();
    assert!(queue.is_empty());
}

#[test]
fn events_wake_the_exchange_and_fill_the_window() {
    let (ours, theirs, queue) = mailbox();
    assert_eq!(theirs.window(), WINDOW_BYTES);
    theirs.deliver(UpstreamEvent::Upgraded);
    theirs.deliver(data(10));
    assert_eq!(queue.take(), [EXCHANGE]);
    assert_eq!(theirs.window(), WINDOW_BYTES - 10);
    assert!(matches!(ours.next(), Some(UpstreamEvent::Upgraded)));
    assert!(is_data(ours.next(), 10));
    assert_eq!(theirs.window(), WINDOW_BYTES);
    assert!(ours.next().is_none());
    assert!(queue.is_empty(), "the window was never full");
}

#[test]
fn the_connection_is_woken_when_a_full_window_has_room_and_not_before() {
    let (ours, theirs, queue) = mailbox();
    ours.set_window(8);
    assert!(queue.is_empty());
    theirs.deliver(data(4));
    theirs.deliver(data(5));
    queue.take();
    assert_eq!(theirs.window(), 0, "more than the window came at once");
    assert!(is_data(ours.next(), 4));
    assert_eq!(queue.take(), [CONNECTION]);
    assert_eq!(theirs.window(), 3);
    theirs.deliver(data(3));
    queue.take();
    ours.set_window(8);
    assert!(queue.is_empty(), "it is as full as before");
    ours.set_window(9);
    assert_eq!(queue.take(), [CONNECTION]);
    ours.set_window(0);
    assert_eq!((theirs.window(), queue.is_empty()), (0, true));
}

#[test]
fn an_attempt_that_is_given_up_wakes_its_connection() {
    let (ours, theirs, queue) = mailbox();
    assert!(!theirs.is_given_up());
    drop(ours);
    assert!(theirs.is_given_up());
    assert_eq!(queue.take(), [CONNECTION]);
    drop(theirs);
    assert!(queue.is_empty(), "nobody is there to be told");
}

#[test]
fn an_attempt_whose_connection_is_dropped_has_failed() {
    let (ours, theirs, queue) = mailbox();
    theirs.record(|facts| facts.sent_bytes = 3);
    drop(theirs);
    assert_eq!(queue.take(), [EXCHANGE]);
    let Some(UpstreamEvent::Failed(error)) = ours.next() else {
        panic!("it is told of the end");
    };
    assert_eq!(error.failure, Failure::Closed);
    assert_eq!((error.sent_bytes, error.untouched), (3, false));
    drop(ours);
    assert!(queue.is_empty(), "there is no connection to wake");
}

#[test]
fn an_attempt_that_has_ended_does_not_fail_when_its_connection_is_dropped() {
    for last in [
        UpstreamEvent::End,
        UpstreamEvent::Failed(UpstreamError {
            failure: Failure::TimedOut,
            sent_bytes: 0,
            reused: false,
            untouched: true,
        }),
    ] {
        let (ours, theirs, _) = mailbox();
        theirs.deliver(last);
        drop(theirs);
        assert!(ours.next().is_some());
        assert!(ours.next().is_none());
    }
}

#[test]
fn a_response_that_is_there_to_its_end_is_taken_at_once() {
    let mut to = VecDeque::new();
    let (ours, theirs, _) = mailbox();
    theirs.deliver(data(3));
    assert_eq!(ours.take_whole(&mut to), None, "it has not ended");
    theirs.deliver(data(4));
    theirs.deliver(UpstreamEvent::End);
    assert_eq!(ours.take_whole(&mut to), Some(7));
    assert_eq!(to.len(), 2);
    assert!(ours.next().is_none() && ours.take_whole(&mut to).is_none());
    assert_eq!(theirs.window(), WINDOW_BYTES);

    let (ours, theirs, _) = mailbox();
    theirs.deliver(data(3));
    theirs.deliver(UpstreamEvent::Trailers(Fields::default()));
    theirs.deliver(UpstreamEvent::End);
    assert_eq!(ours.take_whole(&mut to), None, "trailers are told");
    assert!(is_data(ours.next(), 3));
}

#[test]
fn the_next_attempt_has_the_memory_of_one_that_nobody_looks_at() {
    let queue = WakeQueue::default();
    let mut spares = Spares::default();
    let waker = Waker::new(EXCHANGE, &queue);
    let mut spec = RequestSpec::default();
    spec.fields.push(b"a", b"b");
    let (ours, theirs) = spares.attempt(spec, waker.clone(), &queue, 1);
    let (watch, other) = (ours.watch(), ours.watch());
    theirs.record(|facts| facts.sent_bytes = 9);
    theirs.attach(CONNECTION);
    ours.set_window(7);
    theirs.deliver(data(3));
    theirs.deliver(UpstreamEvent::End);
    drop((ours, theirs));
    spares.release(other);
    assert!(spares.mailboxes.is_empty(), "somebody looks at it");
    spares.release(watch);
    assert_eq!((spares.mailboxes.len(), spares.fields.len()), (1, 1));
    assert!(waker.is_orphan(), "it wakes nobody");
    let fields = spares.fields();
    assert!(fields.is_empty() && fields.arena.capacity() > 0);
    queue.take();

    let (ours, theirs) = spares.attempt(RequestSpec::default(), waker, &queue, 2);
    assert!(spares.mailboxes.is_empty());
    let began = AttemptFacts {
        started_ms: 2,
        ..AttemptFacts::default()
    };
    assert_eq!(ours.facts(), began);
    assert!(ours.next().is_none() && !theirs.is_given_up());
    assert_eq!(theirs.window(), WINDOW_BYTES);
    ours.end(None);
    assert!(queue.is_empty(), "it has no connection yet");
    theirs.deliver(UpstreamEvent::End);
    assert_eq!(queue.take(), [EXCHANGE]);
}
