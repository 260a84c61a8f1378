//! State that a visit leaves for the next: sessions of TLS, and responses that are fresh.
//!
//! Source: RFC 9111 sections 3 and 4.2, RFC 9110 section 5.6.7.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use engines::http::{parse_decimal, parse_http_date};

use crate::fetch::{Response, Sessions};
use crate::page::Resource;

/// State that visits leave for the next; empty at first.
#[derive(Debug)]
pub struct Kept {
    pub(super) sessions: Sessions,
    pub(super) visits: usize,
    responses: HashMap<String, Stored>,
    /// Bytes of stored contents.
    content_bytes: usize,
}

/// A response in the cache.
#[derive(Clone, Debug)]
pub(super) struct Stored {
    /// Its request and response.
    pub(super) resource: Resource,
    /// Its decoded content, of documents and style sheets.
    pub(super) content: Arc<[u8]>,
    /// Target of a redirect.
    pub(super) redirect: Option<String>,
    until_unix_s: u64,
}

impl Default for Kept {
    fn default() -> Self {
        Self {
            sessions: Sessions::shared(),
            visits: 0,
            responses: HashMap::new(),
            content_bytes: 0,
        }
    }
}

impl Kept {
    /// The response to a GET of this URL, if it is still fresh.
    pub(super) fn fresh(&self, url: &str) -> Option<&Stored> {
        let stored = self.responses.get(url)?;
        (now_unix_s() < stored.until_unix_s).then_some(stored)
    }

    /// Stores a response if this is allowed and it has a lifetime.
    pub(super) fn store(&mut self, response: &Response, resource: &Resource, content: &[u8]) {
        let Some(fresh_s) = freshness_s(response).filter(|seconds| *seconds > 0) else {
            return;
        };
        let before = self.responses.get(&resource.url);
        let others = self.content_bytes - before.map_or(0, |stored| stored.content.len());
        let is_kept = matches!(response.status, 200 | 203 | 301 | 308 | 404 | 410);
        if !is_kept || others + content.len() > MAX_KEPT_BYTES {
            return;
        }
        self.content_bytes = others + content.len();
        let stored = Stored {
            resource: resource.clone(),
            content: content.into(),
            redirect: response.redirect().map(str::to_owned),
            until_unix_s: now_unix_s().saturating_add(fresh_s),
        };
        self.responses.insert(resource.url.clone(), stored);
    }
}

/// Returns how long a response stays fresh, seconds; `None` if it must not be stored, or has no lifetime.
fn freshness_s(response: &Response) -> Option<u64> {
    let values = |name: &'static str| {
        let fields = response.fields.iter();
        fields
            .filter(move |(other, _)| other.eq_ignore_ascii_case(name))
            .map(|(_, value)| value.as_str())
    };
    let mut max_age = None;
    for directive in values("cache-control").flat_map(|value| value.split(',')) {
        let (name, value) = directive.split_once('=').unwrap_or((directive, ""));
        match name.trim().to_ascii_lowercase().as_str() {
            "no-store" | "no-cache" => return None,
            "max-age" => max_age = parse_decimal(value.trim().trim_matches('"').as_bytes()),
            _ => {}
        }
    }
    // RFC 9111 section 4.1: such a response fits no other request.
    if values("vary").any(|value| value.split(',').any(|one| one.trim() == "*")) {
        return None;
    }
    let number = |name| {
        values(name)
            .next()
            .and_then(|value| parse_decimal(value.trim().as_bytes()))
    };
    let date = |name| {
        values(name)
            .next()
            .and_then(|value| parse_http_date(value.as_bytes()))
    };
    let lifetime = max_age.or_else(|| {
        let expires = date("expires")?;
        let made = date("date").unwrap_or_else(|| now_unix_s() as i64);
        u64::try_from(expires - made).ok()
    })?;
    Some(lifetime.saturating_sub(number("age").unwrap_or(0)))
}

pub(super) fn now_unix_s() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    now.map_or(0, |now| now.as_secs())
}

/// Most bytes of stored contents.
const MAX_KEPT_BYTES: usize = 128 << 20;

#[cfg(test)]
mod tests {
    use super::*;

    fn response(fields: &[(&str, &str)]) -> Response {
        let fields = fields
            .iter()
            .map(|(name, value)| ((*name).into(), (*value).into()));
        Response {
            status: 200,
            fields: fields.collect(),
            ..Response::default()
        }
    }

    #[test]
    fn freshness_is_what_fields_say() {
        let date = ("date", "Sun, 06 Nov 1994 08:49:37 GMT");
        let expires = ("Expires", "Sun, 06 Nov 1994 08:50:37 GMT");
        for (fields, seconds) in [
            (
                &[("Cache-Control", "public, Max-Age=60, immutable")][..],
                Some(60),
            ),
            (&[("cache-control", "max-age=60"), ("age", "45")], Some(15)),
            (&[("cache-control", "max-age=60"), ("age", "70")], Some(0)),
            (&[("cache-control", "max-age=60, no-store")], None),
            (&[("cache-control", "max-age=+60")], None),
            (
                &[
                    ("cache-control", "max-age=60"),
                    ("cache-control", "no-cache"),
                ],
                None,
            ),
            (&[("cache-control", "immutable")], None),
            (&[date, expires], Some(60)),
            (&[date, expires, ("cache-control", "max-age=5")], Some(5)),
            (&[expires], None),
            (&[("expires", "0"), date], None),
            (
                &[("cache-control", "max-age=60"), ("vary", "accept, *")],
                None,
            ),
            (&[], None),
        ] {
            assert_eq!(freshness_s(&response(fields)), seconds, "{fields:?}");
        }
    }

    #[test]
    fn only_what_is_fresh_comes_from_the_cache() {
        let mut kept = Kept::default();
        let resource = |url: &str| Resource {
            url: url.to_owned(),
            ..Resource::default()
        };
        let fresh = response(&[("cache-control", "max-age=60")]);
        kept.store(&fresh, &resource("a"), b"x");
        kept.store(&response(&[]), &resource("b"), b"x");
        let mut partial = fresh.clone();
        partial.status = 206;
        kept.store(&partial, &resource("c"), b"x");
        assert_eq!(
            kept.fresh("a").map(|stored| stored.content.to_vec()),
            Some(b"x".to_vec())
        );
        kept.store(&fresh, &resource("a"), b"xyz");
        assert_eq!(kept.content_bytes, 3, "in place of the first");
        assert!(kept.fresh("b").is_none() && kept.fresh("c").is_none());
        if let Some(stored) = kept.responses.get_mut("a") {
            stored.until_unix_s = now_unix_s();
        }
        assert!(kept.fresh("a").is_none());
    }

    #[test]
    fn no_more_is_kept_than_the_limit() {
        let mut kept = Kept {
            content_bytes: MAX_KEPT_BYTES - 1,
            ..Kept::default()
        };
        let fresh = response(&[("cache-control", "max-age=60")]);
        kept.store(
            &fresh,
            &Resource {
                url: "a".into(),
                ..Resource::default()
            },
            b"x",
        );
        kept.store(
            &fresh,
            &Resource {
                url: "b".into(),
                ..Resource::default()
            },
            b"x",
        );
        assert!(kept.fresh("a").is_some() && kept.fresh("b").is_none());
    }
}
