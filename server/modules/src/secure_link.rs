//! `secure_link`: verifies that a link was made with a secret and has not expired.
//!
//! As in nginx the variable keeps its first value for the rest of the request. Hashes are compared in a time that does not
//! depend on how much is right.
//!
//! Source: nginx documentation, `ngx_http_secure_link_module`.

use std::rc::Rc;

use base64ct::{Base64UrlUnpadded, Encoding};
use conf::{ConfError, Contexts, Directive};
use md5::{Digest, Md5};
use server_http::assemble::ConfigBuilder;
use server_http::exchange::{Ctx, Exchange};
use server_http::module::Module;
use server_http::settings;
use server_http::value::Value;
use server_http::variables;

use crate::secrets::equal;

/// The module.
pub(crate) const MODULE: Module = Module {
    name: "secure_link",
    directives: &[PLAIN, ROWS],
    settings: &[<SecureLinkLoc as server_http::settings_set::Conf>::def],
    variables: variables! {
        "secure_link":
            "1 for a valid link, 0 for an expired one, else empty; with secure_link_secret the protected part of \
             the URI"
            => |x, cx, _, out| append(&link_of(x, cx).value, out);
        "secure_link_expires": "expiry of the link, set after $secure_link was evaluated"
            => |x, _, _, out| match x.extensions.get::<Link>() {
                Some(link) => append(&link.expires, out),
                None => false,
            };
    },
    ..Module::EMPTY
};

fn append(value: &Option<Vec<u8>>, out: &mut Vec<u8>) -> bool {
    out.extend_from_slice(value.as_deref().unwrap_or_default());
    value.is_some()
}

const HSL: Contexts = Contexts::HTTP_SERVER_LOCATION;

settings! {
    /// Settings of the module.
    pub(crate) struct SecureLinkLoc: Location / PLAIN {}
    extra {
        /// `secure_link`: the hash and the expiry.
        link: Option<Value>,
        /// `secure_link_md5`: the text to hash.
        md5: Option<Value>,
        /// `secure_link_secret`; excludes the other two at one level.
        secret: Option<Vec<u8>>
    }
    merge inherit;
}

fn inherit(own: &mut SecureLinkLoc, parent: Option<&SecureLinkLoc>) {
    let Some(parent) = parent.filter(|_| own.secret.is_none()) else {
        return;
    };
    if own.link.is_none() {
        own.link.clone_from(&parent.link);
    }
    if own.md5.is_none() {
        own.md5.clone_from(&parent.md5);
    }
    if own.link.is_none() && own.md5.is_none() {
        own.secret.clone_from(&parent.secret);
    }
}

conf::directives! {
    const ROWS: ConfigBuilder;

    /// The hash of a request and, after a comma, its expiry.
    directive "secure_link": HSL, TAKE1, "", "expression" => |b, d| {
        let value = Value::compile(b, d, d.word(0))?;
        set(b, d, |conf| &mut conf.link, value)
    };

    /// A text; its MD5 must be the hash of a request.
    directive "secure_link_md5": HSL, TAKE1, "", "expression" => |b, d| {
        let value = Value::compile(b, d, d.word(0))?;
        set(b, d, |conf| &mut conf.md5, value)
    };

    /// The secret of links that have their hash in their path.
    directive "secure_link_secret": HSL, TAKE1, "", "word"
        => |b, d| set(b, d, |conf| &mut conf.secret, d.arg(0).to_vec());
}

fn set<T>(
    b: &mut ConfigBuilder,
    d: &Directive,
    place: fn(&mut SecureLinkLoc) -> &mut Option<T>,
    value: T,
) -> Result<(), ConfError> {
    let conf = b.conf_mut::<SecureLinkLoc>();
    conf::once(d, place(conf).replace(value).is_some())?;
    if conf.secret.is_some() && (conf.link.is_some() || conf.md5.is_some()) {
        let text =
            "\"secure_link_secret\" cannot be mixed with \"secure_link\" and \"secure_link_md5\"";
        return Err(ConfError::at(d, text));
    }
    Ok(())
}

/// The verdict on the link of a request.
#[derive(Clone, Default)]
struct Link {
    value: Option<Vec<u8>>,
    expires: Option<Vec<u8>>,
}

/// Returns the link of a request, which is parsed once.
fn link_of(x: &mut Exchange, cx: &mut Ctx<'_>) -> Link {
    if let Some(link) = x.extensions.get::<Link>() {
        return link.clone();
    }
    // Set before the evaluation, which may use these variables: `$secure_link_expires` is part of the hashed text.
    x.extensions.push(Link::default());
    let http = Rc::clone(&x.route.http);
    let conf: &SecureLinkLoc = x.loc(&http);
    let mut link = Link::default();
    match (&conf.secret, &conf.link, &conf.md5) {
        (Some(secret), _, _) => {
            let target = x.head.bytes(x.head.target);
            link.value = protected(target, secret).map(<[u8]>::to_vec);
        }
        (None, Some(given), Some(md5)) => {
            let given = given.to_vec(x, cx);
            if let Some((hash, expires)) = parse(&given) {
                link.expires = expires.map(|(text, _)| text.to_vec());
                x.extensions.set(link.clone());
                let hashed = md5.to_vec(x, cx);
                let right = decode(hash).is_some_and(|hash| equal(&hash, &Md5::digest(hashed)));
                let expired = expires.is_some_and(|(_, at)| at < cx.clock.unix_s());
                let value = if expired { b"0" } else { b"1" };
                link.value = right.then(|| value.to_vec());
            }
        }
        _ => {}
    }
    x.extensions.set(link.clone());
    link
}

/// The expiry of a link, as written and in seconds since 1970.
type Expiry<'t> = Option<(&'t [u8], i64)>;

/// Splits the argument into hash and expiry; `None` for an invalid expiry.
fn parse(given: &[u8]) -> Option<(&[u8], Expiry<'_>)> {
    let Some(comma) = given.iter().position(|b| *b == b',') else {
        return Some((given, None));
    };
    let text = &given[comma + 1..];
    let at = conf::parse_number(text).and_then(|n| i64::try_from(n).ok())?;
    (at > 0).then_some((&given[..comma], Some((text, at))))
}

/// Decodes a hash with optional `=` padding.
fn decode(text: &[u8]) -> Option<Vec<u8>> {
    if text.len() > HASH_TEXT_MAX {
        return None;
    }
    let text = text.split(|b| *b == b'=').next()?;
    Base64UrlUnpadded::decode_vec(std::str::from_utf8(text).ok()?).ok()
}

/// The text after the hash in a target `/prefix/hash/link`, if the hash is that of link and secret.
fn protected<'t>(target: &'t [u8], secret: &[u8]) -> Option<&'t [u8]> {
    let mut parts = target.get(1..)?.splitn(3, |b| *b == b'/');
    let (_, hash, link) = (parts.next()?, parts.next()?, parts.next()?);
    if link.is_empty() || hash.len() != 2 * MD5_BYTES {
        return None;
    }
    let mut given = [0; MD5_BYTES];
    for (byte, digits) in given.iter_mut().zip(hash.chunks_exact(2)) {
        let digit = |at: usize| char::from(digits[at]).to_digit(16);
        *byte = (digit(0)? << 4 | digit(1)?) as u8;
    }
    let right = Md5::new()
        .chain_update(link)
        .chain_update(secret)
        .finalize();
    equal(&given, &right).then_some(link)
}

const MD5_BYTES: usize = 16;
/// Maximum length of a hash in base64.
const HASH_TEXT_MAX: usize = 24;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hash_may_be_filled_up() {
        let hash = Md5::digest("secret/test.html");
        for text in [
            "q-5vpkjBkRXXtkUMXiJVHA==",
            "q-5vpkjBkRXXtkUMXiJVHA",
            "q-5vpkjBkRXXtkUMXiJVHA=",
        ] {
            assert_eq!(
                decode(text.as_bytes()).as_deref(),
                Some(&hash[..]),
                "{text}"
            );
        }
        for wrong in [
            "",
            "=",
            "q-5vpkjBkRXXtkUMXiJVHB==",
            "q-5vpkjBkRXXtkUMXiJVH",
            "q+5vpkjBkRXXtkUMXiJVHA",
            "q-5vpkjBkRXXtkUMXiJVHAQQ",
            "q-5vpkjBkRXXtkUMXiJVHA===",
            "q-5vpkjBkRXXtkUMXiJV\u{e4}",
        ] {
            assert_ne!(
                decode(wrong.as_bytes()).as_deref(),
                Some(&hash[..]),
                "{wrong}"
            );
        }
    }

    #[test]
    fn an_expiry_is_a_number_above_zero() {
        assert_eq!(parse(b"hash"), Some((&b"hash"[..], None)));
        assert_eq!(
            parse(b"hash,12"),
            Some((&b"hash"[..], Some((&b"12"[..], 12))))
        );
        assert_eq!(parse(b",1"), Some((&b""[..], Some((&b"1"[..], 1)))));
        for wrong in [
            "hash,",
            "hash,0",
            "hash,-1",
            "hash,1x",
            "hash,1,2",
            "hash,9223372036854775808",
        ] {
            assert_eq!(parse(wrong.as_bytes()), None, "{wrong}");
        }
    }

    #[test]
    fn a_path_holds_its_hash_and_what_it_protects() {
        let hash = "7de69ddbdbd5766da245b4f381b5c6ff";
        let target = |hash: &str| format!("/p/{hash}/a/b?c");
        assert_eq!(
            protected(target(hash).as_bytes(), b"word"),
            Some(&b"a/b?c"[..])
        );
        let upper = hash.to_uppercase();
        assert_eq!(
            protected(target(&upper).as_bytes(), b"word"),
            Some(&b"a/b?c"[..])
        );
        assert_eq!(protected(target(hash).as_bytes(), b"other"), None);
        for wrong in [
            "",
            "/",
            "/p",
            "/p/",
            "/p/x",
            "/p/x/y",
            "/p/7de69ddbdbd5766da245b4f381b5c6ff/",
        ] {
            assert_eq!(protected(wrong.as_bytes(), b"word"), None, "{wrong}");
        }
        assert_eq!(protected(target(&"x".repeat(32)).as_bytes(), b"word"), None);
    }
}
