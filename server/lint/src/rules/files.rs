//! FB203 to FB206: how a request finds its file.

use crate::Warn;
use crate::bytes::ByteSet;
use crate::regex::{Item, Paths};
use crate::rules::location::Location;
use crate::tree::{Id, Tree};
use crate::uses;
use crate::value::variables;

/// FB203: `try_files` checks files below the alias, but its last argument is a URI.
pub(super) fn try_files_and_alias(tree: &Tree, warn: &mut Warn<'_>) {
    for id in tree.http("try_files") {
        let Some(block) = tree.parent(id) else {
            continue;
        };
        let Some(location) = Location::of(tree, block) else {
            continue;
        };
        let Some(alias) = tree.within(block, "alias").next() else {
            continue;
        };
        let last = tree.args(id).len().saturating_sub(1);
        if location.is_regex() {
            // An alias without captures is a folder, and works like a root.
            if variables(tree.arg(alias, 0)).next().is_none() {
                continue;
            }
            let whole_uri =
                |index: &usize| variables(tree.arg(id, *index)).any(|name| is_uri(&name));
            if let Some(index) = (0..last).find(whole_uri) {
                let message = format!(
                    "in a location with a regular expression, \"alias\" is the whole path: \"{}\" is looked up as \
                     \"{}{}\"",
                    tree.arg(id, index),
                    tree.arg(alias, 0),
                    tree.arg(id, index)
                );
                let hint = "use \"root\", or write \"\" to try the alias itself";
                warn.word(id, index, message, hint);
            }
            continue;
        }
        let fallback = tree.arg(id, last);
        let has_variables = variables(fallback).next().is_some();
        if let Some(uri) = fallback.strip_prefix(location.name)
            && has_variables
            && location.is_prefix()
            && !uri.starts_with(location.name)
        {
            let message = format!(
                "because of \"alias\", a URI with variables loses the prefix \"{}\" and becomes \"{uri}\"",
                location.name
            );
            let hint = format!("write the prefix twice: \"{}{fallback}\"", location.name);
            warn.word(id, last, message, hint);
        }
        let leaves = fallback.starts_with('/') && !fallback.starts_with(location.name);
        if location.is_prefix() && leaves {
            let message = format!(
                "the last argument of \"try_files\" is a URI: \"{fallback}\" is outside of this location and not \
                 served from \"{}\"",
                tree.arg(alias, 0)
            );
            let name = location.name.trim_end_matches('/');
            warn.word(
                id,
                last,
                message,
                format!("write \"{name}{fallback}\" to stay in this location"),
            );
        }
    }
}

fn is_uri(name: &str) -> bool {
    matches!(name, "uri" | "document_uri" | "request_uri")
}

/// Directives that answer a request in a location without looking below its root.
const ANSWERS: [&str; 14] = [
    "root",
    "alias",
    "return",
    "proxy_pass",
    "grpc_pass",
    "uwsgi_pass",
    "scgi_pass",
    "memcached_pass",
    "stub_status",
    "empty_gif",
    "api",
    "location",
    "rewrite",
    "perl",
];

/// FB204: the server has no root, one location has, another serves files and has not.
pub(super) fn root_in_locations(tree: &Tree, warn: &mut Warn<'_>) {
    for server in tree.http("server") {
        if tree.inherited(server, "root").is_some() {
            continue;
        }
        let locations: Vec<Id> = tree.within(server, "location").collect();
        let Some(with_root) = locations
            .iter()
            .find_map(|location| tree.within(*location, "root").next())
        else {
            continue;
        };
        for location in locations {
            if tree.has(location, &ANSWERS)
                || refuses(tree, location)
                || !serves_files(tree, location)
            {
                continue;
            }
            let message = format!(
                "no \"root\" for the files of this location: the default is used, not the \"root\" in {}",
                tree.place(with_root)
            );
            warn.name(
                location,
                message,
                "move \"root\" to the server, so that all its locations inherit it",
            );
        }
    }
}

/// An empty location or one that sets something serves files; with `fastcgi_pass` only the path is of interest.
fn serves_files(tree: &Tree, location: Id) -> bool {
    if tree.has(location, &["fastcgi_pass"]) {
        let parameters = tree.within(location, "fastcgi_param");
        let mut used = parameters.flat_map(|id| variables(tree.arg(id, 1)));
        return used.any(|name| name == "document_root" || name == "request_filename");
    }
    let Some(read) = Location::of(tree, location) else {
        return false;
    };
    let mut tried = tree.within(location, "try_files");
    let hands_on = tried.any(|id| {
        let last = tree.args(id).last();
        last.is_some_and(|last| last.as_str().starts_with('@')) && tree.args(id).len() == 2
    });
    read.modifier != "@" && !hands_on
}

/// Every client is refused.
fn refuses(tree: &Tree, location: Id) -> bool {
    tree.within(location, "deny")
        .any(|id| tree.arg(id, 0) == "all")
        && !tree.has(location, &["allow"])
}

/// FB205: `if (-f $request_filename)` instead of `try_files`.
pub(super) fn if_file(tree: &Tree, warn: &mut Warn<'_>) {
    for id in tree.http("if") {
        let Some(path) = tested_file(tree, id) else {
            continue;
        };
        let of_request = |name: String| {
            is_uri(&name) || matches!(name.as_str(), "request_filename" | "fastcgi_script_name")
        };
        if variables(&path).any(of_request) {
            let message =
                "\"if\" looks the file up a second time, and other directives are unreliable in it";
            warn.name(id, message, "use \"try_files $uri $uri/ @other;\"");
        }
    }
}

/// The path that an `if` tests in the file system.
pub(super) fn tested_file(tree: &Tree, id: Id) -> Option<String> {
    let words: Vec<&str> = tree.args(id).iter().map(|word| word.as_str()).collect();
    let text = words.join(" ");
    let inside = text.trim_start_matches('(').trim_start();
    let (operator, path) = inside.split_once(' ').unwrap_or((inside, ""));
    let asks = matches!(operator.trim_start_matches('!'), "-f" | "-d" | "-e");
    asks.then(|| path.to_owned())
}

/// FB206: `location ~ .php$`.
pub(super) fn dot(tree: &Tree, warn: &mut Warn<'_>) {
    for id in tree.http("location") {
        let Some(location) = Location::of(tree, id).filter(Location::is_regex) else {
            continue;
        };
        let regex = uses::of(tree, id)
            .into_iter()
            .find_map(|found| found.regex());
        let paths = regex.and_then(|regex| Paths::of(&regex.ast));
        if paths.is_some_and(|paths| paths.iter().any(|path| any_before_extension(path))) {
            let message = format!(
                "the unescaped dot before the extension in \"{}\" matches any character",
                location.name
            );
            warn.word(id, location.argument, message, "write \"\\.\" for a dot");
        }
    }
}

/// Letters of an extension at most.
const EXTENSION_MAX: usize = 5;

/// Whether a way ends in any byte, a few letters and the end.
fn any_before_extension(path: &[Item]) -> bool {
    let Some((Item::End, rest)) = path.split_last() else {
        return false;
    };
    let is_letter = |item: &&Item| matches!(item, Item::Byte(byte) if byte.is_ascii_alphanumeric());
    let letters = rest.iter().rev().take_while(is_letter).count();
    let before = rest.len().checked_sub(letters + 1).map(|at| rest[at]);
    let any = ByteSet::of(b'\n').not();
    (2..=EXTENSION_MAX).contains(&letters) && before == Some(Item::Set(any, false))
}

#[cfg(test)]
mod tests {
    use crate::testing::in_server;

    #[test]
    fn a_fallback_outside_of_the_alias_is_found() {
        let text = "location /app/ { alias /srv/app/; try_files $uri /index.html; }";
        assert_eq!(in_server(text), ["FB203"]);
        for text in [
            "location /app/ { alias /srv/app/; try_files $uri /app/i.php?$args; }",
            "location ^~ /app/ { alias /srv/app/; try_files $uri /app/i.php?$args; }",
            "location /app/ { alias /srv/app/; try_files $uri /app/$arg_page; }",
        ] {
            assert_eq!(in_server(text), ["FB203"], "{text}");
        }
        let text = "location ~ ^/u/(.*)$ { alias /srv/$1; try_files $uri =404; }";
        assert_eq!(in_server(text), ["FB203"]);
        for text in [
            "location /app/ { alias /srv/app/; try_files $uri /app/index.html; }",
            "location /app/ { alias /srv/app/; try_files $uri @app; }",
            "location /app/ { alias /srv/app/; try_files $uri /app//app/i.php?$args; }",
            "location /app/ { alias /srv/app/; try_files $uri $uri/i.php?$args; }",
            "location /app/ { root /srv; try_files $uri /app/i.php?$args; }",
            "location /app/ { alias /srv/app/; try_files $uri =404; }",
            "location ~ ^/u/(.*)$ { alias /srv/$1; try_files \"\" =404; }",
            "location ~ ^/u/ { alias /srv; try_files $uri =404; }",
            "location /app/ { root /srv; try_files $uri /index.html; }",
        ] {
            assert_eq!(in_server(text), [""; 0], "{text}");
        }
    }

    #[test]
    fn a_location_without_the_root_of_the_others_is_found() {
        let php = r"location / { root /srv; } location ~ \.php$ { fastcgi_param SCRIPT_FILENAME $document_root/a; fastcgi_pass a; }";
        assert_eq!(in_server(php), ["FB204"]);
        assert_eq!(
            in_server("location / { root /srv; } location /img/ { expires 1d; }"),
            ["FB204"]
        );
        for text in [
            "root /srv; location / { root /a; } location /img/ { expires 1d; }",
            "location / { root /srv; } location /img/ { alias /b/; }",
            "location / { root /srv; } location /x { return 301 /y; }",
            r"location / { root /srv; } location ~ /\. { deny all; }",
            "location / { root /srv; } location /y { try_files /z @z; } location @z { proxy_pass http://a; }",
            "location / { expires 1d; }",
        ] {
            assert_eq!(in_server(text), [""; 0], "{text}");
        }
    }

    #[test]
    fn asking_for_the_file_of_the_request_is_found() {
        for test in [
            "-f $request_filename",
            "!-e $document_root$uri",
            " !-d $request_filename ",
        ] {
            let text = format!("if ({test}) {{ rewrite ^ /index.php last; }}");
            assert_eq!(in_server(&text), ["FB205"], "{test}");
        }
        assert_eq!(
            in_server("if (-f /srv/maintenance.html) { return 503; }"),
            [""; 0]
        );
        assert_eq!(
            in_server("if ( !-f $request_filename ) { return 404; }"),
            ["FB205"]
        );
    }

    #[test]
    fn a_dot_that_is_none_is_found() {
        for pattern in [".php$", "^/a/(x|y).(jpg|png)$", "*.css$"] {
            let text = format!("location ~ {pattern} {{ return 404; }}");
            let expected: &[&str] = if pattern.starts_with('*') {
                &[]
            } else {
                &["FB206"]
            };
            assert_eq!(in_server(&text), expected, "{pattern}");
        }
        for pattern in [
            r"\.php$",
            r"\.php",
            "[.]php$",
            "^/a/.*$",
            r"\.(jpg|png)$",
            ".+php$",
        ] {
            let text = format!("location ~* {pattern} {{ return 404; }}");
            assert_eq!(in_server(&text), [""; 0], "{pattern}");
        }
    }
}
