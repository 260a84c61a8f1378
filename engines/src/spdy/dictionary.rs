//! The dictionary that both sides pass to zlib before the first header block.
//!
//! Source: draft-mbelshe-httpbis-spdy-00 section 2.6.10.1. These words build its bytes: names and a few values,
//! each behind its length in four bytes, then text without lengths.

/// The dictionary's bytes.
pub(super) const DICTIONARY: &[u8; DICTIONARY_BYTES] = &built();
/// Its Adler-32, named in the zlib header of a stream.
pub(super) const DICTIONARY_ID: [u8; 4] = [0xe3, 0xc6, 0xa7, 0xc2];

const DICTIONARY_BYTES: usize = 1423;

const fn built() -> [u8; DICTIONARY_BYTES] {
    let mut out = [0; DICTIONARY_BYTES];
    let (mut at, mut n) = (0, 0);
    while n < WORDS.len() {
        let word = WORDS[n].as_bytes();
        out[at + 3] = word.len() as u8;
        at = put(&mut out, at + 4, word);
        n += 1;
    }
    n = 0;
    while n < TEXT.len() {
        at = put(&mut out, at, TEXT[n].as_bytes());
        n += 1;
    }
    assert!(at == DICTIONARY_BYTES);
    out
}

const fn put(out: &mut [u8; DICTIONARY_BYTES], at: usize, bytes: &[u8]) -> usize {
    let mut n = 0;
    while n < bytes.len() {
        out[at + n] = bytes[n];
        n += 1;
    }
    at + bytes.len()
}

#[rustfmt::skip]
const WORDS: &[&str] = &[
    "options", "head", "post", "put", "delete", "trace",
    "accept", "accept-charset", "accept-encoding", "accept-language", "accept-ranges", "age", "allow", "authorization",
    "cache-control", "connection", "content-base", "content-encoding", "content-language", "content-length",
    "content-location", "content-md5", "content-range", "content-type", "date", "etag", "expect", "expires", "from",
    "host", "if-match", "if-modified-since", "if-none-match", "if-range", "if-unmodified-since", "last-modified",
    "location", "max-forwards", "pragma", "proxy-authenticate", "proxy-authorization", "range", "referer",
    "retry-after", "server", "te", "trailer", "transfer-encoding", "upgrade", "user-agent", "vary", "via", "warning",
    "www-authenticate", "method", "get", "status", "200 OK", "version", "HTTP/1.1", "url", "public", "set-cookie",
    "keep-alive", "origin",
];

const TEXT: &[&str] = &[
    "100101201202205206300302303304305306307402405406407408409410411412413414415416417502504505",
    "203 Non-Authoritative Information",
    "204 No Content",
    "301 Moved Permanently",
    "400 Bad Request",
    "401 Unauthorized",
    "403 Forbidden",
    "404 Not Found",
    "500 Internal Server Error",
    "501 Not Implemented",
    "503 Service Unavailable",
    "Jan Feb Mar Apr May Jun Jul Aug Sept Oct Nov Dec 00:00:00 Mon, Tue, Wed, Thu, Fri, Sat, Sun, GMT",
    "chunked,text/html,image/png,image/jpg,image/gif,application/xml,application/xhtml+xml,text/plain,text/javascript,",
    "publicprivatemax-age=gzip,deflate,sdchcharset=utf-8charset=iso-8859-1,utf-,*,enq=0.",
];

#[cfg(test)]
mod tests {
    use super::*;

    /// Adler-32 (RFC 1950 section 9): a byte that differs from the draft's would change it.
    #[test]
    fn bytes_have_the_checksum_that_peers_name() {
        let (mut a, mut b) = (1_u32, 0_u32);
        for byte in DICTIONARY {
            a = (a + u32::from(*byte)) % 65_521;
            b = (b + a) % 65_521;
        }
        assert_eq!((b << 16 | a).to_be_bytes(), DICTIONARY_ID);
    }
}
