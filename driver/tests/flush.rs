//! Flushed data leaves at once: heads and pieces of bodies, through every compressor and protocol.
//!
//! A simulated worker serves a test module that makes its bodies in pieces in virtual time. The first part is the head
//! alone, or with a first piece; the rest follows half a second later. The bytes on the wire after one turn are decoded
//! like a client does. Absent: TLS, which the simulated sockets do not support.

#[path = "flush/client.rs"]
mod client;

use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::rc::Rc;
use std::sync::Arc;

use driver::worker::thread_config::ThreadConfig;
use engines::http::Chunk;
use flate2::{Compress, Compression, FlushCompress};
use server_base::errlog::ErrorLog;
use server_base::opened::OpenedLogs;
use server_http::exchange::{BodyRead, BodySource, Ctx, Exchange, Peer, Wait};
use server_http::http::Http;
use server_http::module::{Content, Handler, Module};
use server_http::{LoadOptions, load, reply};
use sim::{Faults, Random, Wire, World};

use client::{Client, PROTOCOLS, Protocol};

/// The pieces of every page, and their form after the filters of `/sub/`.
const PIECES: [&str; 2] = ["<p>the first words\n", "<p>and those that were late\n"];
const REPLACED: [&str; 2] = ["<p>the first letters\n", "<p>and those that were late\n"];
/// Time of the second piece, milliseconds.
const LATE_MS: u64 = 500;

const CONFIG: &str = "events {}
http {
    access_log off;
    gzip on; brotli on; zstd on; gunzip on;
    charset_map x-here utf-8 { 80 C3A4; }
    server {
        listen 127.0.0.1:8000 spdy;
        http2 on;
        location /plain/ {}
        location /sub/ { sub_filter words letters; }
        location /charset/ { charset utf-8; source_charset x-here; }
        location /gunzip/ {}
        location /all/ { sub_filter words letters; charset utf-8; source_charset x-here; }
        location /rate/ { limit_rate 1000k; }
    }
}";

const LATE_MODULE: Module = Module {
    name: "late",
    handlers: &[Handler::Content(answer)],
    ..Module::EMPTY
};

/// Answers with a page in pieces. With `?head` no piece is available with the head. With `?unmarked` the first piece is
/// not followed by a flush. With `?paused` the source makes the first piece, too, and pauses before the rest.
fn answer(x: &mut Exchange, cx: &mut Ctx<'_>) -> Content {
    let (mut gzip, packed) = (Gzip::default(), is_packed(&x.target.uri));
    let mut pieces = PIECES.map(|piece| match packed {
        true => gzip.piece(piece, piece == PIECES[1]),
        false => piece.as_bytes().to_vec(),
    });
    let mut first = (x.target.args != b"head").then(|| std::mem::take(&mut pieces[0]));
    let late_ms = cx.clock.mono_ms + LATE_MS;
    x.reply.status = 200;
    x.reply.content_type.set(b"text/html");
    if packed {
        x.reply.fields.push(b"Content-Encoding", b"gzip");
    }
    let paused = x.target.args == b"paused";
    let made = first.take_if(|_| paused);
    x.body.chunks.extend(first.map(Chunk::Owned));
    if x.target.args != b"unmarked" && !paused {
        x.body.chunks.push_back(Chunk::Flush);
    }
    x.body.source = Some(Box::new(LateBody {
        first: made,
        late_ms,
        rest: Some(pieces.concat()),
    }));
    reply::send(x, cx, None);
    Content::Sent
}

fn is_packed(uri: &[u8]) -> bool {
    uri.starts_with(b"/gunzip/") || uri.starts_with(b"/all/")
}

/// The rest of a page.
struct LateBody {
    first: Option<Vec<u8>>,
    late_ms: u64,
    rest: Option<Vec<u8>>,
}

impl BodySource for LateBody {
    fn next(&mut self, cx: &mut Ctx<'_>) -> BodyRead {
        if let Some(first) = self.first.take() {
            return BodyRead::Chunk(Chunk::Owned(first));
        }
        if cx.clock.mono_ms < self.late_ms {
            return BodyRead::Pending(Wait::until(self.late_ms));
        }
        match self.rest.take() {
            Some(rest) => BodyRead::Chunk(Chunk::Owned(rest)),
            None => BodyRead::End,
        }
    }
}

/// A source that compresses by itself and flushes each piece.
struct Gzip(Compress);

impl Default for Gzip {
    fn default() -> Self {
        Self(Compress::new_gzip(Compression::new(6), 15))
    }
}

impl Gzip {
    fn piece(&mut self, text: &str, last: bool) -> Vec<u8> {
        let mut out = Vec::with_capacity(1000);
        let flush = match last {
            true => FlushCompress::Finish,
            false => FlushCompress::Sync,
        };
        let done = self.0.compress_vec(text.as_bytes(), &mut out, flush);
        assert!(done.is_ok() && out.len() < 1000);
        out
    }
}

fn http() -> Arc<Http> {
    let modules: &'static [&'static Module] = Vec::leak(
        [&LATE_MODULE]
            .into_iter()
            .chain(server_modules::MODULES.iter().copied())
            .collect(),
    );
    let options = LoadOptions {
        conf_path: PathBuf::from("/etc/flush.conf"),
        prefix: PathBuf::from("/etc"),
        globals: None,
        error_log: None,
        access_log: PathBuf::from("/dev/null"),
    };
    let source = conf::Memory::default().with_file("/etc/flush.conf", CONFIG);
    let cycle = match load(source, &options, modules) {
        Ok(cycle) => cycle,
        Err(refused) => panic!("{}", refused.error.render(&refused.files)),
    };
    let http = cycle.http.expect("the configuration has an http block");
    http.attach_logs(OpenedLogs::default(), &ErrorLog::new(Vec::new()));
    http
}

/// One connection of a client to its own worker.
struct TestConnection {
    world: World,
    link: usize,
    client: Client,
    received: usize,
}

impl TestConnection {
    /// Sends a request and runs one turn of the loop.
    fn begin(http: &Arc<Http>, protocol: Protocol, target: &str, accepts: &str) -> Self {
        let generation = ThreadConfig::new(Arc::clone(http), 1);
        let mut world = World::new(generation, Random::new(1), 4_000_000_000_000, 65_536);
        let wire = Wire::new(
            Rc::clone(&world.hands),
            Random::new(2),
            Faults::default(),
            1 << 20,
        );
        let peer = Peer::Inet(SocketAddr::from((Ipv4Addr::LOCALHOST, 40_000)));
        let link = world.accept(wire, 0, peer);
        let (client, request) = Client::asking(protocol, target, accepts);
        world.links[link].wire.borrow_mut().push(&request);
        let mut talk = Self {
            world,
            link,
            client,
            received: 0,
        };
        talk.turn();
        talk
    }

    /// Runs one turn of the loop. The client reads the bytes on the wire.
    fn turn(&mut self) {
        self.world.poll(1000);
        let mut wire = self.world.links[self.link].wire.borrow_mut();
        wire.fetch(usize::MAX);
        self.client.receive(&wire.sent()[self.received..]);
        self.received = wire.sent().len();
    }
}

/// Returns the readable part of a page: at once, and half a second later.
fn watch(http: &Arc<Http>, protocol: Protocol, target: &str, accepts: &str) -> [String; 2] {
    let case = format!("{protocol:?} {target} {accepts}");
    let mut talk = TestConnection::begin(http, protocol, target, accepts);
    let seen = &talk.client.seen;
    assert_eq!(seen.status, "200", "{case}: the head leaves at once");
    assert_eq!(seen.coding, accepts, "{case}");
    assert!(!seen.ended, "{case}");
    let at_once = seen.text();
    let started_ms = talk.world.now_ms();
    let due = talk.world.next_deadline();
    let sleeps = due.is_some_and(|at| (started_ms + 1..=started_ms + LATE_MS).contains(&at));
    assert!(sleeps, "{case}: {due:?}");
    talk.world.advance(LATE_MS - 1);
    talk.turn();
    assert_eq!(talk.client.seen.text(), at_once, "{case}");
    talk.world.advance(1);
    talk.turn();
    assert!(talk.client.seen.ended, "{case}: the end is on time");
    [at_once, talk.client.seen.text()]
}

/// Returns every protocol with every coding that a client may accept, and with none.
fn cases() -> impl Iterator<Item = (Protocol, &'static str)> {
    PROTOCOLS
        .into_iter()
        .flat_map(|protocol| ["", "gzip", "br", "zstd"].map(|coding| (protocol, coding)))
}

#[test]
fn a_flushed_piece_leaves_in_its_turn() {
    let http = http();
    for (protocol, accepts) in cases() {
        for (place, pieces) in [
            ("plain", PIECES),
            ("sub", REPLACED),
            ("charset", PIECES),
            ("gunzip", PIECES),
            ("rate", PIECES),
        ] {
            let target = format!("/{place}/page");
            let got = watch(&http, protocol, &target, accepts);
            let wanted = [pieces[0].to_owned(), pieces.concat()];
            assert_eq!(got, wanted, "{protocol:?} {target} {accepts}");
        }
        if accepts != "gzip" {
            // The body is decompressed, its words replaced, and compressed again.
            let got = watch(&http, protocol, "/all/page", accepts);
            let wanted = [REPLACED[0].to_owned(), REPLACED.concat()];
            assert_eq!(got, wanted, "{protocol:?} {accepts}");
        }
    }
}

#[test]
fn pieces_before_a_pause_leave_in_their_turn() {
    let http = http();
    for (protocol, accepts) in cases() {
        for (place, pieces) in [("plain", PIECES), ("sub", REPLACED), ("gunzip", PIECES)] {
            let target = format!("/{place}/page?paused");
            let got = watch(&http, protocol, &target, accepts);
            let wanted = [pieces[0].to_owned(), pieces.concat()];
            assert_eq!(got, wanted, "{protocol:?} {target} {accepts}");
        }
    }
}

#[test]
fn a_head_alone_leaves_in_its_turn() {
    let http = http();
    for (protocol, accepts) in cases() {
        for place in ["plain", "sub", "charset", "gunzip", "rate"] {
            let target = format!("/{place}/page?head");
            let [at_once, all] = watch(&http, protocol, &target, accepts);
            assert_eq!(at_once, "", "{protocol:?} {target} {accepts}");
            let pieces = if place == "sub" { REPLACED } else { PIECES };
            assert_eq!(all, pieces.concat(), "{protocol:?} {target} {accepts}");
        }
    }
}

#[test]
fn without_a_flush_an_encoder_holds_its_input() {
    let http = http();
    for (protocol, accepts) in cases() {
        let [at_once, all] = watch(&http, protocol, "/plain/page?unmarked", accepts);
        let kept = if accepts.is_empty() { PIECES[0] } else { "" };
        assert_eq!(at_once, kept, "{protocol:?} {accepts}");
        assert_eq!(all, PIECES.concat(), "{protocol:?} {accepts}");
    }
}
