//! HPACK: header compression of HTTP/2, both directions.
//!
//! A complete header block enters [`Decoder::decode`] and leaves as names and values; fields enter
//! [`Encoder::field`] and leave as bytes of a header block. Both keep a dynamic table for the life of a connection,
//! so blocks must pass in the order of the wire.
//!
//! Limits: the size of the dynamic table (the sum of names, values and 32 bytes an entry), and the limits of the
//! caller's sink; no allocation follows a length that the block merely claims.
//!
//! Absent: the meaning of fields, and frames. Source: RFC 7541.

mod decode;
mod dynamic;
mod encode;
mod huffman;
mod integer;
mod statics;

#[cfg(test)]
mod tests;

pub use decode::{Decoder, Fault};
pub use encode::{Encoder, Indexing, Name};

/// Size of the dynamic table until a peer changes it (RFC 9113 section 6.5.2), bytes.
pub const DEFAULT_TABLE_BYTES: usize = 4096;
/// Overhead of an entry besides its name and value (RFC 7541 section 4.1), in bytes.
pub const ENTRY_OVERHEAD_BYTES: usize = 32;
