//! Stored passwords: their forms, and their comparison with the password of a request.
//!
//! `{PLAIN}`, `{SHA}` and `{SSHA}` are here, the forms of crypt(3) in [`super::crypt`]. Comparisons run in constant
//! time.
//!
//! Source: nginx documentation, `auth_basic_user_file`; RFC 2307, section 5.3.

use base64ct::{Base64, Encoding};
use sha1::{Digest, Sha1};

use super::crypt;
use crate::secrets::equal;

/// The result of a comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// The password fits.
    Right,
    /// It does not.
    Wrong,
    /// The stored hash has an unknown form.
    Unknown,
    /// The name has no entry.
    Nobody,
}

impl Verdict {
    fn of(fits: bool) -> Self {
        if fits { Self::Right } else { Self::Wrong }
    }
}

/// Compares the password of a request with a stored one.
pub(crate) fn compare(stored: &[u8], given: &[u8]) -> Verdict {
    // Passwords were hashed as C strings, so one that contains a zero byte fits no hash.
    if given.contains(&0) || (is_hashed(stored) && given.len() > HASHED_MAX) {
        return Verdict::Wrong;
    }
    if let Some(plain) = stored.strip_prefix(b"{PLAIN}") {
        return Verdict::of(equal(plain, given));
    }
    if let Some(hash) = stored.strip_prefix(b"{SHA}") {
        return Verdict::of(equal(hash, digest(given, b"").as_bytes()));
    }
    if let Some(hash) = stored.strip_prefix(b"{SSHA}") {
        // The salt follows the 20 bytes of the digest.
        let salt = std::str::from_utf8(hash)
            .ok()
            .and_then(|text| Base64::decode_vec(text).ok())
            .unwrap_or_default();
        let salt = salt.get(SHA1_BYTES..).unwrap_or_default();
        return Verdict::of(equal(hash, digest(given, salt).as_bytes()));
    }
    match crypt::crypt(stored, given) {
        Some(hash) => Verdict::of(equal(stored, hash.as_bytes())),
        None => Verdict::Unknown,
    }
}

/// Whether a stored password is a crypt(3) hash, which may be slow.
pub(crate) fn is_hashed(stored: &[u8]) -> bool {
    !stored.starts_with(b"{")
}

/// Base64 of SHA-1 of password and salt, and the salt.
fn digest(password: &[u8], salt: &[u8]) -> String {
    let sha = Sha1::new().chain_update(password).chain_update(salt);
    Base64::encode_string(&[sha.finalize().as_slice(), salt].concat())
}

const SHA1_BYTES: usize = 20;
/// Maximum length of a password for hashes, bytes, as in libxcrypt: some hashes take quadratic time.
const HASHED_MAX: usize = 511;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn passwords_fit_what_was_made_of_them_alone() {
        let stored = [
            "{PLAIN}password",
            "{SHA}W6ph5Mm5Pz8GgiULbPgzG37mj9g=",
            "{SSHA}yI6cZwQadOA1e+/f+T+H3eCQQhRzYWx0",
            "$apr1$salt$Xxd1irWT9ycqoYxGFn4cb.",
            "sa3tHJ3/KuYvI",
        ];
        for stored in stored {
            let given = |text: &[u8]| compare(stored.as_bytes(), text);
            assert_eq!(given(b"password"), Verdict::Right, "{stored}");
            for wrong in [
                &b""[..],
                b"passwor",
                b"Password",
                b"password\0",
                b"password\0x",
            ] {
                assert_eq!(given(wrong), Verdict::Wrong, "{stored}");
            }
        }
    }

    #[test]
    fn what_is_broken_fits_nothing() {
        for stored in [
            "{SSHA}Zm9vCg==",
            "{SSHA}_____wQadOA1e+/f+T+H3eCQQhRzYWx0",
            "{SHA}Zm9vCg==",
            "{SHA}",
        ] {
            assert_eq!(compare(stored.as_bytes(), b"1"), Verdict::Wrong, "{stored}");
        }
        for stored in ["", "x", "password", "{plain}password", "$9$salt$hash"] {
            assert_eq!(
                compare(stored.as_bytes(), b"1"),
                Verdict::Unknown,
                "{stored}"
            );
        }
        assert_eq!(compare(b"{PLAIN}", b""), Verdict::Right);
    }

    #[test]
    fn hashes_are_made_of_passwords_up_to_a_length() {
        for (length, verdict) in [
            (HASHED_MAX, Verdict::Right),
            (HASHED_MAX + 1, Verdict::Wrong),
        ] {
            let given = "x".repeat(length);
            let stored = crypt::crypt(b"$1$salt$", given.as_bytes()).expect("a known form");
            assert_eq!(compare(stored.as_bytes(), given.as_bytes()), verdict);
            let plain = format!("{{PLAIN}}{given}");
            assert_eq!(compare(plain.as_bytes(), given.as_bytes()), Verdict::Right);
        }
    }
}
