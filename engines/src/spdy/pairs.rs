//! The text of a header block: names and values behind their lengths.
//!
//! Source: draft-mbelshe-httpbis-spdy-00 section 2.6.10.

use crate::http::trim_ows;
use std::ops::Range;

/// A block with a wrong length.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Broken;

/// Calls a function for each name with its value, which may be several, separated by NUL.
pub(super) fn each<'a>(
    block: &'a [u8],
    mut sink: impl FnMut(&'a [u8], &'a [u8]),
) -> Result<(), Broken> {
    each_raw(block, |_, name, value| sink(name, value))
}

/// Calls a function for each pair, with its bytes, lengths included.
pub(super) fn each_raw<'a>(
    mut block: &'a [u8],
    mut sink: impl FnMut(&'a [u8], &'a [u8], &'a [u8]),
) -> Result<(), Broken> {
    let count = length(&mut block)?;
    for _ in 0..count {
        let rest = block;
        let name = text(&mut block)?;
        let value = text(&mut block)?;
        sink(&rest[..rest.len() - block.len()], name, value);
    }
    if block.is_empty() {
        Ok(())
    } else {
        Err(Broken)
    }
}

fn length(rest: &mut &[u8]) -> Result<usize, Broken> {
    let (bytes, after) = rest.split_first_chunk().ok_or(Broken)?;
    *rest = after;
    Ok(u32::from_be_bytes(*bytes) as usize)
}

fn text<'a>(rest: &mut &'a [u8]) -> Result<&'a [u8], Broken> {
    let len = length(rest)?;
    let (text, after) = rest.split_at_checked(len).ok_or(Broken)?;
    *rest = after;
    Ok(text)
}

/// A header block in the making.
#[derive(Debug, Default)]
pub(super) struct Writer {
    pub(super) text: Vec<u8>,
    /// Ranges of values that share no compression context with others.
    pub(super) secrets: Vec<Range<usize>>,
    count: u32,
}

impl Writer {
    /// Begins a new block in the same memory.
    pub(super) fn begin(&mut self) {
        self.text.clear();
        self.secrets.clear();
        self.text.extend_from_slice(&[0; 4]);
        self.count = 0;
    }

    /// Repeats the text of an earlier block, without secrets.
    pub(super) fn repeat(&mut self, text: &[u8]) {
        self.text.clear();
        self.secrets.clear();
        self.text.extend_from_slice(text);
    }

    /// Appends a name in lower case, and its values without white space at their ends.
    pub(super) fn pair<'a>(
        &mut self,
        name: &[u8],
        values: impl Iterator<Item = &'a [u8]>,
        secret: bool,
    ) {
        self.put_name(name);
        let length_at = self.text.len();
        self.put_length(0);
        let start = self.text.len();
        // An empty value would end the list of values; it is kept only if it is the sole one.
        for value in values.map(trim_ows).filter(|value| !value.is_empty()) {
            if self.text.len() > start {
                self.text.push(0);
            }
            self.text.extend_from_slice(value);
        }
        let len = (self.text.len() - start) as u32;
        self.text[length_at..start].copy_from_slice(&len.to_be_bytes());
        if secret {
            self.secrets.push(start..self.text.len());
        }
    }

    /// Appends a name in lower case with one value, without white space at its ends.
    pub(super) fn single(&mut self, name: &[u8], value: &[u8]) {
        let value = trim_ows(value);
        self.text.reserve(8 + name.len() + value.len());
        self.put_name(name);
        self.put_length(value.len());
        self.text.extend_from_slice(value);
    }

    /// Ends the block.
    pub(super) fn finish(&mut self) {
        let count = self.count.to_be_bytes();
        self.text[..4].copy_from_slice(&count);
    }

    /// Begins a pair with its name in lower case.
    fn put_name(&mut self, name: &[u8]) {
        self.count += 1;
        self.put_length(name.len());
        // Clients write most names in lower case: one check costs less than a second pass.
        let is_lower = !name
            .iter()
            .fold(false, |upper, byte| upper | byte.is_ascii_uppercase());
        let start = self.text.len();
        self.text.extend_from_slice(name);
        if !is_lower {
            self.text[start..].make_ascii_lowercase();
        }
    }

    fn put_length(&mut self, len: usize) {
        self.text.extend_from_slice(&(len as u32).to_be_bytes());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(block: &[u8]) -> Result<Vec<(String, String)>, Broken> {
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let mut out = Vec::new();
        each(block, |name, value| out.push((text(name), text(value))))?;
        Ok(out)
    }

    #[test]
    fn pairs_are_written_and_read() {
        let mut writer = Writer::default();
        writer.begin();
        writer.single(b":status", b"200");
        let values = [&b" a\t"[..], b"", b"\t ", b"b"];
        writer.pair(b"Set-Cookie", values.into_iter(), true);
        writer.single(b"x", b"");
        writer.finish();
        let pair = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        let expected = [
            pair(":status", "200"),
            pair("set-cookie", "a\0b"),
            pair("x", ""),
        ];
        assert_eq!(read(&writer.text), Ok(expected.to_vec()));
        assert_eq!(&writer.text[writer.secrets[0].clone()], b"a\0b");
    }

    #[test]
    fn lengths_that_do_not_fit_are_broken() {
        let good = [0, 0, 0, 1, 0, 0, 0, 1, b'a', 0, 0, 0, 1, b'b'];
        assert!(read(&good).is_ok());
        for end in 0..good.len() {
            assert_eq!(read(&good[..end]), Err(Broken), "{end} bytes");
        }
        assert_eq!(read(&[&good[..], b"x"].concat()), Err(Broken));
        let huge = [0, 0, 0, 1, 0xff, 0xff, 0xff, 0xff, b'a'];
        assert_eq!(read(&huge), Err(Broken));
        let many = [0xff; 4];
        assert_eq!(read(&many), Err(Broken));
    }
}
