//! redirect-chain, redirect-to-https-late: redirects are followed as a visitor's browser follows them.
//!
//! Source: RFC 9110 section 15.4, RFC 3986 section 5.

use std::time::Duration;

use crate::client::Url;
use crate::doctor::figures::ms;
use crate::doctor::judge::redirects::{Figures, Hop, Stop, judge_chain, judge_https};
use crate::doctor::{Examination, Failure, Finding, NetworkPath, Visitor};
use crate::fetch::{self, Dial, Response};

/// Follows redirects from the target. An https target with the usual port is entered by http at port 80.
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
            // Without a server at port 80, the target is the beginning.
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
        // The other checks examine the target, which is no page.
        let note = format!(
            "the target is a redirect and was examined as such; the page is {}",
            last.to
        );
        x.notes.push(note);
    }
    Ok([judge_chain(&figures), judge_https(&figures)]
        .into_iter()
        .flatten()
        .collect())
}

/// Returns the URL of visitors who type only the host's name; `None` without the usual port of https.
fn plain_form(url: &Url) -> Option<Url> {
    let usual = url.tls && url.port == 443;
    usual.then(|| Url::parse(&format!("http://{}{}", url.authority, url.path)).ok())?
}

/// Requests a URL and follows its redirects. `timeout` is for the first URL.
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

/// Sends one request on a new connection, as a redirect to another server would. Returns the response, the time since the start
/// of the connection (ms), and its round trips.
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

/// Limit of time for port 80 if the target is https.
const PLAIN_TIMEOUT: Duration = Duration::from_secs(3);

/// Resolves a `Location` against a URL; `None` unless the result is a URL of http or https.
fn target(from: &Url, location: &str) -> Option<Url> {
    let location = location.trim();
    // An empty location or a mere fragment refers to the URL itself.
    let leads = !location.is_empty() && !location.starts_with('#');
    (leads && location.len() <= LOCATION_BYTES_MAX).then(|| from.join(location).ok())?
}

/// Limit of redirects: half of the limit of browsers, which is 20.
const HOPS_MAX: usize = 10;

/// Limit of a `Location`, bytes: servers accept request lines of this length.
const LOCATION_BYTES_MAX: usize = 8192;

/// Characters of `Strict-Transport-Security` that are read.
const STRICT_CHARS: usize = 200;

#[cfg(test)]
mod tests {
    use super::*;

    fn url(text: &str) -> Url {
        Url::parse(text).expect("a URL")
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
