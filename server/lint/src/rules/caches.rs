//! FB108 to FB111: too short keys of caches, stored cookies, and guessed freshness.
//!
//! Not analyzed: keys with variables of the configuration, since these may have the missing part.

use crate::Warn;
use crate::listens::{is_catch_all_name, servers_of_http};
use crate::tree::{Id, Tree};
use crate::value::variables;

/// The modules with caches.
const MODULES: [&str; 4] = ["proxy", "fastcgi", "scgi", "uwsgi"];
/// Variables with the host of the request, or of a server chosen by it.
const HOSTS: [&str; 5] = [
    "host",
    "http_host",
    "proxy_host",
    "server_name",
    "ssl_server_name",
];
/// Variables with a part of the URI.
const URIS: [&str; 12] = [
    "request_uri",
    "uri",
    "document_uri",
    "request",
    "args",
    "query_string",
    "request_filename",
    "document_root",
    "realpath_root",
    "fastcgi_script_name",
    "fastcgi_path_info",
    "request_body",
];

/// The written keys, with the name of their module.
fn keys(tree: &Tree) -> impl Iterator<Item = (&'static str, Id)> {
    MODULES.iter().flat_map(|module| {
        let ids: Vec<Id> = tree.http(&format!("{module}_cache_key")).collect();
        ids.into_iter().map(move |id| (*module, id))
    })
}

/// Whether a key has one of these variables, or one that is made by the configuration.
fn may_have(tree: &Tree, key: Id, names: &[&str]) -> bool {
    variables(tree.arg(key, 0)).any(|name| {
        let is_number = name.bytes().all(|byte| byte.is_ascii_digit());
        is_made(tree, &name)
            || is_number
            || name.starts_with("arg_")
            || names.contains(&name.as_str())
    })
}

/// FB108: responses of one host are sent for another one.
pub(super) fn key_without_host(tree: &Tree, warn: &mut Warn<'_>) {
    for (module, id) in keys(tree) {
        let Some(block) = tree.parent(id).filter(|_| !may_have(tree, id, &HOSTS)) else {
            continue;
        };
        if !has_several_hosts(tree, block) || !passes_host(tree, block, module) {
            continue;
        }
        let message = format!(
            "the hosts of this server share stored responses: \"{}\" has no host",
            tree.name(id)
        );
        warn.word(id, 0, message, "begin the key with \"$scheme$host\"");
    }
}

/// Whether requests of several hosts reach a block: there are several servers, or names, or any name is served.
fn has_several_hosts(tree: &Tree, block: Id) -> bool {
    let server = match tree.name(block) {
        "server" => Some(block),
        _ => tree.enclosing(block, "server"),
    };
    let Some(server) = server else {
        return servers_of_http(tree).nth(1).is_some();
    };
    let is_default = tree.within(server, "listen").any(|listen| {
        let mut words = tree.args(listen).iter();
        words.any(|word| *word == "default_server" || *word == "default")
    });
    let names: Vec<&str> = tree
        .within(server, "server_name")
        .flat_map(|names| tree.args(names))
        .map(conf::Word::as_str)
        .collect();
    let is_open = |name: &&str| name.starts_with(['*', '.', '~']) || is_catch_all_name(name);
    is_default || names.len() != 1 || names.iter().any(is_open)
}

/// Whether the servers behind know the host of the request, so that their responses may depend on it.
fn passes_host(tree: &Tree, block: Id, module: &str) -> bool {
    if module != "proxy" {
        // Applications get all fields of the request.
        return true;
    }
    let has_host = |id: Id, argument: usize| {
        let mut names = variables(tree.arg(id, argument));
        names.any(|name| ["host", "http_host", "ssl_server_name"].contains(&name.as_str()))
    };
    let is_within = |id: Id| tree.parents(id).any(|parent| parent == block);
    let passes = tree
        .http("proxy_pass")
        .any(|id| is_within(id) && has_host(id, 0));
    let sets_host = |id: Id| tree.arg(id, 0).eq_ignore_ascii_case("Host") && has_host(id, 1);
    let mut sets = tree.http("proxy_set_header");
    passes
        || sets.any(|id| {
            let is_around = tree
                .parent(id)
                .is_some_and(|level| level == block || tree.parents(block).any(|one| one == level));
            sets_host(id) && (is_around || is_within(id))
        })
}

/// FB109: all requests of a location share one stored response.
pub(super) fn key_without_uri(tree: &Tree, warn: &mut Warn<'_>) {
    for (_, id) in keys(tree) {
        let is_exact = |block: Id| tree.name(block) == "location" && tree.arg(block, 0) == "=";
        if may_have(tree, id, &URIS) || tree.parents(id).any(is_exact) {
            continue;
        }
        let message = format!(
            "all URIs share one stored response: \"{}\" has no part of the URI",
            tree.name(id)
        );
        warn.word(id, 0, message, "end the key with \"$request_uri\"");
    }
}

/// The directive of a name in effect in a block, unless it is `off`.
fn in_effect(tree: &Tree, block: Id, name: &str) -> Option<Id> {
    tree.inherited(block, name)
        .filter(|id| !tree.is_value(*id, &["off"]))
}

/// FB110: the cookie of one client is sent to others.
pub(super) fn stored_cookies(tree: &Tree, warn: &mut Warn<'_>) {
    for module in MODULES {
        let (cache, ignore) = (
            format!("{module}_cache"),
            format!("{module}_ignore_headers"),
        );
        let mut told = Vec::new();
        let written: Vec<Id> = tree.http(&cache).chain(tree.http(&ignore)).collect();
        for block in written.into_iter().filter_map(|id| tree.parent(id)) {
            let Some(ignored) = tree.inherited(block, &ignore) else {
                continue;
            };
            let Some(at) = tree.args(ignored).iter().position(is_set_cookie) else {
                continue;
            };
            let is_stored = in_effect(tree, block, &cache).is_some();
            if !is_stored || told.contains(&ignored) || is_protected(tree, block, module) {
                continue;
            }
            told.push(ignored);
            let message =
                "responses with cookies are stored: the cookie of one client is sent to others";
            let hint = format!(
                "hide the cookie (\"{module}_hide_header Set-Cookie;\"), or pass by clients with cookies \
                 (\"{module}_cache_bypass $http_cookie;\")"
            );
            warn.word(ignored, at, message, &hint);
        }
    }
}

fn is_set_cookie(word: &conf::Word) -> bool {
    word.as_str().eq_ignore_ascii_case("Set-Cookie")
}

/// Whether cookies of a block are hidden from clients, or a condition or the key depends on the cookies of the request.
fn is_protected(tree: &Tree, block: Id, module: &str) -> bool {
    let any = |name: &str, holds: &dyn Fn(Id) -> bool| {
        let name = format!("{module}_{name}");
        let level = tree.inherited(block, &name).and_then(|id| tree.parent(id));
        level.is_some_and(|level| tree.within(level, &name).any(holds))
    };
    let has_cookie = |id: Id| {
        let words = tree.args(id).iter();
        let mut names = words.flat_map(|word| variables(word.as_str()));
        names.any(|name| {
            name == "http_cookie" || name.starts_with("cookie_") || is_made(tree, &name)
        })
    };
    any("hide_header", &|id| tree.args(id).iter().any(is_set_cookie))
        || ["cache_bypass", "no_cache", "cache_key"]
            .iter()
            .any(|name| any(name, &has_cookie))
}

/// Whether the configuration makes a variable.
fn is_made(tree: &Tree, name: &str) -> bool {
    !tree.makers(name).is_empty() || tree.is_captured(name)
}

/// FB111: responses without a time are stored, which nginx never did.
pub(super) fn guessed_freshness(tree: &Tree, warn: &mut Warn<'_>) {
    for module in MODULES {
        let caches: Vec<Id> = tree.http(&format!("{module}_cache")).collect();
        for id in caches {
            let Some(block) = tree.parent(id).filter(|_| !tree.is_value(id, &["off"])) else {
                continue;
            };
            let is_decided = ["cache_rfc", "cache_valid"].iter().any(|name| {
                let name = format!("{module}_{name}");
                let is_below = |one: Id| tree.parents(one).any(|parent| parent == block);
                tree.inherited(block, &name).is_some() || tree.http(&name).any(is_below)
            });
            if is_decided {
                continue;
            }
            let message = "responses with \"Last-Modified\" and without a time are fresh for a tenth of the time since \
                           then (nginx does not store them)";
            let hint = format!(
                "write \"{module}_cache_rfc on;\" if that is meant, or \"{module}_cache_rfc off;\" for nginx's rules"
            );
            warn.name(id, message, &hint);
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::testing::{in_http, in_server};

    /// The codes about a location with a cache and `proxy_cache_valid`.
    fn cached(text: &str) -> Vec<&'static str> {
        in_server(&format!(
            "location / {{ proxy_pass http://127.0.0.1:81; proxy_cache one; proxy_cache_valid 1m; {text} }}"
        ))
    }

    #[test]
    fn keys_without_a_host_are_found() {
        let host = "proxy_set_header Host $host;";
        for text in [
            format!("{host} proxy_cache_key $request_uri;"),
            format!("{host} proxy_cache_key $scheme$uri$is_args$args;"),
        ] {
            assert_eq!(cached(&text), ["FB108"], "{text}");
        }
        for server in [
            "listen 80 default_server; server_name a.example;",
            "listen 80; server_name a.example b.example;",
            "listen 80; server_name *.example;",
        ] {
            let text = format!(
                "server {{ {server} location / {{ uwsgi_pass 127.0.0.1:9; uwsgi_cache one;
                 uwsgi_cache_valid 1m; uwsgi_cache_key $request_uri; }} }}"
            );
            assert!(in_http(&text).contains(&"FB108"), "{text}");
        }
        let text = "proxy_cache_key $uri; proxy_set_header Host $host;
                    server { listen 80; server_name a.example; } server { listen 81; server_name b.example; }";
        assert_eq!(in_http(text), ["FB108"]);
    }

    #[test]
    fn keys_with_a_host_and_servers_of_one_name_are_not() {
        let host = "proxy_set_header Host $host;";
        for text in [
            format!("{host} proxy_cache_key $scheme$host$request_uri;"),
            format!("{host} proxy_cache_key \"${{http_host}}$uri\";"),
            format!("{host} set $key $host$uri; proxy_cache_key $key$uri;"),
            "proxy_cache_key $request_uri;".to_owned(),
            host.to_owned(),
        ] {
            assert_eq!(cached(&text), [""; 0], "{text}");
        }
        let text = "server { listen 80; server_name a.example; location / { proxy_pass http://127.0.0.1:81;
                    proxy_set_header Host $host; proxy_cache_key $request_uri; } }";
        assert_eq!(in_http(text), [""; 0]);
    }

    #[test]
    fn keys_without_a_uri_are_found() {
        for key in ["$host", "fixed", "$scheme$proxy_host$cookie_a"] {
            let text = format!("proxy_cache_key {key};");
            assert_eq!(cached(&text), ["FB109"], "{key}");
        }
    }

    #[test]
    fn keys_with_a_part_of_the_uri_are_not() {
        for key in [
            "$host$uri",
            "$host$args",
            "$arg_id",
            "$host$request_filename",
        ] {
            let text = format!("proxy_cache_key {key};");
            assert_eq!(cached(&text), [""; 0], "{key}");
        }
        let exact = "location = /a { proxy_pass http://127.0.0.1:81; proxy_cache_key a; }";
        assert_eq!(in_server(exact), [""; 0]);
    }

    #[test]
    fn stored_cookies_are_found() {
        for text in [
            "proxy_ignore_headers Set-Cookie;",
            "proxy_ignore_headers Expires set-cookie; proxy_cache_bypass $arg_a;",
        ] {
            assert_eq!(cached(text), ["FB110"], "{text}");
        }
        let text = "proxy_ignore_headers Set-Cookie; proxy_cache_valid 1m;
                    location / { proxy_pass http://127.0.0.1:81; proxy_cache one; }
                    location /b { proxy_pass http://127.0.0.1:81; proxy_cache one; }";
        assert_eq!(in_server(text), ["FB110"]);
    }

    #[test]
    fn cookies_that_reach_no_other_client_are_not() {
        let ignored = "proxy_ignore_headers Set-Cookie;";
        for text in [
            "proxy_ignore_headers Expires;".to_owned(),
            format!("{ignored} proxy_hide_header Set-Cookie;"),
            format!("{ignored} proxy_cache_bypass $http_cookie; proxy_no_cache $http_cookie;"),
            format!("{ignored} proxy_no_cache $cookie_session;"),
            format!("{ignored} proxy_cache_key $host$uri$cookie_a;"),
        ] {
            assert_eq!(cached(&text), [""; 0], "{text}");
        }
        let off = "proxy_ignore_headers Set-Cookie; location / { proxy_pass http://127.0.0.1:81; proxy_cache off; }";
        assert_eq!(in_server(off), [""; 0]);
    }

    #[test]
    fn guessed_freshness_is_found() {
        let text = "location / { proxy_pass http://127.0.0.1:81; proxy_cache one; }";
        assert_eq!(in_server(text), ["FB111"]);
        assert_eq!(
            in_server(&format!("fastcgi_cache_valid 1m; {text}")),
            ["FB111"]
        );
    }

    #[test]
    fn freshness_by_the_configuration_is_not_guessed() {
        for text in [
            "proxy_cache_valid 1m; proxy_cache one;",
            "proxy_cache_rfc on; proxy_cache one;",
            "proxy_cache_rfc off; proxy_cache one;",
            "proxy_cache off;",
        ] {
            let text = format!("location / {{ proxy_pass http://127.0.0.1:81; {text} }}");
            assert_eq!(in_server(&text), [""; 0], "{text}");
        }
    }
}
