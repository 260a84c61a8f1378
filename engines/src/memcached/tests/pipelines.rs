//! Several requests on one connection: answers come in their order, each whole or not at all.

use super::*;

/// A client that has requested these keys.
fn asked_all(keys: &[&str]) -> Client {
    let mut client = asked(keys[0]);
    for (at, key) in keys.iter().enumerate().skip(1) {
        assert_eq!(client.pipeline(key.as_bytes()), Ok(at as u32 + 1));
    }
    client.transmit(&mut OutputQueue::default());
    client.check_invariants();
    client
}

/// Events by the number of their request, and the error of the connection.
fn told_each(client: &mut Client) -> Vec<(u32, String)> {
    client.check_invariants();
    let mut told: Vec<(u32, String)> = Vec::new();
    while let Some(event) = client.event() {
        let (stream, text) = match event {
            Event::Head { stream, head, .. } => (stream, format!("{} ", head.status)),
            Event::Data { stream, bytes } => (stream, String::from_utf8_lossy(&bytes).into_owned()),
            Event::Note { stream, .. } => (stream, " note".to_owned()),
            Event::End { stream, .. } => (stream, ".".to_owned()),
            Event::Failed(error) => (0, error.to_string()),
            other => (0, format!("{other:?}")),
        };
        match told.last_mut() {
            Some((last, all)) if *last == stream => all.push_str(&text),
            _ => told.push((stream, text)),
        }
    }
    told
}

fn shown(told: &[(u32, String)]) -> Vec<(u32, &str)> {
    told.iter().map(|(n, text)| (*n, text.as_str())).collect()
}

/// Events of these keys for these bytes, however they are cut.
fn story_of(keys: &[&str], bytes: &[u8], expected: &[(u32, &str)]) {
    for size in [1, 2, 3, 5, 11, 100_000] {
        for buffers in [false, true] {
            let mut client = asked_all(keys);
            let mut told: Vec<(u32, String)> = Vec::new();
            for piece in bytes.chunks(size) {
                match buffers {
                    true => client.receive_buffer(&mut piece.to_vec()),
                    false => client.receive(piece),
                }
                for (stream, text) in told_each(&mut client) {
                    match told.last_mut() {
                        Some((last, all)) if *last == stream => all.push_str(&text),
                        _ => told.push((stream, text)),
                    }
                }
            }
            assert_eq!(shown(&told), expected, "in pieces of {size}, {buffers}");
        }
    }
}

#[test]
fn requests_are_sent_behind_each_other() {
    let mut client = Client::new();
    assert_eq!(
        client.pipeline(b"a"),
        Err(SendError::Busy),
        "nothing is asked"
    );
    assert_eq!(client.request(b"a", 100), Ok(1));
    assert_eq!(client.pipeline(b"b"), Ok(2));
    assert_eq!(client.pipeline(b"c d"), Err(SendError::BadKey));
    assert_eq!(client.pipeline(b"a"), Ok(3));
    assert_eq!(text(&mut client), "get a\r\nget b\r\nget a\r\n");
    assert!(!client.is_reusable());
}

#[test]
fn answers_belong_to_requests_in_their_order() {
    story_of(
        &["a", "b", "c", "d"],
        b"VALUE a 0 2\r\n11\r\nEND\r\nEND\r\nVALUE c 0 0\r\n\r\nEND\r\nVALUE d 0 3\r\n444\r\nEND\r\n",
        &[(1, "200 11."), (2, "404 ."), (3, "200 ."), (4, "200 444.")],
    );
    let mut client = asked_all(&["a", "b"]);
    client.receive(b"END\r\nEND\r\n");
    assert_eq!(told_each(&mut client).len(), 2);
    assert!(client.is_reusable());
    assert_eq!(client.request(b"c", 100), Ok(3));
    assert_eq!(client.pipeline(b"d"), Ok(4));
    client.receive(b"VALUE c 0 1\r\nx\r\nEND\r\nEND\r\n");
    assert_eq!(
        shown(&told_each(&mut client)),
        [(3, "200 x."), (4, "404 .")]
    );
}

#[test]
fn an_answer_before_others_is_told_once_its_end_is_there() {
    let mut client = asked_all(&["a", "b"]);
    client.receive(b"VALUE a 0 2\r\n11\r\nEND\r");
    assert_eq!(client.event(), None);
    client.receive(b"\nVALUE b 0 2\r\n2");
    assert_eq!(
        shown(&told_each(&mut client)),
        [(1, "200 11."), (2, "200 2")]
    );
}

#[test]
fn nothing_is_told_of_an_answer_that_others_follow_and_that_has_no_end() {
    let cases: [(&[u8], &str); 8] = [
        // The announced length is too large: the value would include bytes of the next answer.
        (
            b"VALUE a 0 30\r\n11\r\nEND\r\nVALUE b 0 9\r\nsecret-of-b\r\nEND\r\n",
            "memcached sent invalid trailer",
        ),
        // The length makes the end of the next answer pass as its own.
        (
            b"VALUE a 0 34\r\n11\r\nEND\r\nVALUE b 0 11\r\nsecret-of-b\r\nEND\r\n",
            "memcached sent invalid trailer",
        ),
        // Less is announced than comes.
        (
            b"VALUE a 0 1\r\n11\r\nEND\r\nVALUE b 0 1\r\n2\r\nEND\r\n",
            "memcached sent invalid trailer",
        ),
        (
            b"VALUE a 0 2\r\n11VALUE b 0 1\r\n2\r\nEND\r\n",
            "memcached sent invalid trailer",
        ),
        (
            b"VALUE a 0 2\r\n11\r\nVALUE b 0 1\r\n2\r\nEND\r\n",
            "memcached sent invalid trailer",
        ),
        // The answer is missing.
        (
            b"VALUE b 0 1\r\n2\r\nEND\r\n",
            "memcached sent invalid key in response \"VALUE b 0 1\" for key \"a\"",
        ),
        (b"ERROR\r\n", "memcached sent invalid response: \"ERROR\""),
        (
            b"VALUE a 0 x\r\n",
            "memcached sent invalid length in response \"VALUE a 0 x\" for key \"a\"",
        ),
    ];
    for (bytes, error) in cases {
        story_of(&["a", "b"], bytes, &[(0, error)]);
        // Earlier answers are kept.
        let bytes = [&b"VALUE z 0 1\r\n0\r\nEND\r\n"[..], bytes].concat();
        story_of(&["z", "a", "b"], &bytes, &[(1, "200 0."), (0, error)]);
    }
}

#[test]
fn the_last_is_told_as_it_comes() {
    story_of(
        &["a", "b"],
        b"END\r\nVALUE b 0 2\r\n22 more\r\nEND\r\n",
        &[(1, "404 ."), (2, "200 22 note.")],
    );
    let mut client = asked_all(&["a", "b"]);
    client.receive(b"END\r\nVALUE b 0 1000000\r\nxxx");
    assert_eq!(
        shown(&told_each(&mut client)),
        [(1, "404 ."), (2, "200 xxx")]
    );
    client.receive_eof();
    let error = "upstream prematurely closed connection";
    assert_eq!(shown(&told_each(&mut client)), [(0, error)]);
}

#[test]
fn an_end_of_the_connection_tells_nothing_of_an_answer_that_others_follow() {
    for bytes in [
        "",
        "VALUE",
        "VALUE a 0 2\r\n1",
        "VALUE a 0 2\r\n11",
        "VALUE a 0 2\r\n11\r\nEND",
    ] {
        let mut client = asked_all(&["a", "b"]);
        client.receive(bytes.as_bytes());
        client.receive_eof();
        let told = told_each(&mut client);
        assert!(matches!(&told[..], [(0, _)]), "{bytes:?}: {told:?}");
        assert_eq!(client.request(b"c", 100), Err(SendError::Closed));
    }
}

#[test]
fn a_value_that_others_follow_has_a_limit() {
    let value = |len: u64| {
        let mut text = format!("VALUE a 0 {len}\r\n").into_bytes();
        text.resize(text.len() + len as usize, b'v');
        text.extend_from_slice(b"\r\nEND\r\nEND\r\n");
        text
    };
    let mut client = asked_all(&["a", "b"]);
    client.receive(&value(PIPELINED_VALUE_BYTES));
    assert_eq!(told_each(&mut client).len(), 2);
    story_of(
        &["a", "b"],
        &value(PIPELINED_VALUE_BYTES + 1),
        &[(0, "memcached sent too large a value")],
    );
}

#[test]
fn no_value_that_others_follow_takes_the_buffer_along() {
    let mut client = asked_all(&["a", "b"]);
    let mut buffer = b"VALUE a 0 2\r\n11\r\nEND\r\nVALUE b 0 2\r\n22\r\nEND\r\n".to_vec();
    client.receive_buffer(&mut buffer);
    assert!(buffer.is_empty() && buffer.capacity() > 0);
}

#[test]
fn requests_wait_up_to_a_limit_and_join_before_the_first_answer_alone() {
    let mut client = asked("a");
    for _ in 1..PIPELINE_MAX {
        assert!(client.pipeline(b"b").is_ok());
        client.check_invariants();
    }
    assert_eq!(client.pipeline(b"b"), Err(SendError::Busy));
    let mut client = asked("a");
    client.receive(b"V");
    assert_eq!(client.pipeline(b"b"), Err(SendError::Busy));
    client.receive(b"ALUE a 0 1\r\n");
    assert_eq!(client.pipeline(b"b"), Err(SendError::Busy));
    client.receive(b"1\r\nEND\r\n");
    assert_eq!(
        client.pipeline(b"b"),
        Err(SendError::Busy),
        "it is a request's turn"
    );
    assert_eq!(client.request(b"b", 100), Ok(2));
    client.cancel();
    assert_eq!(client.pipeline(b"c"), Err(SendError::Closed));
}

#[test]
fn long_keys_are_asked_alone() {
    let (fits, long) = (vec![b'k'; KEY_BYTES], vec![b'k'; KEY_BYTES + 1]);
    let mut client = asked("a");
    assert_eq!(client.pipeline(&long), Err(SendError::Busy));
    assert_eq!(client.pipeline(&fits), Ok(2));
    let mut client = Client::new();
    assert_eq!(client.request(&long, 1000), Ok(1));
    assert_eq!(client.pipeline(b"a"), Err(SendError::Busy));
}

#[test]
fn the_length_of_an_answer_is_known() {
    let answers: [&[u8]; 3] = [
        b"VALUE a 5 2\r\n11\r\nEND\r\n",
        b"END\r\n",
        b"VALUE c 5 0 77\r\n\r\nEND\r\n",
    ];
    let mut client = asked_all(&["a", "b", "c"]);
    client.receive(&answers.concat());
    let mut lengths = Vec::new();
    while let Some(event) = client.event() {
        if let Event::Head { head, size, .. } = event {
            lengths.push(answer_bytes(&head, size.wire_bytes));
        }
    }
    assert_eq!(lengths, answers.map(|text| text.len() as u64));
}
