//! Parts of MP4 files: eleven bytes choose the requested part and the size of the file beyond the rest, which is its
//! begin.
//!
//! With any file, nothing panics, and little more than its metadata is read and made. The output is whole boxes with
//! data inside the file. A part can be cut again.
#![no_main]

use std::ops::Range;

use libfuzzer_sys::fuzz_target;
use server_base::errlog::Printable;

#[allow(dead_code, reason = "the server alone calls the rest")]
#[path = "../../server/modules/src/mp4"]
mod mp4 {
    pub(crate) mod boxes;
    pub(crate) mod error;
    pub(crate) mod movie;
    pub(crate) mod tables;
    pub(crate) mod track;
}

use mp4::boxes::{Children, HEAD_BYTES_MAX, Head};
use mp4::error::Mp4Error;
use mp4::movie::{Cut, Limits, Ranges, cut};
use mp4::track::Section;

fuzz_target!(|input: &[u8]| {
    let Some((&[flags, a, b, c, d, e, f, g, h, i, j], begin)) = input.split_first_chunk::<11>()
    else {
        return;
    };
    let section = Section {
        start_ms: time([a, b, c], flags & 2 != 0),
        length_ms: time([d, e, f], flags & 4 != 0),
        key_frame: flags & 1 != 0,
    };
    let more = u64::from(u32::from_be_bytes([g, h, i, j]));
    let limits = Limits {
        first_read: u64::from(flags >> 4) * 8,
        moov: if flags & 8 == 0 { 1 << 20 } else { 200 },
    };
    // The declared size may be large, although the input is short.
    let more = if more > 1 << 31 {
        more << 24
    } else {
        more & 0xfff
    };
    let mut file = Sparse {
        begin,
        size: begin.len() as u64 + more,
        read: 0,
        largest: 0,
    };
    let size = file.size;
    let made = cut(&mut file, size, limits, &section);
    assert!(file.largest <= limits.first_read.max(limits.moov).max(4096) && file.read <= READ_MAX);
    let Ok(Cut::Part { head, data }) = made else {
        if let Err(error) = made {
            assert!(
                error
                    .log_text(Printable(b"f"))
                    .is_none_or(|text| text.contains("\"f\""))
            );
        }
        return;
    };
    assert!(data.start < data.end && data.end <= size);
    assert!(head.len() as u64 <= 2 * limits.first_read.max(limits.moov) + 2048);
    check(&head, data.end - data.start);
    again(&head, data, begin, limits);
});

/// Returns a usual time or a very large one.
fn time([a, b, c]: [u8; 3], large: bool) -> u64 {
    let short = u64::from(u32::from_be_bytes([0, a, b, c]));
    if large { short << 40 } else { short & 0xffff }
}

/// A file with these first bytes, followed by zeros.
struct Sparse<'a> {
    begin: &'a [u8],
    size: u64,
    read: u64,
    largest: u64,
}

impl Ranges for Sparse<'_> {
    fn read(&mut self, offset: u64, len: u64, out: &mut Vec<u8>) -> Result<(), Mp4Error> {
        let end = offset.checked_add(len).filter(|end| *end <= self.size);
        assert!(end.is_some(), "{offset} {len}");
        self.read += len;
        self.largest = self.largest.max(len);
        let known = usize::try_from(offset)
            .ok()
            .and_then(|at| self.begin.get(at..));
        let known = known.unwrap_or_default();
        let wanted = out.len() + len as usize;
        out.extend_from_slice(&known[..known.len().min(len as usize)]);
        out.resize(wanted, 0);
        Ok(())
    }
}

/// Checks that nested boxes end with their parent, and that the last one is the head of the data.
fn check(head: &[u8], data_bytes: u64) {
    let size = head.len() as u64 + data_bytes;
    let mut at = 0;
    let mut kinds = Vec::new();
    while at < size {
        let rest = &head[at as usize..];
        let first = &rest[..rest.len().min(HEAD_BYTES_MAX as usize)];
        let found = Head::parse(first, size - at).expect("what is made is sound");
        kinds.push(found.kind);
        if &found.kind == b"moov" {
            nested(&rest[8..8 + found.body_bytes as usize]);
        }
        at += found.head_bytes + found.body_bytes;
    }
    assert!(kinds.ends_with(&[*b"moov", *b"mdat"]) && kinds.len() <= 3);
}

fn nested(body: &[u8]) {
    for child in Children(body) {
        let (kind, body) = child.expect("what is made is sound");
        if [*b"trak", *b"edts", *b"mdia", *b"minf", *b"stbl"].contains(&kind) {
            nested(body);
        }
    }
}

/// Cuts the output again, at its start.
fn again(head: &[u8], data: Range<u64>, begin: &[u8], limits: Limits) {
    let len = (data.end - data.start).min(1 << 16) as usize;
    let known = usize::try_from(data.start)
        .ok()
        .and_then(|at| begin.get(at..));
    let mut file = head.to_vec();
    file.extend(known.unwrap_or_default().iter().take(len));
    let mut part = Sparse {
        begin: &file,
        size: head.len() as u64 + (data.end - data.start),
        read: 0,
        largest: 0,
    };
    let size = part.size;
    let section = Section {
        length_ms: 1,
        ..Section::default()
    };
    // The content comes from the file, so it may be refused, but not because of its boxes.
    let made = cut(&mut part, size, limits, &section);
    let sound = !matches!(
        made,
        Err(Mp4Error::BoxTooSmall(_)
            | Mp4Error::BoxTooLarge(_)
            | Mp4Error::Truncated
            | Mp4Error::Duplicate(_)
            | Mp4Error::Short(_))
    );
    assert!(sound, "{made:?}");
}

/// Maximum number of bytes read of a file: the maximum number of box heads, and its metadata.
const READ_MAX: u64 = 1024 * 4096 + (1 << 20) + 1024;
