//! The cookie of `userid`: how identifiers are made and written.
//!
//! Source: nginx documentation, `ngx_http_userid_module`.

use std::collections::hash_map::RandomState;
use std::hash::BuildHasher;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};

use base64ct::{Base64, Encoding};
use server_http::builtin::decode_base64;
use server_http::cookie_date;

use super::{Expires, HTTP_ONLY, LAX, NONE, SECURE, STRICT, Uid, UseridLoc};

/// An identifier of version 1, in the byte order of the machine.
pub(super) fn version_1(service: Option<u32>, time: u32, pid: u32) -> Uid {
    let count = COUNT_1.fetch_add(STEP, Ordering::Relaxed);
    [service.unwrap_or_default(), time, start(pid), count]
}

/// An identifier of version 2, in network byte order.
pub(super) fn version_2(server: [u8; 4], time: u32, pid: u32) -> Uid {
    let next = |count: u32| Some(count.wrapping_add(STEP).max(FIRST_2));
    let count = match COUNT_2.fetch_update(Ordering::Relaxed, Ordering::Relaxed, next) {
        Ok(count) | Err(count) => count,
    };
    let server = u32::from_ne_bytes(server);
    [server, time.to_be(), start(pid).to_be(), count.to_be()]
}

/// Returns a number that distinguishes this process from an earlier one with an equal process id.
fn start(pid: u32) -> u32 {
    static RANDOM: OnceLock<u32> = OnceLock::new();
    let random = RANDOM.get_or_init(|| RandomState::new().hash_one(pid) as u32);
    random << 16 | pid & 0xffff
}

/// The identifier in the first characters of a cookie.
pub(super) fn decode(text: &[u8]) -> Option<Uid> {
    let bytes: [u8; 16] = decode_base64(text)?.try_into().ok()?;
    let (words, _) = bytes.as_chunks();
    Some([0, 1, 2, 3].map(|n| u32::from_ne_bytes(words[n])))
}

/// The value of a cookie.
pub(super) fn encode(uid: Uid, mark: Option<u8>) -> Vec<u8> {
    let bytes = uid.map(u32::to_ne_bytes);
    let mut value = Base64::encode_string(bytes.as_flattened()).into_bytes();
    if let Some(mark) = mark {
        value[UID_LEN] = mark;
    }
    value
}

/// Returns the client's cookie with another mark.
pub(super) fn mark_again(cookie: &[u8], mark: Option<u8>) -> Vec<u8> {
    let mut value = cookie[..UID_LEN.min(cookie.len())].to_vec();
    value.extend([mark.unwrap_or(b'='), b'=']);
    value
}

/// Whether a cookie has this mark.
pub(super) fn is_marked(cookie: &[u8], mark: u8) -> bool {
    cookie.get(UID_LEN..UID_LEN + 2) == Some(&[mark, b'='])
}

/// `uid=0100007F...`.
pub(super) fn format(name: &[u8], uid: Uid) -> String {
    let [a, b, c, d] = uid;
    let name = String::from_utf8_lossy(name);
    format!("{name}={a:08X}{b:08X}{c:08X}{d:08X}")
}

/// The field `Set-Cookie`.
pub(super) fn field(conf: &UseridLoc, value: &[u8], now_s: i64) -> Vec<u8> {
    let mut field = [&conf.name.0, &b"="[..], value].concat();
    match *conf.expires {
        Expires::Off => {}
        Expires::Max => field.extend_from_slice(b"; expires=Thu, 31-Dec-37 23:55:55 GMT"),
        Expires::After(seconds) => {
            let at = now_s.saturating_add_unsigned(seconds);
            field.extend_from_slice(b"; expires=");
            field.extend_from_slice(&cookie_date(at));
        }
    }
    if conf.domain.0 != b"none" {
        field.extend_from_slice(b"; domain=");
        field.extend_from_slice(&conf.domain.0);
    }
    field.extend_from_slice(b"; path=");
    field.extend_from_slice(&conf.path.0);
    for (flag, text) in [
        (SECURE, "; secure"),
        (HTTP_ONLY, "; httponly"),
        (STRICT, "; samesite=strict"),
        (LAX, "; samesite=lax"),
        (NONE, "; samesite=none"),
    ] {
        if conf.flags & flag != 0 {
            field.extend_from_slice(text.as_bytes());
        }
    }
    field
}

/// Characters of an identifier in a cookie. The mark or base64 padding follows.
pub(super) const UID_LEN: usize = 22;
/// The counters; the lowest byte is that of the version.
static COUNT_1: AtomicU32 = AtomicU32::new(1);
static COUNT_2: AtomicU32 = AtomicU32::new(FIRST_2);
const FIRST_2: u32 = 0x0303_0302;
const STEP: u32 = 0x100;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cookie_gives_back_its_identifier() {
        let uid = [0x0100_007f, 1, 2, 0xffff_ffff];
        for mark in [None, Some(b't'), Some(b'=')] {
            let value = encode(uid, mark);
            assert_eq!(value.len(), 24);
            assert_eq!(decode(&value[..UID_LEN]), Some(uid));
            assert!(mark.is_none_or(|mark| is_marked(&value, mark)));
            assert!(!is_marked(&value, b'x'));
            assert_eq!(mark_again(&value, mark), value);
        }
        assert_eq!(decode(b"!!!!!!!!!!!!!!!!!!!!!!"), None);
        assert_eq!(decode(b"AAAAAAAAAAAAAAAAAAAAA="), None);
        assert!(!is_marked(b"AAAAAAAAAAAAAAAAAAAAAAt", b't'));
    }

    #[test]
    fn no_two_identifiers_are_the_same() {
        let one = version_2([127, 0, 0, 1], 5, 7);
        let other = version_2([127, 0, 0, 1], 5, 7);
        assert_ne!(one, other);
        assert_eq!(one[..3], other[..3]);
        assert_eq!(one[0].to_ne_bytes(), [127, 0, 0, 1]);
        assert_eq!(one[3].to_be() & 0xff, 2);
        let one = version_1(None, 5, 7);
        assert_eq!(
            [one[0], one[1], one[2] & 0xffff, one[3] & 0xff],
            [0, 5, 7, 1]
        );
        assert_ne!(one, version_1(None, 5, 7));
    }
}
