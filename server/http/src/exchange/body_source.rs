//! Bodies that are not at hand when their head is sent: pulled from whoever makes them, who may have to be waited for.

use engines::http::Chunk;

use super::{Ctx, Wait};

/// Who makes the rest of a body, behind the chunks in [`Exchange::body`](super::Exchange::body).
pub trait BodySource {
    /// The next piece; never asked again after the end.
    fn next(&mut self, cx: &mut Ctx<'_>) -> BodyRead;
}

/// What a [`BodySource`] gives.
#[derive(Debug)]
pub enum BodyRead {
    /// A piece of the body. What is to leave before there is more has [`Chunk::Flush`] behind it.
    Chunk(Chunk),
    /// Nothing before this wait ends.
    Pending(Wait),
    /// The body has ended.
    End,
}
