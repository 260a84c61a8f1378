//! FB901 to FB903: request data that applications behind FastCGI, uwsgi and SCGI receive.

use crate::Warn;
use crate::regex::{Item, Paths};
use crate::rules::files::tested_file;
use crate::rules::location::Location;
use crate::rules::lost::losses;
use crate::tree::{Id, Tree};
use crate::uses;
use crate::value::{Piece, ways};

/// FB901: `SCRIPT_FILENAME` from a path that was not checked.
pub(super) fn unchecked_script(tree: &Tree, warn: &mut Warn<'_>) {
    for pass in tree.http("fastcgi_pass") {
        let Some(location) = enclosing_location(tree, pass) else {
            continue;
        };
        if !runs_any_php(tree, location)
            || tree.has(location, &["internal"])
            || is_checked(tree, location)
        {
            continue;
        }
        let Some(script) = script(tree, pass) else {
            continue;
        };
        let value = tree.arg(script, 1);
        if is_path(tree, script, value) {
            let message = format!(
                "\"{value}\" may not exist: with cgi.fix_pathinfo PHP runs \"/upload.jpg\" for \"/upload.jpg/x.php\""
            );
            let hint = "check the file first: \"try_files $fastcgi_script_name =404;\"";
            warn.name(pass, message, hint);
        }
    }
}

/// FB902: one parameter in a block undoes all of the blocks around it.
pub(super) fn lost_parameters(tree: &Tree, warn: &mut Warn<'_>) {
    for (_, parameter) in GATEWAYS {
        for mut loss in losses(tree, parameter) {
            let more = loss.names.len().saturating_sub(NAMES_MAX);
            loss.names.truncate(NAMES_MAX);
            let more = match more {
                0 => String::new(),
                more => format!(" and {more} more"),
            };
            let message = format!(
                "this \"{parameter}\" stops the inheritance of \"{}\"{more} from {}",
                loss.names.join("\", \""),
                tree.place(loss.outer)
            );
            // If the block includes a shared file, the warning is about the block and not the file.
            let at = std::iter::successors(Some(loss.at), |id| tree.node(*id).via).last();
            let hint = "repeat the parameters here, or include the file that sets them";
            warn.name(at.unwrap_or(loss.at), message, hint);
        }
    }
}

/// FB903: no parameters, or no script for PHP.
pub(super) fn missing_parameters(tree: &Tree, warn: &mut Warn<'_>) {
    for (passes, parameter) in GATEWAYS {
        for pass in tree.http(passes) {
            let Some(block) = tree.parent(pass) else {
                continue;
            };
            if tree.inherited(block, parameter).is_none() {
                let message = format!(
                    "no \"{parameter}\" is set: the application gets neither method nor URI"
                );
                let file = parameter.trim_end_matches("param");
                warn.name(pass, message, format!("write \"include {file}params;\""));
                continue;
            }
            // FB902 warns about parameters of outer levels.
            let around = std::iter::once(block).chain(tree.parents(block));
            let known = around.into_iter().any(|level| {
                tree.within(level, parameter)
                    .any(|id| tree.arg(id, 0) == SCRIPT)
            });
            if passes == "fastcgi_pass" && !known && is_php(tree, pass) {
                let message =
                    "no SCRIPT_FILENAME is set: PHP runs no script and answers with an empty page";
                let hint = "write \"include fastcgi.conf;\", or \"fastcgi_param SCRIPT_FILENAME \
                            $document_root$fastcgi_script_name;\"";
                warn.name(pass, message, hint);
            }
        }
    }
}

/// The location around a directive, directly or with blocks between them.
fn enclosing_location(tree: &Tree, id: Id) -> Option<Id> {
    tree.enclosing(id, "location")
}

/// The parameter `SCRIPT_FILENAME` that an application gets: parameters are those of the innermost level that has any.
fn script(tree: &Tree, pass: Id) -> Option<Id> {
    let level = tree
        .parents(pass)
        .find(|level| tree.has(*level, &["fastcgi_param"]))?;
    let parameters = tree.within(level, "fastcgi_param");
    parameters.filter(|id| tree.arg(*id, 0) == SCRIPT).last()
}

/// Returns whether a location matches any PHP script by an expression.
fn runs_any_php(tree: &Tree, location: Id) -> bool {
    let Some(read) = Location::of(tree, location).filter(Location::is_regex) else {
        return false;
    };
    if !mentions_php(read.name) {
        return false;
    }
    let regex = uses::of(tree, location)
        .into_iter()
        .find_map(|found| found.regex());
    let paths = regex.and_then(|regex| Paths::of(&regex.ast));
    paths.is_some_and(|paths| !paths.iter().all(|path| names_file(path)))
}

/// Whether a way begins with the name of a file: `^/index\.php`.
fn names_file(path: &[Item]) -> bool {
    let [Item::Start, rest @ ..] = path else {
        return false;
    };
    let letters = rest.iter().map_while(|item| match item {
        Item::Byte(byte) => Some(*byte),
        _ => None,
    });
    letters.into_iter().any(|byte| byte == b'.')
}

/// Returns whether the file is checked before the application gets its name.
fn is_checked(tree: &Tree, location: Id) -> bool {
    let tried = tree.within(location, "try_files").any(|id| {
        let files = tree.args(id).len().saturating_sub(1);
        (0..files).any(|index| is_path(tree, id, tree.arg(id, index)))
    });
    let server = tree.enclosing(location, "server");
    let asked = [Some(location), server].into_iter().flatten().any(|level| {
        let mut tests = tree.within(level, "if");
        tests.any(|id| tested_file(tree, id).is_some_and(|path| is_path(tree, id, &path)))
    });
    tried || asked
}

/// Whether a value is made of the path of the request.
fn is_path(tree: &Tree, at: Id, value: &str) -> bool {
    let pieces = ways(tree, at, value).into_iter().flatten();
    pieces.into_iter().any(|piece| match piece {
        Piece::Runtime(name, contents) => contents.client || name == "$request_filename",
        Piece::Text(_) => false,
    })
}

/// Whether an application is PHP: by its location, its address or its index.
fn is_php(tree: &Tree, pass: Id) -> bool {
    let location = enclosing_location(tree, pass).and_then(|id| Location::of(tree, id));
    let index = tree
        .parent(pass)
        .and_then(|block| tree.inherited(block, "fastcgi_index"));
    location.is_some_and(|location| mentions_php(location.name))
        || mentions_php(tree.arg(pass, 0))
        || index.is_some_and(|index| mentions_php(tree.arg(index, 0)))
}

fn mentions_php(text: &str) -> bool {
    let text = text.to_ascii_lowercase();
    ["php", "phtml", "phar"]
        .iter()
        .any(|kind| text.contains(kind))
}

/// Directives that pass requests on, and those that set the parameters they pass.
const GATEWAYS: [(&str, &str); 3] = [
    ("fastcgi_pass", "fastcgi_param"),
    ("uwsgi_pass", "uwsgi_param"),
    ("scgi_pass", "scgi_param"),
];
const SCRIPT: &str = "SCRIPT_FILENAME";
/// Names of parameters that a warning lists.
const NAMES_MAX: usize = 4;

#[cfg(test)]
mod tests {
    use std::path::Path;

    use conf::Memory;

    use crate::testing::{in_http, in_server};

    /// A location that passes a script to PHP.
    fn php(location: &str, inside: &str) -> String {
        format!(
            "root /srv; location {location} {{ {inside} fastcgi_pass unix:/run/php.sock; \
             fastcgi_param SCRIPT_FILENAME $document_root$fastcgi_script_name; }}"
        )
    }

    #[test]
    fn scripts_that_nobody_looked_for_are_found() {
        for location in [
            r"~ \.php$",
            r"~* \.php$",
            r"~ \.php",
            r"~ \.php(/|$)",
            r"~ [^/]\.php(/|$)",
            r"~ ^(.+\.php)(.*)$",
            r"~ \.(php|phtml)$",
            r"~ ^/blog/.+\.php$",
        ] {
            assert_eq!(in_server(&php(location, "")), ["FB901"], "{location}");
        }
        for inside in [
            r"fastcgi_split_path_info ^(.+?\.php)(/.*)$;",
            "fastcgi_index index.php;",
            "try_files /a =404;",
            "if ($arg_a) { return 403; }",
        ] {
            assert_eq!(in_server(&php(r"~ \.php$", inside)), ["FB901"], "{inside}");
        }
        for value in [
            "$document_root$uri",
            "/srv$document_uri",
            "$request_filename",
            "/srv/$1",
            "$realpath_root$fastcgi_script_name",
        ] {
            let text = format!(
                "root /srv; location ~ ^/(.*\\.php)$ {{ fastcgi_param SCRIPT_FILENAME {value}; fastcgi_pass a; }}"
            );
            assert_eq!(in_server(&text), ["FB901"], "{value}");
        }
        let outside = "root /srv; fastcgi_param SCRIPT_FILENAME /srv$fastcgi_script_name; \
                       location ~ \\.php$ { fastcgi_pass a; }";
        assert_eq!(in_server(outside), ["FB901"]);
        let set = "root /srv; location ~ \\.php$ { set $script $uri; fastcgi_param SCRIPT_FILENAME /srv$script; \
                   fastcgi_pass a; }";
        assert_eq!(in_server(set), ["FB901"]);
    }

    #[test]
    fn scripts_that_are_looked_for_or_written_down_are_not() {
        for inside in [
            "try_files $uri =404;",
            "try_files $fastcgi_script_name =404;",
            "try_files $uri @other;",
            "set $script $fastcgi_script_name; try_files $script =404;",
            "internal;",
        ] {
            assert_eq!(in_server(&php(r"~ \.php$", inside)), [""; 0], "{inside}");
        }
        for test in [
            "!-f $document_root$fastcgi_script_name",
            "!-e $request_filename",
        ] {
            let text = php(r"~ \.php$", &format!("if ({test}) {{ return 404; }}"));
            assert_eq!(in_server(&text), ["FB205"], "{test}");
            let server = format!("if ({test}) {{ return 404; }} {}", php(r"~ \.php$", ""));
            assert_eq!(in_server(&server), ["FB205"], "{test}");
        }
        for location in [
            "= /index.php",
            "/index.php",
            r"~ ^/index\.php(/|$)",
            r"~ ^/(index|remote)\.php(?:$|/)",
            r"~ \.cgi$",
            "/app/",
        ] {
            assert_eq!(in_server(&php(location, "")), [""; 0], "{location}");
        }
        let fixed = "root /srv; location ~ \\.php$ { fastcgi_param SCRIPT_FILENAME $document_root/index.php; \
                     fastcgi_pass a; }";
        assert_eq!(in_server(fixed), [""; 0]);
    }

    #[test]
    fn a_parameter_of_a_block_undoes_those_around_it() {
        for text in [
            "fastcgi_param A 1; server { location / { fastcgi_param B 1; } }",
            "server { uwsgi_param A 1; location / { location /b { uwsgi_param B 1; } } }",
            "scgi_param A 1; scgi_param B 1; server { scgi_param A 2; }",
        ] {
            assert_eq!(in_http(text), ["FB902"], "{text}");
        }
        for text in [
            "fastcgi_param A 1; server { location / { fastcgi_param A 2; fastcgi_param B 1; } }",
            "fastcgi_param A 1; server { location / { uwsgi_param B 1; } }",
            "fastcgi_param A 1; server { location / { fastcgi_read_timeout 1s; } }",
        ] {
            assert_eq!(in_http(text), [""; 0], "{text}");
        }
    }

    #[test]
    fn the_block_that_includes_a_file_is_at_fault_and_not_the_file() {
        let text = "http { server { fastcgi_param E 1;\nlocation / {\ninclude all; } } }";
        let main = Path::new("/c/nginx.conf");
        let all = "fastcgi_param A 1; fastcgi_param B 1;";
        let source = Memory::default()
            .with_file(main, text)
            .with_file("/c/all", all);
        let report = crate::check(source, main, None).expect("the text is whole");
        let shown: Vec<String> = report.rendered().collect();
        assert_eq!(shown.len(), 1, "{shown:?}");
        assert!(shown[0].contains("in /c/nginx.conf:3"), "{}", shown[0]);
        assert!(
            shown[0].contains("inheritance of \"E\" from /c/nginx.conf:1"),
            "{}",
            shown[0]
        );
    }

    #[test]
    fn a_warning_lists_a_few_names() {
        let outer: String = ('A'..='F')
            .map(|name| format!("fastcgi_param {name} 1; "))
            .collect();
        let text = format!("http {{ {outer} server {{ fastcgi_param X 1; }} }}");
        let main = Path::new("/c/nginx.conf");
        let source = Memory::default().with_file(main, text);
        let report = crate::check(source, main, None).expect("the text is whole");
        let shown = report.rendered().next().expect("a warning");
        assert!(
            shown.contains("inheritance of \"A\", \"B\", \"C\", \"D\" and 2 more from"),
            "{shown}"
        );
    }

    #[test]
    fn applications_that_are_told_nothing_are_found() {
        for text in [
            "location / { fastcgi_pass a; }",
            "location / { uwsgi_pass a; }",
            "location / { scgi_pass a; uwsgi_param A 1; }",
            "location / { fastcgi_pass a; location /b { fastcgi_param A 1; } }",
            "location / { if ($arg_a) { fastcgi_pass a; } }",
        ] {
            let expected: &[&str] = match text.contains("if (") {
                true => &["FB501", "FB903"],
                false => &["FB903"],
            };
            assert_eq!(in_server(text), expected, "{text}");
        }
        for text in [
            "location ~ \\.php$ { fastcgi_param A 1; fastcgi_pass a; }",
            "location / { fastcgi_param A 1; fastcgi_pass unix:/run/php/php8.4-fpm.sock; }",
            "fastcgi_index index.php; location / { fastcgi_param A 1; fastcgi_pass a; }",
        ] {
            assert_eq!(in_server(text), ["FB903"], "{text}");
        }
        for text in [
            "location / { fastcgi_param A 1; fastcgi_pass a; }",
            "fastcgi_param A 1; location / { fastcgi_pass a; }",
            "location / { scgi_param A 1; scgi_pass php; }",
            "location / { fastcgi_param SCRIPT_FILENAME /a.php; fastcgi_pass php; }",
            "location / { memcached_pass a; }",
        ] {
            assert_eq!(in_server(text), [""; 0], "{text}");
        }
        let by_loss = "fastcgi_param SCRIPT_FILENAME /a.php; location / { fastcgi_param A 1; fastcgi_pass php; }";
        assert_eq!(in_server(by_loss), ["FB902"], "told once");
    }
}
