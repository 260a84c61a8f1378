//! Settings of responses: compression, buffering, fields.

use super::contexts::{Server, list};
use super::delay::{Report, Rule, Weight};
use crate::tree::{Id, Tree};

pub(super) fn judge(tree: &Tree, server: &Server, report: &mut Report<'_>) {
    if !server.only_returns(tree) {
        compression(tree, server, report);
    }
    buffering(tree, server, report);
    fields(tree, server, report);
}

fn is_compressed(tree: &Tree, block: Id) -> bool {
    ["gzip", "brotli", "zstd"]
        .iter()
        .any(|name| matches!(Server::setting(tree, block, name), Some((_, "on"))))
}

fn compression(tree: &Tree, server: &Server, report: &mut Report<'_>) {
    if !server
        .blocks
        .iter()
        .any(|block| is_compressed(tree, *block))
    {
        let title = "no gzip: text is sent uncompressed";
        report.add(COMPRESSION, title, server.place(tree, "gzip"));
        return;
    }
    for block in &server.blocks {
        // Locations in which it is switched off may have a reason, such as secrets beside what visitors choose.
        let Some((gzip, "on")) = Server::setting(tree, *block, "gzip") else {
            continue;
        };
        let types = tree.inherited(*block, "gzip_types");
        let has = |wanted: &[&str]| {
            let words = types.map_or(&[][..], |types| tree.args(types));
            let is_one = |word: &str| word == "*" || wanted.contains(&word);
            words
                .iter()
                .any(|word| is_one(&word.as_str().to_ascii_lowercase()))
        };
        let lacking: Vec<&str> = [
            ("style sheets (text/css)", has(&["text/css"])),
            (
                "scripts (text/javascript, application/javascript)",
                has(&[
                    "text/javascript",
                    "application/javascript",
                    "application/x-javascript",
                ]),
            ),
        ]
        .into_iter()
        .filter_map(|(what, there)| (!there).then_some(what))
        .collect();
        if !lacking.is_empty() {
            let title = format!(
                "gzip_types without {}: they are sent uncompressed",
                lacking.join(" and ")
            );
            report.add(TYPES, &title, types.unwrap_or(gzip));
        }
    }
}

/// Directives that pass requests on, the setting that holds back what programs flush, and the list of fields it ignores.
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

fn buffering(tree: &Tree, server: &Server, report: &mut Report<'_>) {
    for block in &server.blocks {
        for (pass, buffering, ignore) in PASSES {
            // A pass is not inherited.
            let Some(passed) = tree.within(*block, pass).next() else {
                continue;
            };
            let (at, value) = Server::setting(tree, *block, buffering).unwrap_or((passed, "on"));
            if value == "off" {
                continue;
            }
            let ignored = tree.inherited(*block, ignore).filter(|id| {
                let words = tree.args(*id);
                words
                    .iter()
                    .any(|word| word.as_str().eq_ignore_ascii_case("x-accel-buffering"))
            });
            match ignored {
                Some(id) => report.add(
                    IGNORED,
                    &format!("{ignore} X-Accel-Buffering: in nginx a program cannot have what it flushes sent at once"),
                    id,
                ),
                None => report.add(
                    HELD,
                    &format!("{buffering} is on: nginx keeps what a program flushes until a buffer is full or X-Accel-Buffering says no; firstbyte sends it"),
                    at,
                ),
            }
        }
        if let Some((id, value)) = Server::setting(tree, *block, "postpone_gzipping")
            && !value.starts_with('0')
        {
            let title =
                "postpone_gzipping: compression begins only when so much of a response is there";
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
                "add_header makes each response {sum} bytes longer, {} most of all",
                tree.arg(*largest, 0)
            );
            report.add(BLOAT, &title, *largest);
        }
    }
}

/// Colon, blank and line end of a field.
const FIELD_EXTRA_BYTES: usize = 4;
/// Fields that take more than a segment.
pub(super) const FIELDS_BYTES_MIN: usize = 1460;

const COMPRESSION: Rule = Rule {
    code: "no-compression",
    weight: Weight::Bad,
    mend: "gzip on; gzip_types text/css application/javascript text/javascript application/json image/svg+xml; firstbyte: also brotli on; zstd on;",
    round_trips: 0,
};
const TYPES: Rule = Rule {
    code: "no-compression",
    weight: Weight::Bad,
    mend: "gzip_types text/css application/javascript text/javascript application/json image/svg+xml;",
    round_trips: 0,
};
const HELD: Rule = Rule {
    code: "held-first-byte",
    weight: Weight::Note,
    mend: "proxy_buffering off; (or fastcgi_buffering and so on) where programs flush; firstbyte: nothing to set",
    round_trips: 0,
};
const IGNORED: Rule = Rule {
    weight: Weight::Warn,
    ..HELD
};
const GZIPPING: Rule = Rule {
    code: "held-first-byte",
    weight: Weight::Warn,
    mend: "postpone_gzipping 0; (the default)",
    round_trips: 0,
};
const BLOAT: Rule = Rule {
    code: "header-bloat",
    weight: Weight::Warn,
    mend: "shorter values, and add_header where a field is needed alone",
    round_trips: 0,
};
