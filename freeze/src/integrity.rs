//! Digests of scripts and style sheets in the attribute `integrity` of pages.
//!
//! A right digest follows its file. A wrong digest is reported and left. Browsers block that file, and a repair would make a
//! changed file trusted.
//!
//! Source: W3C Subresource Integrity, sections 3.1 to 3.3.

use std::ops::Range;

use base64ct::{Base64, Encoding};
use sha2::{Digest, Sha256, Sha384, Sha512};

use super::text::Text;

/// Hash functions of digests, the weakest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Algorithm {
    /// SHA-256.
    Sha256,
    /// SHA-384.
    Sha384,
    /// SHA-512.
    Sha512,
}

impl Algorithm {
    fn of(name: &str) -> Option<Self> {
        match name {
            "sha256" => Some(Self::Sha256),
            "sha384" => Some(Self::Sha384),
            "sha512" => Some(Self::Sha512),
            _ => None,
        }
    }

    /// The digest of a content in base64, without the name of the algorithm.
    pub(super) fn digest(self, content: &[u8]) -> String {
        match self {
            Self::Sha256 => Base64::encode_string(&Sha256::digest(content)),
            Self::Sha384 => Base64::encode_string(&Sha384::digest(content)),
            Self::Sha512 => Base64::encode_string(&Sha512::digest(content)),
        }
    }
}

/// A digest of an attribute.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Stated {
    /// Its algorithm.
    pub(super) algorithm: Algorithm,
    /// Its place in the page, without the algorithm's name and without options.
    pub(super) place: Range<usize>,
    base64: String,
}

impl Stated {
    /// Whether it is this digest, which has the usual alphabet and padding.
    pub(super) fn is(&self, digest: &str) -> bool {
        self.base64 == digest.trim_end_matches('=')
    }
}

/// The digests of an attribute, which is at `place` of a page. Words of unknown algorithms, which browsers ignore, are left out.
pub(super) fn stated(page: &[u8], place: Range<usize>) -> Vec<Stated> {
    let page = Text::plain(page, 0);
    let value = page.html(place.start, place.end);
    let bytes = value.bytes();
    let mut found = Vec::new();
    let mut from = 0;
    while from < bytes.len() {
        let is_space = |byte: &&u8| byte.is_ascii_whitespace();
        from += bytes[from..].iter().take_while(is_space).count();
        let length = bytes[from..].iter().take_while(|byte| !is_space(byte));
        let end = from + length.count();
        if let Ok(word) = std::str::from_utf8(&bytes[from..end])
            && let Some((name, digest)) = word.split_once('-')
            && let Some(algorithm) = Algorithm::of(name)
        {
            let digest = digest.split('?').next().unwrap_or_default();
            let start = from + name.len() + 1;
            found.push(Stated {
                algorithm,
                place: value.place(start)..value.place(start + digest.len()),
                base64: usual(digest),
            });
        }
        from = end;
    }
    found
}

/// Returns whether browsers block a file by these digests: no digest of the strongest algorithm matches its content.
///
/// # Errors
/// Those of `digest`, which computes the content's digest.
pub(super) fn block(
    stated: &[Stated],
    digest: impl Fn(Algorithm) -> Result<String, String>,
) -> Result<bool, String> {
    let Some(strongest) = stated.iter().map(|one| one.algorithm).max() else {
        return Ok(false);
    };
    let own = digest(strongest)?;
    let mut strong = stated.iter().filter(|one| one.algorithm == strongest);
    Ok(!strong.any(|one| one.is(&own)))
}

/// Base64 with the usual alphabet and without padding: browsers accept that of URLs, too.
fn usual(base64: &str) -> String {
    let usual = base64.chars().map(|c| match c {
        '-' => '+',
        '_' => '/',
        other => other,
    });
    usual.collect::<String>().trim_end_matches('=').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(attribute: &str) -> Vec<Stated> {
        stated(attribute.as_bytes(), 0..attribute.len())
    }

    /// The attribute with these digests of a content.
    fn attribute(content: &[u8], algorithms: &[(&str, Algorithm)]) -> String {
        let words = algorithms.iter();
        let words = words.map(|(name, one)| format!("{name}-{}", one.digest(content)));
        words.collect::<Vec<_>>().join(" ")
    }

    const ALL: [(&str, Algorithm); 3] = [
        ("sha256", Algorithm::Sha256),
        ("sha384", Algorithm::Sha384),
        ("sha512", Algorithm::Sha512),
    ];

    #[test]
    fn digests_have_places_without_names_and_options() {
        let page = "x sha256-aa+/==?ct=a  md5-x sha512-b&#43;c=";
        let found = stated(page.as_bytes(), 2..page.len());
        let parts: Vec<&str> = found.iter().map(|one| &page[one.place.clone()]).collect();
        assert_eq!(parts, ["aa+/==", "b&#43;c="]);
        assert!(found[0].is("aa+/==") && found[1].is("b+c="));
        assert!(of("").is_empty() && of("sha256 md5-x - ?").is_empty());
        assert!(of("sha256-aa-_")[0].is("aa+/"));
    }

    #[test]
    fn browsers_look_at_the_strongest_algorithm() {
        let blocked = |text: &str| block(&of(text), |one| Ok(one.digest(b"x")));
        let right = attribute(b"x", &ALL);
        let wrong = attribute(b"y", &ALL);
        assert_eq!(blocked(&right), Ok(false));
        assert_eq!(blocked(&wrong), Ok(true));
        assert_eq!(blocked(""), Ok(false), "nothing is demanded");
        assert_eq!(blocked("md5-x"), Ok(false), "the algorithm is unknown");
        assert_eq!(
            blocked(&format!("{wrong} {right}")),
            Ok(false),
            "one of two"
        );
        let weak = attribute(b"x", &ALL[..1]);
        let strong = attribute(b"y", &ALL[1..2]);
        assert_eq!(blocked(&format!("{weak} {strong}")), Ok(true));
        let (weak, strong) = (attribute(b"y", &ALL[..1]), attribute(b"x", &ALL[1..2]));
        assert_eq!(blocked(&format!("{weak} {strong}")), Ok(false));
        let failed = block(&of(&right), |_| Err("gone".to_owned()));
        assert_eq!(failed, Err("gone".to_owned()));
    }
}
