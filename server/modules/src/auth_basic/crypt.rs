//! The hashes of crypt(3), and Apache's variant of one: `$apr1$`, `$1$`, `$5$`, `$6$`, `$2a$`, `$2b$`, `$2y$`, `$y$`, and the
//! one without a prefix, made of DES.
//!
//! The functions below them are libraries' (MD5, Blowfish, SHA-crypt, yescrypt); here are the texts around them, and the
//! small constructions. Absent, though libxcrypt has them: `$2x$`, `$7$`, `$gy$`, `$sha1$`, `$md5$`, `$3$` and DES with `_`,
//! which no tool writes into user files.
//!
//! Source: crypt(5) of libxcrypt; "Unix crypt using SHA-256 and SHA-512" (U. Drepper); "A Future-Adaptable Password
//! Scheme" (N. Provos, D. Mazières).

use base64ct::{Base64Bcrypt, Base64ShaCrypt, Encoding};
use blowfish::Blowfish;
use md5::{Digest, Md5};

use super::des;

/// The scheme and the parameters of a stored hash.
#[derive(Clone, Copy)]
pub(crate) enum Setting<'s> {
    /// The whole stored hash.
    Des(&'s str),
    /// The prefix, and the salt.
    Md5(&'s str, &'s str),
    /// The form, the text of the rounds with a final `$` or an empty text, the salt.
    Sha(&'s str, &'s str, &'s str),
    /// The form, the text of the logarithm of the rounds, the text of the salt.
    Bcrypt(&'s str, &'s str, &'s str),
    /// The text of the parameters, the text of the salt.
    Yescrypt(&'s str, &'s str),
}

impl<'s> Setting<'s> {
    /// Parses a stored hash up to the digest; `None` for an unknown form.
    pub(crate) fn parse(stored: &'s [u8]) -> Option<Self> {
        let stored = std::str::from_utf8(stored).ok()?;
        if !stored.is_ascii() {
            return None;
        }
        let Some((form, rest)) = stored.strip_prefix('$').and_then(|s| s.split_once('$')) else {
            return Some(Self::Des(stored));
        };
        match form {
            "apr1" | "1" => {
                let salt = salt_of(rest);
                Some(Self::Md5(form, salt.get(..MD5_SALT_MAX.min(salt.len()))?))
            }
            "5" | "6" => {
                let rounds = match rest.strip_prefix("rounds=") {
                    Some(after) => &rest[..rest.len() - after.split_once('$')?.1.len()],
                    None => "",
                };
                let salt = salt_of(&rest[rounds.len()..]);
                (salt.len() <= SHA_SALT_MAX).then_some(Self::Sha(form, rounds, salt))
            }
            "2a" | "2b" | "2y" => {
                let (cost, rest) = rest.split_once('$')?;
                Some(Self::Bcrypt(form, cost, rest.get(..BCRYPT_SALT_LEN)?))
            }
            "y" => {
                let (written, rest) = rest.split_once('$')?;
                Some(Self::Yescrypt(written, salt_of(rest)))
            }
            _ => None,
        }
    }
}

/// Hashes a password with the scheme and parameters of a stored hash; `None` for an unknown form.
pub(crate) fn crypt(stored: &[u8], password: &[u8]) -> Option<String> {
    match Setting::parse(stored)? {
        Setting::Des(stored) => des::crypt(stored, password),
        Setting::Md5(form, salt) => Some(md5(form, salt, password)),
        Setting::Sha(form, rounds, salt) => sha(form, rounds, salt, password),
        Setting::Bcrypt(form, cost, salt) => bcrypt(form, cost, salt, password),
        Setting::Yescrypt(written, salt) => yescrypt(written, salt, password),
    }
}

/// Returns the salt: the text before the next `$`.
fn salt_of(text: &str) -> &str {
    text.split('$').next().unwrap_or_default()
}

/// `$apr1$salt$hash` and `$1$salt$hash`: a thousand rounds of MD5.
fn md5(form: &str, salt: &str, password: &[u8]) -> String {
    let alternate = Md5::new()
        .chain_update(password)
        .chain_update(salt)
        .chain_update(password)
        .finalize();
    let mut context = Md5::new()
        .chain_update(password)
        .chain_update(format!("${form}$"))
        .chain_update(salt);
    for part in password.chunks(alternate.len()) {
        context.update(&alternate[..part.len()]);
    }
    let mut length = password.len();
    while length > 0 {
        match length & 1 {
            1 => context.update([0]),
            _ => context.update(&password[..1]),
        }
        length >>= 1;
    }
    let mut hash = context.finalize();
    for round in 0..1000 {
        let (first, last): (&[u8], &[u8]) = match round & 1 {
            1 => (password, &hash),
            _ => (&hash, password),
        };
        let mut context = Md5::new().chain_update(first);
        if round % 3 != 0 {
            context.update(salt);
        }
        if round % 7 != 0 {
            context.update(password);
        }
        hash = context.chain_update(last).finalize();
    }
    const ORDER: [usize; 16] = [12, 6, 0, 13, 7, 1, 14, 8, 2, 15, 9, 3, 5, 10, 4, 11];
    let hash = Base64ShaCrypt::encode_string(&ORDER.map(|from| hash[from]));
    format!("${form}${salt}${hash}")
}

/// `$5$salt$hash` and `$6$salt$hash`, with an optional `rounds=number$` before the salt.
fn sha(form: &str, rounds: &str, salt: &str, password: &[u8]) -> Option<String> {
    let params = sha_params(rounds)?;
    let hash = match form {
        "5" => sha_text(
            &sha_crypt::sha256_crypt(password, salt.as_bytes(), params),
            2,
        ),
        _ => sha_text(
            &sha_crypt::sha512_crypt(password, salt.as_bytes(), params),
            1,
        ),
    };
    Some(format!("${form}${rounds}{salt}${hash}"))
}

/// Returns the parameters of SHA-crypt from `rounds=number$` or an empty text.
pub(crate) fn sha_params(rounds: &str) -> Option<sha_crypt::Params> {
    rounds.trim_end_matches('$').parse().ok()
}

/// Encodes a SHA-crypt digest. Bytes are taken in threes, one from each third. The last third comes first, then the one
/// `turn` thirds on.
fn sha_text(hash: &[u8], turn: usize) -> String {
    let third = hash.len() / 3;
    let threes = (0..third).flat_map(|n| [2, 1, 0].map(|at| n + third * ((at + turn * n) % 3)));
    let order = threes.chain(third * 3..hash.len());
    let bytes: Vec<u8> = order.map(|from| hash[from]).collect();
    Base64ShaCrypt::encode_string(&bytes)
}

/// `$2y$cost$salthash`.
fn bcrypt(form: &str, cost: &str, text: &str, password: &[u8]) -> Option<String> {
    let rounds = bcrypt_rounds(cost)?;
    let salt = Base64Bcrypt::decode_vec(text).ok()?;
    // The key is the password with its final zero, up to 72 bytes.
    let mut key = password[..password.len().min(BCRYPT_KEY_MAX)].to_vec();
    key.push(0);
    key.truncate(BCRYPT_KEY_MAX);
    let mut cipher: Blowfish = Blowfish::bc_init_state();
    cipher.salted_expand_key(&salt, &key);
    for _ in 0..rounds {
        cipher.bc_expand_key(&key);
        cipher.bc_expand_key(&salt);
    }
    let mut hash = Vec::with_capacity(24);
    for block in BCRYPT_TEXT.chunks_exact(8) {
        let word =
            |at| u32::from_be_bytes([block[at], block[at + 1], block[at + 2], block[at + 3]]);
        let mut pair = [word(0), word(4)];
        for _ in 0..64 {
            pair = cipher.bc_encrypt(pair);
        }
        hash.extend(pair.into_iter().flat_map(u32::to_be_bytes));
    }
    // The first bcrypt omitted the last byte by mistake; all others have to do so, too.
    let hash = Base64Bcrypt::encode_string(&hash[..23]);
    Some(format!("${form}${cost}${text}{hash}"))
}

/// Returns the rounds of bcrypt from the text of their logarithm.
pub(crate) fn bcrypt_rounds(cost: &str) -> Option<u32> {
    let two_digits = cost.len() == 2 && cost.bytes().all(|b| b.is_ascii_digit());
    match cost.parse::<u32>() {
        Ok(cost @ 4..=31) if two_digits => Some(1 << cost),
        _ => None,
    }
}

/// `$y$parameters$salt$hash`.
fn yescrypt(written: &str, text: &str, password: &[u8]) -> Option<String> {
    let params = yescrypt_params(written)?;
    let salt = Base64ShaCrypt::decode_vec(text).ok()?;
    let mut hash = [0; 32];
    yescrypt::yescrypt(password, &salt, &params, &mut hash).ok()?;
    let hash = Base64ShaCrypt::encode_string(&hash);
    Some(format!("$y${written}${text}${hash}"))
}

/// Returns the parameters of yescrypt; `None` if they need too much memory or time.
pub(crate) fn yescrypt_params(written: &str) -> Option<yescrypt::Params> {
    let params: yescrypt::Params = written.parse().ok()?;
    (fits_in_memory(&params) && is_timely(&params)).then_some(params)
}

/// Whether the memory for these parameters is within `YESCRYPT_BYTES_MAX`.
fn fits_in_memory(params: &yescrypt::Params) -> bool {
    let blocks = params.n().saturating_add(u64::from(params.p()));
    let bytes = blocks
        .saturating_mul(u64::from(params.r()))
        .saturating_mul(128);
    let lanes = u64::from(params.p()).saturating_mul(YESCRYPT_LANE_BYTES);
    bytes.saturating_add(lanes) <= YESCRYPT_BYTES_MAX
}

/// Whether the memory bounds the time. The parameter `t`, which no tool writes, could make it arbitrary. The library
/// does not expose `t`, so the parameters are compared with parameters without it.
fn is_timely(params: &yescrypt::Params) -> bool {
    use yescrypt::Mode::{Classic, Rw, Worm};
    let (n, r, p) = (params.n(), params.r(), params.p());
    let without = |mode| yescrypt::Params::new(mode, n, r, p);
    [Rw, Worm, Classic].map(without).contains(&Ok(*params))
}

/// Maximum lengths of the salts of MD5 and of SHA-crypt, bytes.
const MD5_SALT_MAX: usize = 8;
const SHA_SALT_MAX: usize = 16;
/// Length of a bcrypt salt, characters, and of its key, bytes.
const BCRYPT_SALT_LEN: usize = 22;
const BCRYPT_KEY_MAX: usize = 72;
/// The text that bcrypt encrypts.
const BCRYPT_TEXT: &[u8; 24] = b"OrpheanBeholderScryDoubt";
/// Maximum memory of a yescrypt computation, bytes. crypt(5) offers at most 1 GiB; this is 64 times its default.
const YESCRYPT_BYTES_MAX: u64 = (1 << 30) + (1 << 20);
/// Memory for each parallel lane (`p`) besides its blocks, bytes.
const YESCRYPT_LANE_BYTES: u64 = 12 << 10;

#[cfg(test)]
mod tests {
    use super::*;

    /// Hashes of crypt(3) in libxcrypt 4.4 and of `openssl passwd -apr1`, with their passwords.
    const MADE: &str = include_str!("hashes.txt");

    #[test]
    fn hashes_are_those_of_crypt() {
        let mut forms = Vec::new();
        for line in MADE.lines() {
            let (hash, password) = line.split_once(' ').expect("a hash and a password");
            let made = crypt(hash.as_bytes(), password.as_bytes());
            assert_eq!(made.as_deref(), Some(hash), "{password}");
            let form = hash.split('$').nth(1);
            if !forms.contains(&form) {
                forms.push(form);
            }
        }
        assert_eq!(forms.len(), 9, "a line for each form: {forms:?}");
    }

    #[test]
    fn bytes_above_ascii_count() {
        let password = b"\xe4\xf6";
        assert_eq!(
            crypt(b"sayb8q0n8qeFs", password).as_deref(),
            Some("sayb8q0n8qeFs")
        );
        let hash = crypt(b"$2y$04$abcdefghijklmnopqrstuu", password);
        assert_eq!(
            hash.as_deref(),
            Some("$2y$04$abcdefghijklmnopqrstuuUq2Mgi9L67jQqB5Bh/EvmHzqdLO31e.")
        );
    }

    #[test]
    fn settings_that_are_broken_have_no_hash() {
        for stored in [
            "$",
            "$1",
            "$9$salt$",
            "$2x$04$abcdefghijklmnopqrstuu",
            "$2y$4$abcdefghijklmnopqrstuu",
            "$2y$03$abcdefghijklmnopqrstuu",
            "$2y$32$abcdefghijklmnopqrstuu",
            "$2y$+4$abcdefghijklmnopqrstuu",
            "$2y$04$abcdefghijklmnopqrstu",
            "$2y$04$",
            "$2y$",
            "$2y$04$abcdefghijklmnopqrst\u{e4}",
            "$5$rounds=999$salt$",
            "$5$rounds=1000000000$salt$",
            "$5$rounds=x$salt$",
            "$5$rounds=1000",
            "$6$saltsaltsaltsalt1$",
            "$y$",
            "$y$j9T",
            "$y$x$salt$",
            "$y$j9T$!$",
            "$y$j75/.$abcd$",
            "$y$j75/zzzzzz$abcd$",
            "$y$j750..$abcd$",
            "$1$\u{e4}\u{e4}\u{e4}\u{e4}a\u{e4}$",
        ] {
            assert_eq!(crypt(stored.as_bytes(), b"1"), None, "{stored}");
        }
        assert_eq!(crypt(b"\xff", b"1"), None);
    }

    #[test]
    fn yescrypt_takes_no_more_memory_than_its_limit() {
        let params = |n, r| {
            yescrypt::Params::new(yescrypt::Mode::default(), n, r, 1).expect("sound parameters")
        };
        assert!(fits_in_memory(&params(1 << 18, 32)));
        assert!(!fits_in_memory(&params(1 << 19, 32)));
        assert!(!fits_in_memory(&params(1 << 62, 1 << 20)));
        let lanes = |p| {
            let mode = yescrypt::Mode::default();
            yescrypt::Params::new(mode, 1 << 20, 2, p).expect("sound parameters")
        };
        // 256 MiB, and 12.25 KiB for each.
        assert!(fits_in_memory(&lanes(64_282)));
        assert!(!fits_in_memory(&lanes(64_283)));
        assert_eq!(crypt(b"$y$jHT$abcd$", b"1"), None);
    }
}
