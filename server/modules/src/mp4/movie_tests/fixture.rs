//! Films of a few samples, made for tests.

use std::ops::Range;

use super::super::super::boxes::{self, begin, end};
use super::super::super::error::Mp4Error;
use super::super::Ranges;

/// A file in memory.
pub(crate) struct Memory(pub(crate) Vec<u8>, pub(crate) Vec<Range<u64>>);

impl Ranges for Memory {
    fn read(&mut self, offset: u64, len: u64, out: &mut Vec<u8>) -> Result<(), Mp4Error> {
        self.1.push(offset..offset + len);
        out.extend_from_slice(&self.0[offset as usize..(offset + len) as usize]);
        Ok(())
    }
}

/// A track to build: each sample is a byte value of its own, repeated as often as `sizes` specifies.
#[derive(Clone)]
pub(crate) struct Fixture {
    pub(crate) scale: u32,
    /// Number of samples and the duration of each.
    pub(crate) times: Vec<(u32, u32)>,
    /// Key frames, counted from 1.
    pub(crate) sync: Option<Vec<u32>>,
    /// Number of samples and their composition offset.
    pub(crate) later: Option<Vec<(u32, u32)>>,
    /// Chunks from 1, samples in each, description.
    pub(crate) runs: Vec<(u32, u32, u32)>,
    pub(crate) sizes: Vec<u32>,
    /// Whether the table has one size for all samples, that of the first.
    pub(crate) same: bool,
    pub(crate) wide: bool,
    /// The version of its boxes of times.
    pub(crate) version: u8,
}

impl Fixture {
    /// 20 samples of a fifth of a second in chunks of three.
    pub(crate) fn film() -> Self {
        Self {
            scale: 100,
            times: vec![(20, 20)],
            sync: Some(vec![1, 6, 11, 16]),
            later: Some(vec![(4, 40), (16, 20)]),
            runs: vec![(1, 3, 1)],
            sizes: (1..=20).collect(),
            same: false,
            wide: false,
            version: 0,
        }
    }

    /// 4 seconds in 32 samples of an eighth.
    pub(crate) fn sound() -> Self {
        Self {
            scale: 8000,
            times: vec![(32, 1000)],
            sync: None,
            later: None,
            runs: vec![(1, 4, 1), (5, 8, 1)],
            sizes: vec![7; 32],
            same: true,
            wide: true,
            version: 1,
        }
    }

    pub(crate) fn lasts(&self) -> u64 {
        let spans = self
            .times
            .iter()
            .map(|(n, d)| u64::from(*n) * u64::from(*d));
        spans.sum()
    }

    pub(crate) fn lens(&self) -> Vec<u32> {
        let mut lens = Vec::new();
        let mut left = self.sizes.len() as u32;
        let mut chunk = 1;
        while left > 0 {
            let run = self.runs.iter().rev().find(|run| run.0 <= chunk);
            let len = run.map_or(1, |run| run.1).clamp(1, left);
            lens.push(len);
            left -= len;
            chunk += 1;
        }
        lens
    }
}

pub(crate) fn times_box(kind: &[u8; 4], made: &Fixture, scale: u32, lasts: u64, out: &mut Vec<u8>) {
    let wide = made.version == 1;
    let (before, least) = match (kind, wide) {
        (b"tkhd", false) => (20, 84),
        (b"tkhd", true) => (28, 96),
        (b"mvhd", false) => (16, 100),
        (b"mvhd", true) => (24, 112),
        (_, false) => (16, 24),
        (_, true) => (24, 36),
    };
    let at = begin(*kind, out);
    let body = out.len();
    out.push(made.version);
    out.resize(body + least, 0);
    if kind != b"tkhd" {
        out[body + before - 4..body + before].copy_from_slice(&scale.to_be_bytes());
    }
    match wide {
        true => out[body + before..body + before + 8].copy_from_slice(&lasts.to_be_bytes()),
        false => {
            out[body + before..body + before + 4].copy_from_slice(&(lasts as u32).to_be_bytes())
        }
    }
    end(at, out);
}

pub(crate) fn table(kind: &[u8; 4], rows: &[&[u32]], out: &mut Vec<u8>) {
    let at = begin(*kind, out);
    let mut numbers = vec![0, rows.len() as u32];
    numbers.extend(rows.iter().flat_map(|row| row.iter()));
    out.extend(numbers.into_iter().flat_map(u32::to_be_bytes));
    end(at, out);
}

pub(crate) fn trak(made: &Fixture, first_offset: u64, out: &mut Vec<u8>) {
    let mut opened = vec![begin(*b"trak", out)];
    let seconds = made.lasts() * 1000 / u64::from(made.scale);
    times_box(b"tkhd", made, 0, seconds, out);
    // An edit list of the file is not kept.
    boxes::put(*b"edts", &[0; 20], out);
    opened.push(begin(*b"mdia", out));
    times_box(b"mdhd", made, made.scale, made.lasts(), out);
    boxes::put(*b"hdlr", b"a handler", out);
    opened.push(begin(*b"minf", out));
    boxes::put(*b"vmhd", b"a head", out);
    boxes::put(*b"dinf", b"where the data is", out);
    opened.push(begin(*b"stbl", out));
    boxes::put(*b"stsd", b"0000and what samples are", out);
    let pairs = |list: &[(u32, u32)]| list.iter().map(|p| [p.0, p.1]).collect::<Vec<_>>();
    let rows = pairs(&made.times);
    table(
        b"stts",
        &rows.iter().map(|r| &r[..]).collect::<Vec<_>>(),
        out,
    );
    if let Some(sync) = &made.sync {
        table(b"stss", &sync.chunks(1).collect::<Vec<_>>(), out);
    }
    if let Some(later) = &made.later {
        let rows = pairs(later);
        table(
            b"ctts",
            &rows.iter().map(|r| &r[..]).collect::<Vec<_>>(),
            out,
        );
    }
    let runs: Vec<[u32; 3]> = made.runs.iter().map(|r| [r.0, r.1, r.2]).collect();
    table(
        b"stsc",
        &runs.iter().map(|r| &r[..]).collect::<Vec<_>>(),
        out,
    );
    let at = begin(*b"stsz", out);
    let same = if made.same { made.sizes[0] } else { 0 };
    let mut numbers = vec![0, same, made.sizes.len() as u32];
    numbers.extend(made.sizes.iter().filter(|_| !made.same));
    out.extend(numbers.into_iter().flat_map(u32::to_be_bytes));
    end(at, out);
    let (mut offset, mut sample, mut offsets) = (first_offset, 0, Vec::new());
    for len in made.lens() {
        offsets.push(offset);
        let sizes = &made.sizes[sample..sample + len as usize];
        offset += sizes.iter().map(|size| u64::from(*size)).sum::<u64>();
        sample += len as usize;
    }
    let at = begin(if made.wide { *b"co64" } else { *b"stco" }, out);
    out.extend_from_slice(&[0; 4]);
    out.extend_from_slice(&(offsets.len() as u32).to_be_bytes());
    for offset in offsets {
        let bytes = offset.to_be_bytes();
        out.extend_from_slice(if made.wide { &bytes } else { &bytes[4..] });
    }
    end(at, out);
    for at in opened.into_iter().rev() {
        end(at, out);
    }
}

pub(crate) fn moov(tracks: &[Fixture], data_at: u64, out: &mut Vec<u8>) {
    let at = begin(*b"moov", out);
    let lasts = |made: &Fixture| made.lasts() * 1000 / u64::from(made.scale);
    let longest = tracks.iter().map(lasts).max().unwrap_or(0);
    let version = tracks.first().map_or_else(Fixture::film, Fixture::clone);
    times_box(b"mvhd", &version, 1000, longest, out);
    boxes::put(*b"udta", b"unknown", out);
    let mut offset = data_at;
    for made in tracks {
        trak(made, offset, out);
        offset += made.sizes.iter().map(|size| u64::from(*size)).sum::<u64>();
    }
    end(at, out);
}

/// The bytes of sample `n` of a track.
pub(crate) fn sample(track: usize, n: usize, size: u32) -> Vec<u8> {
    vec![(track * 100 + n) as u8; size as usize]
}

pub(crate) fn data(tracks: &[Fixture]) -> Vec<u8> {
    let mut data = Vec::new();
    for (track, made) in tracks.iter().enumerate() {
        for (n, size) in made.sizes.iter().enumerate() {
            data.extend(sample(track, n, *size));
        }
    }
    data
}

/// A file with its metadata first, or last.
pub(crate) fn file(tracks: &[Fixture], first: bool) -> Vec<u8> {
    let mut out = Vec::new();
    boxes::put(*b"ftyp", b"isom0000", &mut out);
    let data = data(tracks);
    if first {
        let mut probe = Vec::new();
        moov(tracks, 0, &mut probe);
        moov(tracks, (out.len() + probe.len() + 8) as u64, &mut out);
        boxes::put(*b"mdat", &data, &mut out);
    } else {
        boxes::put(*b"mdat", &data, &mut out);
        moov(tracks, 16 + 8, &mut out);
    }
    out
}
