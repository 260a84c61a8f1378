//! The static table. Source: RFC 7541 appendix A.

/// Names and values; the first has index 1.
pub(super) const STATIC: [(&str, &str); 61] = [
    (":authority", ""),
    (":method", "GET"),
    (":method", "POST"),
    (":path", "/"),
    (":path", "/index.html"),
    (":scheme", "http"),
    (":scheme", "https"),
    (":status", "200"),
    (":status", "204"),
    (":status", "206"),
    (":status", "304"),
    (":status", "400"),
    (":status", "404"),
    (":status", "500"),
    ("accept-charset", ""),
    ("accept-encoding", "gzip, deflate"),
    ("accept-language", ""),
    ("accept-ranges", ""),
    ("accept", ""),
    ("access-control-allow-origin", ""),
    ("age", ""),
    ("allow", ""),
    ("authorization", ""),
    ("cache-control", ""),
    ("content-disposition", ""),
    ("content-encoding", ""),
    ("content-language", ""),
    ("content-length", ""),
    ("content-location", ""),
    ("content-range", ""),
    ("content-type", ""),
    ("cookie", ""),
    ("date", ""),
    ("etag", ""),
    ("expect", ""),
    ("expires", ""),
    ("from", ""),
    ("host", ""),
    ("if-match", ""),
    ("if-modified-since", ""),
    ("if-none-match", ""),
    ("if-range", ""),
    ("if-unmodified-since", ""),
    ("last-modified", ""),
    ("link", ""),
    ("location", ""),
    ("max-forwards", ""),
    ("proxy-authenticate", ""),
    ("proxy-authorization", ""),
    ("range", ""),
    ("referer", ""),
    ("refresh", ""),
    ("retry-after", ""),
    ("server", ""),
    ("set-cookie", ""),
    ("strict-transport-security", ""),
    ("transfer-encoding", ""),
    ("user-agent", ""),
    ("vary", ""),
    ("via", ""),
    ("www-authenticate", ""),
];

/// Index of the first entry of a name, 0 if it has none.
pub(super) const fn of_name(name: &[u8]) -> usize {
    let mut n = 0;
    while n < STATIC.len() {
        if same(STATIC[n].0.as_bytes(), name) {
            return n + 1;
        }
        n += 1;
    }
    0
}

/// Index of a pair; `named` is the first entry with its name.
#[inline]
pub(super) fn of_pair(named: usize, value: &[u8]) -> Option<usize> {
    let first = named.checked_sub(1)?;
    let names = match named {
        METHOD | PATH | SCHEME => 2,
        STATUS => 7,
        _ => 1,
    };
    let entries = STATIC.iter().skip(first).take(names);
    let mut values = entries.map(|(_, entry)| entry.as_bytes());
    values.position(|entry| entry == value).map(|n| named + n)
}

const fn same(one: &[u8], other: &[u8]) -> bool {
    if one.len() != other.len() {
        return false;
    }
    let mut n = 0;
    while n < one.len() {
        if one[n] != other[n] {
            return false;
        }
        n += 1;
    }
    true
}

/// First entries of the names that have several.
const METHOD: usize = 2;
const PATH: usize = 4;
const SCHEME: usize = 6;
const STATUS: usize = 8;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_pair_is_found_by_its_name() {
        for (n, (name, value)) in STATIC.iter().enumerate() {
            let named = of_name(name.as_bytes());
            assert!(named <= n + 1 && STATIC[named - 1].0 == *name);
            assert_eq!(of_pair(named, value.as_bytes()), Some(n + 1), "{name}");
            assert_eq!(of_pair(named, b"none of them"), None);
        }
        assert_eq!(of_name(b"x"), 0);
        assert_eq!(of_pair(0, b""), None);
    }
}
