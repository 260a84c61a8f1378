//! poor-caching: static files of the page, with a conditional request for each.
//!
//! Source: RFC 9110 section 13.1.

use crate::doctor::judge::caching::{StaticFile, judge};
use crate::doctor::{Body, Examination, Failure, Finding, NetworkPath, Visitor};

/// Asks for each static file of the site as a client that has a copy.
pub(super) fn run(x: &mut Examination<'_>) -> Result<Vec<Finding>, Failure> {
    let site = x.site()?.into_iter();
    let mut files: Vec<(Body, StaticFile)> = site
        .filter_map(|body| {
            let url = body.url.to_string();
            let mime_type = body.field("content-type").unwrap_or_default();
            let file = StaticFile::of(&url, mime_type, &body.fields, body.sent_bytes)?;
            Some((body, file))
        })
        .collect();
    if files.is_empty() {
        return Ok(Vec::new());
    }
    let asked = x.visit(NetworkPath::Direct, |visitor| {
        revalidate(visitor, &mut files)
    })?;
    let files: Vec<StaticFile> = files.into_iter().map(|(_, file)| file).collect();
    let measured: Vec<_> = files.iter().map(StaticFile::measured).collect();
    x.measure("static_files", measured);
    asked?;
    Ok(x.with_command(judge(&files, x.round_trip_ms())))
}

/// Records whether the server answers a conditional request with 304. If the file has changed meanwhile, it is requested again.
fn revalidate(visitor: &Visitor<'_>, files: &mut [(Body, StaticFile)]) -> Result<(), Failure> {
    let mut session = visitor.open(&visitor.dial())?;
    for (body, file) in files.iter_mut().filter(|(_, file)| file.has_validator()) {
        let validators = |name: &str| body.field(name).unwrap_or_default().to_owned();
        let mut known = (validators("etag"), validators("last-modified"));
        for _ in 0..ATTEMPTS {
            let conditions = [("if-none-match", &known.0), ("if-modified-since", &known.1)];
            let conditions = conditions.iter().filter(|(_, value)| !value.is_empty());
            let mut fields = vec![("accept-encoding", "gzip")];
            fields.extend(conditions.map(|(name, value)| (*name, value.as_str())));
            session.keep_open()?;
            let response = session.exchange(&visitor.get(&body.url, &fields))?;
            file.is_revalidated = match response.status {
                304 => Some(true),
                200 => Some(false),
                // An error proves nothing about the copy.
                _ => None,
            };
            if response.status != 200 {
                break;
            }
            let again = |name: &str| response.field(name).unwrap_or_default().to_owned();
            known = (again("etag"), again("last-modified"));
        }
    }
    Ok(())
}

/// Conditional requests for a file, at most.
const ATTEMPTS: usize = 2;
