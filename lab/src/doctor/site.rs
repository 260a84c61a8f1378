//! The bodies of a site: those of the URLs that were given and of those that the page refers to.

use html5gum::{Token, Tokenizer};

use super::examine::{Body, Examination};
use super::failure::Failure;
use super::network::NetworkPath;
use crate::client::Url;

impl Examination<'_> {
    /// The bodies of the plan's URLs and of what the page refers to on the same server; requested when they are first asked for.
    ///
    /// # Errors
    /// Interrupted, or no connection comes about.
    pub fn site(&mut self) -> Result<Vec<Body>, Failure> {
        if let Some(known) = &self.known_bodies {
            return Ok(known.clone());
        }
        let found = look(self)?;
        Ok(self.known_bodies.insert(found).clone())
    }
}

/// Asks for each URL with gzip and without; those that are not answered by 200 are left out, and so are those after the last
/// request that may be sent.
///
/// # Errors
/// Interrupted.
fn look(x: &Examination<'_>) -> Result<Vec<Body>, Failure> {
    let mut urls: Vec<Url> = x.plan.urls().cloned().collect();
    let page = &x.first.response;
    if page
        .field("content-type")
        .is_some_and(|kind| kind.starts_with("text/html"))
    {
        urls.extend(references(&page.body, &x.plan.url));
    }
    let mut seen = Vec::new();
    urls.retain(|url| {
        url.same_server(&x.plan.url) && !seen.contains(url) && {
            seen.push(url.clone());
            true
        }
    });
    urls.truncate(URLS_MAX);
    let found: Result<Vec<Body>, Failure> = x.visit(NetworkPath::Direct, |visitor| {
        let mut bodies = Vec::new();
        let mut session = visitor.open(&visitor.dial())?;
        for url in urls {
            let mut both = Vec::new();
            for fields in [&[][..], &[("accept-encoding", "gzip")]] {
                session.keep_open()?;
                match session.exchange(&visitor.get(&url, fields)) {
                    Ok(response) => both.push(response),
                    Err(Failure::Interrupted) => return Err(Failure::Interrupted),
                    Err(Failure::BudgetSpent) => return Ok(bodies),
                    // One URL that fails does not hide the others.
                    Err(_) => {}
                }
            }
            if let [plain, gzip] = &both[..]
                && (plain.status, gzip.status) == (200, 200)
            {
                let coding = gzip.field("content-encoding");
                bodies.push(Body {
                    url,
                    bytes: plain.body_bytes,
                    is_compressed: coding.is_some_and(|coding| coding.eq_ignore_ascii_case("gzip")),
                });
            }
        }
        Ok(bodies)
    })?;
    found
}

/// The references of a page, in order.
fn references(page: &[u8], base: &Url) -> Vec<Url> {
    let mut found = Vec::new();
    for token in Tokenizer::new(page).flatten() {
        let Token::StartTag(tag) = token else {
            continue;
        };
        let name = match &tag.name[..] {
            b"img" | b"script" | b"source" => &b"src"[..],
            b"link" => &b"href"[..],
            _ => continue,
        };
        let value = tag.attributes.get(name);
        let value = value.and_then(|value| std::str::from_utf8(value).ok());
        found.extend(value.and_then(|value| resolved(value.trim(), base)));
        if found.len() >= URLS_MAX {
            break;
        }
    }
    found
}

/// A reference as a URL of the same server (RFC 3986 section 5.2, without dot segments, which servers resolve).
fn resolved(reference: &str, base: &Url) -> Option<Url> {
    let reference = reference.split('#').next().unwrap_or_default();
    if reference.is_empty() || reference.starts_with("data:") {
        return None;
    }
    let scheme = if base.tls { "https" } else { "http" };
    if let Some(rest) = reference.strip_prefix("//") {
        return Url::parse(&format!("{scheme}://{rest}")).ok();
    }
    if reference.contains("://") {
        return Url::parse(reference).ok();
    }
    let path = match reference.strip_prefix('/') {
        Some(_) => reference.to_owned(),
        None => {
            let own = base.path.split('?').next().unwrap_or_default();
            let end = own.rfind('/').map_or(0, |at| at + 1);
            format!("{}{reference}", &own[..end])
        }
    };
    Url::parse(&format!("{scheme}://{}{path}", base.authority)).ok()
}

/// URLs that are looked at, at most.
const URLS_MAX: usize = 12;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn references_are_of_the_page() {
        let base = Url::parse("https://h:8443/a/b.html?c").expect("a URL");
        let page = br#"<link href=s.css><img src='/i.png'><script src="//h:8443/x.js"></script>
            <img src="data:image/png;base64,AA"><img><a href="no"><img src="http://[bad">"#;
        let found: Vec<String> = references(page, &base)
            .iter()
            .map(ToString::to_string)
            .collect();
        assert_eq!(
            found,
            [
                "https://h:8443/a/s.css",
                "https://h:8443/i.png",
                "https://h:8443/x.js"
            ]
        );
    }

    #[test]
    fn a_page_of_two_thousand_references_has_twelve() {
        let page = "<img src=/a>".repeat(2000);
        let base = Url::parse("http://h/").expect("a URL");
        assert_eq!(references(page.as_bytes(), &base).len(), URLS_MAX);
    }
}
