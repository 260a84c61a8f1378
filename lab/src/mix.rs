//! Requests: one, or a mix that is gone through in turn; from a file or from an access log.
//!
//! Source: docs/lab.md.

use std::path::Path;

use crate::url::Url;

/// One request, ready to be handed to an engine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    /// Pseudo-fields first, then fields with names in lower case.
    pub fields: Vec<(Vec<u8>, Vec<u8>)>,
    /// The body; empty for none.
    pub body: Vec<u8>,
}

impl Request {
    /// A request to a server; `fields` are names and values that are added, or take the place of the usual ones.
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
        // RFC 9110 section 8.6: methods that have a body say so where it is empty.
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

/// The requests of a file: on each line a method and a path, or a path alone; `#` begins a comment.
///
/// # Errors
/// The file cannot be read, has no request, or a line is none.
pub fn of_file(
    file: &Path,
    server: &Url,
    fields: &[(String, String)],
    body: &[u8],
) -> Result<Vec<Request>, String> {
    let text = read(file)?;
    let mut requests = Vec::new();
    for (n, line) in text.lines().enumerate() {
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let (method, path) = match line.split_once(char::is_whitespace) {
            Some((method, path)) => (method, path.trim_start()),
            None => ("GET", line),
        };
        if !is_request(method, path) {
            let file = file.display();
            return Err(format!("{file}:{}: \"{line}\" is no request", n + 1));
        }
        let body = if has_body(method) { body } else { &[] };
        requests.push(Request::new(server, method, path, fields, body));
    }
    some(requests, file)
}

/// The requests of an access log in nginx's format `combined`, or any other with the request line in quotes: GET and HEAD in
/// their order; others, whose bodies no log has, are left out.
///
/// # Errors
/// The file cannot be read, or has no such request.
pub fn of_log(
    file: &Path,
    server: &Url,
    fields: &[(String, String)],
) -> Result<Vec<Request>, String> {
    let text = read(file)?;
    let requests = text
        .lines()
        .filter_map(|line| line.split('"').find_map(request_line))
        .map(|(method, path)| Request::new(server, method, path, fields, &[]));
    some(requests.collect(), file)
}

/// `GET /path HTTP/1.1` as method and path.
fn request_line(text: &str) -> Option<(&str, &str)> {
    let mut words = text.split(' ');
    let (method, path, version) = (words.next()?, words.next()?, words.next()?);
    let whole = version.starts_with("HTTP/") || version.starts_with("SPDY/");
    let fits = matches!(method, "GET" | "HEAD") && is_request(method, path);
    (fits && whole && words.next().is_none()).then_some((method, path))
}

fn read(file: &Path) -> Result<String, String> {
    let bytes =
        std::fs::read(file).map_err(|error| format!("cannot read {}: {error}", file.display()))?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

fn some(requests: Vec<Request>, file: &Path) -> Result<Vec<Request>, String> {
    match requests.is_empty() {
        true => Err(format!("{} has no request", file.display())),
        false => Ok(requests),
    }
}

fn is_request(method: &str, path: &str) -> bool {
    let token = |byte: u8| byte.is_ascii_alphabetic() || byte == b'-' || byte == b'_';
    let visible = |byte: u8| byte > b' ' && byte != 0x7f;
    !method.is_empty()
        && method.bytes().all(token)
        && path.starts_with('/')
        && path.bytes().all(visible)
}

/// Whether requests of a method are sent with the body that was given.
#[must_use]
pub fn has_body(method: &str) -> bool {
    matches!(method, "POST" | "PUT" | "PATCH")
}

/// Who asks.
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

    #[test]
    fn logs_give_what_can_be_asked_again() {
        let line = |text: &str| text.split('"').find_map(request_line).is_some();
        assert!(line(
            r#"1.2.3.4 - - [x] "GET /a?b HTTP/2.0" 200 5 "-" "curl""#
        ));
        assert!(!line(r#"1.2.3.4 - - [x] "POST /a HTTP/1.1" 200 5"#));
        assert!(!line(r#"1.2.3.4 - - [x] "\x16\x03" 400 5"#));
    }
}
