//! Which browser a request comes from, as far as anything here depends on it.
//!
//! Browsers name one another in `User-Agent`, so the order of the tests distinguishes them; it is nginx's. Versions
//! are compared by the module `browser`, with rules of its own.
//!
//! Source: nginx documentation, directives `keepalive_disable`, `msie_padding`, `msie_refresh`.

/// A browser.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Browser {
    /// Internet Explorer.
    Msie {
        /// Before version 7, and without the changes of Windows XP SP2 (`SV1`).
        old: bool,
    },
    /// Opera, even if it claims to be another browser.
    Opera,
    /// Firefox and its kin.
    Gecko,
    /// Chrome and those made from it.
    Chrome,
    /// Safari.
    Safari {
        /// On Mac OS X.
        mac: bool,
    },
    /// None of these.
    Other,
}

impl Browser {
    /// The browser that sends this value of `User-Agent`.
    #[must_use]
    pub fn of(agent: &[u8]) -> Self {
        let says = |word: &[u8]| memchr::memmem::find(agent, word).is_some();
        if says(b"Opera") {
            return Self::Opera;
        }
        if let Some(old) = msie(agent) {
            return Self::Msie { old };
        }
        if says(b"Gecko/") {
            Self::Gecko
        } else if says(b"Chrome/") {
            Self::Chrome
        } else if says(b"Safari/") {
            let mac = says(b"Mac OS X");
            Self::Safari { mac }
        } else {
            Self::Other
        }
    }
}

/// Whether it is an old Internet Explorer; `None` if it is none at all.
fn msie(agent: &[u8]) -> Option<bool> {
    let at = memchr::memmem::find(agent, b"MSIE ")?;
    // `MSIE 6.` and at least one byte more.
    let [_, _, _, _, _, version, dot, rest @ ..] = &agent[at..] else {
        return None;
    };
    if rest.is_empty() {
        return None;
    }
    Some(match (version, dot) {
        (b'4' | b'5', b'.') => true,
        (b'6', b'.') => memchr::memmem::find(rest, b"SV1").is_none(),
        _ => false,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn browsers_are_told_apart_though_they_name_one_another() {
        let cases: [(&str, Browser); 11] = [
            (
                "Mozilla/4.0 (compatible; MSIE 6.0; Windows NT 5.1)",
                Browser::Msie { old: true },
            ),
            (
                "Mozilla/4.0 (compatible; MSIE 6.0; Windows NT 5.1; SV1)",
                Browser::Msie { old: false },
            ),
            (
                "Mozilla/5.0 (compatible; MSIE 10.0; Windows NT 6.1)",
                Browser::Msie { old: false },
            ),
            (
                "Mozilla/4.0 (compatible; MSIE 6.0; Windows NT 5.0; en) Opera 8.0",
                Browser::Opera,
            ),
            (
                "Mozilla/5.0 (X11; U; Linux i686; rv:1.6) Gecko/20040206 Firefox/0.8",
                Browser::Gecko,
            ),
            (
                "Mozilla/5.0 (X11) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/120.0 Safari/537.36",
                Browser::Chrome,
            ),
            (
                "Mozilla/5.0 (Mac OS X 10_15) AppleWebKit/605 (KHTML, like Gecko) Safari/605",
                Browser::Safari { mac: true },
            ),
            (
                "Mozilla/5.0 (SymbianOS/9.1) AppleWebKit/413 (KHTML, like Gecko) Safari/413",
                Browser::Safari { mac: false },
            ),
            ("MSIE 5.0", Browser::Msie { old: true }),
            ("MSIE 5.", Browser::Other),
            ("curl/8", Browser::Other),
        ];
        for (agent, browser) in cases {
            assert_eq!(Browser::of(agent.as_bytes()), browser, "{agent}");
        }
    }
}
