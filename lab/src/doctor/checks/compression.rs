//! no-compression, poor-compression: the target and the URLs of `--url`, requested as browsers do.

use serde_json::Value;

use crate::doctor::code::ACCEPTED;
use crate::doctor::codings::{Coding, decoded};
use crate::doctor::judge::compression::{Figures, is_text, judge_missing, judge_poor};
use crate::doctor::{Examination, Failure, Finding, NetworkPath, Visitor};
use crate::fetch::Response;

/// Asks for the target and the further URLs as a browser does.
pub(super) fn run(x: &mut Examination<'_>) -> Result<Vec<Finding>, Failure> {
    let round_trip_ms = x.round_trip_ms();
    let all = x.visit(NetworkPath::Direct, |visitor| {
        responses(visitor, round_trip_ms)
    })??;
    let measured: Vec<Value> = all.iter().map(Figures::measured).collect();
    x.measure("compression", measured.clone());
    let worst = |judge: fn(&Figures) -> Option<Finding>| {
        let found = all
            .iter()
            .filter_map(|figures| Some((judge(figures)?, figures.sent_bytes)));
        let worst = found
            .max_by_key(|(found, bytes)| (found.severity, *bytes))?
            .0;
        // One finding covers all URLs, since one directive fixes them.
        Some(worst.proof("responses", measured.clone()))
    };
    Ok([worst(judge_missing), worst(judge_poor)]
        .into_iter()
        .flatten()
        .collect())
}

fn responses(visitor: &Visitor<'_>, round_trip_ms: f64) -> Result<Vec<Figures>, Failure> {
    let mut all = Vec::new();
    let mut session = visitor.open(&visitor.dial())?;
    for url in visitor.plan().urls().take(URLS_MAX) {
        session.keep_open()?;
        let response = session.exchange(&visitor.get(url, &[("accept-encoding", ACCEPTED)]))?;
        if response.status == 200 {
            all.push(figures(url.to_string(), &response, round_trip_ms));
        }
    }
    Ok(all)
}

fn figures(url: String, response: &Response, round_trip_ms: f64) -> Figures {
    let value = |name| {
        response
            .field(name)
            .unwrap_or_default()
            .trim()
            .to_ascii_lowercase()
    };
    let (mime_type, coding) = (value("content-type"), value("content-encoding"));
    let mime_type = mime_type
        .split(';')
        .next()
        .unwrap_or_default()
        .trim()
        .to_owned();
    // Of too large a body only a part was stored, whose compression is no measure.
    let is_there = response.body.len() as u64 == response.body_bytes;
    let plain = decoded(&response.body, &coding).filter(|_| is_there);
    let possible = match &plain {
        Some(plain) if is_text(&mime_type) => {
            let one = |coding: Coding| Some((coding, coding.bytes(plain)?));
            Coding::ALL.into_iter().filter_map(one).collect()
        }
        _ => Vec::new(),
    };
    // A type that is written into a command or a directive has no other characters (RFC 6838 section 4.2).
    let is_name = |c: char| c.is_ascii_alphanumeric() || "/+-._".contains(c);
    let mime_type = mime_type
        .chars()
        .filter(|c| is_name(*c))
        .take(NAME_CHARS_MAX)
        .collect();
    Figures {
        url,
        mime_type,
        coding: coding
            .chars()
            .filter(|c| is_name(*c))
            .take(NAME_CHARS_MAX)
            .collect(),
        sent_bytes: response.body_bytes,
        plain_bytes: plain.map(|plain| plain.len() as u64),
        possible,
        round_trip_ms,
    }
}

/// Characters of a type and of a coding that are shown.
const NAME_CHARS_MAX: usize = 127;

/// Limit of examined URLs.
const URLS_MAX: usize = 8;
