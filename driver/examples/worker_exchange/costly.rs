//! Configurations that cost more than an exchange: lists of expressions, filtered bodies, experiments.

use std::io;
use std::path::Path;

/// Returns the configuration of a case in `http`, and in its server. Both are empty if the case needs none.
pub(super) fn blocks(case: &str, root: &Path) -> (String, String) {
    let root = root.display();
    match case {
        "map-regex" => {
            let line = |n| format!("'~^/old/page{n}/(.*)$' /new/$1;\n");
            let lines: String = (0..EXPRESSIONS).map(line).collect();
            let map = format!("map $uri $mapped {{ default none; {lines} }}");
            (map, "location = /map { return 200 $mapped; }".to_owned())
        }
        "location-regex" => {
            let block = |n| format!("location ~ \\.ext{n}$ {{ return 404; }}\n");
            let blocks: String = (0..EXPRESSIONS).map(block).collect();
            let last = "location ~ ^/location$ { return 200 found; }";
            (String::new(), blocks + last)
        }
        "sub_filter" => {
            let of = "sub_filter example.org example.com; sub_filter_once off;";
            let location = format!("location /sub/ {{ alias {root}/; {of} }}");
            (TYPES.to_owned(), location)
        }
        "sub_filter-20" => {
            let line = |n| format!("sub_filter word{n}x w;\n");
            let lines: String = (0..20).map(line).collect();
            let location = format!("location /sub/ {{ alias {root}/; {lines} }}");
            (TYPES.to_owned(), location)
        }
        "charset" => {
            let map = "charset_map koi8-r utf-8 { C1 D0B0; }";
            let of = "charset utf-8; source_charset koi8-r;";
            let location = format!("location /charset/ {{ alias {root}/; {of} }}");
            (format!("{TYPES} {map}"), location)
        }
        case => users(case),
    }
}

/// Returns the configuration of cases that divide users.
fn users(case: &str) -> (String, String) {
    match case {
        "split_clients" => {
            let split = "split_clients $remote_addr $split { 50% control; * fast; }";
            let location = "location = /split { return 200 $split; }";
            (split.to_owned(), location.to_owned())
        }
        // Locations and servers of the cases below, without an experiment.
        "locations" => {
            let locations =
                "location = /experiment { return 200; } location = /beacon { return 204; }";
            (String::new(), locations.to_owned())
        }
        "servers" => {
            let other = "server { listen 127.0.0.1:8000; server_name other.example.org; }";
            (
                other.to_owned(),
                "location = /beacon { return 204; }".to_owned(),
            )
        }
        "experiment" | "experiment-user" => {
            let arms = "arm control; arm fast;";
            let http = format!("{EXPERIMENTS} experiment page {{ {arms} }}");
            let locations = "location = /experiment { return 200 $experiment_page; }
                location = /beacon { experiment_beacon; }";
            (http, locations.to_owned())
        }
        "experiment-host" => {
            let arms = "arm control host=www.example.org; arm fast host=other.example.org;";
            let other = "server { listen 127.0.0.1:8000; server_name other.example.org; }";
            let http = format!("{EXPERIMENTS} experiment files {{ {arms} }} {other}");
            (http, "location = /beacon { experiment_beacon; }".to_owned())
        }
        _ => (String::new(), String::new()),
    }
}

/// Writes the page to be filtered: lines of words. A tenth of the lines contain the string to be replaced.
pub(super) fn site(root: &Path) -> io::Result<()> {
    let line = |n: usize| {
        let link = ["", " at Example.ORG"][usize::from(n.is_multiple_of(10))];
        format!("<p class=row>the server sends line {n} of text to each client{link}</p>\n")
    };
    let mut text: String = (0..).map(line).take(BODY_BYTES / 50).collect();
    text.truncate(BODY_BYTES);
    std::fs::write(root.join("text.html"), text)
}

/// Number of expressions in a list.
const EXPRESSIONS: usize = 500;
/// Length of the page, bytes.
const BODY_BYTES: usize = 80 << 10;
const TYPES: &str = "types { text/html html; }";
/// Directives needed by experiments with a beacon.
const EXPERIMENTS: &str = "experiment_key key; lab_store sqlite:/bench/store;";
/// The key of experiments.
pub(super) const KEY: &str = "a key of sixteen bytes";

/// Returns the additional request fields of a case: a cookie made with [`KEY`].
pub(super) fn cookie(case: &str) -> &'static str {
    match case {
        "experiment-user" => "Cookie: fb_user=0123456789abcdefb42905d75b42c078\r\n",
        _ => "",
    }
}
