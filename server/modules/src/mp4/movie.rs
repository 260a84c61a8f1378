//! A part of an MP4 file by time: what is sent is `ftyp`, a `moov` with cut tables, and a piece of `mdat`.
//!
//! Nothing here reads by itself: a reader of ranges supplies bytes ([`Ranges`]). The size that `moov` may have bounds
//! all reads and results, whatever the file says of itself.
//!
//! Absent: compressed `moov`, compact sizes of samples (`stz2`), files in fragments.
//!
//! Source: ISO/IEC 14496-12; nginx documentation, `ngx_http_mp4_module`.

use std::ops::Range;

use super::boxes::{self, Children, HEAD_BYTES_MAX, Head, MVHD, Times, once};
use super::error::Mp4Error;
use super::track::{Ask, Bounds, Part, Track};

/// Reads the file.
pub(crate) trait Ranges {
    /// Appends the bytes from `offset` on; there are as many.
    fn read(&mut self, offset: u64, len: u64, out: &mut Vec<u8>) -> Result<(), Mp4Error>;
}

/// Size of reads, and maximum size of `moov`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    /// Bytes read from the begin at once; a `moov` that is no larger is always taken.
    pub(crate) first_read: u64,
    /// Bytes of a `moov` at most.
    pub(crate) moov: u64,
}

/// The response to send.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Cut {
    /// The file as it is.
    Whole,
    /// These bytes, and this range of the file behind them.
    Part { head: Vec<u8>, data: Range<u64> },
}

/// Finds what is asked for in a file of `size` bytes.
pub(crate) fn cut(
    source: &mut dyn Ranges,
    size: u64,
    limits: Limits,
    ask: &Ask,
) -> Result<Cut, Mp4Error> {
    let window = Window {
        source,
        size,
        at: 0,
        bytes: Vec::new(),
        wish: limits.first_read,
    };
    let Some(layout) = window.layout(limits, ask)? else {
        return Ok(Cut::Whole);
    };
    let bounds = Bounds {
        file_bytes: size,
        data_end: layout.data.end,
    };
    let movie = Movie::parse(&layout.moov, ask, bounds)?;
    movie.write(&layout, ask)
}

/// The boxes of a file.
struct Layout {
    ftyp: Option<Vec<u8>>,
    moov: Vec<u8>,
    data: Range<u64>,
}

/// A piece of the file that has been read.
struct Window<'a> {
    source: &'a mut dyn Ranges,
    size: u64,
    at: u64,
    bytes: Vec<u8>,
    /// Size of a read, bytes.
    wish: u64,
}

impl Window<'_> {
    /// Bytes of the file; there must be as many.
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

    /// Returns a range like [`Self::view`], in memory of its own.
    fn take(&mut self, at: u64, len: u64) -> Result<Vec<u8>, Mp4Error> {
        if at >= self.at && at + len <= self.at + self.bytes.len() as u64 {
            return self.view(at, len).map(<[u8]>::to_vec);
        }
        let mut bytes = Vec::new();
        self.source.read(at, len, &mut bytes)?;
        Ok(bytes)
    }

    /// Looks for the boxes that matter; `None` if the file can be sent as it is.
    fn layout(mut self, limits: Limits, ask: &Ask) -> Result<Option<Layout>, Mp4Error> {
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
                    if data.is_none() && ask.start_ms == 0 && ask.length_ms == 0 {
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
                // What follows does not matter.
                (Some(_), Some(_)) => self.size,
                _ => next,
            };
        }
        Err(Mp4Error::TooManyBoxes)
    }
}

/// `moov` and what is asked for of it.
struct Movie<'a> {
    mvhd: (&'a [u8], Times),
    parts: Vec<Part<'a>>,
}

impl<'a> Movie<'a> {
    fn parse(moov: &'a [u8], ask: &Ask, bounds: Bounds) -> Result<Self, Mp4Error> {
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
        if times.duration < ask.start(times.scale) {
            return Err(Mp4Error::PastTheEnd);
        }
        let mut parts = Vec::new();
        for child in Children(moov) {
            let (kind, body) = child?;
            if kind == *b"trak" {
                parts.extend(Track::parse(body)?.part(ask, times.scale, bounds)?);
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

    fn write(&self, layout: &Layout, ask: &Ask) -> Result<Cut, Mp4Error> {
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
        let lasts = ask.left(times.duration, times.scale);
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
            put.moved(start, new, &mut head)?;
        }
        Ok(Cut::Part {
            head,
            data: start..end,
        })
    }
}

/// The head of `mdat`.
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

/// Boxes of a file beside each other at most; there are four in most.
const TOP_BOXES_MAX: usize = 1024;
/// Maximum size of `ftyp`, bytes, as in nginx.
const FTYP_BYTES_MAX: u64 = 1024;
/// Bytes that are read to find the boxes behind the first ones.
const NEXT_READ_BYTES: u64 = 4096;

#[cfg(test)]
#[path = "movie_tests.rs"]
mod tests;
