//! Identifiers that bind requests to servers: the `route` of a server, or else the MD5 of an address in hexadecimal.
//!
//! Source: nginx documentation, `sticky`, `route`; nginx's behaviour.

use md5::{Digest, Md5};

use crate::route::UpstreamAddr;

/// Maximum length of an identifier, bytes: that of an MD5 in hexadecimal. Longer routes are refused.
pub const SERVER_ID_BYTES: usize = 32;

/// Returns the identifier of a server without a route.
pub fn hash_of(addr: &UpstreamAddr) -> Vec<u8> {
    let hash = Md5::digest(addr.name());
    let digits = hash.iter().flat_map(|byte| [byte >> 4, byte & 15]);
    digits
        .map(|digit| b"0123456789abcdef"[usize::from(digit)])
        .collect()
}
