//! Bodies that are not at hand when their head is sent: pulled from whoever makes them, who may have to be waited for.

use engines::http::Chunk;

use super::{Ctx, Wait};

/// Who makes the rest of a body, behind the chunks of a [`ResponseBody`](super::ResponseBody).
pub trait BodySource {
    /// The next piece; never asked again after the end.
    fn next(&mut self, cx: &mut Ctx<'_>) -> BodyRead;
}

/// What a [`BodySource`] gives.
#[derive(Debug)]
pub enum BodyRead {
    /// A piece of the body. What came before a pause leaves at once; [`Chunk::Flush`] has it leave where there is none.
    Chunk(Chunk),
    /// Nothing before this wait ends.
    Pending(Wait),
    /// The body has ended.
    End,
    /// It cannot be given to its end: the response breaks off behind what came before.
    Broken,
}

/// The source of a body that is broken.
pub(super) struct BrokenSource;

impl BodySource for BrokenSource {
    fn next(&mut self, _: &mut Ctx<'_>) -> BodyRead {
        BodyRead::Broken
    }
}

#[cfg(test)]
#[path = "body_source_tests.rs"]
mod tests;
