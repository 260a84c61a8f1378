//! Events and output do not depend on how the input is cut.

use super::{Codec, Peer, event_line};
use crate::mux::Event;
use crate::tests::Random;

/// Events and output of a connection.
#[derive(Debug, PartialEq, Eq)]
struct Story {
    events: Vec<String>,
    sent: Vec<u8>,
    /// The output as lines.
    lines: Vec<String>,
    over: bool,
}

/// Passes the pieces to an engine and answers each request when all input has been received.
fn tell<C: Codec>(pieces: &[&[u8]], settings: C::Settings) -> Story {
    let mut peer = Peer::<C>::silent(settings);
    for piece in pieces {
        peer.receive(piece);
    }
    peer.conn.receive_eof();
    let mut events = Vec::new();
    while let Some(event) = peer.conn.event() {
        if let Event::Head { stream, .. } = event {
            peer.answer(stream, &[&[b'x'; 30], b"end"]);
        }
        events.push(event_line::<C>(&event));
    }
    peer.pump();
    let sent = peer.transmitted();
    Story {
        events,
        lines: peer.codec.lines(&sent),
        sent,
        over: peer.conn.is_over(),
    }
}

/// The heads, with every answer sent during the input: only parts independent of time are compared.
fn tell_early<C: Codec>(pieces: &[&[u8]], settings: C::Settings) -> Vec<String> {
    let mut peer = Peer::<C>::silent(settings);
    let mut heads = Vec::new();
    for piece in pieces {
        peer.receive(piece);
        while let Some(event) = peer.conn.event() {
            if let Event::Head { stream, .. } = event {
                peer.answer(stream, &[&[b'x'; 30], b"end"]);
                heads.push(event_line::<C>(&event));
            }
        }
        peer.told();
    }
    heads
}

/// Defines the two tests of a protocol, with a `Codec`, `Settings` and a `corpus` in scope. Connections begin with
/// `$hello_bytes` bytes that never occur later, and may have `$streams` streams open.
macro_rules! differential_tests {
    ($hello_bytes:expr, $streams:expr) => {
        fn limited() -> Settings {
            Settings {
                max_concurrent_streams: $streams,
                ..Settings::default()
            }
        }

        #[test]
        fn every_single_cut_tells_the_same_story() {
            use crate::mux::tests::differential::every_single_cut_tells_the_same_story as test;
            test::<Codec>(&corpus(), &limited());
        }

        #[test]
        fn random_cuts_of_damaged_input_tell_the_same_story() {
            use crate::mux::tests::differential::random_cuts_of_damaged_input_tell_the_same_story as test;
            let settings = Settings {
                abuse_budget: 20,
                header_bytes: 80,
                ..limited()
            };
            test::<Codec>(&corpus(), $hello_bytes, &settings);
        }
    };
}
pub(crate) use differential_tests;

/// Cuts each connection of the corpus once everywhere, and into single bytes.
pub(crate) fn every_single_cut_tells_the_same_story<C: Codec>(
    corpus: &[Vec<u8>],
    settings: &C::Settings,
) where
    C::Settings: Clone,
{
    for (n, input) in corpus.iter().enumerate() {
        let whole = tell::<C>(&[input], settings.clone());
        let heads = tell_early::<C>(&[input], settings.clone());
        for at in 0..=input.len() {
            let pieces = [&input[..at], &input[at..]];
            let cut = tell::<C>(&pieces, settings.clone());
            assert_eq!(cut, whole, "input {n} cut at {at}");
            let early = tell_early::<C>(&pieces, settings.clone());
            assert_eq!(early, heads, "input {n} cut at {at}, early");
        }
        let single: Vec<&[u8]> = input.chunks(1).collect();
        let cut = tell::<C>(&single, settings.clone());
        assert_eq!(cut, whole, "input {n} byte by byte");
    }
}

/// Joins, cuts and damages connections of the corpus; the seed is in the message. A connection begins with
/// `hello_bytes` that never occur later.
pub(crate) fn random_cuts_of_damaged_input_tell_the_same_story<C: Codec>(
    corpus: &[Vec<u8>],
    hello_bytes: usize,
    settings: &C::Settings,
) where
    C::Settings: Clone,
{
    for seed in 1..4000_u64 {
        let mut random = Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15));
        let mut input = corpus[random.below(corpus.len())].clone();
        for _ in 0..random.below(3) {
            let more = &corpus[random.below(corpus.len())];
            input.extend_from_slice(&more[hello_bytes.min(more.len())..]);
        }
        for _ in 0..random.below(4) {
            let at = random.below(input.len());
            input[at] = random.below(256) as u8;
        }
        let whole = tell::<C>(&[&input], settings.clone());
        let cut = tell::<C>(&random.pieces(&input), settings.clone());
        assert_eq!(cut, whole, "seed {seed}: {input:02x?}");
    }
}
