//! Lengths around the key of a file, which bound the length of a key.

/// Bytes of the binary head, with its padding.
pub const HEADER_BYTES: usize = 336;
/// The bytes before a key.
pub const KEY_MARK: &[u8; 6] = b"\nKEY: ";

/// Returns the position of the response head behind a key of this length.
pub(crate) fn header_start(key_bytes: usize) -> usize {
    HEADER_BYTES + KEY_MARK.len() + key_bytes + 1
}
