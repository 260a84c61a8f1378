//! The format of a cache's file: nginx's, version 5, as pure functions over bytes.
//!
//! ```text
//! 0             binary head of 336 bytes   times, checksum, positions, entity tag, Vary     (header)
//! 336           "\nKEY: " key "\n"                                                           (prefix)
//! header_start  response head as received                                                   (prefix)
//!               notes: times, tags and length of the body, with a mark at their end         (notes)
//! body_start    body, decoded from its transfer coding
//! ```
//!
//! Numbers have the byte order and the layout of x86-64 and aarch64 Linux: little-endian, 64-bit integers aligned. nginx
//! parses the response head up to its empty line and sends the body from `body_start`. So it ignores our notes between
//! the two, and no `proxy_pass_header` can disclose them.
//!
//! A head of FastCGI is stored with its records; [`framed_head`] removes and adds them.
//!
//! Absent: files and their names; the meaning of fields in the response head.
//!
//! Source: the files that nginx 1.31.4 writes (`tests/data`).

mod error;
pub mod framed_head;
mod header;
mod notes;
mod prefix;

pub use crate::layout::{HEADER_BYTES, KEY_MARK};
pub use error::{EncodeError, Invalid};
pub use header::{ETAG_BYTES_MAX, Header, VARY_BYTES_MAX, VERSION};
pub use notes::{Notes, body_length_at};
pub use prefix::{Prefix, encode, parse, parse_unknown};
