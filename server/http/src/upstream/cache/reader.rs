//! The body of a response that another request receives: read from its file while it grows.

use engines::http::{Chunk, FileHandle, FileRange};
use server_base::waker::RemoteWaker;
use server_cache::fill::{FillEnd, FillReader};
use std::rc::Rc;

use crate::exchange::{BodyRead, BodySource, Ctx, Wait};

/// A body that is being received.
pub(super) struct FillBody {
    reader: FillReader,
    file: FileHandle,
    /// Position of the body in the file.
    start: u64,
    /// Bytes of the body that were read.
    read: u64,
    waker: RemoteWaker,
}

impl FillBody {
    /// The body of a fill, in this file from a position on. `waker` is that of the exchange.
    pub(super) fn new(
        reader: FillReader,
        file: FileHandle,
        start: u64,
        waker: RemoteWaker,
    ) -> Self {
        Self {
            reader,
            file,
            start,
            read: 0,
            waker,
        }
    }
}

impl BodySource for FillBody {
    fn next(&mut self, _: &mut Ctx<'_>) -> BodyRead {
        loop {
            let seen = self.reader.progress();
            let left = seen.available.saturating_sub(self.read);
            if left > 0 {
                let offset = self.start + self.read;
                self.read += left;
                return BodyRead::Chunk(Chunk::File(FileRange {
                    file: Rc::clone(&self.file),
                    offset,
                    len: left,
                }));
            }
            match seen.end {
                Some(FillEnd::Done) => return BodyRead::End,
                Some(_) => return BodyRead::Broken,
                None => {}
            }
            if self.reader.wait(seen, || self.waker.clone()) {
                return BodyRead::Pending(Wait::woken());
            }
        }
    }
}
