//! The tables of a track: durations, key frames, chunks, sizes and file offsets of its samples.
//!
//! Tables are borrowed from `moov`, and refused if they have fewer rows than their count. Samples and chunks are
//! counted from 0 here, from 1 in the file.
//!
//! Source: ISO/IEC 14496-12, sections 8.6 and 8.7.

use std::ops::Range;

use super::error::{Edge, Mp4Error};

/// A table with rows of `W` bytes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Table<'a, const W: usize> {
    /// Version and flags.
    pub(crate) version: [u8; 4],
    pub(crate) rows: &'a [[u8; W]],
}

impl<'a, const W: usize> Table<'a, W> {
    pub(crate) fn parse(body: &'a [u8], kind: &'static str) -> Result<Self, Mp4Error> {
        let short = Mp4Error::Short(kind);
        let (version, rest) = body.split_first_chunk::<4>().ok_or(short)?;
        let rows = rows(rest).ok_or(short)?;
        Ok(Self {
            version: *version,
            rows,
        })
    }
}

/// Parses a row count and the rows behind it.
fn rows<const W: usize>(bytes: &[u8]) -> Option<&[[u8; W]]> {
    let (count, rest) = bytes.split_first_chunk::<4>()?;
    let count = usize::try_from(u32::from_be_bytes(*count)).ok()?;
    rest.as_chunks::<W>().0.get(..count)
}

fn pair(row: &[u8; 8]) -> (u32, u32) {
    let [a, b, c, d, e, f, g, h] = *row;
    (
        u32::from_be_bytes([a, b, c, d]),
        u32::from_be_bytes([e, f, g, h]),
    )
}

/// A sample and its start time, in units of the track.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Moment {
    pub(crate) sample: u64,
    pub(crate) time: u64,
}

/// Runs of samples with a value in common: `stts` and `ctts`.
impl Table<'_, 8> {
    /// Number of samples.
    pub(crate) fn samples(&self) -> u64 {
        self.rows.iter().map(|row| u64::from(pair(row).0)).sum()
    }

    /// Returns the sample that plays at a time (`stts`).
    pub(crate) fn at(&self, time: u64) -> Option<Moment> {
        let (mut sample, mut left) = (0, time);
        for (count, duration) in self.rows.iter().map(pair) {
            let span = u64::from(count) * u64::from(duration);
            if left < span {
                let duration = u64::from(duration);
                return Some(Moment {
                    sample: sample + left / duration,
                    time: time - left % duration,
                });
            }
            sample += u64::from(count);
            left -= span;
        }
        None
    }

    /// Returns the start time of a sample (`stts`).
    pub(crate) fn time_of(&self, sample: u64) -> u64 {
        let (mut left, mut time) = (sample, 0_u64);
        for (count, duration) in self.rows.iter().map(pair) {
            let count = left.min(u64::from(count));
            time = time.saturating_add(count * u64::from(duration));
            left -= count;
        }
        time
    }

    /// Writes the table cut to a range of samples.
    pub(crate) fn cut(&self, samples: &Range<u64>, out: &mut Vec<u8>) {
        let (start, mut count) = (begin_rows(self.version, out), 0_u32);
        let mut first = 0;
        for row in self.rows {
            let (len, value) = pair(row);
            let next = first + u64::from(len);
            let (from, to) = (first.max(samples.start), next.min(samples.end));
            first = next;
            if from < to {
                // Fits: at most `len`.
                out.extend_from_slice(&((to - from) as u32).to_be_bytes());
                out.extend_from_slice(&value.to_be_bytes());
                count += 1;
            }
        }
        end_rows(start, count, out);
    }
}

/// Samples that can be shown without others: `stss`.
impl Table<'_, 4> {
    /// Returns the last key frame at or before a sample; the sample itself if there is none.
    pub(crate) fn sync_before(&self, sample: u64) -> Result<u64, Mp4Error> {
        let mut found = sample;
        for row in self.rows {
            let number = u64::from(u32::from_be_bytes(*row));
            let own = number.checked_sub(1).ok_or(Mp4Error::ZeroSync)?;
            if own > sample {
                break;
            }
            found = own;
        }
        Ok(found)
    }

    /// Writes the key frames within a range of samples, numbered from the start of the range.
    pub(crate) fn cut_sync(&self, samples: &Range<u64>, out: &mut Vec<u8>) {
        let (start, mut count) = (begin_rows(self.version, out), 0_u32);
        for row in self.rows {
            let number = u32::from_be_bytes(*row);
            let own = u64::from(number).checked_sub(1);
            if let Some(own) = own.filter(|own| samples.contains(own)) {
                // Fits: at most `number`.
                let moved = (own - samples.start + 1) as u32;
                out.extend_from_slice(&moved.to_be_bytes());
                count += 1;
            }
        }
        end_rows(start, count, out);
    }
}

/// The chunk of a sample and its index there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SamplePosition {
    pub(crate) chunk: u64,
    /// Number of samples of the chunk in front of it.
    pub(crate) within: u32,
}

/// `stsc`: runs of chunks with an equal number of samples; `count` is the total number of chunks.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Chunks<'a> {
    pub(crate) table: Table<'a, 12>,
    pub(crate) count: u64,
}

struct Run {
    chunks: Range<u64>,
    samples: u32,
    /// Index of a description in `stsd`.
    description: u32,
}

impl Chunks<'_> {
    fn runs(&self) -> impl Iterator<Item = Result<Run, Mp4Error>> {
        let firsts = self.table.rows.iter().map(|row| triple(row).0);
        // The last run ends behind the last chunk; numbers are counted from 1 here.
        let nexts = firsts.skip(1).map(u64::from).chain([self.count + 1]);
        self.table.rows.iter().zip(nexts).map(|(row, next)| {
            let (first, samples, description) = triple(row);
            let first = u64::from(first).checked_sub(1).ok_or(Mp4Error::ZeroChunk)?;
            // A zero here is reported by the next iteration, as that run's first chunk.
            let next = next.saturating_sub(1);
            if next < first {
                return Err(Mp4Error::Unordered);
            }
            Ok(Run {
                chunks: first..next,
                samples,
                description,
            })
        })
    }

    /// Returns the chunk of a sample; `edge` is for the error.
    pub(crate) fn locate(&self, sample: u64, edge: Edge) -> Result<SamplePosition, Mp4Error> {
        if self.table.rows.is_empty() {
            return Err(Mp4Error::NoChunkRuns);
        }
        let mut left = sample;
        for run in self.runs() {
            let run = run?;
            let len = run.chunks.end - run.chunks.start;
            // Cannot overflow: both factors are below 2^32.
            let all = len * u64::from(run.samples);
            if left < all {
                let samples = u64::from(run.samples);
                return Ok(SamplePosition {
                    chunk: run.chunks.start + left / samples,
                    within: (left % samples) as u32,
                });
            }
            left -= all;
        }
        Err(Mp4Error::OutOf(edge, "stsc chunks"))
    }

    /// Writes the runs of the chunks from `start` to `last`. The samples before `start` and behind `last` are removed
    /// from the first and the last chunk.
    pub(crate) fn cut(
        &self,
        start: SamplePosition,
        last: Option<SamplePosition>,
        out: &mut Vec<u8>,
    ) -> Result<(), Mp4Error> {
        let (begun, mut count) = (begin_rows(self.table.version, out), 0_u32);
        let end = last.map_or(self.count, |last| last.chunk + 1);
        let mut before = None;
        let mut put = |chunk: u64, samples: u32, description: u32| {
            if before.replace((samples, description)) != Some((samples, description)) {
                // Fits: chunk numbers have 32 bits.
                let number = (chunk - start.chunk + 1) as u32;
                for part in [number, samples, description] {
                    out.extend_from_slice(&part.to_be_bytes());
                }
                count += 1;
            }
        };
        for run in self.runs() {
            let Run {
                chunks,
                samples,
                description,
            } = run?;
            let (from, to) = (chunks.start.max(start.chunk), chunks.end.min(end));
            if from >= to {
                continue;
            }
            let kept = |chunk: u64| {
                let head = if chunk == start.chunk {
                    start.within
                } else {
                    0
                };
                let tail = last.filter(|last| last.chunk == chunk);
                tail.map_or(samples, |last| last.within + 1)
                    .saturating_sub(head)
            };
            // Only the first and the last chunk of all can lose samples.
            put(from, kept(from), description);
            if to - from > 2 {
                put(from + 1, samples, description);
            }
            if to - from > 1 {
                put(to - 1, kept(to - 1), description);
            }
        }
        end_rows(begun, count, out);
        Ok(())
    }
}

fn triple(row: &[u8; 12]) -> (u32, u32, u32) {
    let [a, b, c, d, e, f, g, h, i, j, k, l] = *row;
    (
        u32::from_be_bytes([a, b, c, d]),
        u32::from_be_bytes([e, f, g, h]),
        u32::from_be_bytes([i, j, k, l]),
    )
}

/// `stsz`: the sizes of the samples.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sizes<'a> {
    version: [u8; 4],
    sizes: SizeRows<'a>,
}

#[derive(Clone, Copy, Debug)]
enum SizeRows<'a> {
    /// Size of every sample, and their number.
    Same(u32, u32),
    Each(&'a [[u8; 4]]),
}

impl<'a> Sizes<'a> {
    pub(crate) fn parse(body: &'a [u8]) -> Result<Self, Mp4Error> {
        let short = Mp4Error::Short("stsz");
        let (version, rest) = body.split_first_chunk::<4>().ok_or(short)?;
        let (same, rest) = rest.split_first_chunk::<4>().ok_or(short)?;
        let sizes = match u32::from_be_bytes(*same) {
            0 => SizeRows::Each(rows(rest).ok_or(short)?),
            same => {
                let count = rest.first_chunk::<4>().ok_or(short)?;
                SizeRows::Same(same, u32::from_be_bytes(*count))
            }
        };
        Ok(Self {
            version: *version,
            sizes,
        })
    }

    pub(crate) fn samples(&self) -> u64 {
        match self.sizes {
            SizeRows::Same(_, count) => u64::from(count),
            SizeRows::Each(rows) => rows.len() as u64,
        }
    }

    /// Returns the total size of a range of samples, bytes; `None` if some are missing.
    pub(crate) fn sum(&self, samples: Range<u64>) -> Option<u64> {
        match self.sizes {
            SizeRows::Same(size, count) => {
                let len = samples.end.checked_sub(samples.start)?;
                let known = samples.end <= u64::from(count);
                // Cannot overflow: both factors are below 2^32.
                known.then(|| len * u64::from(size))
            }
            SizeRows::Each(rows) => {
                let samples =
                    usize::try_from(samples.start).ok()?..usize::try_from(samples.end).ok()?;
                let rows = rows.get(samples)?;
                let sizes = rows.iter().map(|row| u64::from(u32::from_be_bytes(*row)));
                // Cannot overflow: at most 2^32 values below 2^32.
                Some(sizes.sum())
            }
        }
    }

    /// Writes the table cut to a range of samples, all of which must exist.
    pub(crate) fn cut(&self, samples: &Range<u64>, out: &mut Vec<u8>) {
        let count = (samples.end - samples.start) as u32;
        let (same, rows) = match self.sizes {
            SizeRows::Same(size, _) => (size, &[][..]),
            SizeRows::Each(rows) => (0, &rows[samples.start as usize..samples.end as usize]),
        };
        out.extend_from_slice(&self.version);
        for part in [same, count] {
            out.extend_from_slice(&part.to_be_bytes());
        }
        out.extend_from_slice(rows.as_flattened());
    }
}

/// `stco` and `co64`: the file offsets of the chunks.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Offsets<'a> {
    Narrow(Table<'a, 4>),
    Wide(Table<'a, 8>),
}

impl Offsets<'_> {
    pub(crate) fn chunks(&self) -> u64 {
        match self {
            Self::Narrow(table) => table.rows.len() as u64,
            Self::Wide(table) => table.rows.len() as u64,
        }
    }

    pub(crate) fn at(&self, chunk: u64) -> Option<u64> {
        let chunk = usize::try_from(chunk).ok()?;
        Some(match self {
            Self::Narrow(table) => u64::from(u32::from_be_bytes(*table.rows.get(chunk)?)),
            Self::Wide(table) => u64::from_be_bytes(*table.rows.get(chunk)?),
        })
    }

    /// Writes the offsets of a range of chunks; `start` replaces the first, whose first samples may be cut. Returns
    /// their place in `out`.
    pub(crate) fn cut(&self, chunks: &Range<u64>, start: u64, out: &mut Vec<u8>) -> PlacedOffsets {
        let wide = matches!(self, Self::Wide(_));
        let version = match self {
            Self::Narrow(table) => table.version,
            Self::Wide(table) => table.version,
        };
        let begun = begin_rows(version, out);
        let at = out.len();
        for chunk in chunks.clone() {
            let offset = if chunk == chunks.start {
                Some(start)
            } else {
                self.at(chunk)
            };
            put_offset(offset.unwrap_or_default(), wide, out);
        }
        let count = (chunks.end - chunks.start) as u32;
        end_rows(begun, count, out);
        PlacedOffsets { at, count, wide }
    }
}

fn put_offset(offset: u64, wide: bool, out: &mut Vec<u8>) {
    if wide {
        out.extend_from_slice(&offset.to_be_bytes());
    } else {
        // Fits: read from 4 bytes, or checked by `bytes_before`.
        out.extend_from_slice(&(offset as u32).to_be_bytes());
    }
}

/// Position of written chunk offsets in the response.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PlacedOffsets {
    at: usize,
    count: u32,
    wide: bool,
}

impl PlacedOffsets {
    /// Shifts the offsets: the byte at `old` of the file is at `new` of the response.
    pub(crate) fn shift(&self, old: u64, new: u64, out: &mut [u8]) -> Result<(), Mp4Error> {
        let count = self.count as usize;
        let place = |offset: u64| {
            let distance = offset.checked_sub(old).ok_or(Mp4Error::LargeOffset)?;
            distance.checked_add(new).ok_or(Mp4Error::LargeOffset)
        };
        if self.wide {
            let rows = &mut out[self.at..self.at + count * 8];
            for row in rows.as_chunks_mut::<8>().0 {
                *row = place(u64::from_be_bytes(*row))?.to_be_bytes();
            }
        } else {
            let rows = &mut out[self.at..self.at + count * 4];
            for row in rows.as_chunks_mut::<4>().0 {
                let offset = place(u64::from(u32::from_be_bytes(*row)))?;
                let offset = u32::try_from(offset).map_err(|_| Mp4Error::LargeOffset)?;
                *row = offset.to_be_bytes();
            }
        }
        Ok(())
    }
}

/// Writes version and an empty row count; returns the position behind them.
fn begin_rows(version: [u8; 4], out: &mut Vec<u8>) -> usize {
    out.extend_from_slice(&version);
    out.extend_from_slice(&[0; 4]);
    out.len()
}

fn end_rows(begun: usize, count: u32, out: &mut [u8]) {
    out[begun - 4..begun].copy_from_slice(&count.to_be_bytes());
}
