//! The manifest of a frozen tree, and the form of names with a hash, shared by `firstbyte freeze` and
//! `freeze_manifest`.
//!
//! Absent: the path of the tree, so that a manifest can be copied with its tree.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// The version of the format; other versions are refused.
pub const VERSION: u32 = 1;

/// Number of hexadecimal digits of a SHA-256 in a name: 48 bits.
pub const HASH_DIGITS: usize = 12;

/// Codings of siblings, by the ends of their names.
pub const CODINGS: [&str; 3] = ["br", "zst", "gz"];

/// A manifest.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Manifest {
    /// [`VERSION`].
    pub version: u32,
    /// The settings of compressed siblings; with other settings they are compressed again.
    pub compression: String,
    /// The files, by their path in the tree that was frozen.
    pub files: BTreeMap<String, Entry>,
}

/// A file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Entry {
    /// Its path in the frozen tree.
    pub path: String,
    /// Its length in bytes.
    pub size: u64,
    /// SHA-256 of its bytes in the frozen tree, in hexadecimal digits.
    pub hash: String,
    /// Its media type.
    #[serde(rename = "type")]
    pub media_type: String,
    /// Its siblings, by their coding: `br`, `zst`, `gz`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub encodings: BTreeMap<String, Sibling>,
}

/// A compressed copy beside a file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sibling {
    /// Its length in bytes.
    pub size: u64,
    /// SHA-256 of its bytes.
    pub hash: String,
}

impl Manifest {
    /// Reads a manifest.
    ///
    /// # Errors
    /// The text is invalid or has another version.
    pub fn parse(bytes: &[u8]) -> Result<Self, String> {
        let manifest: Self = serde_json::from_slice(bytes).map_err(|error| error.to_string())?;
        if manifest.version != VERSION {
            let version = manifest.version;
            return Err(format!("version {version} is not known"));
        }
        Ok(manifest)
    }
}

/// Returns a name with its hash: in front of the last dot, or at the end without a dot.
pub fn hashed_name(path: &str, digits: &str) -> String {
    let from = path.rfind('/').map_or(0, |slash| slash + 1);
    let at = path[from..].rfind('.').map_or(path.len(), |dot| from + dot);
    format!("{}.{digits}{}", &path[..at], &path[at..])
}

/// Parses the hash of a name: twelve lower-case hexadecimal digits between the last two dots, or behind the last one.
/// The suffix of a compressed sibling is ignored.
pub fn hash_in_name(name: &[u8]) -> Option<u64> {
    let name = CODINGS
        .iter()
        .find_map(|coding| name.strip_suffix(coding.as_bytes())?.strip_suffix(b"."))
        .filter(|bare| hash_of_parts(bare).is_some())
        .unwrap_or(name);
    hash_of_parts(name)
}

fn hash_of_parts(name: &[u8]) -> Option<u64> {
    let mut parts = name.rsplit(|b| *b == b'.');
    let (last, before) = (parts.next()?, parts.next()?);
    let is_first = parts.next().is_none();
    if !is_first && let Some(hash) = number(before) {
        return Some(hash);
    }
    number(last)
}

fn number(digits: &[u8]) -> Option<u64> {
    let lower = |b: &u8| matches!(b, b'0'..=b'9' | b'a'..=b'f');
    if digits.len() != HASH_DIGITS || !digits.iter().all(lower) {
        return None;
    }
    u64::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hashes_stand_before_the_last_dot_and_are_found_there() {
        for (path, hashed) in [
            ("style.css", "style.0123456789ab.css"),
            ("a.d/x.min.js", "a.d/x.min.0123456789ab.js"),
            ("a.d/LICENSE", "a.d/LICENSE.0123456789ab"),
            ("a.tar.gz", "a.tar.0123456789ab.gz"),
        ] {
            assert_eq!(hashed_name(path, "0123456789ab"), hashed);
            let name = hashed.rsplit('/').next().unwrap_or_default();
            assert_eq!(
                hash_in_name(name.as_bytes()),
                Some(0x0123_4567_89ab),
                "{name}"
            );
            let sibling = format!("{name}.br");
            assert_eq!(
                hash_in_name(sibling.as_bytes()),
                Some(0x0123_4567_89ab),
                "{name}"
            );
        }
    }

    #[test]
    fn other_names_have_no_hash() {
        for name in [
            "style.css",
            "0123456789ab.css",
            "0123456789ab",
            "a.0123456789a.css",
            "a.0123456789abc.css",
            "a.0123456789AB.css",
            "a.0123456789ab.b.css",
            "a.gz",
            "",
            ".",
            "..",
        ] {
            assert_eq!(hash_in_name(name.as_bytes()), None, "{name}");
        }
    }

    #[test]
    fn a_manifest_of_another_version_is_refused() {
        let text = br#"{"version": 2, "compression": "", "files": {}}"#;
        assert_eq!(
            Manifest::parse(text),
            Err("version 2 is not known".to_owned())
        );
        assert!(Manifest::parse(b"[]").is_err());
    }
}
