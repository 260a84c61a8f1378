//! The host that was read last, since most requests to a server name the same one.

use engines::http::{BadHost, parse_host};

/// The last host text and its parsed form.
#[derive(Default)]
pub(crate) struct HostCache {
    raw: Vec<u8>,
    /// Lower-cased and without port.
    pub(crate) name: Vec<u8>,
    pub(crate) port: Option<u16>,
}

impl HostCache {
    /// Reads a `Host` field or its like.
    pub(crate) fn parse(&mut self, raw: &[u8]) -> Result<(), BadHost> {
        if raw == self.raw && !raw.is_empty() {
            return Ok(());
        }
        self.raw.clear();
        self.port = parse_host(raw, &mut self.name)?;
        if raw.len() <= KEPT_BYTES {
            self.raw.extend_from_slice(raw);
        }
        Ok(())
    }
}

/// Longer texts are read each time.
const KEPT_BYTES: usize = 256;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn host_is_that_of_the_last_text_whatever_came_before() {
        let mut known = HostCache::default();
        for (raw, name, port) in [
            ("A.example:80", "a.example", Some(80)),
            ("A.example:80", "a.example", Some(80)),
            ("b.example", "b.example", None),
            ("A.example", "a.example", None),
        ] {
            assert_eq!(known.parse(raw.as_bytes()), Ok(()));
            assert_eq!((&*known.name, known.port), (name.as_bytes(), port));
        }
        for _ in 0..2 {
            assert_eq!(known.parse(b"a/b"), Err(BadHost));
            assert_eq!(known.parse(b""), Err(BadHost));
        }
        assert_eq!(known.parse(b"A.example"), Ok(()));
        assert_eq!((&*known.name, known.port), (&b"a.example"[..], None));
    }
}
