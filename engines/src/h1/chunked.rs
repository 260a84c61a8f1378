//! The chunked transfer coding of a body, decoded as bytes arrive.
//!
//! Stricter than nginx if leniency would let two readers disagree. Every line ends with CRLF, a
//! size has at most 16 digits, extensions follow the grammar and are bounded, and a trailer line
//! needs a colon. Source: RFC 9112 section 7.1.

use super::Settings;
use super::extension::Extension;
use super::trailer::TrailerReader;
use crate::http::{Fault, Fields};

/// Decodes one chunked body.
#[derive(Debug)]
pub(super) struct ChunkedDecoder {
    state: State,
    /// Of all chunks of this body.
    extension_bytes: usize,
}

#[derive(Debug)]
enum State {
    /// In the size of a chunk.
    Size {
        size: u64,
        digits: usize,
    },
    /// After the size, up to the CR of its line.
    Extension {
        size: u64,
        extension: Extension,
    },
    SizeLf {
        size: u64,
    },
    /// In a chunk; `left` is never 0.
    Data {
        left: u64,
    },
    /// After the data of a chunk.
    DataCr,
    DataLf,
    Trailers(Box<TrailerReader>),
    Done,
}

impl ChunkedDecoder {
    pub(super) fn new() -> Self {
        Self {
            state: State::Size { size: 0, digits: 0 },
            extension_bytes: 0,
        }
    }

    /// Whether the last chunk and the trailer section are complete.
    pub(super) fn is_done(&self) -> bool {
        matches!(self.state, State::Done)
    }

    /// Decodes `input` up to the end of the body; appends the data to `data` and the trailer fields
    /// to `trailers`. Returns the number of bytes that belong to the body. After a fault the
    /// decoder must not be used again.
    pub(super) fn decode(
        &mut self,
        input: &[u8],
        settings: &Settings,
        data: &mut Vec<u8>,
        trailers: &mut Fields,
    ) -> Result<usize, Fault> {
        let mut at = 0;
        while at < input.len() && !self.is_done() {
            let (used, is_data) = self.step(&input[at..], settings, trailers)?;
            if is_data {
                data.extend_from_slice(&input[at..at + used]);
            }
            at += used;
        }
        Ok(at)
    }

    /// Decodes `buffer` in place from `from` on, so that only the data remains in it. Returns the
    /// number of dropped bytes behind the end of the body. After a fault the data before it
    /// remains.
    pub(super) fn decode_in_place(
        &mut self,
        buffer: &mut Vec<u8>,
        from: usize,
        settings: &Settings,
        trailers: &mut Fields,
    ) -> Result<usize, Fault> {
        let (mut at, mut kept) = (from, 0);
        let result = loop {
            if at == buffer.len() || self.is_done() {
                break Ok(buffer.len() - at);
            }
            match self.step(&buffer[at..], settings, trailers) {
                Ok((used, is_data)) => {
                    if is_data {
                        buffer.copy_within(at..at + used, kept);
                        kept += used;
                    }
                    at += used;
                }
                Err(fault) => break Err(fault),
            }
        };
        buffer.truncate(kept);
        result
    }

    /// Takes bytes of one kind, at least one; returns the number, and whether they are data.
    #[inline]
    fn step(
        &mut self,
        rest: &[u8],
        settings: &Settings,
        trailers: &mut Fields,
    ) -> Result<(usize, bool), Fault> {
        match &mut self.state {
            State::Data { left } => {
                let used = (*left).min(rest.len() as u64) as usize;
                *left -= used as u64;
                if *left == 0 {
                    self.state = State::DataCr;
                }
                Ok((used, true))
            }
            State::Trailers(reader) => {
                let (used, done) = reader.read(rest, settings, trailers)?;
                if done {
                    self.state = State::Done;
                }
                Ok((used, false))
            }
            _ => {
                self.framing_byte(rest[0], settings)?;
                Ok((1, false))
            }
        }
    }

    /// Takes one byte of the framing, outside data and the trailer section.
    fn framing_byte(&mut self, byte: u8, settings: &Settings) -> Result<(), Fault> {
        match (&mut self.state, byte) {
            (State::Size { size, digits }, _) if byte.is_ascii_hexdigit() => {
                push_digit(size, digits, byte)?;
            }
            (State::Size { size, digits: 1.. }, _) => {
                self.state = State::Extension {
                    size: *size,
                    extension: Extension::new(),
                };
                self.framing_byte(byte, settings)?;
            }
            (State::Extension { size, extension }, _) => {
                if extension.push(byte)? {
                    self.state = State::SizeLf { size: *size };
                } else {
                    self.extension_bytes += 1;
                    if self.extension_bytes > BODY_EXTENSION_BYTES {
                        return Err(Fault::ChunkExtensionTooLong);
                    }
                }
            }
            (State::SizeLf { size: 0 }, b'\n') => {
                self.state = State::Trailers(Box::new(TrailerReader::new(settings)));
            }
            (State::SizeLf { size }, b'\n') => self.state = State::Data { left: *size },
            (State::DataCr, b'\r') => self.state = State::DataLf,
            (State::DataLf, b'\n') => self.state = State::Size { size: 0, digits: 0 },
            _ => return Err(Fault::BadChunk),
        }
        Ok(())
    }
}

/// Takes one more digit of a size, which stays below 2^63.
fn push_digit(size: &mut u64, digits: &mut usize, byte: u8) -> Result<(), Fault> {
    if *digits == SIZE_DIGITS || *size > i64::MAX as u64 / 16 {
        return Err(Fault::BadChunk);
    }
    let digit = match byte {
        b'0'..=b'9' => byte - b'0',
        _ => (byte | 0x20) - b'a' + 10,
    };
    *size = *size * 16 + u64::from(digit);
    *digits += 1;
    Ok(())
}

/// Most digits of a chunk size.
const SIZE_DIGITS: usize = 16;

/// Most bytes of all extensions of a body.
const BODY_EXTENSION_BYTES: usize = 16 * 1024;

#[cfg(test)]
mod tests {
    use super::*;

    /// Data and trailers of a body, and the number of bytes behind its end.
    type Decoded = (Vec<u8>, Vec<(String, String)>, usize);

    fn decode_with(
        input: &[u8],
        settings: &Settings,
        step: usize,
    ) -> Result<Option<Decoded>, Fault> {
        let mut decoder = ChunkedDecoder::new();
        let (mut data, mut trailers, mut used) = (Vec::new(), Fields::default(), 0);
        for piece in input.chunks(step) {
            used += decoder.decode(piece, settings, &mut data, &mut trailers)?;
            if decoder.is_done() {
                break;
            }
        }
        let text = |span| String::from_utf8_lossy(trailers.bytes(span)).into_owned();
        let list = trailers
            .fields
            .iter()
            .map(|field| (text(field.name), text(field.value)))
            .collect();
        Ok(decoder
            .is_done()
            .then_some((data, list, input.len() - used)))
    }

    /// The data of a body that is decoded in place, behind other bytes.
    fn decode_in_place(input: &[u8]) -> Result<Option<Vec<u8>>, Fault> {
        let (mut decoder, mut trailers) = (ChunkedDecoder::new(), Fields::default());
        let mut buffer = [b"head", input].concat();
        let settings = Settings::default();
        decoder.decode_in_place(&mut buffer, 4, &settings, &mut trailers)?;
        Ok(decoder.is_done().then_some(buffer))
    }

    /// Decodes whole, byte by byte and in place, and wants the same.
    fn decode(input: &[u8]) -> Result<Option<Decoded>, Fault> {
        let whole = decode_with(input, &Settings::default(), input.len().max(1));
        assert_eq!(whole, decode_with(input, &Settings::default(), 1));
        assert_eq!(
            whole.clone().map(|decoded| decoded.map(|(data, ..)| data)),
            decode_in_place(input)
        );
        whole
    }

    fn data(input: &str) -> Option<String> {
        let (data, _, _) = decode(input.as_bytes()).ok()??;
        Some(String::from_utf8(data).unwrap())
    }

    #[test]
    fn chunks_are_joined_and_what_follows_is_left() {
        assert_eq!(
            data("4\r\nSEE-\r\n4\r\nTHIS\r\n0\r\n\r\n").as_deref(),
            Some("SEE-THIS")
        );
        assert_eq!(data("0\r\n\r\n").as_deref(), Some(""));
        assert_eq!(
            data("000A\r\n0123456789\r\n000\r\n\r\n").as_deref(),
            Some("0123456789")
        );
        assert_eq!(data("1;a=\"b\"\r\nx\r\n0 \r\n\r\n").as_deref(), Some("x"));
        let (_, _, left) = decode(b"0\r\n\r\nGET /").unwrap().unwrap();
        assert_eq!(left, 5);
        assert_eq!(decode(b"4\r\nSEE"), Ok(None));
    }

    #[test]
    fn broken_sizes_are_refused() {
        for size in [
            "0x1",
            "+1",
            "-1",
            "1Z",
            "0_2e",
            " 1",
            "",
            "\t1",
            "g",
            "00000000000000001",
            "8000000000000000",
            "ffffffffffffffff",
        ] {
            let body = format!("{size}\r\nx\r\n0\r\n\r\n");
            assert_eq!(decode(body.as_bytes()), Err(Fault::BadChunk), "{size:?}");
        }
        assert_eq!(decode(b"7fffffffffffffff\r\nx"), Ok(None));
        assert_eq!(
            decode(b"0000000000000001\r\nx\r\n0\r\n\r\n")
                .unwrap()
                .unwrap()
                .0,
            b"x"
        );
    }

    /// RFC 9112 section 2.2 permits a bare LF in a head; in chunk framing it is refused.
    #[test]
    fn every_line_of_the_framing_ends_with_crlf() {
        for body in [
            &b"1\nx\r\n0\r\n\r\n"[..],
            b"1\r\nx\n0\r\n\r\n",
            b"1\r\nx\r\n0\n\r\n",
            b"1;a\nx\r\n0\r\n\r\n",
            b"1;a\rb\r\nx\r\n0\r\n\r\n",
            b"1\r\nxXX0\r\n\r\n",
            b"4\r\nSEE-THIS\r\n0\r\n\r\n",
        ] {
            assert_eq!(decode(body), Err(Fault::BadChunk), "{body:?}");
        }
        assert_eq!(decode(b"0\r\n\n"), Err(Fault::BadTrailer));
        assert_eq!(decode(b"0\r\na: b\n\r\n"), Err(Fault::BadTrailer));
    }

    #[test]
    fn extensions_of_a_body_are_bounded() {
        let body = |chunks: usize| {
            let extension = format!(";{}", "a".repeat(1023));
            let chunk = format!("1{extension}\r\nx\r\n");
            format!("{}0\r\n\r\n", chunk.repeat(chunks))
        };
        assert!(decode(body(16).as_bytes()).is_ok());
        let one_more = body(16).replace("\r\n0\r\n", "\r\n0 \r\n");
        assert_eq!(
            decode(one_more.as_bytes()),
            Err(Fault::ChunkExtensionTooLong)
        );
    }

    #[test]
    fn trailers_are_fields() {
        let (_, trailers, _) = decode(b"0\r\nA: b\r\nX(Y): z\r\nc:d \r\n\r\n")
            .unwrap()
            .unwrap();
        assert_eq!(
            trailers,
            [("A".into(), "b".into()), ("c".into(), "d".into())]
        );
        for body in [
            &b"0\r\nno-colon\r\n\r\n"[..],
            b"0\r\n: x\r\n\r\n",
            b"0\r\na : x\r\n\r\n",
            b"0\r\n x: y\r\n\r\n",
            b"0\r\na: \x01\r\n\r\n",
        ] {
            assert_eq!(decode(body), Err(Fault::BadTrailer), "{body:?}");
        }
    }

    #[test]
    fn a_trailer_section_has_the_limits_of_a_head() {
        let settings = Settings {
            large_header_buffers: (2, 64),
            max_headers: 3,
            ..Settings::default()
        };
        let decode = |trailers: &str| {
            let body = format!("0\r\n{trailers}\r\n");
            let whole = decode_with(body.as_bytes(), &settings, body.len());
            assert_eq!(whole, decode_with(body.as_bytes(), &settings, 1));
            whole.map(|decoded| decoded.is_some())
        };
        let line = |len: usize| format!("a: {}\r\n", "x".repeat(len - 5));
        assert_eq!(decode(&line(64)), Ok(true));
        assert_eq!(decode(&line(65)), Err(Fault::TrailerTooLarge));
        assert_eq!(decode(&format!("{}{}", line(64), line(62))), Ok(true));
        assert_eq!(
            decode(&format!("{}{}", line(64), line(63))),
            Err(Fault::TrailerTooLarge)
        );
        assert_eq!(decode(&"a: b\r\n".repeat(3)), Ok(true));
        assert_eq!(decode(&"a: b\r\n".repeat(4)), Err(Fault::TrailerTooLarge));
    }
}
