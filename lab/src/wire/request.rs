//! Requests as browsers send them for each kind of resource.

use crate::client::{Protocol, Request, Url};
use crate::page::Kind;

/// The request of a resource.
pub(super) fn request(url: &Url, kind: Kind, protocol: Protocol) -> Request {
    let mut fields = vec![
        ("user-agent", USER_AGENT),
        ("accept", accept(kind)),
        ("accept-encoding", "gzip, deflate, br, zstd"),
    ];
    if protocol == Protocol::H2 {
        fields.push(("priority", urgency(kind)));
    }
    let own = |(name, value): (&str, &str)| (name.to_owned(), value.to_owned());
    let fields: Vec<(String, String)> = fields.into_iter().map(own).collect();
    Request::new(url, "GET", &url.path, &fields, &[])
}

/// Returns the fields of a request for a report, without pseudo fields other than the host.
pub(super) fn request_fields(request: &Request) -> Vec<(String, String)> {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let fields = request
        .fields
        .iter()
        .filter_map(|(name, value)| match &name[..] {
            b":authority" => Some(("host".to_owned(), text(value))),
            [b':', ..] => None,
            name => Some((text(name), text(value))),
        });
    fields.collect()
}

fn accept(kind: Kind) -> &'static str {
    match kind {
        Kind::Document => "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8",
        Kind::Stylesheet => "text/css,*/*;q=0.1",
        Kind::Image => "image/avif,image/webp,image/*,*/*;q=0.8",
        _ => "*/*",
    }
}

/// The urgency of RFC 9218, as Chromium chooses it.
fn urgency(kind: Kind) -> &'static str {
    match kind {
        Kind::Document => "u=0, i",
        Kind::Stylesheet => "u=0",
        Kind::Script | Kind::Fetch | Kind::Font => "u=1",
        Kind::Image | Kind::Media | Kind::Other => "u=2, i",
    }
}

/// Returns the priority of waiting resources: lower ones are requested first.
pub(super) fn rank(kind: Kind) -> u8 {
    match kind {
        Kind::Document => 0,
        Kind::Stylesheet => 1,
        Kind::Script => 2,
        Kind::Font => 3,
        Kind::Fetch => 4,
        Kind::Image => 5,
        Kind::Media | Kind::Other => 6,
    }
}

/// The field `User-Agent`.
const USER_AGENT: &str = concat!("firstbyte-waterfall/", env!("CARGO_PKG_VERSION"));

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_are_those_of_their_kind_and_protocol() {
        let url = Url::parse("https://h/a").expect("a URL");
        let value = |kind, protocol, name: &str| {
            let fields = request_fields(&request(&url, kind, protocol));
            let mut found = fields.iter().filter(|(other, _)| other == name);
            let first = found.next().map(|(_, value)| value.clone());
            assert!(found.next().is_none(), "{name} once");
            first
        };
        let image = |name| value(Kind::Image, Protocol::H2, name);
        assert_eq!(image("host").as_deref(), Some("h"));
        assert_eq!(image("priority").as_deref(), Some("u=2, i"));
        assert_eq!(image("user-agent").as_deref(), Some(USER_AGENT));
        assert_eq!(value(Kind::Image, Protocol::Spdy, "priority"), None);
        let script = value(Kind::Script, Protocol::H1, "accept");
        assert_eq!(script.as_deref(), Some("*/*"));
    }
}
