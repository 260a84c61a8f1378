//! The cookie of a user: a random number and its authenticity, 32 hexadecimal digits.
//!
//! A cookie that is damaged, or that another key made, is replaced by a new one.
//!
//! Source: RFC 6265; draft-ietf-httpbis-rfc6265bis section 5.6 (SameSite).

use std::fmt::Write as _;

use engines::http::FieldId;
use server_http::builtin::{find_cookies, random_id};
use server_http::exchange::Exchange;
use server_http::experiments::UserCookie;

use super::key::HashKey;

/// A cookie of the configuration.
pub(crate) struct CookiePlan {
    pub(super) params: CookieParams,
    pub(super) key: HashKey,
}

/// Parameters of `user cookie`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct CookieParams {
    pub(super) name: Vec<u8>,
    pub(super) domain: Option<Vec<u8>>,
    pub(super) max_age_s: u64,
}

impl Default for CookieParams {
    fn default() -> Self {
        Self {
            name: NAME.to_vec(),
            domain: None,
            max_age_s: MAX_AGE_S,
        }
    }
}

impl CookiePlan {
    /// Reads the cookie of a request, the first valid one.
    pub(super) fn read(&self, x: &Exchange, name: u16) -> UserCookie {
        let fields = x.head.fields_by_id(FieldId::Cookie);
        let mut values = fields.flat_map(|field| find_cookies(field, &self.params.name));
        let (mut is_forged, mut user) = (false, None);
        while let (None, Some(value)) = (user, values.next()) {
            user = self.decode(value);
            is_forged = user.is_none();
        }
        UserCookie {
            name,
            user,
            is_forged,
            is_new: false,
        }
    }

    fn decode(&self, value: &[u8]) -> Option<u64> {
        let (user, mac) = value.split_at_checked(VALUE_BYTES / 2)?;
        let (user, mac) = (number(user)?, number(mac)?);
        // Times of comparisons show nothing: an attacker needs 2^63 attempts.
        (user != 0 && mac == self.mac(user)).then_some(user)
    }

    fn mac(&self, user: u64) -> u64 {
        self.key.hash(&user.to_le_bytes())
    }

    /// Returns the field `Set-Cookie`.
    pub(super) fn field(&self, user: u64, is_secure: bool) -> Vec<u8> {
        let CookieParams {
            name,
            domain,
            max_age_s,
        } = &self.params;
        let mut text = String::from_utf8_lossy(name).into_owned();
        let mac = self.mac(user);
        // Writing to a string cannot fail.
        let _ = write!(text, "={user:016x}{mac:016x}; Max-Age={max_age_s}");
        if let Some(domain) = domain {
            let _ = write!(text, "; Domain={}", String::from_utf8_lossy(domain));
        }
        text.push_str("; Path=/");
        if is_secure {
            text.push_str("; Secure");
        }
        text.push_str("; HttpOnly; SameSite=Lax");
        text.into_bytes()
    }
}

/// Returns a new user, if the response can still set a cookie. A pushed response must not: its request has no cookies.
pub(super) fn issue(x: &Exchange) -> Option<u64> {
    if x.is_head_made() || x.is_pushed() {
        return None;
    }
    let [a, b, c, d, e, f, g, h, ..] = random_id();
    // 0 is no user.
    Some(u64::from_le_bytes([a, b, c, d, e, f, g, h]).max(1))
}

/// Parses 16 hexadecimal digits; `None` for capital letters and others.
fn number(digits: &[u8]) -> Option<u64> {
    if digits.len() != VALUE_BYTES / 2 {
        return None;
    }
    digits.iter().try_fold(0, |number, digit| {
        let value = match digit {
            b'0'..=b'9' => digit - b'0',
            b'a'..=b'f' => digit - b'a' + 10,
            _ => return None,
        };
        Some(number << 4 | u64::from(value))
    })
}

/// Length of a value.
const VALUE_BYTES: usize = 32;
/// Name by default.
const NAME: &[u8] = b"fb_user";
/// Life of a cookie by default, seconds: 400 days, the longest that browsers allow.
const MAX_AGE_S: u64 = 400 * 86_400;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::key::{MasterKey, Purpose};

    fn plan(key: &[u8]) -> CookiePlan {
        let key = MasterKey::of_text(key).derive(Purpose::Cookie, NAME);
        CookiePlan {
            params: CookieParams::default(),
            key,
        }
    }

    fn value(plan: &CookiePlan, user: u64) -> Vec<u8> {
        let field = plan.field(user, false);
        let value = field.strip_prefix(b"fb_user=").expect("its name");
        value[..VALUE_BYTES].to_vec()
    }

    #[test]
    fn cookie_returns_its_user() {
        let plan = plan(b"0123456789abcdefx");
        for user in [1, 0x0123_4567_89ab_cdef, u64::MAX] {
            assert_eq!(plan.decode(&value(&plan, user)), Some(user));
        }
        assert_eq!(plan.decode(&value(&plan, 0)), None);
    }

    #[test]
    fn each_changed_byte_is_found() {
        let (own, other) = (plan(b"0123456789abcdefx"), plan(b"0123456789abcdefy"));
        let good = value(&own, 77);
        assert_eq!(other.decode(&good), None, "another key");
        for at in 0..VALUE_BYTES {
            for byte in [b'0', b'f', b'g', b'A', 0, 0xff] {
                let mut changed = good.clone();
                changed[at] = byte;
                let is_same = changed == good;
                assert_eq!(own.decode(&changed).is_some(), is_same, "{at} {byte}");
            }
        }
        for length in [0, 15, 16, 17, 31] {
            assert_eq!(own.decode(&good[..length]), None, "{length}");
        }
        assert_eq!(own.decode(&[&good[..], b"0"].concat()), None);
    }

    #[test]
    fn attributes_follow_the_parameters() {
        let mut plan = plan(b"0123456789abcdefx");
        let text = |plan: &CookiePlan, is_secure| {
            let field = String::from_utf8(plan.field(1, is_secure)).expect("text");
            let attributes = field.split_once("; ").expect("it has attributes").1;
            attributes.to_owned()
        };
        assert_eq!(
            text(&plan, false),
            "Max-Age=34560000; Path=/; HttpOnly; SameSite=Lax"
        );
        plan.params.domain = Some(b"example.com".to_vec());
        plan.params.max_age_s = 60;
        assert_eq!(
            text(&plan, true),
            "Max-Age=60; Domain=example.com; Path=/; Secure; HttpOnly; SameSite=Lax"
        );
    }
}
