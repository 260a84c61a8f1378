//! Hosts of the browser's vendor, which the browser itself looks up.
//!
//! The browser's services (updates, field trials, push messages, accounts, suggestions) change with each version, and a
//! list of switches is never complete. Their hosts are all below a few domains. The browser's resolver has no address
//! for these domains, so no service of any version sends anything.
//!
//! Pages use some of these hosts, too. If a request of the page fails for this reason, its host is added to
//! [`PageHosts`] and the visit begins again. So a host of the vendor is reached only if the page uses it.

use crate::client::Url;
use crate::page::Resource;

/// Hosts of the vendor that a page uses.
#[derive(Debug, Default)]
pub(super) struct PageHosts {
    hosts: Vec<String>,
}

impl PageHosts {
    /// The page's own host, if it is one of the vendor's.
    pub(super) fn of(url: &str) -> Self {
        let mut hosts = Self::default();
        hosts.add(url);
        hosts
    }

    /// The value of `--host-resolver-rules`: a rule `MAP` for each domain, and `EXCLUDE` for each host of the page.
    ///
    /// Source: `net/base/host_mapping_rules.h` of Chromium.
    pub(super) fn resolver_rules(&self) -> String {
        let maps = DOMAINS
            .iter()
            .map(|domain| format!("MAP {domain} ~NOTFOUND,MAP *.{domain} ~NOTFOUND"));
        let of_pages = FOR_PAGES.iter().copied();
        let excluded = of_pages.chain(self.hosts.iter().map(String::as_str));
        let excludes = excluded.map(|host| format!("EXCLUDE {host}"));
        maps.chain(excludes).collect::<Vec<_>>().join(",")
    }

    /// Adds hosts of requests that were refused an address, and returns whether there were any.
    pub(super) fn learn(&mut self, resources: &[Resource]) -> bool {
        let before = self.hosts.len();
        for resource in resources {
            let error = resource.error.as_deref().unwrap_or_default();
            if error.contains(NO_ADDRESS) {
                self.add(&resource.url);
            }
        }
        self.hosts.len() > before
    }

    /// Adds the host of a visit that failed as a whole, from the URL before its error. Returns whether it is a new one.
    pub(super) fn learn_from_error(&mut self, error: &str) -> bool {
        let before = self.hosts.len();
        if let Some((url, why)) = error.split_once(": ")
            && why.contains(NO_ADDRESS)
        {
            self.add(url);
        }
        self.hosts.len() > before
    }

    /// A note on the hosts that were added; `None` if there are none.
    pub(super) fn note(&self) -> Option<String> {
        (!self.hosts.is_empty()).then(|| {
            format!(
                "the browser's own requests to hosts that the page uses are not blocked: {}",
                self.hosts.join(", ")
            )
        })
    }

    fn add(&mut self, url: &str) {
        let Ok(Url { host, .. }) = Url::parse(url) else {
            return;
        };
        if is_held(&host) && !self.hosts.contains(&host) && self.hosts.len() < HOSTS_MAX {
            self.hosts.push(host);
        }
    }
}

/// Whether the rules refuse an address to a host that no page was seen to use.
fn is_held(host: &str) -> bool {
    let is_below = |domain: &&str| {
        host.strip_suffix(*domain)
            .is_some_and(|rest| rest.is_empty() || rest.ends_with('.'))
    };
    DOMAINS.iter().any(is_below) && !FOR_PAGES.contains(&host)
}

/// Domains below which the browser's services are.
const DOMAINS: &[&str] = &[
    "chrome.com",
    "chromium.org",
    "dns.google",
    "ggpht.com",
    "google.com",
    "googleapis.com",
    "googleusercontent.com",
    "googlezip.net",
    "gstatic.com",
    "gvt1.com",
    "gvt2.com",
    "gvt3.com",
];
/// Hosts below them that serve pages and no service of the browser: fonts, scripts and maps need no second visit.
const FOR_PAGES: &[&str] = &[
    "ajax.googleapis.com",
    "fonts.googleapis.com",
    "fonts.gstatic.com",
    "maps.googleapis.com",
    "maps.gstatic.com",
    "storage.googleapis.com",
];

/// The browser's error of a request to a host without an address.
const NO_ADDRESS: &str = "ERR_NAME_NOT_RESOLVED";
/// The most hosts that a page may add; each may cost a visit.
const HOSTS_MAX: usize = 20;

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(url: &str) -> Resource {
        Resource {
            url: url.to_owned(),
            error: Some("net::ERR_NAME_NOT_RESOLVED".to_owned()),
            ..Resource::default()
        }
    }

    #[test]
    fn rules_hold_domains_and_all_hosts_below() {
        let rules = PageHosts::of("http://localhost/").resolver_rules();
        assert!(rules.starts_with("MAP chrome.com ~NOTFOUND,MAP *.chrome.com ~NOTFOUND,MAP "));
        assert!(
            rules.ends_with(",EXCLUDE storage.googleapis.com"),
            "{rules}"
        );
        for host in ["google.com", "www.google.com", "a.b.gvt1.com"] {
            assert!(is_held(host), "{host}");
        }
        for host in [
            "notgoogle.com",
            "google.com.example",
            "localhost",
            "fonts.gstatic.com",
        ] {
            assert!(!is_held(host), "{host}");
        }
    }

    #[test]
    fn hosts_of_the_page_are_learned_once() {
        let mut hosts = PageHosts::of("https://www.google.com/maps");
        assert!(hosts.resolver_rules().ends_with(",EXCLUDE www.google.com"));
        let seen = [
            refused("https://www.google.com/x"),
            refused("http://elsewhere.example/"),
            refused("https://apis.google.com/js/api.js"),
        ];
        assert!(hosts.learn(&seen), "a new one");
        assert!(!hosts.learn(&seen), "known");
        assert!(
            hosts
                .resolver_rules()
                .ends_with(",EXCLUDE www.google.com,EXCLUDE apis.google.com")
        );
        let note = hosts.note().expect("there are hosts");
        assert!(note.contains("www.google.com, apis.google.com"), "{note}");
        assert_eq!(PageHosts::of("http://localhost/").note(), None);
    }

    #[test]
    fn redirect_to_the_vendor_is_learned_from_the_error() {
        let mut hosts = PageHosts::default();
        assert!(!hosts.learn_from_error("http://www.google.com/: no response within 60 s"));
        assert!(!hosts.learn_from_error("interrupted"));
        let error = "http://www.google.com/: the name has no address (net::ERR_NAME_NOT_RESOLVED)";
        assert!(hosts.learn_from_error(error));
        assert!(!hosts.learn_from_error(error));
    }

    #[test]
    fn learned_hosts_have_a_limit() {
        let mut hosts = PageHosts::default();
        let some = |n: usize| refused(&format!("http://h{n}.google.com/"));
        let seen: Vec<Resource> = (0..HOSTS_MAX).map(some).collect();
        assert!(hosts.learn(&seen[1..]));
        assert!(hosts.learn(&seen), "the last one");
        assert!(!hosts.learn(&[some(HOSTS_MAX)]), "one more");
    }
}
