//! Events and output do not depend on where the input is cut.

use super::*;

/// Events and output of a connection.
#[derive(Debug, PartialEq, Eq)]
struct Story {
    events: Vec<String>,
    sent: Vec<u8>,
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
    peer.pump();
    Story {
        events,
        sent: wire::transmitted(&mut peer.conn),
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
    let settings = control(frame::SETTINGS, 0, &numbers(&[2, 7, 7, 4, 1]));
    let get = syn_frame(1, 3, &encoder.block_of(&with_path("GET", "/a")), true);
    let own = [
        &with_path("POST", "/b")[..],
        &[("x-own", "1"), ("content-length", "3")],
    ];
    let post = syn_frame(3, 0, &encoder.block_of(&own.concat()), false);
    let broken = syn_frame(5, 0, &encoder.block_of(&[("", "")]), true);
    let again = syn_frame(7, 7, &encoder.block_of(&with_path("GET", "/c")), true);
    let upload = [data_frame(3, b"ab", false), data_frame(3, b"c", true)].concat();
    let wrong = [data_frame(3, b"abcd", false), data_frame(3, b"e", true)].concat();
    let steer = [
        control(frame::PING, 0, &numbers(&[1])),
        control(frame::WINDOW_UPDATE, 0, &numbers(&[1, 9])),
        control(frame::WINDOW_UPDATE, 0, &numbers(&[0, 9])),
        control(99, 0, b"unknown"),
        control(frame::RST_STREAM, 0, &numbers(&[1, 5])),
    ]
    .concat();
    let bad = control(frame::WINDOW_UPDATE, 0, &numbers(&[0, MAX]));
    vec![
        [&settings[..], &get].concat(),
        [&settings[..], &get, &post, &upload, &broken, &again].concat(),
        [&get[..], &post, &wrong, &again].concat(),
        [&get[..], &settings, &steer].concat(),
        [&get[..], &bad, &post].concat(),
        [&get[..], &get].concat(),
        b"\x80\x03\0\x01GET / HTTP/1.1".to_vec(),
    ]
}

const MAX: u32 = (1 << 31) - 1;

#[test]
fn every_single_cut_tells_the_same_story() {
    let settings = Settings {
        max_concurrent_streams: 3,
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
            input.extend_from_slice(&corpus[random.below(corpus.len())]);
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
