//! FB605 and FB606: servers of the arms of an experiment.

use std::collections::BTreeMap;

use crate::Warn;
use crate::listens::servers_of_http;
use crate::tree::{Id, Tree};

/// An arm with the server of its host.
struct Arm<'t> {
    name: &'t str,
    protocols: &'t str,
    server: Id,
}

/// Directives of a server by the blocks around them and their names.
type Lines = BTreeMap<(String, String), Vec<Id>>;

/// FB605: servers of two arms differ in more than the protocols that arms offer.
pub(super) fn differ(tree: &Tree, warn: &mut Warn<'_>) {
    for experiment in tree.http("experiment") {
        let arms = arms(tree, experiment);
        let Some((first, others)) = arms.split_first() else {
            continue;
        };
        for other in others {
            compare(tree, warn, tree.arg(experiment, 0), first, other);
        }
    }
}

fn compare(tree: &Tree, warn: &mut Warn<'_>, experiment: &str, one: &Arm<'_>, other: &Arm<'_>) {
    let by_protocols = one.protocols != other.protocols;
    let lines = |arm: &Arm<'_>| {
        let mut lines = Lines::new();
        collect(tree, arm.server, "", by_protocols, &mut lines);
        lines
    };
    let (mine, mut theirs) = (lines(one), lines(other));
    let mut differences = Vec::new();
    for (key, ids) in mine {
        let those = theirs.remove(&key).unwrap_or_default();
        let texts = |ids: &[Id]| -> Vec<String> {
            ids.iter().map(|id| text(tree, *id, by_protocols)).collect()
        };
        if texts(&ids) != texts(&those) {
            differences.push((ids.first().copied(), those.first().copied()));
        }
    }
    differences.extend(theirs.into_values().map(|ids| (None, ids.first().copied())));
    for (mine, theirs) in differences {
        let Some(at) = theirs.or(mine) else { continue };
        let value = |id: Option<Id>| match id {
            Some(id) => format!("\"{}\" ({})", text(tree, id, by_protocols), tree.place(id)),
            None => "not written".to_owned(),
        };
        let message = format!(
            "arms \"{}\" and \"{}\" of experiment \"{experiment}\" differ in \"{}\": {} and {}",
            one.name,
            other.name,
            tree.name(at),
            value(mine),
            value(theirs)
        );
        let hint = "the experiment measures this difference, too";
        warn.name(at, message, hint);
    }
}

/// Collects the directives of a block and of those inside.
fn collect(tree: &Tree, block: Id, path: &str, by_protocols: bool, lines: &mut Lines) {
    for id in tree.node(block).children.iter().copied() {
        let name = tree.name(id);
        let is_protocol = by_protocols && is_of_protocol(tree, block, name);
        // Included files are in the place of their `include`.
        if OF_EACH.contains(&name) || is_protocol || name == "include" {
            continue;
        }
        if tree.directive(id).block.is_some() {
            let inner = format!("{path} {name} {}", text(tree, id, by_protocols));
            collect(tree, id, &inner, by_protocols, lines);
            lines.entry((inner, String::new())).or_default().push(id);
        } else {
            let key = (path.to_owned(), name.to_owned());
            lines.entry(key).or_default().push(id);
        }
    }
}

/// Returns whether the beginning of a directive's name is a protocol: HTTP/2, or a parameter of `listen`.
fn is_of_protocol(tree: &Tree, block: Id, name: &str) -> bool {
    let prefix = name.split('_').next().unwrap_or_default();
    let blocks = std::iter::once(block).chain(tree.parents(block));
    let mut listens = blocks.flat_map(|block| tree.within(block, "listen"));
    let is_parameter = |listen: Id| tree.args(listen).iter().any(|word| word.as_str() == prefix);
    prefix == "http2" || (prefix != "ssl" && listens.any(is_parameter))
}

/// Returns the arguments of a directive. Of `listen` those that choose servers do not count. If arms offer other protocols, its
/// address, `ssl` and options with values alone count.
fn text(tree: &Tree, id: Id, by_protocols: bool) -> String {
    let is_listen = tree.name(id) == "listen";
    let words = tree.args(id).iter().map(conf::Word::as_str).enumerate();
    let words = words.filter(|(at, word)| match *word {
        _ if !is_listen || *at == 0 => true,
        "default_server" | "default" => false,
        "ssl" => true,
        word => !by_protocols || word.contains('='),
    });
    let words: Vec<&str> = words.map(|(_, word)| word).collect();
    words.join(" ")
}

/// FB606: no script sees the times of the files on the host of an arm.
pub(super) fn hidden_times(tree: &Tree, warn: &mut Warn<'_>) {
    let experiments = tree.http("experiment");
    let servers: Vec<Id> = experiments
        .flat_map(|experiment| arms(tree, experiment))
        .map(|arm| arm.server)
        .collect();
    for id in tree.http("add_header") {
        let is_timing = tree.arg(id, 0).eq_ignore_ascii_case("timing-allow-origin");
        let value = tree.arg(id, 1);
        let shows = value == "*" || value.contains("://") || value.contains('$');
        let of_arm = || tree.parents(id).any(|parent| servers.contains(&parent));
        if is_timing && !shows && of_arm() {
            let message =
                "this \"Timing-Allow-Origin\" hides the timing of the arm's files from the beacon";
            let hint = "remove it: hosts of arms send \"Timing-Allow-Origin: *\"";
            warn.word(id, 1, message, hint);
        }
    }
}

/// Returns the arms of an experiment with hosts that servers have as names.
fn arms(tree: &Tree, experiment: Id) -> Vec<Arm<'_>> {
    let arms: Vec<Id> = tree.within(experiment, "arm").collect();
    let mut servers: BTreeMap<String, Id> = BTreeMap::new();
    if arms
        .iter()
        .any(|arm| !parameter(tree, *arm, "host").is_empty())
    {
        for server in servers_of_http(tree) {
            for names in tree.within(server, "server_name") {
                let names = tree.args(names).iter().map(|word| word.as_str());
                servers.extend(names.map(|name| (name.to_ascii_lowercase(), server)));
            }
        }
    }
    let with_server = |arm: Id| {
        let host = parameter(tree, arm, "host").to_ascii_lowercase();
        Some(Arm {
            name: tree.arg(arm, 0),
            protocols: parameter(tree, arm, "protocols"),
            server: *servers.get(&host)?,
        })
    };
    arms.into_iter().filter_map(with_server).collect()
}

/// Returns the value of a parameter of an arm, "" if it has none.
fn parameter<'t>(tree: &'t Tree, arm: Id, name: &str) -> &'t str {
    let words = tree.args(arm).iter().map(conf::Word::as_str);
    let mut values = words.filter_map(|word| word.strip_prefix(name)?.strip_prefix('='));
    values.next().unwrap_or_default()
}

/// Directives that each server has for itself, without an effect on the times that users see.
const OF_EACH: [&str; 5] = [
    "server_name",
    "ssl_certificate",
    "ssl_certificate_key",
    "access_log",
    "error_log",
];

#[cfg(test)]
mod tests {
    use crate::testing::{in_http, warnings};

    /// Codes about an experiment. The servers of its arms have these lines.
    fn arms(protocols: [&str; 2], lines: [&str; 2]) -> Vec<&'static str> {
        in_http(&format!(
            "experiment x {{ arm a host=a.b {}; arm b host=B.b {}; }}
             server {{ listen 80 default_server; server_name a.b; {} }}
             server {{ listen 80; server_name b.b; {} }}",
            protocols[0], protocols[1], lines[0], lines[1]
        ))
    }

    #[test]
    fn servers_of_arms_are_compared() {
        for (one, other, count) in [
            ("", "", 0),
            ("gzip on;", "gzip on;", 0),
            ("gzip on;", "gzip off;", 1),
            ("gzip on;", "", 1),
            ("", "gzip on;", 1),
            (
                "location /a { expires 1d; }",
                "location /a { expires 1d; }",
                0,
            ),
            (
                "location /a { expires 1d; }",
                "location /a { expires 2d; }",
                1,
            ),
            ("location /a { }", "location /b { }", 2),
            ("gzip on; expires 1d;", "expires 2d; gzip off;", 2),
            ("etag on; gzip on;", "gzip on; etag on;", 0),
            ("access_log /a;", "access_log /b;", 0),
        ] {
            let found = arms(["", ""], [one, other]);
            assert_eq!(found, vec!["FB605"; count], "{one} | {other}");
        }
    }

    #[test]
    fn protocols_may_differ_if_arms_say_so() {
        let lines = ["http2 on; http2_chunk_size 4k;", "listen 81 ssl spdy;"];
        let lines = [
            lines[0].to_owned() + "listen 81 ssl http2 default_server;",
            lines[1].to_owned(),
        ];
        let lines = [lines[0].as_str(), lines[1].as_str()];
        assert_eq!(
            arms(["protocols=http/1.1", "protocols=h2,http/1.1"], lines),
            [""; 0]
        );
        assert_eq!(arms(["", ""], lines), ["FB605"; 3]);
    }

    #[test]
    fn values_and_places_are_named() {
        let text = "http {
            experiment x { arm a host=a; arm b host=b; }
            server { listen 80 default_server; server_name a; gzip on; }
            server { listen 80; server_name b; gzip off; }
        }";
        assert_eq!(warnings(text), ["FB605 4:48"]);
    }

    #[test]
    fn times_of_files_are_visible() {
        for (value, count) in [
            ("*", 0),
            ("https://a.b", 0),
            ("$x", 0),
            ("none", 1),
            ("''", 1),
        ] {
            let line = format!("add_header Timing-Allow-Origin {value};");
            assert_eq!(
                arms(["", ""], [&line, &line]),
                vec!["FB606"; count * 2],
                "{value}"
            );
        }
        assert_eq!(
            in_http("server { listen 80; add_header Timing-Allow-Origin none; }"),
            [""; 0]
        );
    }
}
