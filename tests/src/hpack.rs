//! HPACK as a test reads it: slow, short and apart from the server's own, so that a fault of one is no fault of the other.
//!
//! Source: RFC 7541.

use std::collections::BTreeMap;
use std::sync::OnceLock;

/// Names and values, in order.
pub type Fields = Vec<(String, String)>;

/// Reads header blocks of one direction of a connection.
#[derive(Debug, Default)]
pub struct Reader {
    /// The dynamic table, the latest first.
    table: Vec<(String, String)>,
}

impl Reader {
    /// The fields of a block.
    ///
    /// # Panics
    /// When the block is broken.
    pub fn read(&mut self, block: &[u8]) -> Fields {
        let mut rest = block;
        let mut fields = Fields::new();
        while let Some(&first) = rest.first() {
            match first {
                0x80.. => {
                    let index = number(&mut rest, 7);
                    fields.push(self.entry(index));
                }
                0x20..0x40 => {
                    let size_bytes = number(&mut rest, 5);
                    self.evict(size_bytes);
                }
                _ => {
                    let kept = first & 0x40 != 0;
                    let index = number(&mut rest, if kept { 6 } else { 4 });
                    let name = match index {
                        0 => text(&mut rest),
                        _ => self.entry(index).0,
                    };
                    let field = (name, text(&mut rest));
                    if kept {
                        self.table.insert(0, field.clone());
                        self.evict(TABLE_BYTES);
                    }
                    fields.push(field);
                }
            }
        }
        fields
    }

    fn entry(&self, index: usize) -> (String, String) {
        let (name, value) = match STATIC.get(index - 1) {
            Some((name, value)) => (*name, *value),
            None => {
                let (name, value) = &self.table[index - 1 - STATIC.len()];
                (name.as_str(), value.as_str())
            }
        };
        (name.to_owned(), value.to_owned())
    }

    fn evict(&mut self, most_bytes: usize) {
        let size = |table: &[(String, String)]| -> usize {
            table.iter().map(|(n, v)| n.len() + v.len() + 32).sum()
        };
        while size(&self.table) > most_bytes {
            self.table.pop();
        }
    }
}

/// A header block of literals without indexing or Huffman coding.
#[must_use]
pub fn write(fields: &[(&str, &str)]) -> Vec<u8> {
    let mut block = Vec::new();
    for (name, value) in fields {
        block.push(0);
        for text in [name, value] {
            write_number(&mut block, 0, 7, text.len());
            block.extend_from_slice(text.as_bytes());
        }
    }
    block
}

/// Appends a number with a prefix; `first` holds the bits above it.
pub fn write_number(block: &mut Vec<u8>, first: u8, prefix_bits: u32, number: usize) {
    let mask = (1 << prefix_bits) - 1;
    if number < mask {
        block.push(first | number as u8);
        return;
    }
    block.push(first | mask as u8);
    let mut rest = number - mask;
    while rest >= 0x80 {
        block.push(rest as u8 | 0x80);
        rest >>= 7;
    }
    block.push(rest as u8);
}

fn number(rest: &mut &[u8], prefix_bits: u32) -> usize {
    let mask = (1_usize << prefix_bits) - 1;
    let mut value = usize::from(take(rest)) & mask;
    if value < mask {
        return value;
    }
    let mut shift = 0;
    loop {
        let byte = take(rest);
        value += usize::from(byte & 0x7f) << shift;
        shift += 7;
        if byte & 0x80 == 0 {
            return value;
        }
    }
}

fn take(rest: &mut &[u8]) -> u8 {
    let (first, after) = rest.split_first().expect("the block goes on");
    *rest = after;
    *first
}

fn text(rest: &mut &[u8]) -> String {
    let coded = rest.first().is_some_and(|first| first & 0x80 != 0);
    let len = number(rest, 7);
    let (bytes, after) = rest.split_at(len);
    *rest = after;
    let bytes = if coded {
        huffman(bytes)
    } else {
        bytes.to_vec()
    };
    String::from_utf8_lossy(&bytes).into_owned()
}

/// Bit by bit.
fn huffman(bytes: &[u8]) -> Vec<u8> {
    let codes = codes();
    let (mut code, mut len) = (0_u32, 0_u8);
    let mut out = Vec::new();
    for byte in bytes {
        for bit in (0..8).rev() {
            code = code << 1 | u32::from(byte >> bit & 1);
            len += 1;
            if let Some(symbol) = codes.get(&(len, code)) {
                out.push(*symbol);
                (code, len) = (0, 0);
            }
        }
    }
    assert!(
        len < 8 && code == (1 << len) - 1,
        "padding is the beginning of EOS"
    );
    out
}

/// The canonical Huffman code of the lengths, by length and code.
fn codes() -> &'static BTreeMap<(u8, u32), u8> {
    static CODES: OnceLock<BTreeMap<(u8, u32), u8>> = OnceLock::new();
    CODES.get_or_init(|| {
        let mut codes = BTreeMap::new();
        let mut next = 0;
        for len in 1..=30 {
            next <<= 1;
            for (symbol, its) in LENGTHS.iter().enumerate() {
                if *its == len {
                    if let Ok(symbol) = u8::try_from(symbol) {
                        codes.insert((len, next), symbol);
                    }
                    next += 1;
                }
            }
        }
        codes
    })
}

/// Default size of the dynamic table.
const TABLE_BYTES: usize = 4096;

/// Length of the code of each byte, and of EOS, in bits.
#[rustfmt::skip]
const LENGTHS: [u8; 257] = [
    13, 23, 28, 28, 28, 28, 28, 28, 28, 24, 30, 28, 28, 30, 28, 28,
    28, 28, 28, 28, 28, 28, 30, 28, 28, 28, 28, 28, 28, 28, 28, 28,
    6, 10, 10, 12, 13, 6, 8, 11, 10, 10, 8, 11, 8, 6, 6, 6,
    5, 5, 5, 6, 6, 6, 6, 6, 6, 6, 7, 8, 15, 6, 12, 10,
    13, 6, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7,
    7, 7, 7, 7, 7, 7, 7, 7, 8, 7, 8, 13, 19, 13, 14, 6,
    15, 5, 6, 5, 6, 5, 6, 6, 6, 5, 7, 7, 6, 6, 6, 5,
    6, 7, 6, 5, 5, 6, 7, 7, 7, 7, 7, 15, 11, 14, 13, 28,
    20, 22, 20, 20, 22, 22, 22, 23, 22, 23, 23, 23, 23, 23, 24, 23,
    24, 24, 22, 23, 24, 23, 23, 23, 23, 21, 22, 23, 22, 23, 23, 24,
    22, 21, 20, 22, 22, 23, 23, 21, 23, 22, 22, 24, 21, 22, 23, 23,
    21, 21, 22, 21, 23, 22, 23, 23, 20, 22, 22, 22, 23, 22, 22, 23,
    26, 26, 20, 19, 22, 23, 22, 25, 26, 26, 26, 27, 27, 26, 24, 25,
    19, 21, 26, 27, 27, 26, 27, 24, 21, 21, 26, 26, 28, 27, 27, 27,
    20, 24, 20, 21, 22, 21, 21, 23, 22, 22, 25, 25, 24, 24, 26, 23,
    26, 27, 26, 26, 27, 27, 27, 27, 27, 28, 27, 27, 27, 27, 27, 26,
    30,
];

/// Appendix A.
#[rustfmt::skip]
const STATIC: [(&str, &str); 61] = [
    (":authority", ""), (":method", "GET"), (":method", "POST"), (":path", "/"), (":path", "/index.html"),
    (":scheme", "http"), (":scheme", "https"), (":status", "200"), (":status", "204"), (":status", "206"),
    (":status", "304"), (":status", "400"), (":status", "404"), (":status", "500"), ("accept-charset", ""),
    ("accept-encoding", "gzip, deflate"), ("accept-language", ""), ("accept-ranges", ""), ("accept", ""),
    ("access-control-allow-origin", ""), ("age", ""), ("allow", ""), ("authorization", ""), ("cache-control", ""),
    ("content-disposition", ""), ("content-encoding", ""), ("content-language", ""), ("content-length", ""),
    ("content-location", ""), ("content-range", ""), ("content-type", ""), ("cookie", ""), ("date", ""), ("etag", ""),
    ("expect", ""), ("expires", ""), ("from", ""), ("host", ""), ("if-match", ""), ("if-modified-since", ""),
    ("if-none-match", ""), ("if-range", ""), ("if-unmodified-since", ""), ("last-modified", ""), ("link", ""),
    ("location", ""), ("max-forwards", ""), ("proxy-authenticate", ""), ("proxy-authorization", ""), ("range", ""),
    ("referer", ""), ("refresh", ""), ("retry-after", ""), ("server", ""), ("set-cookie", ""),
    ("strict-transport-security", ""), ("transfer-encoding", ""), ("user-agent", ""), ("vary", ""), ("via", ""),
    ("www-authenticate", ""),
];

#[cfg(test)]
mod tests {
    use super::*;

    /// RFC 7541 appendix C.6.
    #[test]
    fn example_of_the_specification() {
        let mut reader = Reader::default();
        let block = [
            0x48, 0x82, 0x64, 0x02, 0x58, 0x85, 0xae, 0xc3, 0x77, 0x1a, 0x4b,
        ];
        let field = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        let first = [field(":status", "302"), field("cache-control", "private")];
        assert_eq!(reader.read(&block), first);
        assert_eq!(reader.read(&[0xbf, 0xbe]), first);
    }

    #[test]
    fn what_is_written_is_read() {
        let fields = [(":path", "/"), ("x", &"v".repeat(300))];
        let read = Reader::default().read(&write(&fields));
        assert_eq!(read[1].1.len(), 300);
        assert_eq!(read[0], (":path".to_owned(), "/".to_owned()));
    }
}
