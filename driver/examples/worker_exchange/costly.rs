//! Configurations that cost more than an exchange: lists of expressions, and bodies that are changed.

use std::io;
use std::path::Path;

/// Configuration of a case in `http`, and in its server; empty for the cases that need none.
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
        _ => (String::new(), String::new()),
    }
}

/// Writes the page that is changed: lines of words, a tenth of them with the string that is replaced.
pub(super) fn site(root: &Path) -> io::Result<()> {
    let line = |n: usize| {
        let link = ["", " at Example.ORG"][usize::from(n.is_multiple_of(10))];
        format!("<p class=row>the server sends line {n} of text to each client{link}</p>\n")
    };
    let mut text: String = (0..).map(line).take(BODY_BYTES / 50).collect();
    text.truncate(BODY_BYTES);
    std::fs::write(root.join("text.html"), text)
}

/// Expressions of a list.
const EXPRESSIONS: usize = 500;
/// Length of the page, bytes.
const BODY_BYTES: usize = 80 << 10;
const TYPES: &str = "types { text/html html; }";
