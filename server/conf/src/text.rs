//! Bytes of a word: a range of the text that it was read from, which all its words share.
//!
//! A configuration of ten thousand servers has hundreds of thousands of words; none of them costs an allocation unless its
//! escapes had to be resolved.

use std::fmt;
use std::hash::{Hash, Hasher};
use std::ops::{Deref, Range};
use std::sync::Arc;

/// Shared bytes, or a range of them.
#[derive(Clone)]
pub struct Text {
    whole: Arc<Vec<u8>>,
    start: u32,
    len: u32,
}

impl Text {
    /// A range of a text; a copy if its offset exceeds 32 bits.
    ///
    /// # Panics
    /// The range is not one of the text.
    pub fn part(whole: &Arc<Vec<u8>>, range: Range<usize>) -> Self {
        match (u32::try_from(range.start), u32::try_from(range.len())) {
            (Ok(start), Ok(len)) if range.end <= whole.len() => Self {
                whole: Arc::clone(whole),
                start,
                len,
            },
            _ => whole[range].to_vec().into(),
        }
    }

    /// The bytes.
    pub fn as_slice(&self) -> &[u8] {
        self
    }
}

impl Deref for Text {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        let start = self.start as usize;
        &self.whole[start..start + self.len as usize]
    }
}

/// # Panics
/// There are 4 GiB or more, which no file of a configuration may have.
impl From<Vec<u8>> for Text {
    fn from(bytes: Vec<u8>) -> Self {
        let len = u32::try_from(bytes.len()).expect("a text has less than 4 GiB");
        Self {
            whole: Arc::new(bytes),
            start: 0,
            len,
        }
    }
}

impl From<&str> for Text {
    fn from(text: &str) -> Self {
        text.as_bytes().to_vec().into()
    }
}

impl From<Text> for Vec<u8> {
    fn from(text: Text) -> Self {
        text.to_vec()
    }
}

impl Hash for Text {
    fn hash<H: Hasher>(&self, state: &mut H) {
        (**self).hash(state);
    }
}

impl PartialEq for Text {
    fn eq(&self, other: &Self) -> bool {
        **self == **other
    }
}

impl Eq for Text {}

impl<const N: usize> PartialEq<[u8; N]> for Text {
    fn eq(&self, other: &[u8; N]) -> bool {
        **self == *other
    }
}

impl<const N: usize> PartialEq<&[u8; N]> for Text {
    fn eq(&self, other: &&[u8; N]) -> bool {
        **self == **other
    }
}

impl fmt::Debug for Text {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&**self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_is_its_range_and_shares_the_text() {
        let whole = Arc::new(b"listen 80;".to_vec());
        let part = Text::part(&whole, 7..9);
        assert_eq!(part, b"80");
        assert_eq!(part, Text::from("80"));
        assert_eq!(Arc::strong_count(&whole), 2);
        assert_eq!(Text::part(&whole, 10..10), b"");
    }
}
