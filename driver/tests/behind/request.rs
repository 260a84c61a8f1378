//! A strict reader of the requests on one server connection, one after the other.

use super::fastcgi;
use super::ledger::Part;
use super::protocol::{Params, ServerProtocol, find};

/// State of the request being read.
#[derive(Debug, Default)]
pub(crate) struct Reader {
    protocol: ServerProtocol,
    /// Start of the request in the connection's bytes; `head_end` and `end` are offsets, too.
    from: usize,
    pub(crate) head_end: Option<usize>,
    pub(crate) end: Option<usize>,
    /// Offset of the next byte to read.
    at: usize,
    framing: Framing,
    pub(crate) method: String,
    /// The connection may be reused, according to the request.
    pub(crate) keep: bool,
    pub(crate) body: Vec<u8>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Framing {
    #[default]
    None,
    Length(usize),
    Chunked,
    /// STDIN of FastCGI.
    Records,
    /// Data after a 101 response.
    Tunnel,
}

impl Reader {
    pub(crate) fn new(protocol: ServerProtocol) -> Self {
        Self {
            protocol,
            ..Self::default()
        }
    }

    /// Returns the request that begins, once its target is complete.
    ///
    /// # Errors
    /// The request belongs to no client.
    pub(crate) fn begins(&self, came: &[u8]) -> Result<Option<(usize, Part)>, String> {
        name(self.protocol, &came[self.from..])
    }

    /// Whether any byte of it has arrived.
    pub(crate) fn has_begun(&self, came: &[u8]) -> bool {
        came.len() > self.from
    }

    /// Continues with the next request.
    pub(crate) fn next(&mut self) {
        let from = self.end.unwrap_or(self.at);
        *self = Self {
            protocol: self.protocol,
            from,
            at: from,
            ..Self::default()
        };
    }

    /// The connection becomes a tunnel.
    pub(crate) fn tunnel(&mut self) {
        self.framing = Framing::Tunnel;
        self.end = None;
    }

    /// Reads the received bytes.
    ///
    /// # Errors
    /// A description of the error.
    pub(crate) fn read(&mut self, came: &[u8], id: usize) -> Result<(), String> {
        if self.head_end.is_none() && self.protocol != ServerProtocol::Http {
            let Some((params, len)) = self.protocol.params(&came[self.from..])? else {
                return Ok(());
            };
            self.at = self.from + len;
            self.head_end = Some(self.at);
            self.params(&params, id)?;
        }
        if self.head_end.is_none() {
            let Some(len) = find(&came[self.from..], b"\r\n\r\n") else {
                return Ok(());
            };
            self.at = self.from + len + 4;
            self.head_end = Some(self.at);
            self.head(&came[self.from..self.at - 2], id)?;
        }
        if self.end.is_some() {
            return Ok(());
        }
        match self.framing {
            Framing::None => self.end = Some(self.at),
            Framing::Length(len) => {
                let more = (len - self.body.len()).min(came.len() - self.at);
                self.take(came, more);
                if self.body.len() == len {
                    self.end = Some(self.at);
                }
            }
            Framing::Chunked => return self.chunks(came),
            Framing::Records => return self.records(came),
            Framing::Tunnel => self.take(came, came.len() - self.at),
        }
        Ok(())
    }

    fn take(&mut self, came: &[u8], len: usize) {
        self.body.extend_from_slice(&came[self.at..self.at + len]);
        self.at += len;
    }

    fn head(&mut self, head: &[u8], id: usize) -> Result<(), String> {
        let text = std::str::from_utf8(head).map_err(|_| "a request head is not text")?;
        let mut lines = text.split_terminator("\r\n");
        let line = lines.next().unwrap_or_default();
        let words: Vec<&str> = line.split(' ').collect();
        let [method, _, "HTTP/1.1"] = words[..] else {
            return Err(format!("not a request line: {line:?}"));
        };
        self.method = method.to_owned();
        let (mut hosts, mut ids) = (0, Vec::new());
        let mut framings = Vec::new();
        for line in lines {
            let (name, value) = line
                .split_once(": ")
                .ok_or_else(|| format!("not a field: {line:?}"))?;
            match name.to_ascii_lowercase().as_str() {
                "host" => hosts += 1,
                "x-id" => ids.push(value.to_owned()),
                "content-length" => framings.push(Framing::Length(
                    value.parse().map_err(|_| format!("length {value:?}"))?,
                )),
                "transfer-encoding" if value == "chunked" => framings.push(Framing::Chunked),
                "transfer-encoding" => return Err(format!("coding {value:?}")),
                _ => {}
            }
        }
        if hosts != 1 || ids != [id.to_string()] || framings.len() > 1 {
            return Err(format!("a head with the wrong fields: {text:?}"));
        }
        self.framing = framings.pop().unwrap_or_default();
        Ok(())
    }

    /// Checks the parameters of a request. Each name occurs once.
    fn params(&mut self, params: &Params, id: usize) -> Result<(), String> {
        if self.protocol == ServerProtocol::Memcached {
            self.keep = true;
            return Ok(());
        }
        let one = |name: &str| {
            let mut values = params.iter().filter(|(n, _)| n == name);
            match (values.next(), values.next()) {
                (Some((_, value)), None) => Ok(value),
                _ => Err(format!("not one {name}: {params:?}")),
            }
        };
        self.method = one("REQUEST_METHOD")?.clone();
        one("HTTP_HOST")?;
        if *one("HTTP_X_ID")? != id.to_string() {
            return Err(format!("parameters of another request: {params:?}"));
        }
        self.framing = match one("CONTENT_LENGTH")?.as_str() {
            "" => Framing::None,
            length => Framing::Length(length.parse().map_err(|_| format!("length {length:?}"))?),
        };
        if self.protocol == ServerProtocol::FastCgi {
            self.framing = Framing::Records;
            self.keep = one("keep")? == "1";
        }
        Ok(())
    }

    fn records(&mut self, came: &[u8]) -> Result<(), String> {
        while let Some((of, content, len)) = fastcgi::record(&came[self.at..])? {
            if of != 5 {
                return Err(format!("a record of type {of} in a body"));
            }
            self.body.extend_from_slice(content);
            self.at += len;
            if content.is_empty() {
                self.end = Some(self.at);
                break;
            }
        }
        Ok(())
    }

    fn chunks(&mut self, came: &[u8]) -> Result<(), String> {
        loop {
            let rest = &came[self.at..];
            let Some(line) = find(rest, b"\r\n") else {
                return Ok(());
            };
            let digits = String::from_utf8_lossy(&rest[..line]).into_owned();
            let size =
                usize::from_str_radix(&digits, 16).map_err(|_| format!("a chunk of {digits:?}"))?;
            let begin = line + 2;
            if rest.len() < begin + size + 2 {
                return Ok(());
            }
            if &rest[begin + size..begin + size + 2] != b"\r\n" {
                return Err("a chunk does not end with its line".to_owned());
            }
            self.body.extend_from_slice(&rest[begin..begin + size]);
            self.at += begin + size + 2;
            if size == 0 {
                self.end = Some(self.at);
                return Ok(());
            }
        }
    }
}

/// Returns the request of a target.
///
/// # Errors
/// It belongs to no client.
pub(crate) fn name(
    protocol: ServerProtocol,
    bytes: &[u8],
) -> Result<Option<(usize, Part)>, String> {
    let Some(target) = protocol.target(bytes) else {
        return Ok(None);
    };
    of_path(&String::from_utf8_lossy(target)).map(Some)
}

/// Returns the request of a path.
///
/// # Errors
/// It belongs to no client.
pub(crate) fn of_path(path: &str) -> Result<(usize, Part), String> {
    let part = match () {
        () if path.starts_with("/auth/") => Part::Auth,
        () if path.starts_with("/inner/") => Part::Inner,
        () if path.starts_with("/copy/") => Part::Copy,
        () if path.starts_with("/mirror/") => Part::Mirror,
        () => Part::Whole,
    };
    let id = path.rsplit('/').next().unwrap_or_default();
    let id = id.parse();
    let id = id.map_err(|_| format!("a request that nobody made: {path:?}"))?;
    Ok((id, part))
}
