//! Resumption: tickets, and sessions stored by the server.
//!
//! All servers and threads share keys and sessions; their ownership and rotation are outside ([`KeyRing`],
//! [`SessionCache`]). A ticket or stored session carries the context of its configuration (certificates and policy
//! towards clients), and no other configuration accepts it. So a session begun without a certificate request cannot
//! skip one elsewhere. It carries its end, too: `ssl_session_timeout`.
//!
//! A ticket is the name of a key, 16 bytes; an initialisation vector, 16 bytes; the session, encrypted by AES-CBC;
//! and an HMAC-SHA-256 of all that precedes it. nginx makes the same form from the same key files. But the content
//! is rustls's, so neither accepts tickets of the other.
//!
//! Source: RFC 5077 section 4; nginx documentation, `ssl_session_ticket_key`.

use std::fmt;
use std::sync::Arc;

use aws_lc_rs::cipher::{
    AES_128, AES_256, Algorithm, DecryptionContext, EncryptionContext, PaddedBlockDecryptingKey,
    PaddedBlockEncryptingKey, UnboundCipherKey,
};
use aws_lc_rs::iv::FixedLength;
use aws_lc_rs::{hmac, rand};
use rustls::pki_types::UnixTime;
use rustls::server::{ProducesTickets, StoresServerSessions};

use super::handshaking::{Context, ask};

/// A key for tickets.
pub struct TicketKey {
    name: [u8; NAME_BYTES],
    seal: PaddedBlockEncryptingKey,
    open: PaddedBlockDecryptingKey,
    mac: hmac::Key,
}

impl fmt::Debug for TicketKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TicketKey").finish_non_exhaustive()
    }
}

impl TicketKey {
    /// A key of 80 bytes (name, 32 for HMAC, 32 for AES-256) or 48 (name, 16 for AES-128, 16 for HMAC); `None` for any
    /// other number.
    #[must_use]
    pub fn new(bytes: &[u8]) -> Option<Self> {
        let (name, rest) = bytes.split_first_chunk()?;
        let (algorithm, secret, mac): (&'static Algorithm, _, _) = match bytes.len() {
            LONG_BYTES => (&AES_256, &rest[32..], &rest[..32]),
            SHORT_BYTES => (&AES_128, &rest[..16], &rest[16..]),
            _ => return None,
        };
        let secret = || UnboundCipherKey::new(algorithm, secret).ok();
        Some(Self {
            name: *name,
            seal: PaddedBlockEncryptingKey::cbc_pkcs7(secret()?).ok()?,
            open: PaddedBlockDecryptingKey::cbc_pkcs7(secret()?).ok()?,
            mac: hmac::Key::new(hmac::HMAC_SHA256, mac),
        })
    }

    /// Makes a random key; `None` without randomness.
    #[must_use]
    pub fn random() -> Option<Self> {
        let mut bytes = [0; LONG_BYTES];
        rand::fill(&mut bytes).ok()?;
        Self::new(&bytes)
    }

    /// The name by which tickets call it.
    #[must_use]
    pub fn name(&self) -> &[u8] {
        &self.name
    }

    fn seal(&self, plain: &[u8]) -> Option<Vec<u8>> {
        let mut vector = [0; VECTOR_BYTES];
        rand::fill(&mut vector).ok()?;
        let mut body = plain.to_vec();
        let context = EncryptionContext::Iv128(FixedLength::from(vector));
        self.seal.less_safe_encrypt(&mut body, context).ok()?;
        let mut ticket = [&self.name[..], &vector, &body].concat();
        let tag = hmac::sign(&self.mac, &ticket);
        ticket.extend_from_slice(tag.as_ref());
        Some(ticket)
    }

    fn open(&self, ticket: &[u8]) -> Option<Vec<u8>> {
        let (signed, tag) = ticket.split_at_checked(ticket.len().checked_sub(TAG_BYTES)?)?;
        hmac::verify(&self.mac, signed, tag).ok()?;
        let (vector, body) = signed
            .get(NAME_BYTES..)?
            .split_first_chunk::<VECTOR_BYTES>()?;
        let mut body = body.to_vec();
        let context = DecryptionContext::Iv128(FixedLength::from(*vector));
        let plain = self.open.decrypt(&mut body, context).ok()?;
        Some(plain.to_vec())
    }
}

/// The keys for tickets.
pub trait KeyRing: fmt::Debug + Send + Sync {
    /// The key for tickets made now; `None` if there is none.
    fn current(&self) -> Option<Arc<TicketKey>>;
    /// The key of this name, of 16 bytes.
    fn named(&self, name: &[u8]) -> Option<Arc<TicketKey>>;
}

/// A store of sessions. Keys and values are secrets.
pub trait SessionCache: fmt::Debug + Send + Sync {
    /// Keeps a session until a time in seconds since 1970.
    fn put(&self, key: Vec<u8>, value: Vec<u8>, until_s: u64, now_s: u64);
    /// A session that is still kept.
    fn get(&self, key: &[u8], now_s: u64) -> Option<Vec<u8>>;
    /// Removes and returns a session.
    fn take(&self, key: &[u8], now_s: u64) -> Option<Vec<u8>>;
}

/// Makes the tickets of servers with one policy, each in the context of its server.
#[derive(Debug)]
pub(crate) struct Tickets {
    pub(crate) ring: Arc<dyn KeyRing>,
    pub(crate) lifetime_s: u64,
}

impl ProducesTickets for Tickets {
    fn enabled(&self) -> bool {
        true
    }

    fn lifetime(&self) -> u32 {
        // A week is the maximum for clients (RFC 8446 section 4.6.1).
        u32::try_from(self.lifetime_s).map_or(LIFETIME_MAX_S, |time| time.min(LIFETIME_MAX_S))
    }

    fn encrypt(&self, plain: &[u8]) -> Option<Vec<u8>> {
        self.seal(&ask(|server| server.context())?, plain)
    }

    fn decrypt(&self, ticket: &[u8]) -> Option<Vec<u8>> {
        self.open(&ask(|server| server.context())?, ticket)
    }
}

impl Tickets {
    fn seal(&self, context: &Context, plain: &[u8]) -> Option<Vec<u8>> {
        let until = now_s().saturating_add(self.lifetime_s);
        let sealed = [&context[..], &until.to_be_bytes(), plain].concat();
        self.ring.current()?.seal(&sealed)
    }

    fn open(&self, own: &Context, ticket: &[u8]) -> Option<Vec<u8>> {
        let key = self.ring.named(ticket.get(..NAME_BYTES)?)?;
        let plain = key.open(ticket)?;
        let (context, rest) = plain.split_first_chunk()?;
        let (until, plain) = rest.split_first_chunk()?;
        let live = context == own && now_s() < u64::from_be_bytes(*until);
        live.then(|| plain.to_vec())
    }
}

/// Keeps the sessions of servers with one policy, each in the context of its server.
#[derive(Debug)]
pub(crate) struct Sessions {
    pub(crate) cache: Arc<dyn SessionCache>,
    pub(crate) lifetime_s: u64,
}

/// The cache key of a session for the server of the current handshake.
fn key_of(key: &[u8]) -> Option<Vec<u8>> {
    ask(|server| [&server.context()[..], key].concat())
}

impl StoresServerSessions for Sessions {
    fn put(&self, key: Vec<u8>, value: Vec<u8>) -> bool {
        let Some(key) = key_of(&key) else {
            return false;
        };
        let now = now_s();
        let until = now.saturating_add(self.lifetime_s);
        self.cache.put(key, value, until, now);
        true
    }

    fn get(&self, key: &[u8]) -> Option<Vec<u8>> {
        self.cache.get(&key_of(key)?, now_s())
    }

    fn take(&self, key: &[u8]) -> Option<Vec<u8>> {
        self.cache.take(&key_of(key)?, now_s())
    }

    fn can_cache(&self) -> bool {
        true
    }
}

/// Seconds since 1970, from rustls's clock.
pub(crate) fn now_s() -> u64 {
    UnixTime::now().as_secs()
}

const NAME_BYTES: usize = 16;
const VECTOR_BYTES: usize = 16;
const TAG_BYTES: usize = 32;
/// Sizes of a file with a key.
const LONG_BYTES: usize = 80;
const SHORT_BYTES: usize = 48;
/// A week.
const LIFETIME_MAX_S: u32 = 7 * 24 * 3600;

#[cfg(test)]
mod tests {
    use super::*;

    const OWN: Context = [1; 32];
    const OTHER: Context = [2; 32];

    #[derive(Debug)]
    struct Ring(Vec<Arc<TicketKey>>);

    impl KeyRing for Ring {
        fn current(&self) -> Option<Arc<TicketKey>> {
            self.0.first().cloned()
        }

        fn named(&self, name: &[u8]) -> Option<Arc<TicketKey>> {
            self.0.iter().find(|key| key.name() == name).cloned()
        }
    }

    fn key(len: usize, first: u8) -> Arc<TicketKey> {
        let bytes: Vec<u8> = (0..len).map(|n| first.wrapping_add(n as u8)).collect();
        Arc::new(TicketKey::new(&bytes).expect("the number of bytes is right"))
    }

    fn tickets(keys: &[Arc<TicketKey>], lifetime_s: u64) -> Tickets {
        Tickets {
            ring: Arc::new(Ring(keys.to_vec())),
            lifetime_s,
        }
    }

    #[test]
    fn keys_have_48_or_80_bytes() {
        for len in [0, 16, 47, 49, 79, 81] {
            assert!(TicketKey::new(&vec![1; len]).is_none(), "{len}");
        }
        for len in [48, 80] {
            let tickets = tickets(&[key(len, 0)], 300);
            let ticket = tickets.seal(&OWN, b"session").expect("there is a key");
            assert_eq!(ticket.len(), 16 + 16 + 48 + 32);
            assert_eq!(
                tickets.open(&OWN, &ticket).as_deref(),
                Some(&b"session"[..])
            );
        }
    }

    #[test]
    fn keys_are_laid_out_as_nginx_has_them() {
        // Taken apart by hand: AES-128 in CBC mode and HMAC-SHA-256, each with 16 bytes of the file.
        let bytes: Vec<u8> = (0..48).collect();
        let ticket = key(48, 0).seal(b"x").expect("there is randomness");
        assert_eq!(&ticket[..16], &bytes[..16]);
        let mac = hmac::Key::new(hmac::HMAC_SHA256, &bytes[32..]);
        assert!(hmac::verify(&mac, &ticket[..48], &ticket[48..]).is_ok());
        let bytes: Vec<u8> = (0..80).collect();
        let ticket = key(80, 0).seal(b"x").expect("there is randomness");
        let mac = hmac::Key::new(hmac::HMAC_SHA256, &bytes[16..48]);
        assert!(hmac::verify(&mac, &ticket[..48], &ticket[48..]).is_ok());
    }

    #[test]
    fn a_ticket_outlives_a_change_of_keys_as_long_as_its_key_is_known() {
        let (old, new) = (key(80, 0), key(80, 100));
        let ticket = tickets(&[Arc::clone(&old)], 300).seal(&OWN, b"s");
        let ticket = ticket.expect("there is a key");
        let both = tickets(&[Arc::clone(&new), old], 300);
        assert!(both.open(&OWN, &ticket).is_some());
        assert!(tickets(&[new], 300).open(&OWN, &ticket).is_none());
    }

    #[test]
    fn a_ticket_is_for_one_context_and_ends() {
        let keys = [key(80, 0)];
        let ticket = tickets(&keys, 300).seal(&OWN, b"s");
        let ticket = ticket.expect("there is a key");
        assert!(tickets(&keys, 300).open(&OWN, &ticket).is_some());
        assert!(tickets(&keys, 300).open(&OTHER, &ticket).is_none());
        let ended = tickets(&keys, 0);
        let ticket = ended.seal(&OWN, b"s").expect("there is a key");
        assert!(ended.open(&OWN, &ticket).is_none());
        assert_eq!(tickets(&keys, u64::MAX).lifetime(), LIFETIME_MAX_S);
    }

    #[test]
    fn a_ticket_that_was_changed_is_none() {
        let tickets = tickets(&[key(80, 0)], 300);
        let ticket = tickets.seal(&OWN, b"session").expect("there is a key");
        for at in 0..ticket.len() {
            let mut changed = ticket.clone();
            changed[at] ^= 1;
            assert!(tickets.open(&OWN, &changed).is_none(), "{at}");
            assert!(tickets.open(&OWN, &ticket[..at]).is_none(), "{at}");
        }
    }
}
