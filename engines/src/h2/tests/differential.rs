//! Events and output do not depend on where the input is cut.

use super::*;

/// Events and output of a connection.
#[derive(Debug, PartialEq, Eq)]
struct Story {
    events: Vec<String>,
    sent: Vec<String>,
    over: bool,
}

/// Passes the pieces to an engine and answers each request as soon as it is reported, when all input is here.
fn tell(pieces: &[&[u8]], settings: &Settings) -> Story {
    let mut peer = Peer::silent(settings.clone());
    for piece in pieces {
        peer.receive(piece);
    }
    peer.conn.receive_eof();
    let mut events = Vec::new();
    while let Some(event) = peer.conn.event() {
        if let Event::Head { stream, .. } = event {
            peer.answer(stream, &[&[b'x'; 30], b"end"]);
        }
        events.push(wire::event_line(&event));
    }
    Story {
        events,
        sent: peer.told(),
        over: peer.conn.is_over(),
    }
}

/// Passes the pieces with every answer sent while input still comes: only results that do not depend on time are compared.
fn tell_early(pieces: &[&[u8]], settings: &Settings) -> Vec<String> {
    let mut peer = Peer::silent(settings.clone());
    let mut heads = Vec::new();
    for piece in pieces {
        peer.receive(piece);
        while let Some(event) = peer.conn.event() {
            if let Event::Head { stream, .. } = event {
                peer.answer(stream, &[&[b'x'; 30], b"end"]);
                heads.push(wire::event_line(&event));
            }
        }
        peer.told();
    }
    heads
}

/// Connections that are worth cutting.
fn corpus() -> Vec<Vec<u8>> {
    let mut encoder = Peer::new();
    let mut block = |fields: &[(&str, &str)]| encoder.block_of(fields);
    let get = block(&with_path("GET", "/a"));
    let own = block(
        &[
            &with_path("POST", "/b"),
            &[("x-own", "1"), ("content-length", "3")][..],
        ]
        .concat(),
    );
    let trailers = block(&[("x-sum", "9")]);
    let settings = frame_of(frame::SETTINGS, 0, 0, &[0, 4, 0, 0, 0, 7, 0, 1, 0, 0, 0, 0]);
    let whole = frame::END_HEADERS | frame::END_STREAM;
    let request = frame_of(frame::HEADERS, whole, 1, &get);
    let (front, back) = get.split_at(2);
    let cut = [
        frame_of(frame::HEADERS, frame::END_STREAM, 1, front),
        frame_of(frame::CONTINUATION, 0, 1, &[]),
        frame_of(frame::CONTINUATION, frame::END_HEADERS, 1, back),
    ]
    .concat();
    let upload = [
        frame_of(frame::HEADERS, frame::END_HEADERS, 3, &own),
        frame_of(frame::DATA, frame::PADDED, 3, b"\x02ab.."),
        frame_of(frame::DATA, 0, 3, b"c"),
        frame_of(frame::HEADERS, whole, 3, &trailers),
    ]
    .concat();
    let wrong = [
        frame_of(frame::HEADERS, frame::END_HEADERS, 3, &own),
        frame_of(frame::DATA, 0, 3, b"abcd"),
        frame_of(frame::DATA, frame::END_STREAM, 3, b"e"),
    ]
    .concat();
    let control = [
        frame_of(frame::PING, 0, 0, b"SEE-THIS"),
        frame_of(frame::WINDOW_UPDATE, 0, 1, &[0, 0, 0, 9]),
        frame_of(frame::WINDOW_UPDATE, 0, 0, &[0, 0, 0, 9]),
        frame_of(frame::PRIORITY_UPDATE, 0, 0, b"\0\0\0\x01u=0"),
        frame_of(frame::RST_STREAM, 0, 1, &[0, 0, 0, 8]),
    ]
    .concat();
    let bad = frame_of(frame::WINDOW_UPDATE, 0, 0, &[0; 4]);
    let push = frame_of(frame::PUSH_PROMISE, 0, 1, &[0; 4]);
    let with_preface = |parts: &[&[u8]]| [&PREFACE[..], &settings, &parts.concat()].concat();
    vec![
        with_preface(&[&request]),
        with_preface(&[&cut]),
        with_preface(&[&request, &upload]),
        with_preface(&[&request, &wrong]),
        with_preface(&[&request, &control]),
        with_preface(&[&request, &bad, &request]),
        with_preface(&[&push]),
        [&PREFACE[..20], b"nonsense"].concat(),
    ]
}

#[test]
fn every_single_cut_tells_the_same_story() {
    let settings = Settings {
        max_concurrent_streams: 2,
        ..Settings::default()
    };
    for (n, input) in corpus().iter().enumerate() {
        let whole = tell(&[input], &settings);
        let heads = tell_early(&[input], &settings);
        for at in 0..=input.len() {
            let pieces = [&input[..at], &input[at..]];
            assert_eq!(tell(&pieces, &settings), whole, "input {n} cut at {at}");
            assert_eq!(
                tell_early(&pieces, &settings),
                heads,
                "input {n} cut at {at}, early"
            );
        }
        let single: Vec<&[u8]> = input.chunks(1).collect();
        assert_eq!(tell(&single, &settings), whole, "input {n} byte by byte");
    }
}

/// Joins, cuts and damages connections of the corpus; the seed is in the message.
#[test]
fn random_cuts_of_damaged_input_tell_the_same_story() {
    let corpus = corpus();
    let settings = Settings {
        max_concurrent_streams: 2,
        abuse_budget: 20,
        header_bytes: 80,
        ..Settings::default()
    };
    for seed in 1..4000_u64 {
        let mut random = Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15));
        let mut input = corpus[random.below(corpus.len())].clone();
        for _ in 0..random.below(3) {
            let more = &corpus[random.below(corpus.len())];
            input.extend_from_slice(&more[PREFACE.len().min(more.len())..]);
        }
        for _ in 0..random.below(4) {
            let at = random.below(input.len());
            input[at] = random.below(256) as u8;
        }
        let whole = tell(&[&input], &settings);
        let mut pieces: Vec<&[u8]> = Vec::new();
        let mut rest = input.as_slice();
        while !rest.is_empty() {
            let (piece, after) = rest.split_at(1 + random.below(rest.len().min(40)));
            pieces.push(piece);
            rest = after;
        }
        assert_eq!(tell(&pieces, &settings), whole, "seed {seed}: {input:02x?}");
    }
}

/// A small generator (xorshift), so that a seed determines the run.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % limit.max(1) as u64) as usize
    }
}
