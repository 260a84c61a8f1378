//! redirect-chain, redirect-to-https-late: redirects are followed as a visitor's browser follows them.
//!
//! Source: RFC 9110 section 15.4, RFC 3986 section 5.

use std::time::Duration;

use crate::client::Url;
use crate::doctor::figures::ms;
use crate::doctor::judge::redirects::{Figures, Hop, Stop, judge_chain, judge_https};
use crate::doctor::{Examination, Failure, Finding, NetworkPath, Visitor};
use crate::fetch::{self, Dial, Response};

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
