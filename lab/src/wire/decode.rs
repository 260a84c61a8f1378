//! Content codings of responses, undone while they stream in.
//!
//! Source: RFC 9110 section 8.4.1, RFC 7932, RFC 8878.

use std::io::{self, Write};

use brotlic::decode::{BrotliDecoder, BrotliDecoderOptions, DecoderInfo};
use flate2::write::{MultiGzDecoder, ZlibDecoder};
use zstd_safe::{DCtx, InBuffer, OutBuffer};

/// Undoes the content coding of one body.
pub(super) struct Decoder(Coding);

enum Coding {
    None(Bounded),
    Gzip(MultiGzDecoder<Bounded>),
    Deflate(ZlibDecoder<Bounded>),
    Brotli(BrotliDecoder, Bounded),
    Zstd(DCtx<'static>, Bounded),
    /// The coding is unknown or broken, or the content exceeds the limit.
    Over,
}

/// Takes no more than the limit.
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
    /// A decoder of the coding that a `Content-Encoding` names.
    pub(super) fn new(coding: Option<&str>) -> Self {
        Self::limited(coding, MAX_CONTENT_BYTES)
    }

    fn limited(coding: Option<&str>, most: usize) -> Self {
        let sink = Bounded {
            bytes: Vec::new(),
            left: most,
        };
        let coding = coding.unwrap_or_default().trim().to_ascii_lowercase();
        Self(match &coding[..] {
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
        })
    }

    /// Takes bytes of the body; returns what they mean.
    pub(super) fn push(&mut self, bytes: &[u8]) -> Vec<u8> {
        let (result, sink) = match &mut self.0 {
            Coding::None(sink) => (sink.write_all(bytes), sink),
            Coding::Gzip(decoder) => {
                let result = decoder.write_all(bytes).and_then(|()| decoder.flush());
                (result, decoder.get_mut())
            }
            Coding::Deflate(decoder) => {
                let result = decoder.write_all(bytes).and_then(|()| decoder.flush());
                (result, decoder.get_mut())
            }
            Coding::Brotli(decoder, sink) => (brotli(decoder, bytes, sink), sink),
            Coding::Zstd(context, sink) => (zstd(context, bytes, sink), sink),
            Coding::Over => return Vec::new(),
        };
        let found = std::mem::take(&mut sink.bytes);
        if result.is_err() {
            self.0 = Coding::Over;
        }
        found
    }

    /// Whether all that was pushed could be decoded.
    pub(super) fn is_good(&self) -> bool {
        !matches!(self.0, Coding::Over)
    }
}

fn brotli(decoder: &mut BrotliDecoder, mut bytes: &[u8], sink: &mut Bounded) -> io::Result<()> {
    let mut piece = vec![0; PIECE_BYTES];
    loop {
        let step = decoder.decompress(bytes, &mut piece)?;
        sink.write_all(&piece[..step.bytes_written])?;
        bytes = &bytes[step.bytes_read..];
        match step.info {
            DecoderInfo::NeedsMoreOutput => {}
            DecoderInfo::NeedsMoreInput if bytes.is_empty() => return Ok(()),
            DecoderInfo::Finished if bytes.is_empty() => return Ok(()),
            _ => return Err(io::Error::other("bytes behind the end")),
        }
    }
}

fn zstd(context: &mut DCtx<'static>, bytes: &[u8], sink: &mut Bounded) -> io::Result<()> {
    let mut input = InBuffer::around(bytes);
    let mut piece = vec![0; PIECE_BYTES];
    loop {
        let mut output = OutBuffer::around(&mut piece[..]);
        let result = context.decompress_stream(&mut output, &mut input);
        result.map_err(|code| io::Error::other(zstd_safe::get_error_name(code)))?;
        let written = output.pos();
        sink.write_all(&piece[..written])?;
        // A piece that is not full means that nothing is held back.
        if input.pos == bytes.len() && written < piece.len() {
            return Ok(());
        }
    }
}

/// Most bytes of a content that is looked at.
pub(super) const MAX_CONTENT_BYTES: usize = 32 << 20;
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

    #[test]
    fn codings_are_undone_however_they_are_cut() {
        let text = b"the same words again and again, ".repeat(5000);
        for (coding, body) in coded(&text) {
            for step in [1, 7, 1000, usize::MAX] {
                let mut decoder = Decoder::new(Some(coding));
                let pieces = body.chunks(step).map(|piece| decoder.push(piece));
                assert!(
                    pieces.collect::<Vec<_>>().concat() == text,
                    "{coding} {step}"
                );
                assert!(decoder.is_good());
            }
        }
        let mut decoder = Decoder::new(Some("unknown"));
        assert!(decoder.push(b"abc").is_empty() && !decoder.is_good());
    }

    #[test]
    fn no_more_is_decoded_than_the_limit() {
        // Compression by zlib takes seconds for the limit that ships, without optimisation.
        const MOST: usize = 200_000;
        for (more, fits) in [(0, true), (1, false)] {
            for (coding, body) in coded(&vec![b'a'; MOST + more]) {
                let mut decoder = Decoder::limited(Some(coding), MOST);
                let found = decoder.push(&body);
                assert!(found.len() <= MOST);
                assert_eq!((decoder.is_good(), coding), (fits, coding));
            }
            let mut decoder = Decoder::new(None);
            decoder.push(&vec![b'a'; MAX_CONTENT_BYTES + more]);
            assert_eq!(decoder.is_good(), fits);
        }
    }

    #[test]
    fn nonsense_is_no_content() {
        for coding in ["gzip", "deflate", "br", "zstd"] {
            let mut decoder = Decoder::new(Some(coding));
            decoder.push(&[0xff; 4000]);
            assert!(!decoder.is_good(), "{coding}");
        }
    }
}
