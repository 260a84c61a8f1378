//! Requests of HTTP/2 clients, with the expected response of each.

use std::ops::Range;

use sim::Random;

use super::super::site::FILES;

/// Expected response of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Expected {
    /// 200 and a file.
    File(usize),
    /// 206 and a part of a file.
    Part(usize, Range<usize>),
    /// 200 and the text of the configuration in force.
    Text,
    /// The text with a trailer.
    Trailer,
    /// A file with a trailer.
    Pieces(usize),
    /// A status with its page.
    Page(u16),
    /// 301 to this path.
    Moved(&'static str),
    /// A status without a body.
    Bare(u16),
    /// 400 with its page, then a reset: the message is malformed.
    Malformed,
    /// The text, or 400: the body does not have the announced length.
    WrongLength,
    /// A reset without a response.
    Drop,
}

/// One request.
#[derive(Clone, Debug)]
pub(crate) struct Request {
    pub(crate) fields: Vec<(String, String)>,
    /// Length of its body; `None` if the head ends the stream.
    pub(crate) body: Option<usize>,
    pub(crate) expected: Expected,
    pub(crate) is_head: bool,
    /// Delay of the response, milliseconds.
    pub(crate) wait_ms: u64,
    /// No later stream is served.
    pub(crate) last: bool,
}

fn request(path: &str, expected: Expected) -> Request {
    let fields = [
        (":method", "GET"),
        (":scheme", "http"),
        (":path", path),
        (":authority", "a.test"),
    ];
    Request {
        fields: fields
            .map(|(name, value)| (name.to_owned(), value.to_owned()))
            .into(),
        body: None,
        expected,
        is_head: false,
        wait_ms: 0,
        last: false,
    }
}

impl Request {
    /// Returns a random request.
    pub(crate) fn any(random: &mut Random) -> Self {
        let mut request = match random.below(24) {
            0..9 => file(random),
            9..12 => text(random),
            12 => request("/none", Expected::Bare(204)),
            13 => request("/moved?x=1", Expected::Moved("/small.html")),
            14 => request("/missing%20file", Expected::Page(404)),
            15 => request("/trailer", Expected::Trailer),
            16 => {
                let n = random.within(0..FILES.len());
                request(&format!("/pieces/{}", FILES[n].0), Expected::Pieces(n))
            }
            17 => too_large(random),
            18 => request("/drop", Expected::Drop),
            19 => return malformed(random),
            20 => return wrong_length(random),
            21 if random.chance(200) => Self {
                last: true,
                ..request("/last", Expected::Text)
            },
            _ => waiting(random),
        };
        if request.body.is_none() && random.chance(100) {
            request.fields[0].1 = "HEAD".to_owned();
            request.is_head = true;
        }
        for (name, value) in [
            ("te", "trailers"),
            ("cookie", "a=1"),
            ("cookie", "b=2"),
            ("accept", "*/*"),
            ("user-agent", "sim/1.0"),
        ] {
            if random.chance(200) {
                request.push(name, value);
            }
        }
        if random.chance(100) {
            let urgency = random.below(8);
            let incremental = if random.chance(500) { ", i" } else { "" };
            request.push("priority", &format!("u={urgency}{incremental}"));
        }
        if random.chance(60) {
            request.push("x-fill", &"f".repeat(random.within(1..900)));
        }
        request
    }

    fn push(&mut self, name: &str, value: &str) {
        self.fields.push((name.to_owned(), value.to_owned()));
    }

    fn post(mut self, bytes: usize, random: &mut Random) -> Self {
        self.fields[0].1 = "POST".to_owned();
        self.body = Some(bytes);
        if random.chance(500) {
            self.push("content-length", &bytes.to_string());
        }
        self
    }
}

fn file(random: &mut Random) -> Request {
    // Large files are rare, since they take most of a run's time.
    let most = if random.chance(150) { FILES.len() } else { 5 };
    let n = random.within(0..most);
    let (name, size) = FILES[n];
    let mut request = request(&format!("/{name}"), Expected::File(n));
    match random.below(10) {
        0 => {
            request.push("if-none-match", "*");
            request.expected = Expected::Bare(304);
        }
        1 | 2 if size > 1 => {
            let from = random.within(0..size);
            let to = random.within(from..size);
            request.push("range", &format!("bytes={from}-{to}"));
            request.expected = Expected::Part(n, from..to + 1);
        }
        3 if size > 0 => {
            request.push("range", &format!("bytes={size}-"));
            request.expected = Expected::Page(416);
        }
        4 => {
            request = request.post(20, random);
            request.expected = Expected::Page(405);
        }
        _ => {}
    }
    request
}

fn text(random: &mut Random) -> Request {
    let path = *random.pick(&["/text", "/%74ext", "/x/../text"]);
    let request = request(path, Expected::Text);
    if random.chance(300) {
        return request;
    }
    let bytes = match random.chance(30) {
        true => 100_000,
        false => *random.pick(&[0, 1, 10, 300, 5000]),
    };
    request.post(bytes, random)
}

fn too_large(random: &mut Random) -> Request {
    let bytes = *random.pick(&[100, 101, 4000]);
    let mut request = request("/limited", Expected::Text);
    request.fields[0].1 = "POST".to_owned();
    request.body = Some(bytes);
    request.push("content-length", &bytes.to_string());
    if bytes > 100 {
        request.expected = Expected::Page(413);
    }
    request
}

fn waiting(random: &mut Random) -> Request {
    let most_ms = *random.pick(&[100, 3000, 30_000]);
    let wait_ms = 1 + random.below(most_ms);
    let request = Request {
        wait_ms,
        ..request(&format!("/slow?wait={wait_ms}"), Expected::Text)
    };
    if random.chance(700) {
        return request;
    }
    request.post(*random.pick(&[1, 300, 70_000]), random)
}

/// Returns a malformed request (RFC 9113 section 8.1.1).
fn malformed(random: &mut Random) -> Request {
    let mut request = request("/text", Expected::Malformed);
    match random.below(8) {
        0 => _ = request.fields.remove(0),
        1 => request.fields.swap(1, 2),
        2 => request.push("X-Upper", "1"),
        3 => request.push("connection", "close"),
        4 => request.push("te", "gzip"),
        5 => request.push(":path", "/text"),
        6 => request.push("x", "a\nb"),
        _ => request.push("transfer-encoding", "chunked"),
    }
    if request.fields[1].0 == ":path" {
        // Pseudo-fields may have any order, but not after a field.
        request
            .fields
            .insert(2, ("accept".to_owned(), "*/*".to_owned()));
    }
    request
}

fn wrong_length(random: &mut Random) -> Request {
    let wait_ms = if random.chance(500) { 0 } else { 500 };
    let path = if wait_ms > 0 {
        "/slow?wait=500"
    } else {
        "/text"
    };
    let mut request = Request {
        wait_ms,
        ..request(path, Expected::WrongLength)
    };
    request.fields[0].1 = "POST".to_owned();
    let bytes = random.within(1..2000);
    request.push("content-length", &(bytes + 1).to_string());
    request.body = Some(bytes + 2 * random.within(0..2));
    request
}
