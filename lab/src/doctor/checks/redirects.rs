//! redirect-chain, redirect-to-https-late: the way from the URL that visitors type to the page.
//!
//! Source: RFC 9110 section 15.4, RFC 3986 section 5, RFC 6797.

use std::time::Duration;

use engines::http::parse_decimal;
use serde_json::{Value, json};

use crate::client::Url;
use crate::doctor::command::quoted;
use crate::doctor::figures::ms;
use crate::doctor::{Code, Examination, Failure, Finding, NetworkPath, Severity, Visitor};
use crate::fetch::{self, Dial, Response};

/// A response that names another place.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Hop {
    pub(super) from: Url,
    pub(super) status: u16,
    pub(super) to: Url,
    /// From the beginning of its connection to its head.
    pub(super) took_ms: f64,
    /// Round trips of that: those that open the connection, and one of the request.
    pub(super) round_trips: u32,
}

/// Why redirects were not followed further.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Stop {
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
            Self::Circle => "they lead in a circle",
            Self::Unreachable(_) => "the last place cannot be reached",
            Self::TooMany => "there are more than a client should follow",
        }
    }
}

/// All redirects on the way.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Figures {
    pub(super) url: String,
    pub(super) hops: Vec<Hop>,
    /// The round trip of visitors, which may be longer than that of these connections.
    pub(super) round_trip_ms: f64,
    /// Why the way was not followed further; `None` at the page.
    pub(super) stopped: Option<Stop>,
    /// Whether a response on the way set a cookie, which the doctor does not send back.
    pub(super) sets_cookies: bool,
    /// `Strict-Transport-Security` of the first response by https on the way, if there was such a response.
    pub(super) strict: Option<Option<String>>,
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

    pub(super) fn measured(&self) -> Value {
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

/// Follows redirects from the target; from its http form where it is https and both have their usual ports.
pub(super) fn run(x: &mut Examination<'_>) -> Result<Vec<Finding>, Failure> {
    let url = x.plan.url.clone();
    let plain = plain_form(&url);
    let is_redirect = x.first.response.redirect().is_some();
    if plain.is_none() && !is_redirect {
        return Ok(Vec::new());
    }
    let figures = x.visit(NetworkPath::Direct, |visitor| {
        let from_plain = plain.map(|plain| follow(visitor, plain, PLAIN_TIMEOUT));
        match from_plain {
            // Nobody listens there: what is asked for is all there is.
            Some(Err(Failure::Fetch(_))) | None => follow(visitor, url, visitor.plan().timeout),
            Some(result) => result,
        }
    })??;
    let figures = Figures {
        round_trip_ms: x.round_trip_ms(),
        ..figures
    };
    x.measure("redirects", figures.measured());
    if let Some(last) = figures.hops.last().filter(|_| is_redirect) {
        // What follows looks at what was asked for, which is no page.
        let note = format!(
            "the target is a redirect, and was examined as one; the page is {}",
            last.to
        );
        x.notes.push(note);
    }
    Ok([judge_chain(&figures), judge_https(&figures)]
        .into_iter()
        .flatten()
        .collect())
}

/// The URL of visitors who type the host's name alone.
fn plain_form(url: &Url) -> Option<Url> {
    let usual = url.tls && url.port == 443;
    usual.then(|| Url::parse(&format!("http://{}{}", url.authority, url.path)).ok())?
}

/// Asks for a URL and for each place that a response names. The timeout is that of the first place.
fn follow(visitor: &Visitor<'_>, start: Url, timeout: Duration) -> Result<Figures, Failure> {
    let mut figures = Figures {
        url: start.to_string(),
        ..Figures::default()
    };
    let mut at = start;
    loop {
        // A later place may be a slow page.
        let first = figures.hops.is_empty();
        let usual = visitor.plan().timeout;
        let answer = ask(visitor, &at, if first { timeout.min(usual) } else { usual });
        let (response, took_ms, round_trips) = match answer {
            Ok(answer) => answer,
            // Of the first place there is nothing to say.
            Err(Failure::Fetch(why)) if !figures.hops.is_empty() => {
                figures.stopped = Some(Stop::Unreachable(why));
                return Ok(figures);
            }
            Err(failure) => return Err(failure),
        };
        figures.sets_cookies |= response.field("set-cookie").is_some();
        if at.tls && figures.strict.is_none() {
            let strict = response.field("strict-transport-security");
            figures.strict = Some(strict.map(|value| value.chars().take(STRICT_CHARS).collect()));
        }
        let Some(to) = response
            .redirect()
            .and_then(|location| target(&at, location))
        else {
            return Ok(figures);
        };
        let is_known = figures.hops.iter().any(|hop| hop.from == to) || to == at;
        figures.hops.push(Hop {
            from: at,
            status: response.status,
            to: to.clone(),
            took_ms,
            round_trips,
        });
        if is_known {
            figures.stopped = Some(Stop::Circle);
            return Ok(figures);
        }
        if figures.hops.len() >= HOPS_MAX {
            figures.stopped = Some(Stop::TooMany);
            return Ok(figures);
        }
        at = to;
    }
}

/// One request on a connection of its own: redirects to other servers need one each. Returns the response, the time from the
/// connection's beginning, and the round trips of all.
fn ask(
    visitor: &Visitor<'_>,
    url: &Url,
    timeout: Duration,
) -> Result<(Response, f64, u32), Failure> {
    let own = visitor.dial();
    let dial = match url.same_server(&own.url) {
        true => Dial { timeout, ..own },
        false => {
            let found = fetch::resolve(url, timeout)?;
            let mut dial = Dial::new(url, found.addresses[0], timeout);
            if let Some(tls) = &mut dial.tls {
                tls.trust = visitor.plan().trust.clone();
            }
            dial
        }
    };
    let mut session = visitor.open(&dial)?;
    let response = session.exchange(&visitor.get(url, &[]))?;
    let record = session.record();
    let of_tls = record
        .handshake
        .as_ref()
        .map_or(0, |handshake| match handshake.version {
            rustls::ProtocolVersion::TLSv1_3 => 1,
            _ => 2,
        });
    let took_ms = ms(record.opened.0, response.head);
    Ok((response, took_ms, 2 + of_tls))
}

/// How long the usual port of http is tried, where the target is https.
const PLAIN_TIMEOUT: Duration = Duration::from_secs(3);

/// redirect-chain: one redirect may be needed, from http to https or to the name of the site. Warned of from the second on, bad
/// from the third on and if the page is never reached, also by the first.
pub(super) fn judge_chain(figures: &Figures) -> Option<Finding> {
    let needless = figures.needless();
    let (first, last) = (figures.hops.first()?, figures.hops.last()?);
    let redirects = match figures.hops.len() {
        1 => "1 redirect".to_owned(),
        more => format!("{more} redirects"),
    };
    let severity = match (&figures.stopped, needless.len()) {
        (None, 0) => return None,
        (None, 1) => Severity::Warn,
        // A client that keeps cookies may get further.
        (Some(Stop::Circle), _) if figures.sets_cookies => Severity::Warn,
        _ => Severity::Bad,
    };
    let title = match &figures.stopped {
        None => format!("{redirects} lead to the page, where one is enough"),
        Some(Stop::Circle) if figures.hops.len() == 1 && first.from == first.to => {
            format!("A redirect leads to itself: {}", first.from)
        }
        Some(Stop::Unreachable(why)) => {
            format!(
                "{redirects} to a place that cannot be reached: {}: {why}",
                last.to
            )
        }
        Some(stop) => format!("{redirects} do not lead to a page: {}", stop.words()),
    };
    let title = match severity {
        Severity::Warn if figures.stopped.is_some() => {
            format!("{title} (for a client that sends no cookies)")
        }
        _ => title,
    };
    let lost_ms = needless.iter().map(|hop| figures.lost_ms(hop)).sum();
    let trips: u32 = needless.iter().map(|hop| hop.round_trips).sum();
    let test = format!(
        "curl -sIL -o /dev/null -w '%{{num_redirects}} %{{time_redirect}}\\n' {}",
        quoted(&figures.url)
    );
    Some(
        Finding::new(Code::RedirectChain, severity, title)
            .costs(lost_ms, f64::from(trips))
            .proof("redirects", figures.measured())
            .mend(mend(figures, last))
            .mend(test),
    )
}

fn mend(figures: &Figures, last: &Hop) -> String {
    match &figures.stopped {
        None | Some(Stop::TooMany) => format!(
            "nginx and firstbyte: the first redirect goes to the last place at once: return 301 {};",
            word(&last.to)
        ),
        Some(Stop::Circle) => "one place of the circle has to answer itself; a server behind a proxy that ends TLS tests \
                               $http_x_forwarded_proto, not $scheme"
            .to_owned(),
        Some(Stop::Unreachable(_)) => {
            format!("{} has to answer, or the redirect has to name another place", last.to)
        }
    }
}

/// redirect-to-https-late: warned of, since each visit that begins by http loses a connection and a request.
pub(super) fn judge_https(figures: &Figures) -> Option<Finding> {
    let hop = figures
        .hops
        .iter()
        .find(|hop| !hop.from.tls && hop.to.tls)?;
    // Of what was not reached nothing is known.
    let value = figures.strict.as_ref()?.as_deref();
    let age = value.and_then(max_age_s);
    let title = match (value, age) {
        (_, Some(age)) if age >= MAX_AGE_MIN_S => return None,
        (None, _) => "Visits by http are redirected to https each time: there is no Strict-Transport-Security".to_owned(),
        (Some(_), None) => "Visits by http are redirected to https each time: Strict-Transport-Security has no max-age".to_owned(),
        (Some(_), Some(age)) => {
            format!("Visits by http are redirected to https again after {age} s, the max-age of Strict-Transport-Security")
        }
    };
    Some(
        Finding::new(Code::RedirectToHttpsLate, Severity::Warn, title)
            .costs(figures.lost_ms(hop), f64::from(hop.round_trips))
            .proof("redirects", figures.measured())
            .mend("nginx and firstbyte, in the server of https: add_header Strict-Transport-Security \"max-age=31536000\" always;")
            .mend(format!("curl -sI {} | grep -i strict-transport-security", quoted(&hop.to.to_string()))),
    )
}

/// The number of `max-age` (RFC 6797 section 6.1.1).
fn max_age_s(value: &str) -> Option<u64> {
    let mut parts = value.split(';').filter_map(|part| part.split_once('='));
    let (_, number) = parts.find(|(name, _)| name.trim().eq_ignore_ascii_case("max-age"))?;
    parse_decimal(number.trim().trim_matches('"').as_bytes())
}

/// A URL as a word of nginx.conf, where a server may have put quotes, braces and variables into it.
fn word(url: &Url) -> String {
    let text = url.to_string();
    let plain = |c: char| c.is_ascii_alphanumeric() || "-._~:/?#[]@!&()*+,=%".contains(c);
    match text.chars().all(plain) {
        true => text,
        false => "...".to_owned(),
    }
}

/// The place that a `Location` names, seen from a URL; `None` for what is no place of HTTP.
fn target(from: &Url, location: &str) -> Option<Url> {
    let location = location.trim();
    // What is empty, or a fragment alone, leads to where it is.
    let leads = !location.is_empty() && !location.starts_with('#');
    (leads && location.len() <= LOCATION_BYTES_MAX).then(|| from.join(location).ok())?
}

/// Redirects that are followed: half of what browsers follow, which is 20.
const HOPS_MAX: usize = 10;

/// Bytes of a `Location` that is followed: as much as servers take as a request's line.
const LOCATION_BYTES_MAX: usize = 8192;

/// Characters of `Strict-Transport-Security` that are read.
const STRICT_CHARS: usize = 200;

/// With less than a day, even who comes daily is redirected each time.
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
            found.mend[0].ends_with("return 301 ...;"),
            "{:?}",
            found.mend
        );
    }

    #[test]
    fn circle_is_bad() {
        let mut circle = figures(&["http://h/", "http://h/a", "http://h/"], None);
        circle.stopped = Some(Stop::Circle);
        let found = judge_chain(&circle).expect("it is one");
        assert_eq!(found.severity, Severity::Bad);
        assert!(!found.mend[0].contains("return 301"), "it would stay one");
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
        let title = "1 redirect to a place that cannot be reached: http://i/: refused";
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

    #[test]
    fn places_are_found_as_browsers_find_them() {
        let from = url("https://h:81/a/b?c");
        for (location, expected) in [
            ("http://other/x", "http://other/x"),
            ("//other/x", "https://other/x"),
            ("/x?y", "https://h:81/x?y"),
            ("x", "https://h:81/a/x"),
            ("?z", "https://h:81/a/b?z"),
            (" /trimmed ", "https://h:81/trimmed"),
            ("../x", "https://h:81/x"),
            ("/a\u{7}b", "https://h:81/a%07b"),
            ("/to?url=http://x/", "https://h:81/to?url=http://x/"),
        ] {
            let found = target(&from, location).map(|url| url.to_string());
            assert_eq!(found.as_deref(), Some(expected), "{location}");
        }
        let long = |bytes: usize| format!("/{}", "x".repeat(bytes - 1));
        assert!(target(&from, &long(LOCATION_BYTES_MAX)).is_some());
        assert_eq!(target(&from, &long(LOCATION_BYTES_MAX + 1)), None);
        for none in ["", "#a", "ftp://h/", "http://u@h/"] {
            assert_eq!(target(&from, none), None, "{none}");
        }
    }
}
