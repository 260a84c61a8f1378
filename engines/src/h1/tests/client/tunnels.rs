//! Connections that become tunnels.

use super::*;

const SWITCHING: &str = "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\n\r\nhi";

#[test]
fn upgrades_need_to_be_asked_for() {
    assert_eq!(told(SWITCHING), ["UnaskedUpgrade"]);
    assert_eq!(failure(SWITCHING), "switched protocols without being asked");
    let lines = told_by(|| asked_with("GET", &[], upgrade()), SWITCHING);
    assert_eq!(lines, ["101 Upgrade=websocket", "Upgraded(1)", "+hi"]);
    let refused = told_by(
        || asked_with("GET", &[], upgrade()),
        "HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nx",
    );
    assert_eq!(refused, ["200 Content-Length=1", "+x", "end 1"]);
    let connect = told_by(
        || asked_with("CONNECT", &[], upgrade()),
        "HTTP/1.1 200 OK\r\n\r\ntunnel",
    );
    assert_eq!(connect, ["200", "Upgraded(1)", "+tunnel"]);
}

/// The rest of the request would be taken for the other protocol.
#[test]
fn upgrades_wait_for_the_whole_request() {
    let options = RequestOptions {
        body: BodyLength::Length(2),
        ..upgrade()
    };
    for (sent, line) in [("a", "UnaskedUpgrade"), ("ab", "101 Upgrade=websocket")] {
        let mut client = asked_with("PUT", &[("Content-Length", "2")], options);
        client.send(Chunk::Owned(sent.into()));
        client.receive(SWITCHING.as_bytes());
        assert_eq!(events(&mut client)[0], line, "{sent}");
    }
}

#[test]
fn tunnels_are_raw_and_end_on_each_side() {
    for ours_first in [true, false] {
        let mut client = asked_with("GET", &[], upgrade());
        client.receive(SWITCHING.as_bytes());
        events(&mut client);
        client.send(Chunk::Static(b"raw"));
        client.send(Chunk::Flush);
        assert_eq!(text(&mut client), "raw");
        if ours_first {
            client.end(None);
            client.receive(b"more");
            assert_eq!(events(&mut client), ["+more"]);
        }
        client.receive_eof(true);
        assert_eq!(
            events(&mut client)[..],
            ["end 2", "end 6"][usize::from(ours_first)..][..1]
        );
        assert!(client.is_closed() && !client.is_reusable());
        if !ours_first {
            client.send(Chunk::Static(b"late"));
            client.end(None);
            assert_eq!(text(&mut client), "late");
        }
        client.send(Chunk::Static(b"too late"));
        assert_eq!(text(&mut client), "");
        assert_eq!(events(&mut client), Vec::<String>::new());
    }
    let mut client = asked_with("GET", &[], upgrade());
    client.receive(SWITCHING.as_bytes());
    client.receive_eof(false);
    assert_eq!(events(&mut client).pop().as_deref(), Some("Truncated"));
}
