//! Range requests: `Range`, `If-Range`, 206 with one part or several, 416.
//!
//! Ranges of a complete body are slices of its chunks; file ranges stay file ranges. A body that is generated later is
//! cut by a body stage. That stage comes first, as in nginx: stages that change the length of a body have disabled
//! ranges.
//!
//! Source: RFC 9110, section 14; nginx's range filter.

use std::collections::VecDeque;
use std::ops::Range;
use std::rc::Rc;
use std::sync::atomic::{AtomicU64, Ordering};

use engines::http::{Chunk, FieldId, FileRange, Ranges, Version, parse_http_date, parse_range};
use server_http::exchange::{BodyStage, Broken, Ctx, Exchange};
use server_http::module::Module;

/// The module.
pub(crate) const MODULE: Module = Module {
    name: "range",
    header_stage: Some(stage),
    ..Module::EMPTY
};

fn stage(x: &mut Exchange, _: &mut Ctx<'_>) -> Result<(), u16> {
    let mut max_ranges = x.route.core_loc().max_ranges.0;
    if x.reply.single_range {
        max_ranges = max_ranges.min(1);
    }
    let (Some(size), true) = (x.reply.content_length, x.reply.allow_ranges) else {
        return Ok(());
    };
    if x.reply.status != 200 || max_ranges == 0 || x.head.version < Version::Http10 {
        return Ok(());
    }
    let ranges = match x.head.field(FieldId::Range) {
        Some(value) if if_range_holds(x) => parse_range(value, size, max_ranges),
        _ => Ranges::None,
    };
    match ranges {
        Ranges::None => {
            x.reply
                .fields
                .push_own(FieldId::AcceptRanges, b"Accept-Ranges: ", b"bytes")
        }
        Ranges::NotSatisfiable => {
            let value = format!("bytes */{size}");
            x.reply.fields.remove(FieldId::ContentRange);
            x.reply
                .fields
                .push_id(FieldId::ContentRange, b"Content-Range", value.as_bytes());
            return Err(416);
        }
        Ranges::One(range) => {
            let value = format!("bytes {}-{}/{size}", range.start, range.end - 1);
            let start = range.start;
            x.reply.fields.remove(FieldId::ContentRange);
            x.reply
                .fields
                .push_id(FieldId::ContentRange, b"Content-Range", value.as_bytes());
            x.reply.content_length = Some(range.end - range.start);
            partial(
                x,
                vec![Part {
                    head: Vec::new(),
                    range,
                }],
                Vec::new(),
            );
            // Parts in subrequests end with the range.
            if let Some(parts) = &mut x.reply.parts {
                parts.offset = start;
            }
        }
        Ranges::Many(ranges) => multipart(x, &ranges, size),
    }
    Ok(())
}

/// Whether `If-Range` matches: the client has a part of this representation.
fn if_range_holds(x: &Exchange) -> bool {
    let Some(value) = x.head.field(FieldId::IfRange) else {
        return true;
    };
    if value.len() >= 2 && value.ends_with(b"\"") {
        return x.reply.etag.as_deref() == Some(value);
    }
    matches!((x.reply.modified_s(), parse_http_date(value)), (Some(last), Some(time)) if last == time)
}

/// Sends several ranges. Content codings become fields of the parts, since the multipart body has none (RFC 9110
/// section 8.4).
fn multipart(x: &mut Exchange, ranges: &[Range<u64>], size: u64) {
    let boundary = format!("{:020}", BOUNDARY.fetch_add(1, Ordering::Relaxed));
    let mut kind = Vec::new();
    x.reply.content_type.write(&x.reply.charset, &mut kind);
    let codings: Vec<Vec<u8>> = (x
        .reply
        .fields
        .named(b"Content-Encoding")
        .map(<[u8]>::to_vec))
    .collect();
    x.reply.fields.remove(FieldId::ContentEncoding);
    x.reply.fields.remove(FieldId::ContentRange);
    let mut length = 0;
    let mut parts = Vec::with_capacity(ranges.len());
    for range in ranges {
        let mut head = format!("\r\n--{boundary}\r\n").into_bytes();
        for coding in &codings {
            head.extend_from_slice(b"Content-Encoding: ");
            head.extend_from_slice(coding);
            head.extend_from_slice(b"\r\n");
        }
        if !kind.is_empty() {
            head.extend_from_slice(b"Content-Type: ");
            head.extend_from_slice(&kind);
            head.extend_from_slice(b"\r\n");
        }
        head.extend_from_slice(
            format!(
                "Content-Range: bytes {}-{}/{size}\r\n\r\n",
                range.start,
                range.end - 1
            )
            .as_bytes(),
        );
        length += head.len() as u64 + (range.end - range.start);
        parts.push(Part {
            head,
            range: range.clone(),
        });
    }
    let tail = format!("\r\n--{boundary}--\r\n").into_bytes();
    x.reply.content_length = Some(length + tail.len() as u64);
    let multipart = format!("multipart/byteranges; boundary={boundary}");
    x.reply.content_type.set(multipart.as_bytes());
    x.reply.charset.clear();
    partial(x, parts, tail);
}

fn partial(x: &mut Exchange, parts: Vec<Part>, tail: Vec<u8>) {
    x.reply.status = 206;
    if let Some(whole) = x.reply.parts.as_deref().copied() {
        let begin = parts.first().map_or(0, |part| part.range.start);
        let mut at = whole.offset;
        if at + whole.size <= begin {
            // The first part is not needed: the body continues with the part of the range.
            at = begin / whole.size * whole.size;
            x.body.chunks.clear();
            x.body.source = None;
        }
        x.push_outer_stage(Box::new(Cut::new(parts, tail, at)));
        return;
    }
    if x.body.source.is_none() {
        // The body is complete, so its ranges may be sent in any order.
        let whole = x.body.chunks.len();
        for part in parts {
            push(&mut x.body.chunks, Chunk::Owned(part.head));
            pick(&mut x.body.chunks, whole, part.range);
        }
        push(&mut x.body.chunks, Chunk::Owned(tail));
        x.body.chunks.drain(..whole);
        return;
    }
    x.body.stages.insert(0, Box::new(Cut::new(parts, tail, 0)));
}

/// Appends a range of the first `whole` chunks to the chunks.
fn pick(body: &mut VecDeque<Chunk>, whole: usize, range: Range<u64>) {
    let mut start = 0;
    for n in 0..whole {
        let end = start + body[n].len();
        let (from, to) = (range.start.max(start), range.end.min(end));
        if from < to {
            body.push_back(cut(&body[n], from - start..to - start));
        }
        start = end;
    }
}

fn push(out: &mut VecDeque<Chunk>, chunk: Chunk) {
    if !chunk.is_empty() {
        out.push_back(chunk);
    }
}

/// A range of a chunk.
fn cut(chunk: &Chunk, range: Range<u64>) -> Chunk {
    match chunk {
        Chunk::File(file) => Chunk::File(FileRange {
            file: Rc::clone(&file.file),
            offset: file.offset + range.start,
            len: range.end - range.start,
        }),
        Chunk::Static(bytes) => Chunk::Static(&bytes[range.start as usize..range.end as usize]),
        Chunk::Shared(_) => {
            let mut front = chunk.clone().truncated(range.end);
            front.split_off(range.start).unwrap_or(Chunk::Static(b""))
        }
        other => Chunk::Owned(other.bytes()[range.start as usize..range.end as usize].to_vec()),
    }
}

struct Part {
    head: Vec<u8>,
    range: Range<u64>,
}

/// Cuts ranges out of a stream of chunks; they must ascend.
struct Cut {
    parts: VecDeque<Part>,
    tail: Vec<u8>,
    at: u64,
    begun: bool,
}

impl Cut {
    /// Cuts parts of a body that begins at this position.
    fn new(parts: Vec<Part>, tail: Vec<u8>, at: u64) -> Self {
        Self {
            parts: parts.into(),
            tail,
            at,
            begun: false,
        }
    }
}

impl BodyStage for Cut {
    fn chunk(&mut self, chunk: Chunk, out: &mut VecDeque<Chunk>) -> Result<(), Broken> {
        let start = self.at;
        let end = start + chunk.len();
        self.at = end;
        while let Some(part) = self.parts.front_mut() {
            let from = part.range.start.max(start);
            let to = part.range.end.min(end);
            if from >= to {
                break;
            }
            if !self.begun {
                self.begun = true;
                push(out, Chunk::Owned(std::mem::take(&mut part.head)));
            }
            out.push_back(cut(&chunk, from - start..to - start));
            if to < part.range.end {
                break;
            }
            self.parts.pop_front();
            self.begun = false;
        }
        Ok(())
    }

    fn end(&mut self, out: &mut VecDeque<Chunk>) -> Result<(), Broken> {
        push(out, Chunk::Owned(std::mem::take(&mut self.tail)));
        Ok(())
    }
}

static BOUNDARY: AtomicU64 = AtomicU64::new(1);

#[cfg(test)]
mod tests {
    use super::*;

    fn run(ranges: &[(u64, u64)], pieces: &[&'static [u8]]) -> Vec<u8> {
        let parts = ranges
            .iter()
            .map(|r| Part {
                head: b"|".to_vec(),
                range: r.0..r.1,
            })
            .collect();
        let mut stage = Cut {
            parts,
            tail: b".".to_vec(),
            at: 0,
            begun: false,
        };
        let mut out = VecDeque::new();
        for piece in pieces {
            assert_eq!(stage.chunk(Chunk::Static(piece), &mut out), Ok(()));
        }
        assert_eq!(stage.end(&mut out), Ok(()));
        out.iter().flat_map(|c| c.bytes().to_vec()).collect()
    }

    #[test]
    fn ranges_are_cut_across_chunks() {
        assert_eq!(run(&[(1, 4)], &[b"ab", b"cd", b"ef"]), b"|bcd.");
        assert_eq!(run(&[(0, 1), (2, 3), (4, 6)], &[b"abcdef"]), b"|a|c|ef.");
        assert_eq!(
            run(&[(0, 6)], &[b"a", b"b", b"c", b"d", b"e", b"f"]),
            b"|abcdef."
        );
    }
}
