//! FB201 and FB202: `alias` and location do not end alike.
//!
//! The rest of the URI is appended to the alias unchanged, so both should end with a slash.

use crate::Warn;
use crate::rules::location::Location;
use crate::tree::{Id, Tree};
use crate::value::{Part, parts};

/// The innermost location around an `alias`, when it is chosen by a prefix.
fn prefix(tree: &Tree, id: Id) -> Option<(Id, Location<'_>)> {
    let location = tree.enclosing(id, "location")?;
    let read = Location::of(tree, location)?;
    read.is_prefix().then_some((location, read))
}

/// FB201
pub(super) fn open_location(tree: &Tree, warn: &mut Warn<'_>) {
    for id in tree.http("alias") {
        let Some((at, location)) = prefix(tree, id) else {
            continue;
        };
        let (name, alias) = (location.name, tree.arg(id, 0));
        if name.ends_with('/') || same_file(name, alias) {
            continue;
        }
        let message = if alias.ends_with('/') {
            format!(
                "the \"alias\" of this location maps \"{name}../x\" to \"{alias}../x\", outside of \"{alias}\""
            )
        } else {
            format!(
                "the \"alias\" of this location maps \"{name}-x\" to \"{alias}-x\", outside of \"{alias}\""
            )
        };
        let slash = if alias.ends_with('/') { "" } else { "/" };
        let hint = format!(
            "write \"location {name}/\" and \"alias {alias}{slash}\", or \"location = {name}\" for a single file"
        );
        warn.word(at, location.argument, message, hint);
    }
}

/// A single file: `location /favicon.ico { alias /srv/favicon.ico; }`.
fn same_file(name: &str, alias: &str) -> bool {
    let extension = |path: &str| {
        let file = path.rsplit('/').next()?;
        let (stem, extension) = file.rsplit_once('.')?;
        (!stem.is_empty() && !extension.is_empty()).then(|| extension.to_ascii_lowercase())
    };
    extension(name).is_some_and(|of_name| Some(of_name) == extension(alias))
}

/// FB202
pub(super) fn missing_slash(tree: &Tree, warn: &mut Warn<'_>) {
    for id in tree.http("alias") {
        let Some((_, location)) = prefix(tree, id) else {
            continue;
        };
        let alias = tree.arg(id, 0);
        let ends_open =
            matches!(parts(alias).last(), Some(Part::Text(text)) if !text.ends_with('/'));
        if location.name.ends_with('/') && ends_open {
            let name = location.name;
            let message = format!("\"{name}x\" maps to \"{alias}x\", not to \"{alias}/x\"");
            warn.word(id, 0, message, format!("write \"alias {alias}/\""));
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::testing::{in_server, warnings};

    #[test]
    fn a_location_without_its_slash_is_found() {
        for text in [
            "location /files { alias /srv/; }",
            "location ^~ /files { alias /srv; }",
            "location /a/ { location /a/b { alias /srv/; } }",
        ] {
            assert_eq!(in_server(text), ["FB201"], "{text}");
        }
        let place = warnings("http { server {\n location /files { alias /srv/; }\n} }");
        assert_eq!(place, ["FB201 2:11"]);
    }

    #[test]
    fn an_alias_without_the_slash_is_found() {
        assert_eq!(in_server("location /files/ { alias /srv; }"), ["FB202"]);
        assert_eq!(in_server("location / { alias /srv; }"), ["FB202"]);
    }

    #[test]
    fn an_alias_that_fits_is_not() {
        for text in [
            "location /files/ { alias /srv/; }",
            "location = /files { alias /srv/a; }",
            "location ~ ^/files(/.*)$ { alias /srv$1; }",
            "location /favicon.ico { alias /srv/icon.ico; }",
            "location /files/ { alias $root_of_files; }",
        ] {
            assert_eq!(in_server(text), [""; 0], "{text}");
        }
    }
}
