//! FB102: the client chooses which server a request is sent to.

use crate::Warn;
use crate::tree::{PASSES, Tree};
use crate::value::{Piece, ways};

pub(super) fn check(tree: &Tree, warn: &mut Warn<'_>) {
    for id in tree.http_all(&PASSES) {
        if tree.parents(id).any(|block| tree.has(block, &["internal"])) {
            continue;
        }
        let address = tree.arg(id, 0);
        if let Some(variable) = ways(tree, id, address).iter().find_map(|way| choice(way)) {
            let message = format!(
                "the client chooses the server of \"{}\": \"{variable}\" is part of the address",
                tree.name(id)
            );
            let hint =
                "list the servers and choose one with \"map\", or make the location \"internal\"";
            warn.word(id, 0, message, hint);
        }
    }
}

/// The variable in the scheme or the host of an address that may be any name.
fn choice(way: &[Piece]) -> Option<&str> {
    for (at, piece) in way.iter().enumerate() {
        match piece {
            Piece::Text(text) => {
                // The text after the scheme's slashes, or the whole text if the scheme is another piece.
                let host = text
                    .split_once("://")
                    .map_or(text.as_str(), |(_, host)| host);
                if host.contains(['/', '?', '#']) {
                    return None;
                }
            }
            Piece::Runtime(_, contents) if contents.slash => return None,
            Piece::Runtime(name, contents) => {
                let free = contents.client && contents.bytes.has(b'.');
                if free && (contents.bytes.has_any(LEAVES_HOST) || !pinned(&way[at + 1..])) {
                    return Some(name);
                }
            }
        }
    }
    None
}

/// Returns whether a literal domain follows in the host: `$name.internal`.
fn pinned(rest: &[Piece]) -> bool {
    match rest.first() {
        Some(Piece::Text(text)) => {
            let host = text.split(['/', '?', '#', ':']).next().unwrap_or_default();
            host.starts_with('.') && host.len() > 1
        }
        _ => false,
    }
}

/// Bytes that end the host in a value.
const LEAVES_HOST: &[u8] = b"/?#:@\\";

#[cfg(test)]
mod tests {
    use crate::testing;

    /// The codes about a server that can look names up.
    fn in_server(text: &str) -> Vec<&'static str> {
        testing::in_server(&format!("resolver 127.0.0.1; {text}"))
    }

    #[test]
    fn addresses_from_the_request_are_found() {
        for text in [
            "location / { proxy_pass http://$arg_host; }",
            "location / { proxy_pass $arg_url; }",
            "location / { proxy_pass $http_x_scheme://a/b; }",
            "location / { proxy_pass http://a$arg_b.example.com; }",
            "location / { fastcgi_param A 1; fastcgi_pass $http_x; }",
            "location / { proxy_pass http://$host; }",
            "location ~ ^/to/(.*)$ { proxy_pass http://$1; }",
            "location ~ ^/api(.*)$ { proxy_pass http://backend$1; }",
            "location ~ ^/(.*)/(.*)$ { set $h $1; set $p $2; proxy_pass http://$h/$p; }",
        ] {
            assert_eq!(in_server(text), ["FB102"], "{text}");
        }
    }

    #[test]
    fn addresses_that_are_written_down_are_not() {
        for text in [
            "location / { proxy_pass http://a$request_uri; }",
            "location / { internal; proxy_pass http://$arg_host; }",
            "location / { set $up http://app:80; proxy_pass $up$request_uri; }",
            "location ~ ^/to/(.*)$ { proxy_pass http://a/$1; }",
            "location ~ ^/api(/.*)$ { proxy_pass http://backend$1; }",
            "location ~ ^/(a|b)/ { proxy_pass http://$1; }",
            "location / { proxy_pass http://$host.internal; }",
            "location / { proxy_pass http://$server_name; }",
        ] {
            assert_eq!(in_server(text), [""; 0], "{text}");
        }
    }
}
