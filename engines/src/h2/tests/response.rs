//! Responses: heads, interim ones, bodies, trailers.

use super::*;
use crate::mux::tests::sending;

#[test]
fn head_is_lower_case_and_without_what_belongs_to_http1() {
    let mut peer = Peer::new();
    peer.get(1, "/");
    let mut head = response(200, BodyLength::Length(0));
    head.push(b"X-Own", b"A");
    head.push(b"Connection", b"close");
    head.push(b"Keep-Alive", b"1");
    head.push(b"Transfer-Encoding", b"chunked");
    head.push(b"Upgrade", b"h2c");
    let long = "X".repeat(100);
    head.push(long.as_bytes(), b"B");
    peer.answer_with(1, &head, &[]);
    let lower = long.to_lowercase();
    assert_eq!(
        peer.told(),
        [format!("1 HEADERS 200 x-own=A {lower}=B END")]
    );
    assert_eq!(peer.finished, [1]);
}

/// RFC 9113 section 8.2.1: a value neither begins nor ends with white space.
#[test]
fn white_space_at_the_ends_of_a_value_is_not_sent() {
    let mut peer = Peer::new();
    peer.get(1, "/");
    let mut head = response(200, BodyLength::Length(0));
    head.push(b"X-Own", b" \tv w\t ");
    head.push(b"Location", b"\t/x");
    head.push(b"Vary", b" \t");
    peer.answer_with(1, &head, &[]);
    let told = ["1 HEADERS 200 x-own=v w location=/x vary= END"];
    assert_eq!(peer.told(), told);
}

#[test]
fn last_piece_ends_the_stream() {
    let mut peer = Peer::new();
    peer.get(1, "/");
    let told = ["1 HEADERS 200", "1 DATA hello world END"];
    assert_eq!(peer.answer(1, &[b"hello", b" world"]).told(), told);
    peer.get(3, "/");
    let told = ["3 HEADERS 200", "3 DATA 1000 END"];
    assert_eq!(peer.answer(3, &[FULL]).told(), told);
    peer.get(5, "/");
    let told = [
        "5 HEADERS 200",
        "5 DATA 1000",
        "5 DATA 1000",
        "5 DATA x END",
    ];
    assert_eq!(peer.answer(5, &[FULL, FULL, b"x"]).told(), told);
    peer.get(7, "/");
    assert_eq!(
        peer.answer(7, &[]).told(),
        ["7 HEADERS 200", "7 DATA - END"]
    );
    assert_eq!(peer.finished, [1, 3, 5, 7]);
}

#[test]
fn responses_without_a_body_end_with_their_head() {
    let mut peer = Peer::new();
    peer.headers(1, &with_path("HEAD", "/"), true)
        .get(3, "/")
        .get(5, "/");
    let told = peer
        .answer_with(1, &response(200, BodyLength::Length(9)), &[])
        .answer_with(3, &response(304, BodyLength::Unknown), &[])
        .answer_with(5, &response(204, BodyLength::Unknown), &[])
        .told();
    assert_eq!(
        told,
        [
            "1 HEADERS 200 END",
            "3 HEADERS 304 END",
            "5 HEADERS 204 END"
        ]
    );
}

#[test]
fn codes_of_nginx_leave_as_400() {
    let mut peer = Peer::new();
    peer.get(1, "/");
    peer.answer_with(1, &response(494, BodyLength::None), &[]);
    assert_eq!(peer.told(), ["1 HEADERS 400 END"]);
}

#[test]
fn interim_responses_come_before_the_head() {
    let mut peer = Peer::new();
    peer.get(1, "/");
    let mut hints = ResponseHead::default();
    hints.push(b"Link", b"</a>");
    peer.conn.send_interim(1, 100, None);
    peer.conn.send_interim(1, 103, Some(&hints));
    peer.answer(1, &[b"x"]);
    peer.conn.send_interim(1, 100, None);
    let told = [
        "1 HEADERS 100",
        "1 HEADERS 103 link=</a>",
        "1 HEADERS 200",
        "1 DATA x END",
    ];
    assert_eq!(peer.told(), told);
}

#[test]
fn trailers_come_after_the_body() {
    let mut peer = Peer::new();
    let mut trailers = ResponseHead::default();
    trailers.push(b"X-Sum", b"a: b");
    trailers.push(b"x-empty", b"");
    for id in [1, 3] {
        peer.get(id, "/").trailers.insert(id, trailers.clone());
    }
    peer.answer(1, &[b"x"]);
    let told = [
        "1 HEADERS 200",
        "1 DATA x",
        "1 HEADERS x-sum=a: b x-empty= END",
    ];
    assert_eq!(peer.told(), told);
    // Even without a body.
    peer.answer_with(3, &response(200, BodyLength::Length(0)), &[]);
    assert_eq!(
        peer.told(),
        ["3 HEADERS 200", "3 HEADERS x-sum=a: b x-empty= END"]
    );
    assert_eq!(peer.finished, [1, 3]);
}

#[test]
fn long_head_is_continued() {
    let mut peer = Peer::new();
    peer.get(1, "/");
    let mut head = response(200, BodyLength::None);
    for n in 0..5_u8 {
        // A capital letter has more than six bits in the code, the value is longer than a frame.
        head.push(b"x-long", vec![b'A' + n; 10_000].as_slice());
    }
    peer.answer_with(1, &head, &[]);
    let told = peer.told();
    assert_eq!(told[0], "1 BLOCK END");
    assert!(
        told[1].starts_with("1 HEADERS 200 x-long=AAA"),
        "{}",
        &told[1][..40]
    );
    assert_eq!(told.len(), 2);
}

#[test]
fn reset_by_the_server_ends_everything() {
    let mut peer = Peer::new();
    peer.post(1, &[]).answer(1, &[b"a", b""]).told();
    peer.conn.reset(1, INTERNAL_ERROR);
    peer.conn.reset(1, INTERNAL_ERROR);
    assert_eq!(peer.told(), ["1 RST INTERNAL_ERROR"]);
    // Frames in flight are dropped.
    peer.data(1, b"x", false).window(1, 5).cancel(1);
    assert_eq!(peer.events(), ["1 POST / HTTP/2.0"]);
}

#[test]
fn no_more_is_made_than_there_is_room_for() {
    let mut peer = Peer::new();
    peer.get(1, "/");
    peer.room = 2500;
    peer.answer(1, &[FULL; 5]);
    assert_eq!(
        peer.told(),
        ["1 HEADERS 200", "1 DATA 1000", "1 DATA 1000", "1 DATA 1000"]
    );
    assert_eq!(peer.told(), ["1 DATA 1000", "1 DATA 1000 END"]);
}

#[test]
fn bytes_of_a_response_are_counted_with_their_frames() {
    let mut peer = Peer::new();
    peer.get(1, "/");
    let plan = SendOptions {
        trailers: false,
        chunk_bytes: 10,
    };
    let head_bytes = peer
        .conn
        .send_head(1, &response(200, BodyLength::Unknown), plan);
    assert_eq!(head_bytes, 9 + 1, "a frame with an indexed field");
    assert_eq!(
        peer.conn
            .send_head(1, &response(200, BodyLength::Unknown), plan),
        0
    );
    peer.bodies.insert(1, [vec![b'x'; 25]].into());
    let mut sent = None;
    while sent.is_none() {
        match peer.conn.advance(u64::MAX, 1) {
            SendAction::Body(id) => peer.feed(id),
            other => sent = Some(other),
        }
    }
    let bytes = head_bytes + 3 * 9 + 25;
    assert_eq!(sent, Some(SendAction::Sent { stream: 1, bytes }));
    assert_eq!(peer.transmitted().len() as u64, bytes);
}

/// The previous response's block is used again only if it has the same meaning.
#[test]
fn responses_alike_are_told_alike_whatever_comes_between() {
    let mut peer = Peer::new();
    let head = |status: u16, value: &[u8]| {
        let mut head = response(status, BodyLength::Length(0));
        head.push(b"X-Own", value);
        head.push(b"Date", b"now");
        head
    };
    let mut shorter = head(200, b"a");
    shorter.remove(FieldId::Date);
    let steps = [
        (head(200, b"a"), None),
        (head(200, b"a"), None),
        (head(404, b"a"), None),
        (head(200, b"a"), None),
        (shorter, None),
        (head(200, b"b"), None),
        (head(200, b"a"), None),
        (head(200, b"a"), Some(0)),
        (head(200, b"a"), None),
        (head(200, b"a"), Some(4096)),
        (head(200, b"a"), None),
        (head(200, b"a"), None),
    ];
    let mut stream = 1;
    for (head, table_bytes) in &steps {
        if let Some(bytes) = table_bytes {
            peer.setting(settings::HEADER_TABLE_SIZE, *bytes);
            assert_eq!(peer.told(), ["SETTINGS ACK"]);
        }
        peer.get(stream, "/").answer_with(stream, head, &[]);
        let fields = head.fields.iter().map(|field| {
            let name = String::from_utf8_lossy(head.bytes(field.name)).to_lowercase();
            format!(
                " {name}={}",
                String::from_utf8_lossy(head.bytes(field.value))
            )
        });
        let fields: String = fields.collect();
        let told = format!("{stream} HEADERS {}{fields} END", head.status);
        assert_eq!(peer.told(), [told]);
        stream += 2;
    }
}

#[test]
fn source_that_stalls_is_asked_again_when_it_has_more() {
    sending::source_that_stalls_is_asked_again_when_it_has_more::<Codec>();
}

#[test]
fn stream_that_is_broken_off_is_reset_behind_what_waits() {
    sending::stream_that_is_broken_off_is_reset_behind_what_waits::<Codec>();
}
