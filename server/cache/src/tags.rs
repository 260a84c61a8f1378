//! Tags of a response, by which entries are purged together: fields `Cache-Tag` and `Surrogate-Key`.
//!
//! Tags are compared byte by byte. A response beyond the limits must not be stored: a purge by its other tags would miss it.

use std::fmt;

/// Maximum number of tags of an entry.
pub const TAGS_MAX: usize = 64;
/// Maximum length of all tags of an entry, with a byte between two of them.
pub const TAGS_BYTES_MAX: usize = 4096;

/// The tags of a response, each once.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tags {
    text: Vec<u8>,
    count: usize,
}

/// A response has too many tags.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TagsError {
    /// More than [`TAGS_MAX`].
    TooMany,
    /// More than [`TAGS_BYTES_MAX`] bytes.
    TooLong,
}

impl fmt::Display for TagsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TooMany => write!(f, "a response has more than {TAGS_MAX} tags"),
            Self::TooLong => write!(f, "tags of a response exceed {TAGS_BYTES_MAX} bytes"),
        }
    }
}

impl Tags {
    /// Adds a value of `Cache-Tag`: tags between commas, without the spaces around them.
    ///
    /// # Errors
    /// There are more than the limits allow.
    pub fn add_cache_tag(&mut self, value: &[u8]) -> Result<(), TagsError> {
        let mut tags = value.split(|byte| matches!(byte, b',' | b'\t'));
        tags.try_for_each(|tag| self.add(tag.trim_ascii()))
    }

    /// Adds a value of `Surrogate-Key`: tags between spaces.
    ///
    /// # Errors
    /// There are more than the limits allow.
    pub fn add_surrogate_key(&mut self, value: &[u8]) -> Result<(), TagsError> {
        let mut tags = value.split(|byte| matches!(byte, b' ' | b'\t'));
        tags.try_for_each(|tag| self.add(tag))
    }

    fn add(&mut self, tag: &[u8]) -> Result<(), TagsError> {
        if tag.is_empty() || iter(&self.text).any(|known| known == tag) {
            return Ok(());
        }
        if self.count == TAGS_MAX {
            return Err(TagsError::TooMany);
        }
        let separator = usize::from(self.count > 0);
        if self.text.len() + separator + tag.len() > TAGS_BYTES_MAX {
            return Err(TagsError::TooLong);
        }
        if self.count > 0 {
            self.text.push(SEPARATOR);
        }
        self.text.extend_from_slice(tag);
        self.count += 1;
        Ok(())
    }

    /// Returns the tags as one text, for [`crate::disk::Notes`].
    #[must_use]
    pub fn text(&self) -> &[u8] {
        &self.text
    }

    /// Returns the number of tags.
    #[must_use]
    pub fn len(&self) -> usize {
        self.count
    }

    /// Whether there are no tags.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }
}

/// Returns the tags of a text ([`Tags::text`]).
pub fn iter(text: &[u8]) -> impl Iterator<Item = &[u8]> {
    let tags = text.split(|byte| *byte == SEPARATOR);
    tags.filter(|tag| !tag.is_empty())
}

/// No tag contains a tab: it separates tags in both fields.
const SEPARATOR: u8 = b'\t';

#[cfg(test)]
mod tests {
    use super::*;

    fn all(tags: &Tags) -> Vec<String> {
        let texts = iter(tags.text()).map(|tag| String::from_utf8_lossy(tag).into_owned());
        texts.collect()
    }

    #[test]
    fn both_fields_have_their_separators() {
        let mut tags = Tags::default();
        assert_eq!(tags.add_cache_tag(b" a, b c ,,a\td, "), Ok(()));
        assert_eq!(tags.add_surrogate_key(b" e,f  a\tg "), Ok(()));
        assert_eq!(all(&tags), ["a", "b c", "d", "e,f", "g"]);
        assert_eq!((tags.len(), tags.is_empty()), (5, false));
        assert!(Tags::default().is_empty() && all(&Tags::default()).is_empty());
    }

    #[test]
    fn the_number_of_tags_is_limited() {
        let numbers = |count: usize| {
            let names: Vec<String> = (0..count).map(|n| n.to_string()).collect();
            names.join(",")
        };
        for (count, result) in [
            (63, Ok(())),
            (TAGS_MAX, Ok(())),
            (65, Err(TagsError::TooMany)),
        ] {
            let mut tags = Tags::default();
            assert_eq!(tags.add_cache_tag(numbers(count).as_bytes()), result);
            assert_eq!(tags.len(), count.min(TAGS_MAX));
            assert_eq!(tags.add_surrogate_key(b"0 1"), Ok(()), "they are known");
        }
    }

    #[test]
    fn the_length_of_tags_is_limited() {
        for (len, result) in [
            (4093, Ok(())),
            (4094, Ok(())),
            (4095, Err(TagsError::TooLong)),
        ] {
            let mut tags = Tags::default();
            assert_eq!(tags.add_surrogate_key(b"a"), Ok(()));
            assert_eq!(tags.add_surrogate_key(&vec![b'x'; len]), result);
            assert!(tags.text().len() <= TAGS_BYTES_MAX);
        }
    }
}
