//! Events and output do not depend on how the input is cut.

use super::*;
use crate::http::Fields;
use crate::tests::Random;

/// Events and output of a connection, in a form that does not depend on how data was cut.
#[derive(Debug, Default, PartialEq, Eq)]
struct Story {
    events: Vec<String>,
    sent: String,
    next: Option<Next>,
}

/// Answers every request at once, on its head or on the end of its body.
fn tell(pieces: &[&[u8]], answer_early: bool) -> Story {
    let limits = Settings {
        header_buffer_bytes: 64,
        large_header_buffers: (2, 128),
        max_headers: 6,
        ..Settings::default()
    };
    let mut conn = conn_with(limits);
    let mut story = Story::default();
    for piece in pieces {
        conn.receive(piece);
        conn.check_invariants();
        pump(&mut conn, &mut story, answer_early);
    }
    conn.receive_eof();
    pump(&mut conn, &mut story, answer_early);
    conn.check_invariants();
    story.sent.push_str(&sent(&mut conn));
    without_timing(story, answer_early)
}

/// Drops everything that may depend on the amount of received input: whether closing lingers, and, for a response
/// sent before its request was complete, events of the body and whether a broken body could still be announced with
/// "close".
fn without_timing(mut story: Story, answer_early: bool) -> Story {
    if story.next == Some(Next::Linger) {
        story.next = Some(Next::Close);
    }
    if answer_early {
        story.events.retain(|event| event.starts_with("head "));
        story.sent = story
            .sent
            .replace("Connection: close", "Connection: keep-alive");
    }
    story
}

fn pump(conn: &mut Conn, story: &mut Story, answer_early: bool) {
    while let Some(event) = conn.event() {
        let due = match &event {
            Event::Head(head) => {
                answer_early || head.fault.is_some() || head.body == BodyLength::None
            }
            Event::BodyEnd | Event::BodyFault(_) => true,
            _ => false,
        };
        record(event, &mut story.events);
        conn.check_invariants();
        if due
            && story
                .next
                .is_none_or(|next| matches!(next, Next::KeepAlive | Next::AwaitBody))
        {
            let next = if story.next == Some(Next::AwaitBody) {
                conn.finish()
            } else {
                answer_ok(conn)
            };
            story.next = Some(next);
        }
    }
}

fn record(event: Event, events: &mut Vec<String>) {
    let told = match event {
        Event::Head(head) => describe(&head),
        Event::Data(data) => {
            let text = String::from_utf8_lossy(&data).into_owned();
            match events.last_mut().filter(|last| last.starts_with("data ")) {
                Some(last) => {
                    last.push_str(&text);
                    return;
                }
                None => format!("data {text}"),
            }
        }
        Event::Trailers(Fields { arena, fields }) => {
            format!(
                "trailers {} {}",
                fields.len(),
                String::from_utf8_lossy(&arena)
            )
        }
        other => format!("{other:?}"),
    };
    events.push(told);
}

/// A head without the parts that depend on the received length of a broken line.
fn describe(head: &RequestHead) -> String {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let fields: Vec<_> = head
        .fields
        .iter()
        .map(|field| {
            format!(
                "{:?} {}={}",
                field.id,
                text(head.bytes(field.name)),
                text(head.bytes(field.value))
            )
        })
        .collect();
    format!(
        "head {:?} {:?} {:?} {:?} {} {} {} {} {} {fields:?}",
        head.method,
        text(head.bytes(head.target)),
        head.version,
        head.body,
        head.close,
        head.keep_alive,
        head.expect_continue,
        head.size_bytes,
        head.fault
            .map_or(String::new(), |fault| format!("{fault:?}")),
    )
}

const CORPUS: &[&str] = &[
    GET,
    "GET / HTTP/1.1\nHost: h\n\nGET /2 HTTP/1.1\nHost: h\n\n",
    "\r\n\r\nGET /a?b#c HTTP/1.0\r\nConnection: keep-alive\r\n\r\n\r\nGET / HTTP/1.0\r\n\r\n",
    "GET /x\r\nrest",
    "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 7\r\n\r\n0123456GET / HTTP/1.1\r\nHost: h\r\n\r\n",
    "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 0\r\n\r\nPOST / HTTP/1.1\r\nHost: h\r\nContent-Length: 9\r\n\r\n01",
    "POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n4;a=b\r\nSEE-\r\n4\r\nTHIS\r\n0\r\nA: b\r\n\r\nGET / HTTP/1.1\r\nHost: h\r\n\r\n",
    "POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nSEE-THIS\r\n0\r\n\r\n",
    "POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nx\r\n0\r\nno-colon\r\n\r\n",
    "POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nx\r\n0\r\nA: b\nB: c\r\n\r\n",
    "POST / HTTP/1.1\r\nHost: h\r\nExpect: 100-continue\r\nContent-Length: 3\r\n\r\nabc",
    "GET http://h?q HTTP/1.1\r\nHost: x\r\nX_Y: dropped\r\nnone\r\nZ: 1\r\n\r\n",
    "GET http://h HTTP/1.1\r\nHost: x\r\nBad : y\r\n\r\n",
    "CONNECT h:80 HTTP/1.1\r\nHost: h\r\n\r\n",
    "TRACE / HTTP/1.1\r\nHost: h\r\nMax-Forwards: 1\r\n\r\n",
    "GET / HTTP/1.1\r\nHost: h\r\n folded\r\n\r\n",
    "GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n",
    "GET / HTTP/2.0\r\nHost: h\r\n\r\n",
    "get / HTTP/1.1\r\n\r\n",
    "GET / HTTP/1.1\r\rX\r\n\r\n",
    "GET / HTTP/1.1\r\nHost: h\r\nA: b\rc\r\n\r\n",
    "GET / HTTP/1.1\r\nHost: h\r\n\rX",
    "GET / HTTP/1.1\r\nHost: h\r\nA:1\r\nB:1\r\nC:1\r\nD:1\r\nE:1\r\nF:1\r\n\r\n",
    "\x16\x03\x01\x02\x00\x01\x00\x01\x7c\x03\x03",
    "GET /aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa HTTP/1.1\r\n",
    "GET / HTTP/1.1\r\nHost: h\r\nA: aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\r\n\r\n",
];

#[test]
fn every_single_cut_tells_the_same_story() {
    for input in CORPUS {
        let bytes = input.as_bytes();
        for early in [false, true] {
            let whole = tell(&[bytes], early);
            for cut in 0..=bytes.len() {
                let story = tell(&[&bytes[..cut], &bytes[cut..]], early);
                assert_eq!(story, whole, "{input:?} cut at {cut}, early {early}");
            }
            let single: Vec<&[u8]> = bytes.chunks(1).collect();
            assert_eq!(
                tell(&single, early),
                whole,
                "{input:?} byte by byte, early {early}"
            );
        }
    }
}

/// Joins, cuts and damages requests of the corpus; the seed is in the message.
#[test]
fn random_cuts_of_damaged_input_tell_the_same_story() {
    for seed in 1..3000_u64 {
        let mut random = Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15));
        let mut input = Vec::new();
        for _ in 0..=random.below(3) {
            input.extend_from_slice(CORPUS[random.below(CORPUS.len())].as_bytes());
        }
        for _ in 0..random.below(4) {
            let at = random.below(input.len());
            input[at] = *b"\r\n\0 :;\tx0\x7f\xff/"
                .get(random.below(14))
                .unwrap_or(&b'A');
        }
        let early = seed % 2 == 0;
        let whole = tell(&[&input], early);
        let pieces = random.pieces(&input);
        let text = String::from_utf8_lossy(&input);
        assert_eq!(tell(&pieces, early), whole, "seed {seed}: {text:?}");
    }
}
