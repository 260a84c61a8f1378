//! How bodies of responses leave.

use super::{Codec, Peer, response};
use crate::http::{BodyLength, Chunk};
use crate::mux::SendOptions;

/// A source without data is not polled before it has more.
pub(crate) fn source_that_stalls_is_asked_again_when_it_has_more<C: Codec>() {
    let mut peer = Peer::<C>::new();
    peer.get(1, "/").answer(1, &[b"a", b"", b"b"]);
    let head = format!("1 {} 200", C::RESPONSE);
    assert_eq!(peer.told(), [head.as_str(), "1 DATA a"]);
    assert!(peer.told().is_empty());
    peer.conn.resume(1);
    assert_eq!(peer.told(), ["1 DATA b END"]);
}

/// A body that breaks off is not presented as whole, and loses none of its earlier bytes.
pub(crate) fn stream_that_is_broken_off_is_reset_behind_what_waits<C: Codec>() {
    let mut peer = Peer::<C>::new();
    peer.get(1, "/").get(3, "/");
    let plan = SendOptions {
        trailers: false,
        chunk_bytes: 1000,
    };
    let head = response(200, BodyLength::Unknown);
    let break_off = |peer: &mut Peer<C>, stream| peer.conn.break_off(stream, C::INTERNAL_ERROR);
    let head_line = |stream: u32| format!("{stream} {} 200", C::RESPONSE);
    assert!(!break_off(&mut peer, 1), "nothing is sent");
    peer.conn.send_head(1, &head, plan);
    peer.conn.send_data(1, Chunk::Static(b"whole"));
    peer.conn.send_data(1, Chunk::Static(b"and more"));
    assert!(break_off(&mut peer, 1));
    assert!(!break_off(&mut peer, 1), "once");
    peer.conn.send_data(1, Chunk::Static(b"too late"));
    peer.conn.send_end(1, None);
    peer.pump();
    let told = [
        &head_line(1),
        "1 DATA wholeand more",
        "1 RST INTERNAL_ERROR",
    ];
    assert_eq!(peer.told(), told);
    assert_eq!(peer.finished, [1]);
    peer.conn.send_head(3, &head, plan);
    assert!(break_off(&mut peer, 3), "nothing waits");
    peer.pump();
    assert_eq!(peer.told(), [head_line(3).as_str(), "3 RST INTERNAL_ERROR"]);
    assert!(!break_off(&mut peer, 5), "there is no such stream");
}
