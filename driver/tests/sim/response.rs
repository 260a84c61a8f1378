//! A strict parser of responses, for a client that trusts no server.

/// Framing of the body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Framed {
    /// Without a body.
    Bodiless,
    Length,
    Chunked,
    /// By the end of the connection.
    UntilClose,
}

/// A final response, with the number of interim responses before it.
#[derive(Clone, Debug)]
pub(crate) struct Response {
    pub(crate) interim: usize,
    pub(crate) status: u16,
    pub(crate) fields: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
    pub(crate) trailers: Vec<(String, String)>,
    pub(crate) framed: Framed,
    /// Length on the wire, including interim responses.
    pub(crate) len: usize,
}

/// Result of parsing.
pub(crate) enum Read {
    Whole(Response),
    /// Incomplete: at least this number of bytes is needed in total.
    More(usize),
}

impl Response {
    /// Returns the value of a field that occurs at most once.
    pub(crate) fn field(&self, name: &str) -> Option<&str> {
        self.fields
            .iter()
            .find(|(n, _)| n.eq_ignore_ascii_case(name))
            .map(|(_, v)| v.as_str())
    }
}

/// Parses the response to a request. An error is a violation of RFC 9112.
pub(crate) fn read(bytes: &[u8], is_head: bool) -> Result<Read, String> {
    let mut at = 0;
    let mut interim = 0;
    loop {
        let Some(end) = find(&bytes[at..], b"\r\n\r\n") else {
            return Ok(Read::More(bytes.len() + 1));
        };
        let (status, fields) = head(&bytes[at..at + end + 2])?;
        at += end + 4;
        if status < 200 && status != 101 {
            interim += 1;
            continue;
        }
        let bare = is_head || matches!(status, 101 | 204 | 304);
        let framed = framing(&fields, bare)?;
        let rest = &bytes[at..];
        let mut response = Response {
            interim,
            status,
            fields,
            body: Vec::new(),
            trailers: Vec::new(),
            framed,
            len: at,
        };
        match framed {
            Framed::Bodiless | Framed::UntilClose => {}
            Framed::Length => {
                let len = response
                    .field("Content-Length")
                    .and_then(|v| v.parse().ok())
                    .unwrap_or(0);
                if rest.len() < len {
                    return Ok(Read::More(at + len));
                }
                response.body = rest[..len].to_vec();
                response.len += len;
            }
            Framed::Chunked => match chunked(rest)? {
                None => return Ok(Read::More(bytes.len() + 1)),
                Some((body, trailers, len)) => {
                    response.body = body;
                    response.trailers = trailers;
                    response.len += len;
                }
            },
        }
        return Ok(Read::Whole(response));
    }
}

type Fields = Vec<(String, String)>;

fn head(bytes: &[u8]) -> Result<(u16, Fields), String> {
    let text = std::str::from_utf8(bytes).map_err(|_| "a head is not text".to_owned())?;
    let mut lines = text.split_terminator("\r\n");
    let line = lines.next().unwrap_or_default();
    let status = line
        .strip_prefix("HTTP/1.1 ")
        .filter(|rest| rest.as_bytes().get(3) == Some(&b' '))
        .and_then(|rest| rest[..3].parse().ok())
        .ok_or_else(|| format!("not a status line: {line:?}"))?;
    Ok((status, fields(lines)?))
}

fn fields<'a>(lines: impl Iterator<Item = &'a str>) -> Result<Fields, String> {
    lines
        .map(|line| match line.split_once(": ") {
            Some((name, value)) if !name.is_empty() && !line.contains(['\r', '\n']) => {
                Ok((name.to_owned(), value.to_owned()))
            }
            _ => Err(format!("not a field: {line:?}")),
        })
        .collect()
}

fn framing(fields: &Fields, bare: bool) -> Result<Framed, String> {
    let values = |name: &str| -> Vec<&str> {
        fields
            .iter()
            .filter(|(n, _)| n.eq_ignore_ascii_case(name))
            .map(|(_, v)| v.as_str())
            .collect()
    };
    for name in ["Connection", "Server", "Date"] {
        if values(name).len() != 1 {
            return Err(format!("{name} does not come once: {fields:?}"));
        }
    }
    let (length, encoding) = (values("Content-Length"), values("Transfer-Encoding"));
    let framed = match (length.as_slice(), encoding.as_slice()) {
        ([digits], []) if digits.parse::<u32>().is_ok() => Framed::Length,
        ([], ["chunked"]) => Framed::Chunked,
        ([], []) => Framed::UntilClose,
        _ => return Err(format!("contradicting framing: {fields:?}")),
    };
    Ok(if bare { Framed::Bodiless } else { framed })
}

type Chunked = (Vec<u8>, Fields, usize);

fn chunked(bytes: &[u8]) -> Result<Option<Chunked>, String> {
    let (mut at, mut body) = (0, Vec::new());
    loop {
        let Some(end) = find(&bytes[at..], b"\r\n") else {
            return Ok(None);
        };
        let digits = std::str::from_utf8(&bytes[at..at + end]).unwrap_or_default();
        let size = usize::from_str_radix(digits, 16)
            .map_err(|_| format!("not a chunk size: {digits:?}"))?;
        at += end + 2;
        if size == 0 {
            break;
        }
        let Some(data) = bytes.get(at..at + size + 2) else {
            return Ok(None);
        };
        if !data.ends_with(b"\r\n") {
            return Err("a chunk does not end with its line".to_owned());
        }
        body.extend_from_slice(&data[..size]);
        at += size + 2;
    }
    // The trailer section begins after the line of the last chunk.
    let Some(end) = find(&bytes[at - 2..], b"\r\n\r\n") else {
        return Ok(None);
    };
    let text = std::str::from_utf8(&bytes[at..at + end])
        .map_err(|_| "trailers are not text".to_owned())?;
    let trailers = fields(text.split_terminator("\r\n"))?;
    Ok(Some((body, trailers, at + end + 2)))
}

fn find(bytes: &[u8], what: &[u8]) -> Option<usize> {
    bytes.windows(what.len()).position(|w| w == what)
}
