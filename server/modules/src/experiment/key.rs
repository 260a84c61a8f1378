//! `experiment_key`: the key file, and keys of single purposes that are derived from it.
//!
//! Hashes are SipHash-2-4 with a key of 128 bits for each purpose: experiments are assigned independently, and a cookie is of no
//! use for another purpose. Keys are derived by SHA-256, so that servers with the same file agree.
//!
//! Source: Aumasson and Bernstein, SipHash: a fast short-input PRF (2012).

use std::hash::Hasher;

use conf::{Builder, ConfError, Directive};
use server_http::assemble::ConfigBuilder;
use sha2::{Digest, Sha256};

/// The key of all experiments. It has no `Debug`: it is a secret.
#[derive(Clone, Copy)]
pub(crate) struct MasterKey([u8; 32]);

/// A key of SipHash-2-4.
#[derive(Clone, Copy)]
pub(super) struct HashKey(u64, u64);

impl MasterKey {
    /// Derives the key from the bytes of a file: digits of hexadecimal numbers, or others.
    ///
    /// # Errors
    /// The length of the key in bytes: it is less than [`KEY_BYTES`].
    fn from_file(text: &[u8]) -> Result<Self, usize> {
        let digits = text.trim_ascii();
        let is_hex = digits.len().is_multiple_of(2) && digits.iter().all(u8::is_ascii_hexdigit);
        let bytes = match is_hex {
            true => hex(digits),
            false => text.to_vec(),
        };
        if bytes.len() < KEY_BYTES {
            return Err(bytes.len());
        }
        Ok(Self(Sha256::digest(&bytes).into()))
    }

    /// Derives a key of a test.
    #[cfg(test)]
    pub(super) fn of_text(text: &[u8]) -> Self {
        match Self::from_file(text) {
            Ok(key) => key,
            Err(bytes) => panic!("a key of {bytes} bytes"),
        }
    }

    /// Returns the key of a purpose. `name` distinguishes experiments, groups or cookies.
    pub(super) fn derive(&self, purpose: Purpose, name: &[u8]) -> HashKey {
        let hash = Sha256::new()
            .chain_update(self.0)
            .chain_update([purpose as u8])
            .chain_update(name)
            .finalize();
        let word = |at: usize| {
            let bytes = hash[at..at + 8].try_into();
            u64::from_le_bytes(bytes.expect("a hash has 32 bytes"))
        };
        HashKey(word(0), word(8))
    }
}

/// The purpose of a derived key. The numbers are part of the assignment: a change moves all users.
#[derive(Clone, Copy)]
pub(super) enum Purpose {
    /// The participants of an experiment.
    Share = 1,
    /// The participants of an experiment in an exclusion group.
    Group = 2,
    /// The arm of a user.
    Arm = 3,
    /// The authenticity of a cookie.
    Cookie = 4,
    /// The user of an address.
    Address = 5,
    /// The user of a variable.
    Variable = 6,
}

impl HashKey {
    /// Returns the hash of a text.
    #[expect(
        deprecated,
        reason = "the standard library has SipHash-2-4 under this name alone, and a test holds it to the vectors"
    )]
    pub(super) fn hash(self, text: &[u8]) -> u64 {
        let mut hasher = std::hash::SipHasher::new_with_keys(self.0, self.1);
        hasher.write(text);
        hasher.finish()
    }
}

/// Reads the file of an `experiment_key`.
pub(super) fn read(b: &mut ConfigBuilder, d: &Directive) -> Result<MasterKey, ConfError> {
    let path = b.loader().conf_path(d.arg(0));
    let text = b.loader().read(d.arg(0));
    let text = text.map_err(|error| {
        let text = format!(
            "cannot load experiment key: open() \"{}\" failed ({})",
            path.display(),
            conf::os_error(&error)
        );
        ConfError::word(d, d.word(0), text).with_hint(HINT)
    })?;
    MasterKey::from_file(&text).map_err(|bytes| {
        let text = format!(
            "experiment key \"{}\" has {bytes} bytes, it must have at least {KEY_BYTES}",
            path.display()
        );
        ConfError::word(d, d.word(0), text).with_hint(HINT)
    })
}

/// Least length of a key, bytes.
const KEY_BYTES: usize = 16;
/// How to make a key.
pub(super) const HINT: &str =
    "create a key with \"openssl rand -hex 16\"; all servers of a fleet need the same file";

/// Decodes an even number of digits.
fn hex(digits: &[u8]) -> Vec<u8> {
    let value = |digit: u8| (digit as char).to_digit(16).unwrap_or_default() as u8;
    let pairs = digits.chunks_exact(2);
    pairs
        .map(|pair| value(pair[0]) << 4 | value(pair[1]))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hash_is_siphash_2_4() {
        // The vector of the paper's appendix A, and two of the reference implementation.
        let key = HashKey(0x0706_0504_0302_0100, 0x0f0e_0d0c_0b0a_0908);
        let text: Vec<u8> = (0..15).collect();
        assert_eq!(key.hash(&text), 0xa129_ca61_49be_45e5);
        assert_eq!(key.hash(b""), 0x726f_db47_dd0e_0e31);
        assert_eq!(key.hash(&text[..8]), 0x93f5_f579_9a93_2462);
    }

    #[test]
    fn keys_have_16_bytes_at_least() {
        let of = |text: &[u8]| MasterKey::from_file(text).map(|key| key.0);
        assert_eq!(of(b"").err(), Some(0));
        assert_eq!(of(&[0xff; 15]).err(), Some(15));
        assert!(of(&[0xff; 16]).is_ok() && of(&[0xff; 17]).is_ok());
        assert_eq!(of(&[b'a'; 30]).err(), Some(15), "digits");
        assert!(of(&[b'a'; 32]).is_ok());
        let text = b"0123456789abcdef0123456789ABCDEF";
        assert_eq!(of(text), of(b"0123456789ABCDEF0123456789abcdef\r\n"));
        assert_ne!(of(text), of(b"0123456789ABCDEF0123456789abcdee"));
        assert!(of(b"a text that is no number").is_ok());
    }

    #[test]
    fn keys_of_purposes_and_names_differ() {
        let master = MasterKey::of_text(b"a text that is no number");
        let hashes = [
            master.derive(Purpose::Share, b"a"),
            master.derive(Purpose::Arm, b"a"),
            master.derive(Purpose::Arm, b"b"),
            master.derive(Purpose::Group, b"a"),
        ];
        let mut hashes = hashes.map(|key| key.hash(b"user"));
        hashes.sort_unstable();
        assert!(hashes.windows(2).all(|pair| pair[0] != pair[1]));
    }
}
