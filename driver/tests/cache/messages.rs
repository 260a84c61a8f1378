//! Messages as the simulated server reads and writes them.

use sim::Random;

use super::ledger::{Giving, RESOURCES, TAGS, VARIANTS, Version, etag, modified};

/// The end of a response.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum End {
    Keep,
    Close,
    Reset,
    /// Nothing more comes.
    Silent,
}

/// A request as the server reads it.
pub(crate) struct ServerRequest {
    pub(crate) id: usize,
    pub(crate) method: String,
    pub(crate) resource: usize,
    pub(crate) variant: usize,
    /// `If-None-Match` and `If-Modified-Since`.
    pub(crate) conditions: [Option<String>; 2],
    /// Bytes with the body.
    pub(crate) len: usize,
}

/// Returns the head of a response, without the framing and the empty line.
pub(crate) fn head_text(giving: &Giving, version: &Version) -> String {
    let number = giving.version;
    let mut text = match (giving.is_304, version.status) {
        (true, _) => "HTTP/1.1 304 Not Modified\r\n",
        (false, 500) => "HTTP/1.1 500 Internal Server Error\r\n",
        _ => "HTTP/1.1 200 OK\r\n",
    }
    .to_owned();
    let policy = giving.policy.text();
    text += &format!("Cache-Control: {policy}\r\nX-Version: {number}\r\n");
    if version.has_etag {
        text += &format!("ETag: {}\r\n", etag(number));
    }
    if version.has_date {
        text += &format!("Last-Modified: {}\r\n", modified(number));
    }
    if giving.varies {
        text += "Vary: X-V\r\n";
    }
    if giving.is_tagged {
        text += &format!("Cache-Tag: g{}\r\n", version.resource % TAGS);
    }
    text
}

/// Returns the bytes of a response, with one of the framings of a body, and the end that belongs to it.
pub(crate) fn framed(
    mut head: String,
    body: &[u8],
    is_bodiless: bool,
    random: &mut Random,
) -> (Vec<u8>, End) {
    let choice = random.below(10);
    match choice {
        _ if is_bodiless => {}
        0..6 => head += &format!("Content-Length: {}\r\n", body.len()),
        6..9 => head += "Transfer-Encoding: chunked\r\n",
        _ => head += "Connection: close\r\n",
    }
    let mut bytes = (head + "\r\n").into_bytes();
    match choice {
        _ if is_bodiless => {}
        6..9 => {
            for piece in body.chunks(random.within(1..5000).max(body.len() / 8)) {
                bytes.extend_from_slice(format!("{:x}\r\n", piece.len()).as_bytes());
                bytes.extend_from_slice(piece);
                bytes.extend_from_slice(b"\r\n");
            }
            bytes.extend_from_slice(b"0\r\n\r\n");
        }
        0..6 => bytes.extend_from_slice(body),
        _ => {
            bytes.extend_from_slice(body);
            return (bytes, End::Close);
        }
    }
    (bytes, End::Keep)
}

/// Parses the request at the begin of these bytes; `None`: it is incomplete.
pub(crate) fn parse(bytes: &[u8]) -> Result<Option<ServerRequest>, String> {
    let Some(end) = bytes.windows(4).position(|w| w == b"\r\n\r\n") else {
        return Ok(None);
    };
    let head = String::from_utf8_lossy(&bytes[..end]);
    let mut lines = head.split("\r\n");
    let mut words = lines.next().unwrap_or_default().split(' ');
    let method = words.next().unwrap_or_default().to_owned();
    let name = words.next().unwrap_or_default().trim_start_matches('/');
    let fields: Vec<(&str, &str)> = lines.filter_map(|line| line.split_once(": ")).collect();
    let field = |name: &str| {
        let mut found = fields.iter().filter(|(n, _)| n.eq_ignore_ascii_case(name));
        found.next().map(|(_, value)| (*value).to_owned())
    };
    let number = |name: &str| field(name).and_then(|value| value.parse().ok());
    let resource = RESOURCES.iter().position(|r| r.name == name);
    let (Some(resource), Some(id)) = (resource, number("X-Id")) else {
        return Err(format!("a request for nothing: {head:?}"));
    };
    let variant = field("X-V").unwrap_or_default();
    let len = end + 4 + number("Content-Length").unwrap_or(0);
    Ok((bytes.len() >= len).then(|| ServerRequest {
        id,
        method,
        resource,
        variant: VARIANTS.iter().position(|v| *v == variant).unwrap_or(0),
        conditions: [field("If-None-Match"), field("If-Modified-Since")],
        len,
    }))
}
