//! Bodies of a site: those of the plan's URLs and of the page's resources.

use super::examine::{Body, Examination};
use super::failure::Failure;
use super::network::NetworkPath;
use crate::client::Url;
use crate::wire;

impl Examination<'_> {
    /// Returns the bodies of the plan's URLs and of the page's resources on the same server. The first call requests them.
    ///
    /// # Errors
    /// Interrupted, or no connection is established.
    pub fn site(&mut self) -> Result<Vec<Body>, Failure> {
        if let Some(known) = &self.known_bodies {
            return Ok(known.clone());
        }
        let found = look(self)?;
        Ok(self.known_bodies.insert(found).clone())
    }
}

/// Requests each URL with gzip and without. Omits URLs without a 200 response, and all URLs after the end of the budget.
///
/// # Errors
/// Interrupted.
fn look(x: &Examination<'_>) -> Result<Vec<Body>, Failure> {
    let page = &x.first.response;
    let is_html = page
        .field("content-type")
        .is_some_and(|kind| kind.starts_with("text/html"));
    let named = match is_html {
        true => wire::resources(&page.body, &x.plan.url),
        false => Vec::new(),
    };
    let urls = first_of_server(x.plan.urls().cloned().chain(named), &x.plan.url);
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
                    // One failed URL does not affect the others.
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
                    sent_bytes: gzip.body_bytes,
                    fields: gzip.fields.clone(),
                });
            }
        }
        Ok(bodies)
    })?;
    found
}

/// The first URLs of a server, each once.
fn first_of_server(urls: impl Iterator<Item = Url>, server: &Url) -> Vec<Url> {
    let mut first = Vec::new();
    for url in urls.filter(|url| url.same_server(server)) {
        if first.len() < URLS_MAX && !first.contains(&url) {
            first.push(url);
        }
    }
    first
}

/// Limit of examined URLs.
const URLS_MAX: usize = 12;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_of_two_thousand_references_has_twelve() {
        let url = |text: &str| Url::parse(text).expect("a URL");
        let named = |count: usize| {
            let own = (0..count).map(|number| url(&format!("http://h/{number}")));
            own.flat_map(|own| [url("http://other/"), own.clone(), own])
        };
        let server = url("http://h/");
        for (count, taken) in [
            (URLS_MAX, URLS_MAX),
            (URLS_MAX + 1, URLS_MAX),
            (2000, URLS_MAX),
        ] {
            let first = first_of_server(named(count), &server);
            assert_eq!(first.len(), taken);
            assert_eq!(first[taken - 1].path, format!("/{}", taken - 1));
        }
    }
}
