//! The URI of an exchange and its extension.

use super::Exchange;

impl Exchange {
    /// Replaces the URI and its extension.
    pub fn set_uri(&mut self, uri: &[u8]) {
        self.uri.clear();
        self.uri.extend_from_slice(uri);
        self.set_ext();
    }

    /// Finds the extension of the URI: after the last dot of the last segment.
    pub fn set_ext(&mut self) {
        let segment = memchr::memrchr(b'/', &self.uri).map_or(0, |at| at + 1);
        self.ext = match memchr::memrchr(b'.', &self.uri[segment..]) {
            Some(at)
                if self.uri[segment..]
                    .get(at.wrapping_sub(1))
                    .is_some_and(|b| *b != b'/') =>
            {
                segment + at + 1..self.uri.len()
            }
            _ => 0..0,
        };
    }

    /// The extension of the URI, empty if none.
    pub fn extension(&self) -> &[u8] {
        &self.uri[self.ext.clone()]
    }
}
