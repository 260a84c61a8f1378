//! redirect-chain, redirect-to-https-late: the way from the URL that visitors type to the page.
//!
//! Source: RFC 9110 section 15.4, RFC 6797.

use engines::http::parse_decimal;
use serde_json::{Value, json};

use super::{Case, count, of_page};
use crate::client::Url;
use crate::doctor::code::{redirect_chain, redirect_to_https_late};
use crate::doctor::command::quoted;
use crate::doctor::{Finding, Severity};

/// A response that names another place.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Hop {
    pub(crate) from: Url,
    pub(crate) status: u16,
    pub(crate) to: Url,
    /// From the beginning of its connection to its head.
    pub(crate) took_ms: f64,
    /// Round trips of the connection and of the request.
    pub(crate) round_trips: u32,
}

/// Why redirects were not followed further.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Stop {
    /// A place on the way comes again.
    Circle,
    /// The last place does not answer, with the failure in words.
    Unreachable(String),
    /// There are more than [`HOPS_MAX`].
    TooMany,
}

impl Stop {
    const fn words(&self) -> &'static str {
        match self {
            Self::Circle => "they form a loop",
            Self::Unreachable(_) => "the last URL cannot be reached",
            Self::TooMany => "more than a client should follow",
        }
    }
}

/// All redirects on the way.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Figures {
    pub(crate) url: String,
    pub(crate) hops: Vec<Hop>,
    /// The round trip of visitors; it may be longer than in this measurement.
    pub(crate) round_trip_ms: f64,
    /// Why the way was not followed further; `None` at the page.
    pub(crate) stopped: Option<Stop>,
    /// Whether a response on the way set a cookie, which the doctor does not send back.
    pub(crate) sets_cookies: bool,
    /// `Strict-Transport-Security` of the first response by https on the way, if there was such a response.
    pub(crate) strict: Option<Option<String>>,
}

impl Figures {
    /// Redirects beyond the one that may be needed; all of them if no page is reached.
    fn needless(&self) -> &[Hop] {
        let needed = usize::from(self.stopped.is_none());
        self.hops.get(needed..).unwrap_or_default()
    }

    /// Milliseconds that a visitor loses by a redirect.
    fn lost_ms(&self, hop: &Hop) -> f64 {
        let trips_ms = f64::from(hop.round_trips) * self.round_trip_ms;
        hop.took_ms.max(trips_ms)
    }

    pub(crate) fn measured(&self) -> Value {
        let hop = |hop: &Hop| {
            json!({
                "from": hop.from.to_string(),
                "status": hop.status,
                "to": hop.to.to_string(),
                "took_ms": hop.took_ms,
                "round_trips": hop.round_trips,
            })
        };
        json!({
            "hops": self.hops.iter().map(hop).collect::<Vec<_>>(),
            "stopped": self.stopped.as_ref().map(Stop::words),
            "failure": match &self.stopped {
                Some(Stop::Unreachable(why)) => Some(why),
                _ => None,
            },
            "sets_cookies": self.sets_cookies,
            "strict_transport_security": self.strict,
        })
    }
}

/// redirect-chain: one redirect may be needed, from http to https or to the name of the site. Warned of from the second on, bad from
/// the third on, and bad if the page is never reached, also by the first.
pub(crate) fn judge_chain(figures: &Figures) -> Option<Finding> {
    let needless = figures.needless();
    let (first, last) = (figures.hops.first()?, figures.hops.last()?);
    let redirects = count(figures.hops.len(), "redirect");
    let severity = match (&figures.stopped, needless.len()) {
        (None, 0) => return None,
        (None, 1) => Severity::Warn,
        // A client that keeps cookies may get further.
        (Some(Stop::Circle), _) if figures.sets_cookies => Severity::Warn,
        _ => Severity::Bad,
    };
    let url = quoted(&figures.url);
    let clients = match severity {
        Severity::Warn if figures.stopped.is_some() => " (for a client that sends no cookies)",
        _ => "",
    };
    let place = word(&last.to);
    let text = match &figures.stopped {
        None => redirect_chain::reached(redirects, place, url),
        Some(Stop::TooMany) => {
            redirect_chain::too_many(redirects, Stop::TooMany.words(), place, url)
        }
        Some(Stop::Circle) if figures.hops.len() == 1 && first.from == first.to => {
            redirect_chain::itself(&first.from, clients, url)
        }
        Some(Stop::Circle) => redirect_chain::circle(redirects, Stop::Circle.words(), clients, url),
        Some(Stop::Unreachable(why)) => redirect_chain::unreachable(redirects, &last.to, why, url),
    };
    let lost_ms = needless.iter().map(|hop| figures.lost_ms(hop)).sum();
    let trips: u32 = needless.iter().map(|hop| hop.round_trips).sum();
    let found = Finding::of(text, severity).costs(lost_ms, f64::from(trips));
    Some(found.proof("redirects", figures.measured()))
}

/// redirect-chain in a page. All redirects of the page are one case.
pub(crate) fn judge_page(cases: Vec<Case>) -> Option<Finding> {
    let hops = cases.first()?.size;
    let severity = match hops > REDIRECTS_MIN as f64 {
        true => Severity::Bad,
        false => Severity::Warn,
    };
    let is_chain = |one: &Case| one.size >= REDIRECTS_MIN as f64;
    of_page(cases, is_chain, severity, |_, worst_ms| {
        redirect_chain::page(count(hops as usize, "redirect"), worst_ms)
    })
}

/// redirect-to-https-late: warned of, since each visit that begins by http loses a connection and a request.
pub(crate) fn judge_https(figures: &Figures) -> Option<Finding> {
    let hop = figures
        .hops
        .iter()
        .find(|hop| !hop.from.tls && hop.to.tls)?;
    // `None` if the https URL was not reached: no verdict.
    let value = figures.strict.as_ref()?.as_deref();
    let age = value.and_then(max_age_s);
    let url = quoted(&hop.to.to_string());
    let text = match (value, age) {
        (_, Some(age)) if age >= MAX_AGE_MIN_S => return None,
        (None, _) => redirect_to_https_late::no_field(url),
        (Some(_), None) => redirect_to_https_late::no_age(url),
        (Some(_), Some(age)) => redirect_to_https_late::short_age(age, url),
    };
    let found = Finding::of(text, Severity::Warn);
    let found = found.costs(figures.lost_ms(hop), f64::from(hop.round_trips));
    Some(found.proof("redirects", figures.measured()))
}

/// The number of `max-age` (RFC 6797 section 6.1.1).
fn max_age_s(value: &str) -> Option<u64> {
    let mut parts = value.split(';').filter_map(|part| part.split_once('='));
    let (_, number) = parts.find(|(name, _)| name.trim().eq_ignore_ascii_case("max-age"))?;
    parse_decimal(number.trim().trim_matches('"').as_bytes())
}

/// Returns a URL as a word of nginx.conf, or `...` if the server put quotes, braces or variables into it.
fn word(url: &Url) -> String {
    let text = url.to_string();
    let plain = |c: char| c.is_ascii_alphanumeric() || "-._~:/?#[]@!&()*+,=%".contains(c);
    match text.chars().all(plain) {
        true => text,
        false => "...".to_owned(),
    }
}

/// One redirect may be necessary, a second one is not.
pub(crate) const REDIRECTS_MIN: usize = 2;

/// With less than a day, even daily visitors are redirected each time.
const MAX_AGE_MIN_S: u64 = 86_400;

#[cfg(test)]
mod tests {
    use super::*;

    fn url(text: &str) -> Url {
        Url::parse(text).expect("a URL")
    }

    fn figures(urls: &[&str], strict: Option<Option<&str>>) -> Figures {
        let hop = |pair: &[&str]| Hop {
            from: url(pair[0]),
            status: 301,
            to: url(pair[1]),
            took_ms: 20.0,
            round_trips: 2,
        };
        Figures {
            url: urls.first().copied().unwrap_or_default().to_owned(),
            hops: urls.windows(2).map(hop).collect(),
            round_trip_ms: 0.0,
            stopped: None,
            sets_cookies: false,
            strict: strict.map(|value| value.map(str::to_owned)),
        }
    }

    #[test]
    fn one_redirect_is_not_found_and_two_are() {
        assert_eq!(judge_chain(&figures(&["http://h/"], None)), None);
        assert_eq!(
            judge_chain(&figures(&["http://h/", "http://h/a"], None)),
            None
        );
        let found = judge_chain(&figures(&["http://h/", "http://h/a", "http://h/b"], None));
        let found = found.expect("there are two");
        assert_eq!((found.severity, found.lost_ms), (Severity::Warn, 20.0));
        assert_eq!(found.lost_round_trips, 2.0);
        let four = ["http://h/", "http://h/a", "http://h/b", "http://h/c{"];
        let found = judge_chain(&figures(&four, None)).expect("there are three");
        assert_eq!(
            (found.severity, found.lost_round_trips),
            (Severity::Bad, 4.0)
        );
        assert!(
            found.fixes[0].ends_with("return 301 ...;"),
            "{:?}",
            found.fixes
        );
    }

    #[test]
    fn circle_is_bad() {
        let mut circle = figures(&["http://h/", "http://h/a", "http://h/"], None);
        circle.stopped = Some(Stop::Circle);
        let found = judge_chain(&circle).expect("it is one");
        assert_eq!(found.severity, Severity::Bad);
        assert!(!found.fixes[0].contains("return 301"), "it would stay one");
        circle.sets_cookies = true;
        let found = judge_chain(&circle).expect("it is one without cookies");
        assert_eq!(found.severity, Severity::Warn);
        assert!(found.title.ends_with("no cookies)"), "{}", found.title);
    }

    #[test]
    fn first_redirect_is_bad_if_it_reaches_no_page() {
        let mut itself = figures(&["http://h/", "http://h/"], None);
        assert_eq!(judge_chain(&itself), None, "one redirect to a page");
        itself.stopped = Some(Stop::Circle);
        let found = judge_chain(&itself).expect("it is a circle");
        assert_eq!(found.severity, Severity::Bad);
        assert_eq!(found.title, "A redirect leads to itself: http://h/");
        assert_eq!((found.lost_ms, found.lost_round_trips), (20.0, 2.0));
        let mut gone = figures(&["http://h/", "http://i/"], None);
        gone.stopped = Some(Stop::Unreachable("refused".to_owned()));
        let found = judge_chain(&gone).expect("it leads nowhere");
        assert_eq!(found.severity, Severity::Bad);
        let title = "1 redirect to a URL that cannot be reached: http://i/: refused";
        assert_eq!(found.title, title);
    }

    #[test]
    fn redirect_to_https_is_found_unless_browsers_remember_it() {
        let way = ["http://h/", "https://h/"];
        let judged = |strict| judge_https(&figures(&way, strict));
        assert!(judged(Some(Some("max-age=86400; includeSubDomains"))).is_none());
        assert!(judged(Some(Some("includeSubDomains; Max-Age=\"31536000\""))).is_none());
        let late = judged(Some(None)).expect("there is none");
        assert_eq!((late.severity, late.lost_ms), (Severity::Warn, 20.0));
        assert!(judged(Some(Some("max-age=86399"))).is_some());
        assert!(judged(Some(Some("max-age=+86400"))).is_some());
        assert!(judged(Some(Some("max-age=0"))).is_some());
        assert!(judged(Some(Some("nonsense"))).is_some());
        assert!(judged(None).is_none(), "it was not reached");
        assert!(judge_https(&figures(&["https://h/", "https://h/a"], Some(None))).is_none());
    }
}
