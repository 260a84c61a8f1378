//! Connections to servers over TLS: plaintext that comes too early, and pools of equal numbers.

use std::cell::Cell;
use std::rc::Rc;
use std::sync::Arc;

use super::secure::{Pair, Secure};
use super::servers::{NONE, UpstreamServers, ok, talk};
use super::site::{TestConnection, body, get};

/// Transfers TLS bytes both ways on a connection. Returns the bytes received by the client.
fn shake(
    talk: &mut TestConnection,
    behind: &UpstreamServers,
    at: usize,
    secure: &mut Secure,
) -> String {
    let mut received = String::new();
    for _ in 0..4 {
        let sent = behind.with(at, |wire| {
            wire.fetch(usize::MAX);
            wire.sent().to_vec()
        });
        behind.push(at, secure.receive(&sent).expect("it is TLS"));
        received += &talk.turn();
    }
    received
}

#[test]
fn response_that_precedes_its_request_ends_the_connection() {
    let pair = Pair::new();
    let tls = pair.client_of_tls12();
    for is_early in [false, true] {
        let (mut talk, behind) = talk();
        let tls = Arc::clone(&tls);
        talk.world.adjust = Some(Box::new(move |route| route.tls = Some(Arc::clone(&tls))));
        talk.send(get("/passed/2/9999"));
        let mut secure = pair.accept();
        if is_early {
            // It leaves behind the server's last message of the handshake.
            secure.seal(ok("forged").as_bytes());
        }
        let mut received = shake(&mut talk, &behind, 0, &mut secure);
        if !is_early {
            behind.push(0, secure.seal(ok("whole").as_bytes()));
            received += &talk.turn();
        }
        let expected = match is_early {
            true => "Invalid(\"sent data before the SSL handshake was over\")",
            false => "whole",
        };
        assert_eq!(body(&received), expected);
        assert_eq!(behind.open().is_empty(), is_early);
    }
}

/// Sends a request, which is answered with a text on the connection `at`.
fn exchange(
    talk: &mut TestConnection,
    behind: &UpstreamServers,
    at: usize,
    secure: Option<&mut Secure>,
    text: &str,
) {
    talk.send(get("/passed/2/9999"));
    assert_eq!(behind.open(), [at], "there is no other");
    match secure {
        None => behind.push(at, ok(text)),
        Some(secure) => {
            shake(talk, behind, at, secure);
            behind.push(at, secure.seal(ok(text).as_bytes()));
        }
    }
    assert_eq!(body(&talk.turn()), text);
}

#[test]
fn idle_connection_with_other_settings_is_replaced() {
    let pair = Pair::new();
    let (one, other) = (Some(pair.client(false)), Some(pair.client_of_tls12()));
    for (before, after) in [(&one, &other), (&one, &None), (&None, &one)] {
        let (mut talk, behind) = talk();
        // The routes have one pool, as if their digests were equal.
        let routes = [before.clone(), after.clone()];
        let chosen = Rc::new(Cell::new(0));
        let of_route = Rc::clone(&chosen);
        talk.world.adjust = Some(Box::new(move |route| {
            route.tls.clone_from(&routes[of_route.get()]);
        }));
        let accept = |tls: &Option<_>| tls.is_some().then(|| pair.accept());
        let (mut first, mut second) = (accept(before), accept(after));
        exchange(&mut talk, &behind, 0, first.as_mut(), "first");
        assert_eq!(behind.open(), [0], "it is idle");
        chosen.set(1);
        exchange(&mut talk, &behind, 1, second.as_mut(), "second");
        assert_eq!(behind.open(), NONE, "it is in no pool");
    }
}
