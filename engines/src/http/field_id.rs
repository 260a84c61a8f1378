//! Well-known field names as small numbers, so that the hot path compares bytes once.
//!
//! A name is found by its length, then by a compare without case; at most a handful of names share a length.
//! Source: RFC 9110 section 18.4 and the fields that nginx knows.

/// Defines [`FieldId`] by its variants and the usual spelling of each name, in the order of their numbers.
macro_rules! field_ids {
    ($($variant:ident $name:literal;)+) => {
        /// Which well-known field a field is.
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
        #[repr(u8)]
        pub enum FieldId {
            /// A name without a number of its own.
            #[default]
            Other,
            $(#[doc = concat!("`", $name, "`.")] $variant,)+
        }

        impl FieldId {
            /// All known names, in the order of their numbers, except [`FieldId::Other`].
            pub const ALL: [Self; [$($name),+].len()] = [$(Self::$variant),+];

            /// The usual spelling of the name; empty for [`FieldId::Other`].
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self {
                    Self::Other => "",
                    $(Self::$variant => $name,)+
                }
            }
        }
    };
}

field_ids! {
    Host "Host";
    Connection "Connection";
    ContentLength "Content-Length";
    TransferEncoding "Transfer-Encoding";
    Expect "Expect";
    IfModifiedSince "If-Modified-Since";
    IfUnmodifiedSince "If-Unmodified-Since";
    IfMatch "If-Match";
    IfNoneMatch "If-None-Match";
    IfRange "If-Range";
    Range "Range";
    UserAgent "User-Agent";
    Referer "Referer";
    AcceptEncoding "Accept-Encoding";
    AcceptLanguage "Accept-Language";
    Accept "Accept";
    Authorization "Authorization";
    Cookie "Cookie";
    XForwardedFor "X-Forwarded-For";
    XRealIp "X-Real-IP";
    ContentType "Content-Type";
    ContentEncoding "Content-Encoding";
    ContentRange "Content-Range";
    Upgrade "Upgrade";
    KeepAlive "Keep-Alive";
    Te "TE";
    Trailer "Trailer";
    Via "Via";
    Origin "Origin";
    Server "Server";
    Date "Date";
    LastModified "Last-Modified";
    Etag "ETag";
    AcceptRanges "Accept-Ranges";
    Location "Location";
    CacheControl "Cache-Control";
    Expires "Expires";
    Vary "Vary";
    SetCookie "Set-Cookie";
    Link "Link";
    Pragma "Pragma";
    Destination "Destination";
    Depth "Depth";
    Overwrite "Overwrite";
    WwwAuthenticate "WWW-Authenticate";
    RetryAfter "Retry-After";
    Allow "Allow";
    ProxyAuthorization "Proxy-Authorization";
}

impl FieldId {
    /// The number of the field called `name`, compared without case.
    #[inline]
    #[must_use]
    pub fn of(name: &[u8]) -> Self {
        let Some(first) = name.first() else {
            return Self::Other;
        };
        // Length and first letter leave one or two candidates, so that hashing is not needed.
        match (name.len(), first | 0x20) {
            (2, b't') => one(name, b"te", Self::Te),
            (3, b'v') => one(name, b"via", Self::Via),
            (4, b'd') => one(name, b"date", Self::Date),
            (4, b'e') => one(name, b"etag", Self::Etag),
            (4, b'h') => one(name, b"host", Self::Host),
            (4, b'l') => one(name, b"link", Self::Link),
            (4, b'v') => one(name, b"vary", Self::Vary),
            (5, b'a') => one(name, b"allow", Self::Allow),
            (5, b'd') => one(name, b"depth", Self::Depth),
            (5, b'r') => one(name, b"range", Self::Range),
            (6, b'a') => one(name, b"accept", Self::Accept),
            (6, b'c') => one(name, b"cookie", Self::Cookie),
            (6, b'e') => one(name, b"expect", Self::Expect),
            (6, b'o') => one(name, b"origin", Self::Origin),
            (6, b'p') => one(name, b"pragma", Self::Pragma),
            (6, b's') => one(name, b"server", Self::Server),
            (7, b'e') => one(name, b"expires", Self::Expires),
            (7, b'r') => one(name, b"referer", Self::Referer),
            (7, b't') => one(name, b"trailer", Self::Trailer),
            (7, b'u') => one(name, b"upgrade", Self::Upgrade),
            (8, b'i') => {
                one(name, b"if-match", Self::IfMatch).or(|| one(name, b"if-range", Self::IfRange))
            }
            (8, b'l') => one(name, b"location", Self::Location),
            (9, b'o') => one(name, b"overwrite", Self::Overwrite),
            (9, b'x') => one(name, b"x-real-ip", Self::XRealIp),
            (10, b'c') => one(name, b"connection", Self::Connection),
            (10, b'k') => one(name, b"keep-alive", Self::KeepAlive),
            (10, b's') => one(name, b"set-cookie", Self::SetCookie),
            (10, b'u') => one(name, b"user-agent", Self::UserAgent),
            (11, b'd') => one(name, b"destination", Self::Destination),
            (11, b'r') => one(name, b"retry-after", Self::RetryAfter),
            (12, b'c') => one(name, b"content-type", Self::ContentType),
            (13, b'a') => one(name, b"authorization", Self::Authorization)
                .or(|| one(name, b"accept-ranges", Self::AcceptRanges)),
            (13, b'c') => one(name, b"content-range", Self::ContentRange)
                .or(|| one(name, b"cache-control", Self::CacheControl)),
            (13, b'i') => one(name, b"if-none-match", Self::IfNoneMatch),
            (13, b'l') => one(name, b"last-modified", Self::LastModified),
            (14, b'c') => one(name, b"content-length", Self::ContentLength),
            (15, b'a') => one(name, b"accept-encoding", Self::AcceptEncoding)
                .or(|| one(name, b"accept-language", Self::AcceptLanguage)),
            (15, b'x') => one(name, b"x-forwarded-for", Self::XForwardedFor),
            (16, b'c') => one(name, b"content-encoding", Self::ContentEncoding),
            (16, b'w') => one(name, b"www-authenticate", Self::WwwAuthenticate),
            (17, b'i') => one(name, b"if-modified-since", Self::IfModifiedSince),
            (17, b't') => one(name, b"transfer-encoding", Self::TransferEncoding),
            (19, b'i') => one(name, b"if-unmodified-since", Self::IfUnmodifiedSince),
            (19, b'p') => one(name, b"proxy-authorization", Self::ProxyAuthorization),
            _ => Self::Other,
        }
    }

    /// The bit of this field in a set of fields held in a `u64`.
    #[inline]
    pub(crate) const fn bit(self) -> u64 {
        1 << (self as u8)
    }
}

/// `id` if `name` equals `lower` without case. The length is a constant, so that the comparison has no loop.
#[inline(always)]
fn one<const N: usize>(name: &[u8], lower: &[u8; N], id: FieldId) -> FieldId {
    let Some(name) = name.as_array::<N>() else {
        return FieldId::Other;
    };
    let mut differing = 0;
    for n in 0..N {
        // The case of a letter is one bit.
        let case = u8::from(lower[n].is_ascii_lowercase()) << 5;
        differing |= (name[n] ^ lower[n]) & !case;
    }
    if differing == 0 { id } else { FieldId::Other }
}

impl FieldId {
    /// The result of another comparison if this one found nothing.
    #[inline(always)]
    fn or(self, other: impl FnOnce() -> Self) -> Self {
        match self {
            Self::Other => other(),
            found => found,
        }
    }
}

// `FieldId::bit` puts every field into one machine word.
const _: () = assert!((FieldId::ProxyAuthorization as u8) < 64);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_known_name_is_found_in_any_case() {
        for (n, id) in FieldId::ALL.into_iter().enumerate() {
            assert_eq!(id as usize, n + 1);
            let name = id.name();
            assert_eq!(FieldId::of(name.as_bytes()), id, "{name}");
            assert_eq!(
                FieldId::of(name.to_ascii_lowercase().as_bytes()),
                id,
                "{name}"
            );
            assert_eq!(
                FieldId::of(name.to_ascii_uppercase().as_bytes()),
                id,
                "{name}"
            );
        }
    }

    #[test]
    fn other_names_are_other() {
        for name in [
            "",
            "X",
            "Hosts",
            "Hos",
            "HosT ",
            "X-Real-Ip2",
            "Content_Length",
            "Content\rLength",
            "h\u{4f}st",
        ] {
            let known = FieldId::ALL
                .iter()
                .any(|id| id.name().eq_ignore_ascii_case(name));
            assert_eq!(
                FieldId::of(name.as_bytes()) != FieldId::Other,
                known,
                "{name}"
            );
        }
    }
}
