//! Response bodies that are produced after their head is sent: pulled from a source, which may have to be waited for.

use engines::http::Chunk;

use super::{Ctx, Wait};

/// Produces the rest of a body, behind the chunks of a [`ResponseBody`](super::ResponseBody).
pub trait BodySource {
    /// The next piece; not called again after the end.
    fn next(&mut self, cx: &mut Ctx<'_>) -> BodyRead;
}

/// The result of reading a [`BodySource`].
#[derive(Debug)]
pub enum BodyRead {
    /// A piece of the body. All pieces before a pause are sent at once; [`Chunk::Flush`] forces that without a
    /// pause.
    Chunk(Chunk),
    /// Nothing before this wait ends.
    Pending(Wait),
    /// The body has ended.
    End,
    /// The source failed: the response breaks off after the earlier pieces.
    Broken,
}

/// The source of a body that is broken.
pub(crate) struct BrokenSource;

impl BodySource for BrokenSource {
    fn next(&mut self, _: &mut Ctx<'_>) -> BodyRead {
        BodyRead::Broken
    }
}

#[cfg(test)]
#[path = "body_source_tests.rs"]
mod tests;
