//! Cuts a section out of an MP4 file: the response is `ftyp`, a `moov` with cut tables, and a range of `mdat`.
//!
//! This file does no I/O: the caller supplies bytes through [`Ranges`]. The maximum size of `moov` bounds all reads and
//! results, independent of the sizes in the file.
//!
//! Absent: compressed `moov`, compact sizes of samples (`stz2`), files in fragments.
//!
//! Source: ISO/IEC 14496-12; nginx documentation, `ngx_http_mp4_module`.

use std::ops::Range;

use super::boxes::{self, Children, HEAD_BYTES_MAX, Head, MVHD, Times, once};
use super::error::Mp4Error;
use super::track::{Bounds, Part, Section, Track};

/// Reads ranges of the file.
pub(crate) trait Ranges {
    /// Appends `len` bytes from `offset` on. The range is within the file.
    fn read(&mut self, offset: u64, len: u64, out: &mut Vec<u8>) -> Result<(), Mp4Error>;
}

/// Size of reads, and maximum size of `moov`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    /// Size of the first read, bytes. A `moov` up to this size is always accepted.
    pub(crate) first_read: u64,
    /// Maximum size of `moov`, bytes.
    pub(crate) moov: u64,
}

/// The response to send.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Cut {
    /// The unchanged file.
    Whole,
    /// These bytes, followed by this range of the file.
    Part { head: Vec<u8>, data: Range<u64> },
}

/// Computes the response for a section of a file of `size` bytes.
pub(crate) fn cut(
    source: &mut dyn Ranges,
    size: u64,
    limits: Limits,
    section: &Section,
) -> Result<Cut, Mp4Error> {
    let window = Window {
        source,
        size,
        at: 0,
        bytes: Vec::new(),
        wish: limits.first_read,
    };
    let Some(layout) = window.layout(limits, section)? else {
        return Ok(Cut::Whole);
    };
    let bounds = Bounds {
        file_bytes: size,
        data_end: layout.data.end,
    };
    let movie = Movie::parse(&layout.moov, section, bounds)?;
    movie.write(&layout, section)
}

/// The boxes of a file.
struct Layout {
    ftyp: Option<Vec<u8>>,
    moov: Vec<u8>,
    data: Range<u64>,
}

/// A buffer with a range of the file.
struct Window<'a> {
    source: &'a mut dyn Ranges,
    size: u64,
    at: u64,
    bytes: Vec<u8>,
    /// Size of a read, bytes.
    wish: u64,
}

impl Window<'_> {
    /// Returns bytes of the file, which must be within it.
    fn view(&mut self, at: u64, len: u64) -> Result<&[u8], Mp4Error> {
        let have = self.at..self.at + self.bytes.len() as u64;
        if at < have.start || at + len > have.end {
            self.bytes.clear();
            self.at = at;
            let len = len.max(self.wish).min(self.size - at);
            self.source.read(at, len, &mut self.bytes)?;
            self.wish = NEXT_READ_BYTES;
        }
        let from = (at - self.at) as usize;
        self.bytes
            .get(from..from + len as usize)
            .ok_or(Mp4Error::Truncated)
    }

    /// Returns the bytes of [`Self::view`] as an owned buffer.
    fn take(&mut self, at: u64, len: u64) -> Result<Vec<u8>, Mp4Error> {
        if at >= self.at && at + len <= self.at + self.bytes.len() as u64 {
            return self.view(at, len).map(<[u8]>::to_vec);
        }
        let mut bytes = Vec::new();
        self.source.read(at, len, &mut bytes)?;
        Ok(bytes)
    }

    /// Finds the boxes `ftyp`, `moov` and `mdat`; `None` if the file can be sent unchanged.
    fn layout(mut self, limits: Limits, section: &Section) -> Result<Option<Layout>, Mp4Error> {
        let (mut ftyp, mut moov, mut data) = (None, None, None);
        let mut at = 0;
        for _ in 0..TOP_BOXES_MAX {
            if at == self.size {
                return match (moov, data) {
                    (None, _) => Err(Mp4Error::Missing("trak")),
                    (_, None) => Err(Mp4Error::Missing("mdat")),
                    (Some(moov), Some(data)) => Ok(Some(Layout { ftyp, moov, data })),
                };
            }
            let rest = self.size - at;
            let first = self.view(at, rest.min(HEAD_BYTES_MAX))?;
            if rest < 8 && first.starts_with(&[0; 4]) {
                // Padding.
                at = self.size;
                continue;
            }
            let head = Head::parse(first, rest)?;
            let body = at + head.head_bytes;
            let next = body + head.body_bytes;
            match &head.kind {
                b"ftyp" => {
                    if head.body_bytes > FTYP_BYTES_MAX {
                        return Err(Mp4Error::FtypTooLarge(head.body_bytes));
                    }
                    let bytes = self.view(body, head.body_bytes)?.to_vec();
                    once(&mut ftyp, bytes, "ftyp")?;
                }
                b"moov" => {
                    if data.is_none() && section.start_ms == 0 && section.length_ms == 0 {
                        return Ok(None);
                    }
                    if head.body_bytes > limits.first_read.max(limits.moov) {
                        return Err(Mp4Error::MoovTooLarge(head.body_bytes));
                    }
                    let bytes = self.take(body, head.body_bytes)?;
                    once(&mut moov, bytes, "moov")?;
                }
                b"mdat" => once(&mut data, body..next, "mdat")?,
                _ => {}
            }
            at = match (&moov, &data) {
                // Boxes behind both are not needed.
                (Some(_), Some(_)) => self.size,
                _ => next,
            };
        }
        Err(Mp4Error::TooManyBoxes)
    }
}

/// The parsed `moov`, cut to the requested section.
struct Movie<'a> {
    mvhd: (&'a [u8], Times),
    parts: Vec<Part<'a>>,
}

impl<'a> Movie<'a> {
    fn parse(moov: &'a [u8], section: &Section, bounds: Bounds) -> Result<Self, Mp4Error> {
        let mut mvhd = None;
        for child in Children(moov) {
            match child? {
                (kind, body) if kind == *b"mvhd" => once(&mut mvhd, body, "mvhd")?,
                (kind, _) if kind == *b"cmov" => return Err(Mp4Error::Compressed),
                _ => {}
            }
        }
        let mvhd = mvhd.ok_or(Mp4Error::Missing("mvhd"))?;
        let times = MVHD.read(mvhd)?;
        if times.duration < section.start(times.scale) {
            return Err(Mp4Error::PastTheEnd);
        }
        let mut parts = Vec::new();
        for child in Children(moov) {
            let (kind, body) = child?;
            if kind == *b"trak" {
                parts.extend(Track::parse(body)?.part(section, times.scale, bounds)?);
            }
        }
        if parts.is_empty() {
            return Err(Mp4Error::Missing("trak"));
        }
        Ok(Self {
            mvhd: (mvhd, times),
            parts,
        })
    }

    fn write(&self, layout: &Layout, section: &Section) -> Result<Cut, Mp4Error> {
        let ranges = || self.parts.iter().filter_map(Part::data);
        let start = ranges().map(|data| data.start).min();
        let end = ranges().map(|data| data.end).max();
        let (Some(start), Some(end)) = (start, end) else {
            return Err(Mp4Error::NoData);
        };
        if end <= start {
            return Err(Mp4Error::NoData);
        }
        if start >= layout.data.end {
            return Err(Mp4Error::OutOfData);
        }
        let mut head = Vec::with_capacity(layout.moov.len() + FTYP_BYTES_MAX as usize);
        if let Some(ftyp) = &layout.ftyp {
            boxes::put(*b"ftyp", ftyp, &mut head);
        }
        let moov = boxes::begin(*b"moov", &mut head);
        let (mvhd, times) = &self.mvhd;
        let lasts = section.left(times.duration, times.scale);
        times.put(*b"mvhd", mvhd, lasts, &mut head);
        let mut puts = Vec::with_capacity(self.parts.len());
        for part in &self.parts {
            puts.push(part.put(&mut head)?);
        }
        boxes::end(moov, &mut head);
        if u32::try_from(head.len() - moov).is_err() {
            return Err(Mp4Error::MadeTooLarge);
        }
        put_data_head(end - start, &mut head);
        let new = head.len() as u64;
        for put in puts {
            put.shift(start, new, &mut head)?;
        }
        Ok(Cut::Part {
            head,
            data: start..end,
        })
    }
}

/// Writes the head of `mdat`.
fn put_data_head(bytes: u64, out: &mut Vec<u8>) {
    match u32::try_from(bytes.saturating_add(8)) {
        Ok(size) => {
            out.extend_from_slice(&size.to_be_bytes());
            out.extend_from_slice(b"mdat");
        }
        Err(_) => {
            out.extend_from_slice(b"\0\0\0\x01mdat");
            out.extend_from_slice(&bytes.saturating_add(16).to_be_bytes());
        }
    }
}

/// Maximum number of top-level boxes; most files have four.
const TOP_BOXES_MAX: usize = 1024;
/// Maximum size of `ftyp`, bytes, as in nginx.
const FTYP_BYTES_MAX: u64 = 1024;
/// Size of each read after the first, bytes.
const NEXT_READ_BYTES: u64 = 4096;

#[cfg(test)]
#[path = "movie_tests.rs"]
mod tests;
