//! Random requests of clients, with the expected response of each.

use std::ops::Range;

use sim::Random;

use super::site::FILES;

/// Expected response of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Expected {
    /// 200 and a file.
    File(usize),
    /// 206 and a part of a file.
    Part(usize, Range<usize>),
    /// 206 and several parts of a file.
    Parts(usize, Vec<Range<usize>>),
    /// 200 and the text of the configuration in force.
    Text,
    /// The text in chunks with a trailer, if the protocol has chunks.
    Trailer,
    /// A file in chunks with a trailer, if the protocol has chunks.
    ChunkedFile(usize),
    /// A status with its page.
    Page(u16),
    /// 301 to this path.
    Moved(&'static str),
    /// A status without a body.
    Bare(u16),
    /// A status with its page, then the end: the head violates the protocol.
    Refused(u16),
    /// The text, or 400 if the fault was found first; then the end.
    BrokenBody,
    /// 200 with the length and the sum of a collected body.
    Stored(usize),
    /// A close without a response.
    Drop,
}

/// Required way of closing a connection after a response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Linger {
    /// Reads on if the client may be sending.
    On,
    /// Closes at once.
    Off,
    /// Always reads on.
    Always,
}

/// One request.
#[derive(Clone, Debug)]
pub(crate) struct Request {
    /// Its bytes; `head_len` of them are the head.
    pub(crate) wire: Vec<u8>,
    pub(crate) head_len: usize,
    pub(crate) want: Expected,
    pub(crate) is_head: bool,
    /// HTTP version: 9, 10 or 11.
    pub(crate) version: u8,
    /// The response must be the last.
    pub(crate) last: bool,
    pub(crate) linger: Linger,
    /// Delay of the response, milliseconds.
    pub(crate) wait_ms: u64,
    /// `Expect: 100-continue` was sent.
    pub(crate) expects: bool,
}

/// Parts of a request before it is encoded.
struct Draft {
    method: &'static str,
    target: String,
    version: u8,
    fields: Vec<String>,
    body: Vec<u8>,
    want: Expected,
    last: bool,
    linger: Linger,
    wait_ms: u64,
    expects: bool,
}

/// Returns small requests. Their responses need several writes.
pub(crate) fn crowd(random: &mut Random) -> Vec<Request> {
    let count = random.within(60..150);
    (0..count)
        .map(|_| draft("/text", Expected::Text).finish(random))
        .collect()
}

/// Returns a random request.
pub(crate) fn request(random: &mut Random) -> Request {
    match random.below(100) {
        0..4 => broken_head(random),
        4..7 => broken_body(random),
        7..9 => http09(random),
        _ => {
            let mut draft = sound(random);
            connection(&mut draft, random);
            draft.finish(random)
        }
    }
}

fn draft(target: &str, want: Expected) -> Draft {
    Draft {
        method: "GET",
        target: target.to_owned(),
        version: 11,
        fields: Vec::new(),
        body: Vec::new(),
        want,
        last: false,
        linger: Linger::On,
        wait_ms: 0,
        expects: false,
    }
}

fn sound(random: &mut Random) -> Draft {
    match random.below(23) {
        0..8 => file(random),
        8..11 => text(random),
        11 => Draft {
            last: true,
            ..draft("/last", Expected::Text)
        },
        12 => draft("/none", Expected::Bare(204)),
        13 => draft("/moved?x=1", Expected::Moved("/small.html")),
        14 => draft("/missing%20file", Expected::Page(404)),
        15 => draft("/dir", Expected::Moved("/dir/")),
        16 => draft(
            random.pick::<&str>(&["/dir/", "//dir/./"]),
            Expected::Page(403),
        ),
        17 => draft("/trailer", Expected::Trailer),
        18 => {
            let n = random.within(0..FILES.len());
            draft(&format!("/pieces/{}", FILES[n].0), Expected::ChunkedFile(n))
        }
        19 => too_large(random),
        20 => closing(random),
        21 => stored(random),
        _ => {
            let most_ms = *random.pick(&[100, 3000, 30_000]);
            let wait_ms = 1 + random.below(most_ms);
            Draft {
                wait_ms,
                ..draft(&format!("/slow?wait={wait_ms}"), Expected::Text)
            }
        }
    }
}

fn closing(random: &mut Random) -> Draft {
    match random.below(4) {
        0 => draft("/drop", Expected::Drop),
        1 => Draft {
            last: true,
            linger: Linger::Always,
            ..draft("/always", Expected::Text)
        },
        2 => Draft {
            last: true,
            linger: Linger::Off,
            ..draft("/never", Expected::Text)
        },
        _ => Draft {
            method: "PUT",
            ..draft("/one.bin", Expected::Page(405))
        },
    }
}

fn text(random: &mut Random) -> Draft {
    let mut draft = draft(
        random.pick::<&str>(&["/text", "/%74ext", "/x/../text", "http://a.test/text"]),
        Expected::Text,
    );
    if random.chance(600) {
        draft.method = "POST";
        let len = if random.chance(20) {
            100_000
        } else {
            *random.pick(&[0, 1, 10, 300, 5000])
        };
        body(&mut draft, len, random);
    }
    draft
}

/// Returns a request with an awaited body. A large one fills the server's buffer.
fn stored(random: &mut Random) -> Draft {
    let len = match random.chance(100) {
        true => *random.pick(&[65_535, 65_536, 65_537, 131_073, 300_000]),
        false => *random.pick(&[0, 1, 10, 300, 5000]),
    };
    let mut draft = draft("/store", Expected::Stored(len));
    draft.method = "POST";
    body(&mut draft, len, random);
    draft
}

fn too_large(random: &mut Random) -> Draft {
    let len = *random.pick(&[100, 101, 4000]);
    let fields = vec![format!("Content-Length: {len}")];
    let draft = Draft {
        method: "POST",
        body: vec![b'x'; len],
        fields,
        ..draft("/limited", Expected::Text)
    };
    if len > 100 {
        Draft {
            want: Expected::Page(413),
            last: true,
            ..draft
        }
    } else {
        draft
    }
}

/// Adds a body to a request, with a length or in chunks.
fn body(draft: &mut Draft, len: usize, random: &mut Random) {
    if random.chance(250) {
        draft.fields.push("Expect: 100-continue".to_owned());
        draft.expects = true;
    }
    if random.chance(500) {
        draft.fields.push(format!("Content-Length: {len}"));
        draft.body = vec![b'b'; len];
        return;
    }
    draft.fields.push("Transfer-Encoding: chunked".to_owned());
    let mut left = len;
    while left > 0 {
        let size = random.piece(left);
        let extension = if random.chance(200) { ";a=\"b\"" } else { "" };
        draft
            .body
            .extend_from_slice(format!("{size:x}{extension}\r\n").as_bytes());
        draft.body.extend(std::iter::repeat_n(b'b', size));
        draft.body.extend_from_slice(b"\r\n");
        left -= size;
    }
    draft.body.extend_from_slice(if random.chance(300) {
        b"0\r\nX-T: 1\r\n\r\n"
    } else {
        b"0\r\n\r\n"
    });
}

fn file(random: &mut Random) -> Draft {
    // Large files are rare, since they take most of a run's time.
    let most = if random.chance(100) { FILES.len() } else { 5 };
    let n = random.within(0..most);
    let (name, size) = FILES[n];
    let mut draft = draft(&format!("/{name}"), Expected::File(n));
    if random.chance(100) {
        draft.target = format!("/cork/{name}");
    }
    match random.below(10) {
        0 => conditional(&mut draft, random),
        1..4 => range(&mut draft, n, size, random),
        4 => {
            draft.method = "POST";
            draft.want = Expected::Page(405);
            body(&mut draft, 20, random);
        }
        _ => {}
    }
    draft
}

fn conditional(draft: &mut Draft, random: &mut Random) {
    let (field, want) = match random.below(4) {
        0 => ("If-None-Match: *", Some(Expected::Bare(304))),
        1 => ("If-Match: \"no-such\"", Some(Expected::Page(412))),
        2 => (
            "If-Unmodified-Since: Sun, 06 Nov 1994 08:49:37 GMT",
            Some(Expected::Page(412)),
        ),
        _ => ("If-Modified-Since: Sun, 06 Nov 1994 08:49:37 GMT", None),
    };
    draft.fields.push(field.to_owned());
    if let Some(want) = want {
        draft.want = want;
    }
}

fn range(draft: &mut Draft, n: usize, size: usize, random: &mut Random) {
    if size < 2 {
        return;
    }
    let from = random.within(0..size);
    let to = random.within(from..size);
    let (value, want) = match random.below(7) {
        0 => (format!("{from}-"), Expected::Part(n, from..size)),
        1 => {
            let len = random.within(1..size);
            (format!("-{len}"), Expected::Part(n, size - len..size))
        }
        2 => (format!("{size}-"), Expected::Page(416)),
        3 => {
            // In any order, a few bytes each.
            let mut some = || {
                let start = random.within(0..size - 1);
                start
                    ..(start + 1 + random.within(0..20))
                        .min(size)
                        .min(start + size / 3 + 1)
            };
            let parts = vec![some(), some()];
            let spec: Vec<String> = parts
                .iter()
                .map(|r| format!("{}-{}", r.start, r.end - 1))
                .collect();
            if parts.iter().map(Range::len).sum::<usize>() > size {
                (spec[0].clone(), Expected::Part(n, parts[0].clone()))
            } else {
                (spec.join(", "), Expected::Parts(n, parts))
            }
        }
        _ => (format!("{from}-{to}"), Expected::Part(n, from..to + 1)),
    };
    draft.fields.push(format!("Range: bytes={value}"));
    draft.want = want;
    if random.chance(100) {
        draft.fields.push("If-Range: \"another\"".to_owned());
        draft.want = Expected::File(n);
    }
}

/// Chooses HEAD, version 1.0, and connection options.
fn connection(draft: &mut Draft, random: &mut Random) {
    if draft.method == "GET" && random.chance(120) {
        draft.method = "HEAD";
    }
    let chunked = draft.fields.iter().any(|f| f.starts_with("Transfer"));
    if !chunked && random.chance(120) {
        draft.version = 10;
        draft.expects = false;
        if random.chance(600) {
            draft.fields.push("Connection: Keep-Alive".to_owned());
        } else {
            draft.last = true;
        }
    } else if random.chance(60) {
        draft.fields.push(format!(
            "Connection: {}",
            random.pick(&["close", "TE, close", "Close"])
        ));
        draft.last = true;
    }
    if random.chance(100) {
        let len = random.within(1..900);
        draft.fields.push(format!("X-Fill: {}", "f".repeat(len)));
    }
}

impl Draft {
    fn finish(self, random: &mut Random) -> Request {
        let mut wire = Vec::new();
        if random.chance(30) {
            wire.extend_from_slice(b"\r\n");
        }
        let end = if random.chance(50) { "\n" } else { "\r\n" };
        let mut text = format!(
            "{} {} HTTP/1.{}{end}Host: a.test{end}",
            self.method,
            self.target,
            self.version - 10
        );
        for field in &self.fields {
            text.push_str(field);
            text.push_str(end);
        }
        text.push_str(end);
        wire.extend_from_slice(text.as_bytes());
        let head_len = wire.len();
        wire.extend_from_slice(&self.body);
        Request {
            wire,
            head_len,
            is_head: self.method == "HEAD",
            version: self.version,
            last: self.last,
            linger: self.linger,
            wait_ms: self.wait_ms,
            expects: self.expects,
            want: self.want,
        }
    }
}

fn http09(random: &mut Random) -> Request {
    let (target, want) = match random.below(2) {
        0 => ("/text".to_owned(), Expected::Text),
        _ => (format!("/{}", FILES[3].0), Expected::File(3)),
    };
    Request {
        version: 9,
        ..whole(format!("GET {target}\r\n").into_bytes(), want)
    }
}

fn whole(wire: Vec<u8>, want: Expected) -> Request {
    Request {
        head_len: wire.len(),
        wire,
        want,
        is_head: false,
        version: 11,
        last: true,
        linger: Linger::On,
        wait_ms: 0,
        expects: false,
    }
}

fn broken_head(random: &mut Random) -> Request {
    let long = "l".repeat(1100);
    let of = |start: &str, fields: &str| format!("{start}\r\nHost: a.test\r\n{fields}\r\n");
    let get = "GET /text HTTP/1.1";
    let post = "POST /text HTTP/1.1";
    let (text, status) = match random.below(19) {
        0 => (format!("{get}\r\n\r\n"), 400),
        1 => (of(get, "Host: b.test\r\n"), 400),
        2 => (of("GET /text HTTP/2.0", ""), 505),
        3 => (of("get /text HTTP/1.1", ""), 400),
        4 => (of(post, "Content-Length: 1\r\nContent-Length: 1\r\n"), 400),
        5 => (
            of(post, "Content-Length: 1\r\nTransfer-Encoding: chunked\r\n"),
            400,
        ),
        6 => (of(post, "Transfer-Encoding: gzip\r\n"), 501),
        7 => (of(post, "Content-Length: 1x\r\n"), 400),
        8 => (
            of("POST /text HTTP/1.0", "Transfer-Encoding: chunked\r\n"),
            400,
        ),
        9 => (of("TRACE /text HTTP/1.1", ""), 405),
        10 => (of("CONNECT a.test:80 HTTP/1.1", ""), 405),
        11 => (format!("{get}\r\nHost: a/b\r\n\r\n"), 400),
        12 => (of("GET /../text HTTP/1.1", ""), 400),
        13 => (of("GET /%zz HTTP/1.1", ""), 400),
        14 => (of(&format!("GET /{long} HTTP/1.1"), ""), 414),
        15 => (of(get, &format!("X-Long: {long}\r\n")), 400),
        16 => (of(get, "X-Nul: a\0b\r\n"), 400),
        17 => (of("GET /text HTTP/1.1 x", ""), 400),
        _ => ("\u{16}\u{3}\u{1}\u{2}garbage\r\n\r\n".to_owned(), 400),
    };
    // A head that the engine accepts and the core refuses may have been read completely.
    let want = if text.contains("/../") || text.contains("%zz") {
        Expected::Page(status)
    } else {
        Expected::Refused(status)
    };
    whole(text.into_bytes(), want)
}

fn broken_body(random: &mut Random) -> Request {
    let broken = *random.pick(&[
        "zz\r\n",
        "3\r\nabcd\r\n",
        "1\nx\r\n",
        "-1\r\n",
        "0\r\n: x\r\n\r\n",
        "5\r\nabc\r\n0\r\n\r\n",
    ]);
    let head = "POST /text HTTP/1.1\r\nHost: a.test\r\nTransfer-Encoding: chunked\r\n\r\n";
    let request = whole(
        format!("{head}2\r\nok\r\n{broken}").into_bytes(),
        Expected::BrokenBody,
    );
    Request {
        head_len: head.len(),
        last: false,
        ..request
    }
}
