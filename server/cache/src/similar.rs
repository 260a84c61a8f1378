//! Variants that requests with other text and the same meaning may use: `Accept-Language: EN` after `en`.
//!
//! nginx's name of a variant depends on the text of the selecting fields, and both servers read one directory. So the names
//! stay, and this list in memory leads from the normal form of the fields to the variant stored last with it. It is empty
//! after a start. An entry is a hint: the caller verifies the file.
//!
//! Source: RFC 9111 section 4.1.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use md5::{Digest, Md5};

use crate::key::EntryId;
use crate::rfc9111::{FieldList, Vary, VaryPolicy};
use crate::vary::names;

/// Variants by the normal form of their requests.
#[derive(Debug, Default)]
pub struct SimilarVariants(Mutex<Generations>);

/// Two halves: the older one is dropped when the newer one is full.
#[derive(Debug, Default)]
struct Generations {
    newer: HashMap<EntryId, EntryId>,
    older: HashMap<EntryId, EntryId>,
}

impl SimilarVariants {
    /// Notes the variant of a request, by the id of its normal form ([`normal_id`]).
    pub fn insert(&self, normal: EntryId, variant: EntryId) {
        let mut all = self.lock();
        if all.newer.len() >= GENERATION_MAX && !all.newer.contains_key(&normal) {
            all.older = std::mem::take(&mut all.newer);
        }
        all.newer.insert(normal, variant);
    }

    /// Returns the variant noted last for a normal form.
    #[must_use]
    pub fn find(&self, normal: &EntryId) -> Option<EntryId> {
        let all = self.lock();
        let found = all.newer.get(normal).or_else(|| all.older.get(normal));
        found.copied()
    }

    fn lock(&self) -> MutexGuard<'_, Generations> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns the id of the normal form of a request, for the id of a key and its stored `Vary`.
///
/// The order of languages stays: servers exist that use it, though RFC 9110 section 12.5.4 gives it no meaning.
#[must_use]
pub fn normal_id(main: &EntryId, vary: &[u8], request: FieldList<'_>) -> EntryId {
    let names = names(vary).map(|name| name.to_ascii_lowercase().into());
    let vary = Vary::Fields(names.collect());
    let policy = VaryPolicy {
        language_order_matters: true,
    };
    let mut text = main.0.to_vec();
    vary.push_secondary_key(request, policy, &mut text);
    EntryId(Md5::digest(&text).into())
}

/// Maximum number of normal forms of one half; 32 bytes each, and those of the table.
const GENERATION_MAX: usize = 8192;

#[cfg(test)]
mod tests {
    use super::*;
    use engines::http::Fields;

    fn id(vary: &str, name: &str, value: &str) -> EntryId {
        let mut fields = Fields::default();
        fields.push(name.as_bytes(), value.as_bytes());
        let list = FieldList::from(&fields);
        normal_id(&EntryId([1; 16]), vary.as_bytes(), list)
    }

    #[test]
    fn fields_of_one_meaning_have_one_id() {
        for (name, one, other) in [
            ("Accept-Language", "en, de", "EN,De;q=1.0"),
            ("Accept-Encoding", "gzip, br", "br,gzip;q=0.5"),
            ("Foo", "1,2", " 1, 2 "),
        ] {
            assert_eq!(id(name, name, one), id(name, name, other), "{name}");
        }
        for (name, one, other) in [
            ("Accept-Language", "en, de", "de, en"),
            ("Accept-Language", "en", "en-GB"),
            ("Accept-Encoding", "gzip", "gzip, br"),
            ("Foo", "a", "A"),
        ] {
            assert_ne!(id(name, name, one), id(name, name, other), "{name}");
        }
        assert_ne!(id("foo", "Foo", "1"), id("bar", "Foo", "1"));
        let other = normal_id(&EntryId([2; 16]), b"", FieldList::from(&Fields::default()));
        assert_ne!(id("", "Foo", "1"), other);
    }

    fn numbered(number: usize) -> EntryId {
        let mut bytes = [0; 16];
        bytes[..8].copy_from_slice(&number.to_le_bytes());
        EntryId(bytes)
    }

    #[test]
    fn the_number_of_hints_is_limited() {
        let all = SimilarVariants::default();
        let count = |all: &SimilarVariants| {
            let all = all.lock();
            (all.newer.len(), all.older.len())
        };
        for number in 0..GENERATION_MAX {
            all.insert(numbered(number), numbered(number + 1));
        }
        assert_eq!(count(&all), (GENERATION_MAX, 0));
        // A known one needs no room.
        all.insert(numbered(0), numbered(7));
        assert_eq!(count(&all), (GENERATION_MAX, 0));
        all.insert(numbered(GENERATION_MAX), numbered(8));
        assert_eq!(count(&all), (1, GENERATION_MAX));
        assert_eq!(all.find(&numbered(0)), Some(numbered(7)));
        for number in 0..GENERATION_MAX {
            all.insert(numbered(GENERATION_MAX + 1 + number), numbered(9));
        }
        assert_eq!(count(&all), (1, GENERATION_MAX));
        assert_eq!(all.find(&numbered(0)), None);
    }
}
