//! `modern_browser`, `ancient_browser`: distinguishes old browsers from new ones by version.
//!
//! Versions have up to four numbers, the first up to 4000, the others up to 99. Directives of a level replace those of
//! the enclosing level.
//!
//! Source: nginx documentation, `ngx_http_browser_module`.

use conf::{ConfError, Contexts, Directive};
use engines::http::FieldId;
use server_base::shared_list::SharedList;
use server_http::assemble::ConfigBuilder;
use server_http::exchange::Exchange;
use server_http::module::Module;
use server_http::settings;
use server_http::settings_set::inherited;
use server_http::user_agent;
use server_http::variables;

/// The module.
pub(crate) const MODULE: Module = Module {
    name: "browser",
    directives: &[PLAIN, ROWS],
    settings: &[<BrowserLoc as server_http::settings_set::Conf>::def],
    defaults: variables! {
        "modern_browser": "value of modern_browser_value if the browser is modern"
            => |x, _, _, out| show(x, out, Age::Modern);
        "ancient_browser": "value of ancient_browser_value if the browser is ancient"
            => |x, _, _, out| show(x, out, Age::Ancient);
        "msie": "1 if the browser is Internet Explorer" => |x, _, _, out| {
            let agent = x.head.field(FieldId::UserAgent);
            if let Some(user_agent::Browser::Msie { .. }) = agent.map(user_agent::Browser::of) {
                out.push(b'1');
            }
            true
        };
    },
    ..Module::EMPTY
};

const HSL: Contexts = Contexts::HTTP_SERVER_LOCATION;

settings! {
    /// Settings of the module.
    pub(crate) struct BrowserLoc: Location / PLAIN {}
    extra {
        /// `modern_browser`.
        modern: Vec<Modern>,
        /// `modern_browser unlisted`.
        unlisted: bool,
        /// `ancient_browser`.
        ancient: SharedList<Vec<u8>>,
        /// `ancient_browser netscape4`.
        netscape4: bool,
        /// `modern_browser_value`.
        modern_value: Option<Vec<u8>> = inherited,
        /// `ancient_browser_value`.
        ancient_value: Option<Vec<u8>> = inherited
    }
    merge inherit;
}

fn inherit(own: &mut BrowserLoc, parent: Option<&BrowserLoc>) {
    // Browsers that pretend to be others come first.
    own.modern.sort_by_key(|modern| modern.kind);
    if let Some(first) = own.modern.first()
        && first.kind != BrowserKind::Opera
    {
        // Opera pretends to be Internet Explorer, so without an entry of its own no version of it is modern.
        let opera = Modern {
            kind: BrowserKind::Opera,
            version: u64::MAX,
        };
        own.modern.insert(0, opera);
    }
    let Some(parent) = parent else { return };
    if own.modern.is_empty() && !own.unlisted {
        own.modern.clone_from(&parent.modern);
        own.unlisted = parent.unlisted;
    }
    if own.ancient.is_empty() && !own.netscape4 {
        own.ancient.clone_from(&parent.ancient);
        own.netscape4 = parent.netscape4;
    }
}

/// One `modern_browser`: the version from which a browser is modern.
#[derive(Clone, Copy)]
pub(crate) struct Modern {
    kind: BrowserKind,
    version: u64,
}

/// The browsers that can be listed, in the order in which they are looked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum BrowserKind {
    Opera,
    Msie,
    Gecko,
    Safari,
    Konqueror,
}

impl BrowserKind {
    fn parse(name: &str) -> Option<Self> {
        Some(match name.to_ascii_lowercase().as_str() {
            "opera" => Self::Opera,
            "msie" => Self::Msie,
            "gecko" => Self::Gecko,
            "safari" => Self::Safari,
            "konqueror" => Self::Konqueror,
            _ => return None,
        })
    }

    /// Returns the prefix of `User-Agent`, the name of the browser in it, and the text from that name to the version.
    fn form(self) -> (&'static str, &'static str, &'static str) {
        match self {
            Self::Opera => ("", "Opera", "Opera "),
            Self::Msie => ("Mozilla/4.0 (compatible; ", "MSIE ", "MSIE "),
            Self::Gecko => ("Mozilla/5.0 (", "rv:", "rv:"),
            Self::Safari => ("Mozilla/5.0 (", "Safari/", "Safari/"),
            Self::Konqueror => ("Mozilla/5.0 (compatible; ", "Konqueror/", "Konqueror/"),
        }
    }

    /// Returns the text from the version on; `None` for another browser.
    fn version_in(self, agent: &[u8]) -> Option<&[u8]> {
        let (before, word, to_version) = self.form();
        let rest = agent.get(before.len()..)?;
        let at = memmem(rest, word.as_bytes())?;
        rest.get(at + to_version.len()..)
            .filter(|rest| !rest.is_empty())
    }
}

fn memmem(text: &[u8], word: &[u8]) -> Option<usize> {
    text.windows(word.len()).position(|window| window == word)
}

conf::directives! {
    const ROWS: ConfigBuilder;

    /// The version from which a browser is modern.
    directive "modern_browser": HSL, TAKE12, "", "browser version | unlisted" => modern_browser;

    /// The value of $modern_browser.
    directive "modern_browser_value": HSL, TAKE1, "1", "string" => |b, d| {
        b.conf_mut::<BrowserLoc>().modern_value = Some(d.arg(0).to_vec());
        Ok(())
    };

    /// A text in the User-Agent of an ancient browser.
    directive "ancient_browser": HSL, ONE_MORE, "", "string ..." => |b, d| {
        let conf = b.conf_mut::<BrowserLoc>();
        for word in &d.args {
            match word.text.as_slice() {
                b"netscape4" => conf.netscape4 = true,
                text => conf.ancient.push(text.to_vec()),
            }
        }
        Ok(())
    };

    /// The value of $ancient_browser.
    directive "ancient_browser_value": HSL, TAKE1, "1", "string" => |b, d| {
        b.conf_mut::<BrowserLoc>().ancient_value = Some(d.arg(0).to_vec());
        Ok(())
    };
}

fn modern_browser(b: &mut ConfigBuilder, d: &Directive) -> Result<(), ConfError> {
    let [name, written] = d.args.as_slice() else {
        if d.arg(0) != b"unlisted" {
            return Err(ConfError::parameter(d, d.word(0)));
        }
        b.conf_mut::<BrowserLoc>().unlisted = true;
        return Ok(());
    };
    let kind = BrowserKind::parse(name.as_str()).ok_or_else(|| {
        let text = format!("unknown browser name \"{}\"", name.as_str());
        ConfError::word(d, name, text)
    })?;
    let version = Version::parse(&written.text).ok_or_else(|| {
        let text = format!("invalid browser version \"{}\"", written.as_str());
        ConfError::word(d, written, text)
    })?;
    b.conf_mut::<BrowserLoc>()
        .modern
        .push(Modern { kind, version });
    Ok(())
}

/// Weights of the parts of a version: two decimal digits for each part after the first.
struct Version {
    /// Sum of the complete numbers.
    sum: u64,
    /// The number being parsed, and its weight in the version.
    number: u64,
    scale: u64,
}

impl Version {
    const ZERO: Self = Self {
        sum: 0,
        number: 0,
        scale: 1_000_000,
    };

    fn parse(text: &[u8]) -> Option<u64> {
        let mut version = Self::ZERO;
        text.iter()
            .all(|byte| version.take(*byte))
            .then(|| version.value())
    }

    /// Processes a digit or a dot; false for any other byte.
    fn take(&mut self, byte: u8) -> bool {
        match byte {
            b'0'..=b'9' => {
                let digit = u64::from(byte - b'0');
                self.number = self.number.saturating_mul(10).saturating_add(digit);
            }
            b'.' => {
                self.sum = self.value();
                self.number = 0;
                self.scale /= 100;
            }
            _ => return false,
        }
        true
    }

    fn value(&self) -> u64 {
        self.sum
            .saturating_add(self.number.saturating_mul(self.scale))
    }
}

/// The classes of browsers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Age {
    Modern,
    Ancient,
}

impl BrowserLoc {
    fn age(&self, agent: Option<&[u8]>) -> Age {
        let unlisted = if self.unlisted {
            Age::Modern
        } else {
            Age::Ancient
        };
        let Some(agent) = agent else {
            return unlisted;
        };
        let listed = self.modern.iter().find_map(|modern| {
            let text = modern.kind.version_in(agent)?;
            Some(age_of(text, modern.version))
        });
        if let Some(age) = listed {
            return age;
        }
        if !self.modern.is_empty() && !self.unlisted {
            return Age::Ancient;
        }
        let ancient = |word: &Vec<u8>| word.is_empty() || memmem(agent, word).is_some();
        if (self.netscape4 && is_netscape4(agent)) || self.ancient.iter().any(ancient) {
            return Age::Ancient;
        }
        unlisted
    }
}

/// Compares the version at the beginning of a text with the first modern one.
fn age_of(text: &[u8], modern: u64) -> Age {
    let mut version = Version::ZERO;
    for byte in text {
        if !version.take(*byte) {
            break;
        }
    }
    if version.value() >= modern {
        Age::Modern
    } else {
        Age::Ancient
    }
}

fn is_netscape4(agent: &[u8]) -> bool {
    agent.len() > "Mozilla/4.72 ".len()
        && matches!(agent.strip_prefix(b"Mozilla/"), Some([b'1'..=b'4', ..]))
}

fn show(x: &mut Exchange, out: &mut Vec<u8>, age: Age) -> bool {
    let conf: &BrowserLoc = x.route.loc();
    if conf.age(x.head.field(FieldId::UserAgent)) == age {
        let value = match age {
            Age::Modern => &conf.modern_value,
            Age::Ancient => &conf.ancient_value,
        };
        out.extend_from_slice(value.as_deref().unwrap_or(b"1"));
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    fn conf(modern: &[(&str, &str)]) -> BrowserLoc {
        let mut conf = BrowserLoc::default();
        for (name, version) in modern {
            conf.modern.push(Modern {
                kind: BrowserKind::parse(name).expect("a known browser"),
                version: Version::parse(version.as_bytes()).expect("a version"),
            });
        }
        inherit(&mut conf, None);
        conf
    }

    #[test]
    fn versions_are_compared_number_by_number() {
        let version = |text: &str| Version::parse(text.as_bytes());
        assert_eq!(version("5"), version("5.0.0.0"));
        assert!(version("5.5") < version("5.10"));
        assert!(version("4000.99.99.99") < version("4001"));
        assert_eq!(version("1.2.3.4"), Some(1_020_304));
        assert_eq!(version("5.x"), None);
        assert_eq!(version("99999999999999999999999"), Some(u64::MAX));
    }

    #[test]
    fn listed_browsers_are_modern_from_their_version_on() {
        let conf = conf(&[
            ("msie", "5.5"),
            ("gecko", "1.0.0"),
            ("opera", "9.0"),
            ("safari", "413"),
            ("konqueror", "3.0"),
        ]);
        for (agent, age) in [
            (
                "Mozilla/4.0 (compatible; MSIE 5.5; Windows NT 5.1)",
                Age::Modern,
            ),
            (
                "Mozilla/4.0 (compatible; MSIE 5.4; Windows NT 5.1)",
                Age::Ancient,
            ),
            (
                "Mozilla/4.0 (compatible; MSIE 6.0; Windows NT 5.0; en) Opera 8.0",
                Age::Ancient,
            ),
            ("Opera/9.01 (X11; FreeBSD 6 i386; U; en)", Age::Modern),
            (
                "Mozilla/5.0 (X11; U; Linux i686; en-US; rv:1.0.0) Gecko/20020610",
                Age::Modern,
            ),
            (
                "Mozilla/5.0 (X11; U; Linux i686; en-US; rv:0.9) Gecko/20020610",
                Age::Ancient,
            ),
            (
                "Mozilla/5.0 (Macintosh; PPC) AppleWebKit/418 (KHTML, like Gecko) Safari/417.9.3",
                Age::Modern,
            ),
            (
                "Mozilla/5.0 (compatible; Konqueror/2.2; Linux)",
                Age::Ancient,
            ),
            (
                "Mozilla/5.0 (compatible; Konqueror/3.4; Linux)",
                Age::Modern,
            ),
            ("curl/8.0", Age::Ancient),
            ("Opera ", Age::Ancient),
            ("", Age::Ancient),
        ] {
            assert_eq!(conf.age(Some(agent.as_bytes())), age, "{agent}");
        }
        assert_eq!(conf.age(None), Age::Ancient);
    }

    #[test]
    fn opera_that_is_not_listed_is_no_internet_explorer() {
        let conf = conf(&[("msie", "5.5")]);
        let agent = b"Mozilla/4.0 (compatible; MSIE 6.0; Windows NT 5.0; en) Opera 99.0";
        assert_eq!(conf.age(Some(agent)), Age::Ancient);
    }

    #[test]
    fn others_are_what_is_said_of_them() {
        let mut conf = conf(&[("msie", "5.5")]);
        conf.unlisted = true;
        conf.ancient.push(b"Lynx".to_vec());
        conf.netscape4 = true;
        for (agent, age) in [
            ("Lynx/2.8", Age::Ancient),
            ("Mozilla/4.72 [en]", Age::Ancient),
            ("Mozilla/4.72", Age::Modern),
            ("Mozilla/0.72 [en] ", Age::Modern),
            ("Mozilla/5.0 (X11)", Age::Modern),
        ] {
            assert_eq!(conf.age(Some(agent.as_bytes())), age, "{agent}");
        }
        assert_eq!(conf.age(None), Age::Modern);
    }
}
