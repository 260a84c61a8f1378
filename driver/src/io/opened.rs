//! Header values of what was opened.

use std::io::Write;
use std::os::fd::OwnedFd;
use std::rc::Rc;

use engines::http::http_date;
use server_base::files::{Meta, Opened};

use super::open_path::Found;

/// Adds the header values to what was found.
pub(crate) fn describe_opened(found: Found) -> Rc<Opened> {
    opened_with(found.fd.map(Rc::new), found.identity.meta)
}

/// The values of a descriptor that is open already.
pub(crate) fn opened_with(file: Option<Rc<OwnedFd>>, meta: Meta) -> Rc<Opened> {
    Rc::new(describe(file, meta))
}

/// The values of a file that may have no descriptor.
pub(crate) fn describe(file: Option<Rc<OwnedFd>>, meta: Meta) -> Opened {
    let mut text = [0; ETAG_BYTES];
    let mut rest = text.as_mut_slice();
    // Two numbers of 64 bits have at most 32 digits.
    let _ = write!(rest, "\"{:x}-{:x}\"", meta.mtime_s, meta.size);
    let etag_len = ETAG_BYTES - rest.len();
    Opened {
        file,
        meta,
        content: None,
        settled: false,
        etag: Rc::from(&text[..etag_len]),
        last_modified: Rc::from(http_date(meta.mtime_s).as_slice()),
    }
}

/// The longest ETag of a file, and more.
const ETAG_BYTES: usize = 40;
