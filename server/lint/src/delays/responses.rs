//! Settings of responses: compression, buffering, fields.

use super::contexts::{Server, list};
use super::delay::{Report, Rule, Weight};
use crate::tree::{Id, Tree, is_one_of};

pub(super) fn check(tree: &Tree, server: &Server, report: &mut Report<'_>) {
    compression(tree, server, report);
    buffering(tree, server, report);
    fields(tree, server, report);
}

/// The codings that are on in a block, with the names of the lists of types for them.
fn codings(tree: &Tree, block: Id) -> impl Iterator<Item = &'static str> {
    let is_on = move |name| Server::is_set(tree, block, name, &["on"]);
    let lists = CODINGS.iter().filter(move |(name, _)| is_on(name));
    lists.map(|(_, types)| *types)
}

/// Returns whether a block sends precompressed files; which files exist is not known.
fn is_precompressed(tree: &Tree, block: Id) -> bool {
    ["gzip_static", "brotli_static", "zstd_static"]
        .iter()
        .any(|name| Server::is_set(tree, block, name, &["on", "always"]))
}

/// Returns whether a block passes requests to other servers, which may compress responses.
pub(super) fn is_passed(tree: &Tree, block: Id) -> bool {
    tree.has(block, &PASSES.map(|(pass, _, _)| pass)) || tree.has(block, &["grpc_pass"])
}

fn compression(tree: &Tree, server: &Server, report: &mut Report<'_>) {
    let Some((first, others)) = server.content.split_first() else {
        return;
    };
    let is_compressed =
        |block: &Id| codings(tree, *block).next().is_some() || is_precompressed(tree, *block);
    if !server.content.iter().any(is_compressed) {
        let place = server.place(tree, "gzip");
        match is_passed(tree, *first) && others.iter().all(|block| is_passed(tree, *block)) {
            true => report.add(
                PASSED,
                "no gzip: text is sent uncompressed unless the upstream server compresses it",
                place,
            ),
            false => report.add(COMPRESSION, "no gzip: text is sent uncompressed", place),
        }
        return;
    }
    for block in &server.content {
        types(tree, *block, report);
    }
}

/// A location without compression may have a reason, such as secrets in pages with text chosen by visitors (BREACH).
fn types(tree: &Tree, block: Id, report: &mut Report<'_>) {
    let Some((gzip, value)) = Server::setting(tree, block, "gzip") else {
        return;
    };
    if !is_one_of(value, &["on"]) || is_precompressed(tree, block) {
        return;
    }
    let all: Vec<String> = codings(tree, block)
        .flat_map(|types| list(tree, block, types))
        .flat_map(|id| tree.args(id))
        .map(|word| word.as_str().to_ascii_lowercase())
        .collect();
    let has = |wanted: &[&str]| {
        let is_one = |word: &String| word == "*" || wanted.contains(&word.as_str());
        all.iter().any(is_one)
    };
    let lacking: Vec<&str> = TYPES
        .iter()
        .filter_map(|(what, names)| (!has(names)).then_some(*what))
        .collect();
    if lacking.is_empty() {
        return;
    }
    let lacking = lacking.join(" and ");
    let at = tree.inherited(block, "gzip_types").unwrap_or(gzip);
    match is_passed(tree, block) {
        true => report.add(
            PASSED_TYPES,
            &format!("gzip_types without {lacking}: they are sent uncompressed unless the upstream server \
                      compresses them"),
            at,
        ),
        false => report.add(
            MISSING_TYPES,
            &format!("gzip_types without {lacking}: they are sent uncompressed"),
            at,
        ),
    }
}

fn buffering(tree: &Tree, server: &Server, report: &mut Report<'_>) {
    for block in &server.blocks {
        for (pass, buffering, ignore) in PASSES {
            // Directives that pass requests are not inherited.
            let Some(passed) = tree.within(*block, pass).next() else {
                continue;
            };
            let (at, value) = Server::setting(tree, *block, buffering).unwrap_or((passed, "on"));
            if is_one_of(value, &["off"]) {
                continue;
            }
            let ignored = list(tree, *block, ignore).into_iter().find(|id| {
                let words = tree.args(*id);
                words
                    .iter()
                    .any(|word| word.as_str().eq_ignore_ascii_case("x-accel-buffering"))
            });
            match ignored {
                Some(id) => report.add(
                    IGNORED,
                    &format!("{ignore} X-Accel-Buffering: an application cannot disable buffering in nginx, and \
                              flushed output is delayed"),
                    id,
                ),
                None => report.add(
                    HELD,
                    &format!("{buffering} is on: nginx holds flushed output until a buffer is full, unless \
                              X-Accel-Buffering is \"no\"; firstbyte sends it at once"),
                    at,
                ),
            }
        }
        if Server::is_set(tree, *block, "gzip", &["on"])
            && let Some((id, value)) = Server::setting(tree, *block, "postpone_gzipping")
            && !value.starts_with('0')
        {
            let title =
                "postpone_gzipping: compression waits until this much of a response has arrived";
            report.add(GZIPPING, title, id);
        }
    }
}

fn fields(tree: &Tree, server: &Server, report: &mut Report<'_>) {
    for block in &server.blocks {
        let all = list(tree, *block, "add_header");
        let bytes = |id: &Id| {
            let value = &tree.args(*id).get(1).map_or(0, |word| word.text.len());
            tree.arg(*id, 0).len() + value + FIELD_EXTRA_BYTES
        };
        let sum: usize = all.iter().map(bytes).sum();
        if sum >= FIELDS_BYTES_MIN
            && let Some(largest) = all.iter().max_by_key(|id| bytes(id))
        {
            let title = format!(
                "add_header adds {sum} bytes to each response; the largest field is {}",
                tree.arg(*largest, 0)
            );
            report.add(BLOAT, &title, *largest);
        }
    }
}

/// Directives that pass requests on, with the directives for buffering and for ignored fields.
const PASSES: [(&str, &str, &str); 4] = [
    ("proxy_pass", "proxy_buffering", "proxy_ignore_headers"),
    (
        "fastcgi_pass",
        "fastcgi_buffering",
        "fastcgi_ignore_headers",
    ),
    ("uwsgi_pass", "uwsgi_buffering", "uwsgi_ignore_headers"),
    ("scgi_pass", "scgi_buffering", "scgi_ignore_headers"),
];
/// Settings that compress responses, and those that name the types for it.
const CODINGS: [(&str, &str); 3] = [
    ("gzip", "gzip_types"),
    ("brotli", "brotli_types"),
    ("zstd", "zstd_types"),
];
/// Texts of a page besides HTML, which is always compressed, and their types.
const TYPES: [(&str, &[&str]); 2] = [
    ("style sheets (text/css)", &["text/css"]),
    (
        "scripts (text/javascript, application/javascript)",
        &[
            "text/javascript",
            "application/javascript",
            "application/x-javascript",
        ],
    ),
];
/// Colon, blank and line end of a field.
const FIELD_EXTRA_BYTES: usize = 4;
/// Fields that take more than a segment.
pub(super) const FIELDS_BYTES_MIN: usize = 1460;

const COMPRESSION: Rule = Rule {
    code: "no-compression",
    weight: Weight::Bad,
    fix: "gzip on; gzip_types text/css application/javascript text/javascript application/json image/svg+xml; firstbyte: also brotli on; zstd on;",
    round_trips: 0,
};
const MISSING_TYPES: Rule = Rule {
    fix: "gzip_types text/css application/javascript text/javascript application/json image/svg+xml;",
    ..COMPRESSION
};
const PASSED: Rule = Rule {
    weight: Weight::Warn,
    ..COMPRESSION
};
const PASSED_TYPES: Rule = Rule {
    weight: Weight::Warn,
    ..MISSING_TYPES
};
const HELD: Rule = Rule {
    code: "held-first-byte",
    weight: Weight::Note,
    fix: "proxy_buffering off; (or fastcgi_buffering etc.) for applications that flush; firstbyte: no change needed",
    round_trips: 0,
};
const IGNORED: Rule = Rule {
    weight: Weight::Warn,
    ..HELD
};
const GZIPPING: Rule = Rule {
    code: "held-first-byte",
    weight: Weight::Warn,
    fix: "postpone_gzipping 0; (the default)",
    round_trips: 0,
};
const BLOAT: Rule = Rule {
    code: "header-bloat",
    weight: Weight::Warn,
    fix: "shorten the values; use add_header only in locations that need the field",
    round_trips: 0,
};
