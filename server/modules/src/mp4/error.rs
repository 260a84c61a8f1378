//! Errors of making a part of an MP4 file, in nginx's words.

use server_base::errlog::Printable;

/// Errors of a file, or of the part that is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mp4Error {
    /// The file could not be read; already logged.
    Unreadable,
    /// A box says that it is smaller than its own head.
    BoxTooSmall(u64),
    /// A box says that it is larger than what it lies in.
    BoxTooLarge(u64),
    /// The file, or a box, ends inside of a box's head.
    Truncated,
    /// More boxes beside each other than a file has.
    TooManyBoxes,
    /// `ftyp` of this many bytes.
    FtypTooLarge(u64),
    /// `moov` of this many bytes.
    MoovTooLarge(u64),
    /// The remaining `moov` has become too large for a box.
    MadeTooLarge,
    /// `moov` is compressed.
    Compressed,
    /// This box is shorter than its contents.
    Short(&'static str),
    /// This box is there more than once.
    Duplicate(&'static str),
    /// This box is not there.
    Missing(&'static str),
    /// The start lies behind the end of the file.
    PastTheEnd,
    /// The first or the last sample that is asked for is not in this table.
    OutOf(Edge, &'static str),
    /// `stsc` has no entries.
    NoChunkRuns,
    /// Chunks are counted from 1.
    ZeroChunk,
    /// Runs of chunks that go back.
    Unordered,
    /// Samples are counted from 1.
    ZeroSync,
    /// A place in the file that lies outside of it, or of the numbers there are for it.
    LargeOffset,
    /// The samples before the start fill more than the file.
    LargeSamples(Edge),
    /// Nothing lies between the two times.
    NoData,
    /// The requested part lies behind the media data.
    OutOfData,
}

/// Which end of what is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Edge {
    Start,
    End,
}

impl Edge {
    fn name(self) -> &'static str {
        match self {
            Self::Start => "start",
            Self::End => "end",
        }
    }
}

impl Mp4Error {
    /// A line for the log about the file of this name; `None` where one was written already.
    pub(crate) fn tell(self, file: Printable<'_>) -> Option<String> {
        Some(match self {
            Self::Unreadable => return None,
            Self::BoxTooSmall(size) => format!("\"{file}\" mp4 atom is too small:{size}"),
            Self::BoxTooLarge(size) => format!("\"{file}\" mp4 atom too large:{size}"),
            Self::Truncated => format!("\"{file}\" mp4 file truncated"),
            Self::TooManyBoxes => format!("too many mp4 atoms in \"{file}\""),
            Self::FtypTooLarge(size) => format!("\"{file}\" mp4 ftyp atom is too large:{size}"),
            Self::MoovTooLarge(size) => format!(
                "\"{file}\" mp4 moov atom is too large:{size}, you may want to increase mp4_max_buffer_size"
            ),
            Self::MadeTooLarge => format!("the new mp4 moov atom of \"{file}\" is too large"),
            Self::Compressed => {
                format!("\"{file}\" mp4 compressed moov atom (cmov) is not supported")
            }
            Self::Short(kind) => format!("\"{file}\" mp4 {kind} atom too small"),
            Self::Duplicate(kind) => format!("duplicate mp4 {kind} atom in \"{file}\""),
            Self::Missing("mdat") => format!("no mp4 mdat atom was found in \"{file}\""),
            Self::Missing(kind) => format!("no mp4 {kind} atoms were found in \"{file}\""),
            Self::PastTheEnd => format!("\"{file}\" mp4 start time exceeds file duration"),
            Self::OutOf(edge, what) => {
                format!("{} time is out mp4 {what} in \"{file}\"", edge.name())
            }
            Self::NoChunkRuns => format!("zero number of entries in stsc atom in \"{file}\""),
            Self::ZeroChunk => format!("zero chunk in \"{file}\""),
            Self::Unordered => format!("unordered mp4 stsc chunks in \"{file}\""),
            Self::ZeroSync => format!("zero sync sample in \"{file}\""),
            Self::LargeOffset => format!("too large chunk offset in \"{file}\""),
            Self::LargeSamples(edge) => {
                format!("too large mp4 {} samples size in \"{file}\"", edge.name())
            }
            Self::NoData => format!("no data between start time and end time in \"{file}\""),
            Self::OutOfData => format!("start time is out mp4 mdat atom in \"{file}\""),
        })
    }
}
