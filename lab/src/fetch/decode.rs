//! Content codings of responses, undone while they stream in.
//!
//! Source: RFC 9110 section 8.4.1, RFC 7932, RFC 8878.

use std::io::{self, Write};

use brotlic::decode::{BrotliDecoder, BrotliDecoderOptions, DecoderInfo};
use flate2::write::{MultiGzDecoder, ZlibDecoder};
use zstd_safe::{DCtx, InBuffer, OutBuffer};

/// Undoes the content coding of one body.
pub(crate) struct Decoder {
    coding: Coding,
    /// The content is complete: the pushed bytes end with an end of the coding.
    is_ended: bool,
}

enum Coding {
    None(Bounded),
    Gzip(MultiGzDecoder<Bounded>),
    Deflate(ZlibDecoder<Bounded>),
    Brotli(BrotliDecoder, Bounded),
    Zstd(DCtx<'static>, Bounded),
    /// The coding is unknown or broken, or the content exceeds the limit.
    Over,
}

/// A buffer that fails past its limit.
struct Bounded {
    bytes: Vec<u8>,
    left: usize,
}

impl Write for Bounded {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if bytes.len() > self.left {
            return Err(io::Error::other("the content is larger than the limit"));
        }
        self.left -= bytes.len();
        self.bytes.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Decoder {
    /// Makes a decoder for a `Content-Encoding`; the content has at most `most` bytes.
    pub(crate) fn new(coding: Option<&str>, most: usize) -> Self {
        let sink = Bounded {
            bytes: Vec::new(),
            left: most,
        };
        let coding = coding.unwrap_or_default().trim().to_ascii_lowercase();
        let coding = match &coding[..] {
            "" | "identity" => Coding::None(sink),
            "gzip" | "x-gzip" => Coding::Gzip(MultiGzDecoder::new(sink)),
            "deflate" => Coding::Deflate(ZlibDecoder::new(sink)),
            "br" => match BrotliDecoderOptions::new().build() {
                Ok(decoder) => Coding::Brotli(decoder, sink),
                Err(_) => Coding::Over,
            },
            "zstd" => {
                DCtx::try_create().map_or(Coding::Over, |context| Coding::Zstd(context, sink))
            }
            _ => Coding::Over,
        };
        Self {
            coding,
            // An empty body has no content, under any coding.
            is_ended: true,
        }
    }

    /// Decodes bytes of the body.
    pub(crate) fn push(&mut self, bytes: &[u8]) -> Vec<u8> {
        if bytes.is_empty() {
            return Vec::new();
        }
        let (ended, sink) = match &mut self.coding {
            Coding::None(sink) => (sink.write_all(bytes).map(|()| true), sink),
            // The end is checked in the end, because a check sum follows the data.
            Coding::Gzip(decoder) => {
                let result = decoder.write_all(bytes).and_then(|()| decoder.flush());
                (result.map(|()| false), decoder.get_mut())
            }
            Coding::Deflate(decoder) => {
                let result = decoder.write_all(bytes).and_then(|()| decoder.flush());
                (result.map(|()| true), decoder.get_mut())
            }
            Coding::Brotli(decoder, sink) => (brotli(decoder, bytes, sink), sink),
            Coding::Zstd(context, sink) => (zstd(context, bytes, sink), sink),
            Coding::Over => return Vec::new(),
        };
        let found = std::mem::take(&mut sink.bytes);
        match ended {
            Ok(ended) => self.is_ended = ended,
            Err(_) => self.coding = Coding::Over,
        }
        found
    }

    /// Ends the body; returns whether the content is complete. `deflate` has no length, so any part counts as complete.
    pub(crate) fn finish(self) -> bool {
        match self.coding {
            Coding::Over => false,
            Coding::Gzip(mut decoder) if !self.is_ended => decoder.try_finish().is_ok(),
            _ => self.is_ended,
        }
    }
}

/// Returns whether the end of the content was reached.
fn brotli(decoder: &mut BrotliDecoder, mut bytes: &[u8], sink: &mut Bounded) -> io::Result<bool> {
    let mut piece = vec![0; PIECE_BYTES];
    loop {
        let step = decoder.decompress(bytes, &mut piece)?;
        sink.write_all(&piece[..step.bytes_written])?;
        bytes = &bytes[step.bytes_read..];
        match step.info {
            DecoderInfo::NeedsMoreOutput => {}
            DecoderInfo::NeedsMoreInput if bytes.is_empty() => return Ok(false),
            DecoderInfo::Finished if bytes.is_empty() => return Ok(true),
            _ => return Err(io::Error::other("data after the end")),
        }
    }
}

/// Returns whether the end of a frame was reached; another may follow.
fn zstd(context: &mut DCtx<'static>, bytes: &[u8], sink: &mut Bounded) -> io::Result<bool> {
    let mut input = InBuffer::around(bytes);
    let mut piece = vec![0; PIECE_BYTES];
    loop {
        let mut output = OutBuffer::around(&mut piece[..]);
        let result = context.decompress_stream(&mut output, &mut input);
        let left = result.map_err(|code| io::Error::other(zstd_safe::get_error_name(code)))?;
        let written = output.pos();
        sink.write_all(&piece[..written])?;
        let is_ended = left == 0;
        // An output buffer that is not full means that the decoder has no further output.
        if input.pos == bytes.len() && (is_ended || written < piece.len()) {
            return Ok(is_ended);
        }
    }
}

/// Bytes that are decoded at once.
const PIECE_BYTES: usize = 64 << 10;

#[cfg(test)]
mod tests {
    use super::*;
    use brotlic::CompressorWriter;
    use flate2::Compression;
    use flate2::write::{GzEncoder, ZlibEncoder};

    /// A text in every coding.
    fn coded(text: &[u8]) -> [(&'static str, Vec<u8>); 5] {
        let mut gzip = GzEncoder::new(Vec::new(), Compression::default());
        let mut zlib = ZlibEncoder::new(Vec::new(), Compression::default());
        let mut brotli = CompressorWriter::new(Vec::new());
        let mut zstd = Vec::with_capacity(zstd_safe::compress_bound(text.len()));
        gzip.write_all(text).expect("memory");
        zlib.write_all(text).expect("memory");
        brotli.write_all(text).expect("memory");
        zstd_safe::compress(&mut zstd, text, 3).expect("memory");
        [
            ("identity", text.to_vec()),
            ("GZIP", gzip.finish().expect("memory")),
            ("deflate", zlib.finish().expect("memory")),
            (" br ", brotli.into_inner().expect("memory")),
            ("zstd", zstd),
        ]
    }

    /// A multiple of [`PIECE_BYTES`], at which a content may end.
    const MOST: usize = 3 * PIECE_BYTES;

    /// The content of a body, and whether it is whole.
    fn decoded(coding: &str, body: &[u8], step: usize) -> (Vec<u8>, bool) {
        let mut decoder = Decoder::new(Some(coding), MOST);
        let pieces = body.chunks(step).map(|piece| decoder.push(piece));
        (pieces.collect::<Vec<_>>().concat(), decoder.finish())
    }

    #[test]
    fn codings_are_undone_however_they_are_cut() {
        let text = b"the same words again and again, ".repeat(5000);
        for (coding, body) in coded(&text) {
            for step in [1, 7, 1000, usize::MAX] {
                assert!(
                    decoded(coding, &body, step) == (text.clone(), true),
                    "{coding} {step}"
                );
            }
            assert_eq!(decoded(coding, b"", 1), (Vec::new(), true));
        }
        assert_eq!(decoded("unknown", b"abc", 1), (Vec::new(), false));
    }

    #[test]
    fn what_breaks_off_is_not_whole() {
        for (coding, body) in coded(&b"abc".repeat(5000)) {
            let half = &body[..body.len() / 2];
            let is_told = !matches!(coding, "identity" | "deflate");
            assert_eq!((decoded(coding, half, 9).1, coding), (!is_told, coding));
        }
    }

    #[test]
    fn no_more_is_decoded_than_the_limit() {
        for (more, fits) in [(0, true), (1, false)] {
            for (coding, body) in coded(&vec![b'a'; MOST + more]) {
                let (found, is_whole) = decoded(coding, &body, usize::MAX);
                assert!(found.len() <= MOST);
                assert_eq!((is_whole, coding), (fits, coding));
            }
        }
    }

    #[test]
    fn nonsense_is_no_content() {
        for coding in ["gzip", "deflate", "br", "zstd"] {
            assert!(!decoded(coding, &[0xff; 4000], 4000).1, "{coding}");
        }
    }
}
