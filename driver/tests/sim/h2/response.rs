//! Checks that a response matches its request.

use sim::{Link, Wire};

use super::super::checker::{RunContext, reached};
use super::super::site::{CONFS, Conf, FILES, Site};
use super::requests::Expected;
use super::{Peer, Stream};

impl Peer {
    /// Compares a complete response with the expected ones. `last` has the start and end of its last frame. All
    /// configurations between the request and the response may apply.
    pub(super) fn check_response(
        &self,
        id: u32,
        last: (usize, usize),
        wire: &Wire,
        link: &Link,
        context: &RunContext<'_>,
    ) -> Result<(), String> {
        let stream = &self.streams[&id];
        let Some(received) = reached(&wire.takes, stream.head.1) else {
            return Err(format!("an answer to stream {id}, which was not read"));
        };
        let begun = reached(&wire.puts, stream.begun + 1);
        let newest = begun.map_or(received.generation, |m| m.generation);
        let oldest = received.generation.max(link.accepted.1);
        let mut result = Err("no configuration is in force".to_owned());
        for number in oldest..=newest {
            let conf = &CONFS[context.generations[number as usize - 1]];
            result = check_one(stream, conf, context.site);
            if result.is_ok() {
                break;
            }
        }
        result
            .map_err(|e| format!("stream {id}, {last:?} ({:?}): {e}", stream.request.expected))?;
        match begun {
            Some(begun) if begun.at_ms < received.at_ms + stream.wait_ms() => {
                Err(format!("stream {id} waited for too short a time"))
            }
            _ => Ok(()),
        }
    }

    /// Checks the received parts of bodies. The rest may never come.
    pub(super) fn check_parts(&self, site: &Site) -> Result<(), String> {
        for (id, stream) in &self.streams {
            let whole = match &stream.request.expected {
                Expected::File(n) | Expected::Pieces(n) => &site.files[*n][..],
                Expected::Part(n, range) => &site.files[*n][range.clone()],
                _ => continue,
            };
            if !whole.starts_with(&stream.body) {
                return Err(format!("stream {id}: a wrong byte in a part of the body"));
            }
        }
        Ok(())
    }
}

impl Stream {
    fn field(&self, name: &str) -> Option<&str> {
        let field = self.fields.iter().find(|(n, _)| n == name);
        field.map(|(_, value)| value.as_str())
    }

    /// Returns the delay of the response. A body of wrong length is answered at once.
    fn wait_ms(&self) -> u64 {
        match self.request.expected {
            Expected::WrongLength => 0,
            _ => self.request.wait_ms,
        }
    }
}

fn check_one(stream: &Stream, conf: &Conf, site: &Site) -> Result<(), String> {
    let odd = |(name, _): &&(String, String)| {
        let of_connection = ["connection", "keep-alive", "transfer-encoding"];
        name.is_empty()
            || *name != name.to_ascii_lowercase()
            || of_connection.contains(&name.as_str())
    };
    if let Some((name, _)) = stream.fields.iter().chain(&stream.trailers).find(odd) {
        return Err(format!("a field {name:?}"));
    }
    let text = conf.text().into_bytes();
    let with_trailer = matches!(
        stream.request.expected,
        Expected::Trailer | Expected::Pieces(_)
    );
    if with_trailer && !stream.request.is_head {
        if stream.trailers.len() != 1 || stream.trailers[0].0 != "x-sum" {
            return Err(format!("trailers {:?}", stream.trailers));
        }
    } else if !stream.trailers.is_empty() {
        return Err("trailers that nobody asked for".to_owned());
    }
    match &stream.request.expected {
        Expected::Page(status) => check_page(stream, *status),
        Expected::Malformed => check_page(stream, 400),
        Expected::WrongLength if stream.status == 400 => check_page(stream, 400),
        Expected::Moved(path) => {
            check_page(stream, 301)?;
            let location = stream.field("location").unwrap_or_default();
            match location.starts_with("http://a.test:800") && location.ends_with(path) {
                true => Ok(()),
                false => Err(format!("location {location:?}")),
            }
        }
        Expected::Bare(status) if stream.body.is_empty() => check_status(stream, *status),
        Expected::Bare(_) => Err("a body where there can be none".to_owned()),
        Expected::Drop => Err("a response where the stream was to be reset".to_owned()),
        Expected::Part(n, range) => {
            let value = format!("bytes {}-{}/{}", range.start, range.end - 1, FILES[*n].1);
            if stream.field("content-range") != Some(&value) {
                return Err(format!("not {value}"));
            }
            check_body(stream, 206, &site.files[*n][range.clone()])
        }
        Expected::File(n) | Expected::Pieces(n) => check_body(stream, 200, &site.files[*n]),
        Expected::Text | Expected::Trailer | Expected::WrongLength => {
            check_body(stream, 200, &text)
        }
    }
}

fn check_status(stream: &Stream, status: u16) -> Result<(), String> {
    if stream.status == status {
        Ok(())
    } else {
        Err(format!("status {}, not {status}", stream.status))
    }
}

fn check_page(stream: &Stream, status: u16) -> Result<(), String> {
    check_status(stream, status)?;
    if stream.request.is_head {
        return match stream.body.is_empty() {
            true => Ok(()),
            false => Err("a body for HEAD".to_owned()),
        };
    }
    let text = String::from_utf8_lossy(&stream.body);
    let whole = text.contains(&format!("<h1>{status} ")) && text.ends_with("</html>\r\n");
    if whole && stream.field("content-length") == Some(&stream.body.len().to_string()) {
        Ok(())
    } else {
        Err(format!("the page of {status} is {text:?}"))
    }
}

fn check_body(stream: &Stream, status: u16, body: &[u8]) -> Result<(), String> {
    check_status(stream, status)?;
    if let Some(length) = stream.field("content-length")
        && length != body.len().to_string()
    {
        return Err(format!("content-length {length}, not {}", body.len()));
    }
    let expected = if stream.request.is_head { &[] } else { body };
    if stream.body == expected {
        return Ok(());
    }
    let at = stream.body.iter().zip(expected).take_while(|(a, b)| a == b);
    let (at, len) = (at.count(), stream.body.len());
    Err(format!(
        "the body is wrong from byte {at} on, {len} bytes instead of {}",
        expected.len()
    ))
}
