//! Errors in cutting an MP4 file, in nginx's words.

use server_base::errlog::Printable;

/// Errors in a file, or in the requested section of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mp4Error {
    /// The file could not be read; already logged.
    Unreadable,
    /// The size of a box is smaller than its head.
    BoxTooSmall(u64),
    /// The size of a box exceeds the enclosing box or file.
    BoxTooLarge(u64),
    /// The file or the enclosing box ends within the head of a box.
    Truncated,
    /// More top-level boxes than `TOP_BOXES_MAX`.
    TooManyBoxes,
    /// `ftyp` of this many bytes.
    FtypTooLarge(u64),
    /// `moov` of this many bytes.
    MoovTooLarge(u64),
    /// The `moov` of the response is too large for a box.
    MadeTooLarge,
    /// `moov` is compressed.
    Compressed,
    /// This box is shorter than its contents.
    Short(&'static str),
    /// This box occurs more than once.
    Duplicate(&'static str),
    /// This box is missing.
    Missing(&'static str),
    /// The start is behind the end of the movie.
    PastTheEnd,
    /// The first or the last requested sample is not in this table.
    OutOf(Edge, &'static str),
    /// `stsc` has no entries.
    NoChunkRuns,
    /// `stsc` contains a chunk number 0; chunks are counted from 1.
    ZeroChunk,
    /// Chunk numbers in `stsc` decrease.
    Unordered,
    /// `stss` contains a sample number 0; samples are counted from 1.
    ZeroSync,
    /// An offset is outside of the file, or does not fit into its field.
    LargeOffset,
    /// The samples before the requested one are larger than the file.
    LargeSamples(Edge),
    /// No sample is between the start and the end.
    NoData,
    /// The requested section is behind the media data.
    OutOfData,
}

/// The start or the end of the requested section.
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
    /// Returns the log message about a file; `None` if one has been written already.
    pub(crate) fn log_text(self, file: Printable<'_>) -> Option<String> {
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
