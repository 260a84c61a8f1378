//! One track: its boxes, the requested section of it, and the boxes of that section.
//!
//! As in nginx, boxes unknown to this file are dropped from the response, including edit lists.
//!
//! Source: ISO/IEC 14496-12, section 8; nginx's mp4 module for the boxes kept and the rounding of times.

use std::ops::Range;

use super::boxes::{self, BoxType, Children, MDHD, TKHD, Times, once};
use super::error::{Edge, Mp4Error};
use super::tables::{Chunks, Offsets, PlacedOffsets, SamplePosition, Sizes, Table};

/// The requested section of a movie, by time.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Section {
    pub(crate) start_ms: u64,
    /// Length from the start on, milliseconds; 0 for all samples behind the start.
    pub(crate) length_ms: u64,
    /// Whether the section begins at a key frame. An edit list then hides the samples before the start.
    pub(crate) key_frame: bool,
}

impl Section {
    pub(crate) fn start(&self, scale: u32) -> u64 {
        scaled(self.start_ms, scale)
    }

    /// Returns how much of a duration is within the section.
    pub(crate) fn left(&self, duration: u64, scale: u32) -> u64 {
        let left = duration.saturating_sub(self.start(scale));
        match self.length_ms {
            0 => left,
            length_ms => left.min(scaled(length_ms, scale)),
        }
    }
}

/// Converts milliseconds into units of `1 / scale` seconds.
fn scaled(ms: u64, scale: u32) -> u64 {
    let units = u128::from(ms) * u128::from(scale) / 1000;
    u64::try_from(units).unwrap_or(u64::MAX)
}

/// Size of the file, and the end of its media data.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bounds {
    pub(crate) file_bytes: u64,
    pub(crate) data_end: u64,
}

/// The boxes of a track.
#[derive(Default)]
pub(crate) struct Track<'a> {
    tkhd: Option<&'a [u8]>,
    mdia: Option<()>,
    mdhd: Option<&'a [u8]>,
    hdlr: Option<&'a [u8]>,
    minf: Option<()>,
    /// `vmhd` or `smhd`.
    media_head: Option<(BoxType, &'a [u8])>,
    dinf: Option<&'a [u8]>,
    stbl: Option<()>,
    stsd: Option<&'a [u8]>,
    stts: Option<Table<'a, 8>>,
    stss: Option<Table<'a, 4>>,
    ctts: Option<Table<'a, 8>>,
    stsc: Option<Table<'a, 12>>,
    stsz: Option<Sizes<'a>>,
    offsets: Option<Offsets<'a>>,
}

impl<'a> Track<'a> {
    /// Reads `trak`.
    pub(crate) fn parse(body: &'a [u8]) -> Result<Self, Mp4Error> {
        let mut track = Self::default();
        for child in Children(body) {
            match child? {
                (TKHD_KIND, body) => once(&mut track.tkhd, body, "tkhd")?,
                (MDIA, body) => {
                    once(&mut track.mdia, (), "mdia")?;
                    track.media(body)?;
                }
                _ => {}
            }
        }
        Ok(track)
    }

    fn media(&mut self, body: &'a [u8]) -> Result<(), Mp4Error> {
        for child in Children(body) {
            match child? {
                (MDHD_KIND, body) => once(&mut self.mdhd, body, "mdhd")?,
                (HDLR, body) => once(&mut self.hdlr, body, "hdlr")?,
                (MINF, body) => {
                    once(&mut self.minf, (), "minf")?;
                    self.information(body)?;
                }
                _ => {}
            }
        }
        Ok(())
    }

    fn information(&mut self, body: &'a [u8]) -> Result<(), Mp4Error> {
        for child in Children(body) {
            match child? {
                head @ (VMHD | SMHD, _) => once(&mut self.media_head, head, "vmhd/smhd")?,
                (DINF, body) => once(&mut self.dinf, body, "dinf")?,
                (STBL, body) => {
                    once(&mut self.stbl, (), "stbl")?;
                    self.tables(body)?;
                }
                _ => {}
            }
        }
        Ok(())
    }

    fn tables(&mut self, body: &'a [u8]) -> Result<(), Mp4Error> {
        for child in Children(body) {
            let (kind, body) = child?;
            match kind {
                // 16 bytes: version, number of entries, and the head of the first entry.
                STSD if body.len() < 16 => return Err(Mp4Error::Short("stsd")),
                STSD => once(&mut self.stsd, body, "stsd")?,
                STTS => once(&mut self.stts, Table::parse(body, "stts")?, "stts")?,
                STSS => once(&mut self.stss, Table::parse(body, "stss")?, "stss")?,
                CTTS => once(&mut self.ctts, Table::parse(body, "ctts")?, "ctts")?,
                STSC => once(&mut self.stsc, Table::parse(body, "stsc")?, "stsc")?,
                STSZ => once(&mut self.stsz, Sizes::parse(body)?, "stsz")?,
                STCO => {
                    let offsets = Offsets::Narrow(Table::parse(body, "stco")?);
                    once(&mut self.offsets, offsets, "stco/co64")?;
                }
                CO64 => {
                    let offsets = Offsets::Wide(Table::parse(body, "co64")?);
                    once(&mut self.offsets, offsets, "stco/co64")?;
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// Computes the requested part of the track; `None` if the track ends before the start.
    pub(crate) fn part(
        self,
        section: &Section,
        movie_scale: u32,
        bounds: Bounds,
    ) -> Result<Option<Part<'a>>, Mp4Error> {
        let tkhd = self
            .tkhd
            .map(|body| Ok((body, TKHD.read(body)?)))
            .transpose()?;
        let mdhd = self.mdhd.ok_or(Mp4Error::Missing("mdhd"))?;
        let mdhd = (mdhd, MDHD.read(mdhd)?);
        let shown = |times: &Times, scale| times.duration > section.start(scale);
        let on = tkhd.is_none_or(|(_, times)| shown(&times, movie_scale));
        if !on || !shown(&mdhd.1, mdhd.1.scale) {
            return Ok(None);
        }
        let tables = Tables {
            stts: self.stts.ok_or(Mp4Error::Missing("stts"))?,
            stss: self.stss,
            ctts: self.ctts,
            sizes: self.stsz.ok_or(Mp4Error::Missing("stsz"))?,
            offsets: self.offsets.ok_or(Mp4Error::Missing("stco"))?,
            chunks: Chunks {
                table: self.stsc.ok_or(Mp4Error::Missing("stsc"))?,
                count: self.offsets.map_or(0, |offsets| offsets.chunks()),
            },
        };
        let (samples, prefix) = tables.samples(section, mdhd.1.scale)?;
        let start = tables.chunks.locate(samples.start, Edge::Start)?;
        let data_start = tables.bytes_before(samples.start, start, Edge::Start, bounds)?;
        let (last, data_end) = match (section.length_ms, samples.end.checked_sub(1)) {
            (0, _) => (None, bounds.data_end),
            (_, Some(sample)) if sample >= samples.start => {
                let last = tables.chunks.locate(sample, Edge::End)?;
                let behind = SamplePosition {
                    within: last.within + 1,
                    ..last
                };
                let end = tables.bytes_before(samples.end, behind, Edge::End, bounds)?;
                (Some(last), end)
            }
            // The track has no sample within the section.
            _ => (None, data_start),
        };
        Ok(Some(Part {
            empty: samples.is_empty(),
            track: self,
            tables,
            tkhd,
            mdhd,
            shown_for: tkhd.map_or(0, |(_, times)| section.left(times.duration, movie_scale)),
            lasts: section
                .left(mdhd.1.duration, mdhd.1.scale)
                .saturating_add(prefix),
            prefix,
            samples,
            start,
            last,
            data: data_start..data_end,
        }))
    }
}

/// The tables that a track needs.
struct Tables<'a> {
    stts: Table<'a, 8>,
    stss: Option<Table<'a, 4>>,
    ctts: Option<Table<'a, 8>>,
    sizes: Sizes<'a>,
    offsets: Offsets<'a>,
    chunks: Chunks<'a>,
}

impl Tables<'_> {
    /// Returns the requested samples, and the total duration of those in front of the start.
    fn samples(&self, section: &Section, scale: u32) -> Result<(Range<u64>, u64), Mp4Error> {
        let start = self.stts.at(section.start(scale));
        let start = start.ok_or(Mp4Error::OutOf(Edge::Start, "stts samples"))?;
        let first = match &self.stss {
            Some(stss) if section.key_frame => stss.sync_before(start.sample)?,
            _ => start.sample,
        };
        let prefix = start.time.saturating_sub(self.stts.time_of(first));
        let known = self.sizes.samples();
        if first >= known {
            return Err(Mp4Error::OutOf(Edge::Start, "stsz samples"));
        }
        let end = match section.length_ms {
            0 => known,
            length_ms => {
                let time = start.time.saturating_add(scaled(length_ms, scale));
                let end = self.stts.at(time);
                end.map_or_else(|| self.stts.samples(), |end| end.sample)
            }
        };
        if end > known {
            return Err(Mp4Error::OutOf(Edge::End, "stsz samples"));
        }
        Ok((first..end, prefix))
    }

    /// Returns the file offset of a sample: the offset of its chunk plus the samples in front of it.
    fn bytes_before(
        &self,
        sample: u64,
        place: SamplePosition,
        edge: Edge,
        bounds: Bounds,
    ) -> Result<u64, Mp4Error> {
        let out = match edge {
            Edge::Start => Mp4Error::OutOf(edge, "stco chunks"),
            Edge::End => Mp4Error::LargeSamples(edge),
        };
        let first = sample.checked_sub(u64::from(place.within)).ok_or(out)?;
        let before = self.sizes.sum(first..sample).ok_or(out)?;
        if before > bounds.file_bytes {
            return Err(Mp4Error::LargeSamples(edge));
        }
        let chunk = self.offsets.at(place.chunk).ok_or(out)?;
        let at = chunk.checked_add(before).ok_or(Mp4Error::LargeOffset)?;
        let narrow = matches!(self.offsets, Offsets::Narrow(_));
        if at > bounds.file_bytes || (narrow && at > u64::from(u32::MAX)) {
            return Err(Mp4Error::LargeOffset);
        }
        Ok(at)
    }
}

/// The part of a track to keep.
pub(crate) struct Part<'a> {
    track: Track<'a>,
    tables: Tables<'a>,
    tkhd: Option<(&'a [u8], Times)>,
    mdhd: (&'a [u8], Times),
    /// Duration of the part in units of the movie, as `tkhd` has it.
    shown_for: u64,
    lasts: u64,
    /// Duration of the samples in front of the start, which an edit list hides.
    prefix: u64,
    samples: Range<u64>,
    start: SamplePosition,
    last: Option<SamplePosition>,
    /// Range of the file with the samples.
    data: Range<u64>,
    empty: bool,
}

impl Part<'_> {
    /// Returns the range of the file with the samples; `None` if there are none.
    pub(crate) fn data(&self) -> Option<Range<u64>> {
        (!self.empty).then(|| self.data.clone())
    }

    /// Writes `trak`. The chunk offsets are those of the original file until [`PlacedOffsets::shift`] is called.
    pub(crate) fn put(&self, out: &mut Vec<u8>) -> Result<PlacedOffsets, Mp4Error> {
        let trak = boxes::begin(*b"trak", out);
        if let Some((body, times)) = &self.tkhd {
            times.put(TKHD_KIND, body, self.shown_for, out);
        }
        if self.prefix > 0 {
            self.put_edit_list(out);
        }
        let mdia = boxes::begin(MDIA, out);
        let (body, times) = &self.mdhd;
        times.put(MDHD_KIND, body, self.lasts, out);
        if let Some(body) = self.track.hdlr {
            boxes::put(HDLR, body, out);
        }
        let minf = boxes::begin(MINF, out);
        if let Some((kind, body)) = self.track.media_head {
            boxes::put(kind, body, out);
        }
        if let Some(body) = self.track.dinf {
            boxes::put(DINF, body, out);
        }
        let stbl = boxes::begin(STBL, out);
        let put = self.put_tables(out)?;
        for at in [stbl, minf, mdia, trak] {
            boxes::end(at, out);
        }
        Ok(put)
    }

    /// Writes an edit list that hides the samples in front of the start.
    fn put_edit_list(&self, out: &mut Vec<u8>) {
        let edts = boxes::begin(*b"edts", out);
        let elst = boxes::begin(*b"elst", out);
        // Version 1 (64-bit numbers), flags, and one entry.
        out.extend_from_slice(&[1, 0, 0, 0, 0, 0, 0, 1]);
        out.extend_from_slice(&self.shown_for.to_be_bytes());
        out.extend_from_slice(&self.prefix.to_be_bytes());
        // Rate 1.0.
        out.extend_from_slice(&[0, 1, 0, 0]);
        boxes::end(elst, out);
        boxes::end(edts, out);
    }

    fn put_tables(&self, out: &mut Vec<u8>) -> Result<PlacedOffsets, Mp4Error> {
        let Tables {
            stts,
            stss,
            ctts,
            sizes,
            offsets,
            chunks,
        } = &self.tables;
        if let Some(body) = self.track.stsd {
            boxes::put(STSD, body, out);
        }
        let at = boxes::begin(STTS, out);
        stts.cut(&self.samples, out);
        boxes::end(at, out);
        if let Some(stss) = stss {
            let at = boxes::begin(STSS, out);
            stss.cut_sync(&self.samples, out);
            boxes::end(at, out);
        }
        if let Some(ctts) = ctts.filter(|ctts| ctts.samples() > self.samples.start) {
            let at = boxes::begin(CTTS, out);
            ctts.cut(&self.samples, out);
            boxes::end(at, out);
        }
        // Without samples there are no chunks.
        let until = match (self.empty, self.last) {
            (true, _) => self.start.chunk,
            (false, Some(last)) => last.chunk + 1,
            (false, None) => offsets.chunks(),
        };
        let at = boxes::begin(STSC, out);
        if self.empty {
            out.extend_from_slice(&chunks.table.version);
            out.extend_from_slice(&[0; 4]);
        } else {
            chunks.cut(self.start, self.last, out)?;
        }
        boxes::end(at, out);
        let at = boxes::begin(STSZ, out);
        sizes.cut(&self.samples, out);
        boxes::end(at, out);
        let kind = match offsets {
            Offsets::Narrow(_) => STCO,
            Offsets::Wide(_) => CO64,
        };
        let at = boxes::begin(kind, out);
        let put = offsets.cut(&(self.start.chunk..until), self.data.start, out);
        boxes::end(at, out);
        Ok(put)
    }
}

const TKHD_KIND: BoxType = *b"tkhd";
const MDIA: BoxType = *b"mdia";
const MDHD_KIND: BoxType = *b"mdhd";
const HDLR: BoxType = *b"hdlr";
const MINF: BoxType = *b"minf";
const VMHD: BoxType = *b"vmhd";
const SMHD: BoxType = *b"smhd";
const DINF: BoxType = *b"dinf";
const STBL: BoxType = *b"stbl";
const STSD: BoxType = *b"stsd";
const STTS: BoxType = *b"stts";
const STSS: BoxType = *b"stss";
const CTTS: BoxType = *b"ctts";
const STSC: BoxType = *b"stsc";
const STSZ: BoxType = *b"stsz";
const STCO: BoxType = *b"stco";
const CO64: BoxType = *b"co64";
