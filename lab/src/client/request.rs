//! A request in the form for engines in the client role.

use super::url::Url;

/// One request, ready to be handed to an engine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    /// Pseudo-fields first, then fields with names in lower case.
    pub fields: Vec<(Vec<u8>, Vec<u8>)>,
    /// The body; empty for none.
    pub body: Vec<u8>,
}

impl Request {
    /// Makes a request to a server; `fields` are added, or replace default fields of the same name.
    #[must_use]
    pub fn new(
        server: &Url,
        method: &str,
        path: &str,
        fields: &[(String, String)],
        body: &[u8],
    ) -> Self {
        let scheme = if server.tls { "https" } else { "http" };
        let host = fields
            .iter()
            .find(|(name, _)| name.eq_ignore_ascii_case("host"));
        let authority = host.map_or(server.authority.as_str(), |(_, value)| value);
        let mut all = vec![
            (":method", method),
            (":scheme", scheme),
            (":path", path),
            (":authority", authority),
        ];
        let given = |name: &str| {
            fields
                .iter()
                .any(|(other, _)| other.eq_ignore_ascii_case(name))
        };
        if !given("user-agent") {
            all.push(("user-agent", USER_AGENT));
        }
        let length = body.len().to_string();
        // RFC 9110 section 8.6: a method that expects a body sends `Content-Length: 0` with an empty one.
        if (!body.is_empty() || has_body(method)) && !given("content-length") {
            all.push(("content-length", &length));
        }
        let own = all
            .iter()
            .map(|(name, value)| (name.as_bytes().to_vec(), value.as_bytes().to_vec()));
        let more = fields
            .iter()
            .filter(|(name, _)| !name.eq_ignore_ascii_case("host"))
            .map(|(name, value)| (name.to_ascii_lowercase().into_bytes(), value.clone().into()));
        Self {
            fields: own.chain(more).collect(),
            body: body.to_vec(),
        }
    }
}

/// Whether requests of a method are sent with the body that was given.
#[must_use]
pub fn has_body(method: &str) -> bool {
    matches!(method, "POST" | "PUT" | "PATCH")
}

/// The field `User-Agent`.
const USER_AGENT: &str = concat!("firstbyte-bench/", env!("CARGO_PKG_VERSION"));

#[cfg(test)]
mod tests {
    use super::*;

    fn server() -> Url {
        Url::parse("https://h:81/").expect("a URL")
    }

    fn value(request: &Request, name: &str) -> Option<String> {
        let found = request
            .fields
            .iter()
            .find(|(other, _)| other == name.as_bytes());
        found.map(|(_, value)| String::from_utf8_lossy(value).into_owned())
    }

    #[test]
    fn fields_that_are_given_take_the_place_of_the_usual_ones() {
        let fields = [("User-Agent", "me"), ("Host", "other"), ("X-A", "b")];
        let fields = fields.map(|(name, value)| (name.to_owned(), value.to_owned()));
        let request = Request::new(&server(), "POST", "/p", &fields, b"abc");
        assert_eq!(value(&request, ":authority").as_deref(), Some("other"));
        assert_eq!(value(&request, ":scheme").as_deref(), Some("https"));
        assert_eq!(value(&request, "user-agent").as_deref(), Some("me"));
        assert_eq!(value(&request, "content-length").as_deref(), Some("3"));
        assert_eq!(value(&request, "x-a").as_deref(), Some("b"));
        assert!(value(&request, "host").is_none());
    }
}
