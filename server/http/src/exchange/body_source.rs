//! Response bodies that are produced after their head is sent: pulled from a source, which may have to be waited for.

use engines::http::Chunk;

use super::{Ctx, Wait};

/// Produces the rest of a body, behind the chunks of a [`ResponseBody`](super::ResponseBody).
pub trait BodySource {
    /// The next piece; never asked again after the end.
    fn next(&mut self, cx: &mut Ctx<'_>) -> BodyRead;
}

/// The result of reading a [`BodySource`].
#[derive(Debug)]
pub enum BodyRead {
    /// A piece of the body. All before a pause leaves at once; [`Chunk::Flush`] forces that where there is no pause.
    Chunk(Chunk),
    /// Nothing before this wait ends.
    Pending(Wait),
    /// The body has ended.
    End,
    /// It cannot be given to its end: the response breaks off behind what came before.
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
