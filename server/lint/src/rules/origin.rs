//! FB104 and FB105: tests of `Origin` and `Referer` that match foreign origins.
//!
//! An expression for `https://example.com` must match the whole host: from its beginning to its end, and with nothing before
//! the domain that may end another host.

use crate::Warn;
use crate::bytes::ByteSet;
use crate::regex::{Ast, Item, Paths};
use crate::tree::{Id, Tree};
use crate::uses::{self, Subject, Use};

/// FB104
pub(super) fn expressions(tree: &Tree, warn: &mut Warn<'_>) {
    for id in 0..tree.len() {
        for found in uses::of(tree, id)
            .iter()
            .filter(|found| accepts_match(tree, found))
        {
            let Some(regex) = found.regex() else {
                continue;
            };
            let Some(why) = why_foreign(&regex.ast).filter(|_| !is_page(tree, found, &regex.ast))
            else {
                continue;
            };
            let message = format!(
                "\"{}\" matches foreign origins: {why}",
                String::from_utf8_lossy(&found.pattern)
            );
            let hint =
                "match the whole host: \"^https://([a-z0-9-]+\\.)?example\\.com(:[0-9]+)?(/|$)\"";
            match found.argument {
                Some(argument) => warn.word(id, argument, message, hint),
                None => warn.name(id, message, hint),
            }
        }
    }
}

/// Returns whether an expression lists allowed clients, not refused ones.
fn accepts_match(tree: &Tree, found: &Use) -> bool {
    let Subject::Value(subject) = &found.subject else {
        return false;
    };
    if !ORIGINS.contains(&subject.as_str()) {
        return false;
    }
    if tree.node(found.id).data {
        // Tables of referrers often list refused ones.
        return subject == "$http_origin" && !["", "0"].contains(&tree.arg(found.id, 0));
    }
    let positive = uses::condition(tree, found.id).is_some_and(|test| !test.negated);
    !(positive && refuses(tree, found.id))
}

fn refuses(tree: &Tree, block: Id) -> bool {
    tree.within(block, "return")
        .any(|id| tree.arg(id, 0).starts_with('4'))
}

/// Whether an expression selects pages of this site for a rewrite alone: its text begins with the path of a `Referer`. A
/// negated condition is a guard: the block handles clients that do not match.
fn is_page(tree: &Tree, found: &Use, ast: &Ast) -> bool {
    let positive = uses::condition(tree, found.id)
        .is_some_and(|test| test.variable == REFERER && !test.negated);
    let children = &tree.node(found.id).children;
    let rewrites = || {
        let mut names = children.iter().map(|id| tree.name(*id));
        tree.has(found.id, &["rewrite"]) && names.all(|name| REWRITES.contains(&name))
    };
    // `//example.com` is a host, whatever its scheme.
    let is_path = |path: &Vec<Item>| {
        path.first() == Some(&Item::Byte(b'/')) && path.get(1) != Some(&Item::Byte(b'/'))
    };
    positive && rewrites() && Paths::of(ast).is_some_and(|paths| paths.iter().all(is_path))
}

/// The reason why an expression matches foreign origins; `None` if it does not, or is not understood.
fn why_foreign(ast: &Ast) -> Option<&'static str> {
    Paths::of(ast)?
        .iter()
        .find_map(|path| why_foreign_path(path))
}

fn why_foreign_path(path: &[Item]) -> Option<&'static str> {
    let Some((Item::Start, rest)) = path.split_first() else {
        return Some("it does not begin with \"^\"");
    };
    // `^$` and `^null$` are no hosts.
    let slashes = [Item::Byte(b'/'), Item::Byte(b'/')];
    let host = rest.windows(2).position(|pair| pair == slashes)?;
    let host = &rest[host + 2..];
    let ends = |item: &Item| matches!(item, Item::Byte(b'/' | b'?' | b'#' | b':') | Item::End);
    let Some(length) = host.iter().position(ends) else {
        return Some("nothing marks the end of the host");
    };
    let host = &host[..length];
    let free = host.iter().rposition(|item| matches!(item, Item::Set(..)));
    for item in host {
        if let Item::Set(set, many) = item {
            if *set == ByteSet::of(b'\n').not() && !many {
                return Some("an unescaped dot matches any character");
            }
            // Browsers write a slash after every host, so only a slash can end it.
            if set.has(b'/') {
                return Some("the part before the domain may contain \"/\", which ends a host");
            }
        }
    }
    // A domain must follow the variable part, with a dot before it and one in it.
    let domain = &host[free? + 1..];
    let dots = domain
        .iter()
        .filter(|item| **item == Item::Byte(b'.'))
        .count();
    if domain.first() != Some(&Item::Byte(b'.')) || dots < 2 {
        return Some("a part of the domain matches any text");
    }
    None
}

/// FB105
pub(super) fn no_referrer(tree: &Tree, warn: &mut Warn<'_>) {
    for id in tree.http("valid_referers") {
        if let Some(index) = tree.args(id).iter().position(|word| *word == "none") {
            let message =
                "\"none\" accepts requests without Referer, and any page can make browsers omit it";
            warn.word(
                id,
                index,
                message,
                "remove \"none\" if the test protects anything",
            );
        }
    }
}

const REFERER: &str = "$http_referer";
const ORIGINS: [&str; 2] = ["$http_origin", REFERER];
/// Directives of a block that does nothing but rewrite.
const REWRITES: [&str; 3] = ["rewrite", "break", "rewrite_log"];

#[cfg(test)]
mod tests {
    use crate::testing::{in_http, in_server};

    fn condition(pattern: &str) -> Vec<&'static str> {
        in_server(&format!(
            "if ($http_origin !~ '{pattern}') {{ return 403; }}"
        ))
    }

    #[test]
    fn expressions_that_strangers_pass_are_found() {
        for pattern in [
            r"https://example\.com/",
            r"^https://example\.com",
            "^https://example.com/",
            r"^https?://.*\.example\.com/",
            r"^https?://[^/]*example\.com$",
            r"^https://[^/]+\.com$",
            "^https://[^/]+/",
            r"^https://(a\.example|b\.example)",
            r"^https://a\.example$|https://b\.example$",
        ] {
            assert_eq!(condition(pattern), ["FB104"], "{pattern}");
        }
    }

    #[test]
    fn expressions_that_hold_the_host_are_not() {
        for pattern in [
            r"^https?://example\.com/",
            r"^https://example\.com$",
            r"^https://(www\.)?example\.com(:[0-9]+)?(/|$)",
            r"^https?://([^/]+\.)?example\.com/",
            r"^https:\/\/[a-z0-9-]+\.example\.com$",
            "^$",
            "^https?://localhost(:[0-9]+)?$",
        ] {
            assert_eq!(condition(pattern), [""; 0], "{pattern}");
        }
    }

    #[test]
    fn only_who_is_let_in_is_judged() {
        assert_eq!(
            in_server("if ($http_referer ~ spam) { return 403; }"),
            [""; 0]
        );
        assert_eq!(
            in_server(r"if ($http_referer ~ example\.com) { set $a 1; }"),
            ["FB104"]
        );
        assert_eq!(
            in_http("map $http_origin $a { ~spam 0; ~example 1; default 0; }"),
            ["FB104"]
        );
        assert_eq!(
            in_http("map $http_referer $a { ~spam 1; default 0; }"),
            [""; 0]
        );
    }

    #[test]
    fn a_page_of_the_site_for_a_rewrite_is_no_origin() {
        for condition in [
            "if ($http_referer ~ /blog/) { rewrite ^/(.*)$ /blog/$1 last; }",
            r"if ($http_referer ~* \/(blog|shop)\/) { rewrite ^ /a; break; }",
            "if ($http_referer ~ (/blog|/shop)) { rewrite ^ /a; }",
        ] {
            assert_eq!(in_server(condition), [""; 0], "{condition}");
        }
        for condition in [
            // Not only a rewrite, or none.
            "if ($http_referer ~ /blog/) { set $trusted 1; }",
            "if ($http_referer ~ /blog/) { rewrite ^ /a; set $trusted 1; }",
            "if ($http_referer ~ /blog/) { break; }",
            "if ($http_referer ~ /blog/) { }",
            // A guard.
            "if ($http_referer !~ /blog/) { rewrite ^ /denied; }",
            // A host.
            r"if ($http_referer ~ //example\.com/) { rewrite ^ /a; }",
            "if ($http_referer ~ (/blog|shop)) { rewrite ^ /a; }",
            // No path is in an origin.
            "if ($http_origin ~ /blog/) { rewrite ^ /a; }",
        ] {
            assert_eq!(in_server(condition), ["FB104"], "{condition}");
        }
    }

    #[test]
    fn none_among_the_referrers_is_found() {
        assert_eq!(
            in_server("valid_referers server_names none *.a;"),
            ["FB105"]
        );
        assert_eq!(in_server("valid_referers server_names none.a;"), [""; 0]);
    }
}
