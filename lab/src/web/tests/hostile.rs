//! Texts of others in pages, pictures, tables, JSON, filters, events.

use std::collections::BTreeMap;

use firstbyte_tests::TempDir;
use store::{Connection, Network, OpenSample, Prefixes, Sqlite, Store};

use super::{Dashboard, paths, text};
use crate::time::now_s;
use crate::web::live::{Figures, Live, Sums};

/// Texts that must stay texts.
pub(super) const HOSTILE: [&str; 8] = [
    "<script>alert(1)</script>",
    "\"><img src=x onerror=alert(1)>",
    "' onload='alert(1)",
    "</title></style></svg></textarea><script>alert(1)</script>",
    "]]>&#x3c;script&#x3e;",
    "\u{202e}txt.exe\u{2066}\u{1}\u{1b}[31m\r\n\r\ndata: x\u{ffff}",
    "=cmd|'/C calc'!A0",
    "'; DROP TABLE row; -- \" OR 1=1",
];

/// Connections with one hostile text in each field of text.
fn rows(text: &str) -> Vec<Connection> {
    let one = Connection {
        closed_s: now_s() - 600,
        server: text.to_owned(),
        protocol: text.to_owned(),
        tls: text.to_owned(),
        country: Some(*b"<'"),
        subdivision: format!("DE-{text}"),
        operator: text.to_owned(),
        min_rtt_us: Some(20_000),
        first_byte_us: Some(50_000),
        requests: 1,
        ..Connection::default()
    };
    let german = Connection {
        country: Some(*b"DE"),
        network: Some(Network::of([198, 51, 100, 77].into(), Prefixes::default())),
        ..one.clone()
    };
    let mut all = vec![one; 30];
    all.resize(60, german);
    all
}

fn site(text: &'static str) -> Dashboard {
    let open = OpenSample {
        at_s: now_s() - 120,
        server: text.to_owned(),
        protocol: text.to_owned(),
        connections: 3,
    };
    Dashboard::named(text, &rows(text), &[open])
}

/// Targets with texts of others: every view, with filters too.
fn targets() -> Vec<String> {
    let queries = [
        "period=24h",
        "period=7d&country=DE",
        "server=%3Cb%3E&protocol=%27%22",
    ];
    let with = |path: &str| queries.map(|query| format!("{path}?{query}"));
    paths().flat_map(with).collect()
}

/// Numbers of start tags by name, with the names of their attributes.
pub(super) fn tags(page: &str) -> BTreeMap<String, usize> {
    let mut found = BTreeMap::new();
    for token in html5gum::Tokenizer::new(page).flatten() {
        if let html5gum::Token::StartTag(tag) = token {
            let names: Vec<_> = tag
                .attributes
                .keys()
                .map(|name| String::from_utf8_lossy(name).into_owned())
                .collect();
            let name = String::from_utf8_lossy(&tag.name).into_owned();
            *found
                .entry(format!("{name} {}", names.join(" ")))
                .or_insert(0) += 1;
        }
    }
    found
}

#[test]
fn texts_of_others_stay_texts_in_pages_and_pictures() {
    let plain = site("plain");
    for hostile in HOSTILE {
        let site = site(hostile);
        for target in targets() {
            let (page, wanted) = (site.body(&target, 200), plain.body(&target, 200));
            assert_eq!(tags(&page), tags(&wanted), "{hostile}: {target}");
            let is_hidden = |c: char| c != '\n' && (c.is_control() || c == '\u{202e}');
            assert!(!page.contains(is_hidden), "{hostile}: {target}");
        }
    }
}

#[test]
fn texts_of_others_are_no_formulas_in_tables() {
    for hostile in HOSTILE {
        let site = site(hostile);
        for path in paths() {
            for (id, _) in site.json(&format!("{path}.json?country=DE"))["tables"]
                .as_object()
                .expect("an object")
            {
                let csv = site.body(&format!("{path}.csv?country=DE&table={id}"), 200);
                for line in csv.split("\r\n").skip(1).filter(|line| !line.is_empty()) {
                    for cell in cells(line) {
                        let formula = cell
                            .trim_start_matches([' ', '"'])
                            .starts_with(['=', '+', '@', '\t']);
                        assert!(!formula, "{path} {id}: {line}");
                    }
                    assert!(!line.contains(|c: char| c.is_control()), "{line:?}");
                }
            }
        }
    }
}

/// Cells of a line, with their quotes.
fn cells(line: &str) -> Vec<&str> {
    let (mut found, mut begin, mut is_quoted) = (Vec::new(), 0, false);
    for (at, c) in line.char_indices() {
        match c {
            '"' => is_quoted = !is_quoted,
            ',' if !is_quoted => {
                found.push(&line[begin..at]);
                begin = at + 1;
            }
            _ => {}
        }
    }
    assert!(!is_quoted, "{line}");
    found.push(&line[begin..]);
    found
}

#[test]
fn texts_of_others_break_no_json() {
    for hostile in HOSTILE {
        let site = site(hostile);
        let found = site.json("servers.json");
        assert_eq!(found["store"], hostile);
        assert_eq!(found["tables"]["servers"][0]["server"], hostile);
        for path in paths() {
            let body = site.body(&format!("{path}.json"), 200);
            assert!(!body.contains(|c: char| c != '\n' && (c.is_control() || c == '\u{202e}')));
        }
        let error = site.get("map.json?metric=%22%7D%3Cscript%3E");
        assert_eq!(error.status, 400);
        serde_json::from_str::<serde_json::Value>(&text(&error)).expect("it is JSON");
    }
}

#[test]
fn filters_are_values_and_no_sql() {
    let site = site(HOSTILE[7]);
    let count = |query: &str| {
        let found = site.json(&format!("overview.json?{query}"));
        found["tables"]["totals"][0]["connections"]
            .as_u64()
            .expect("a number")
    };
    let all = count("");
    assert_eq!(all, 60);
    let injected = "%27%20OR%20%271%27%3D%271";
    for name in ["server", "protocol"] {
        assert_eq!(count(&format!("{name}={injected}")), 0, "{name}");
        for text in [
            "%27",
            "%22",
            "%00",
            "%25",
            "_",
            "%3B%20DROP%20TABLE%20row%3B",
            "%FF",
            "%E2%80%AE",
        ] {
            assert_eq!(count(&format!("{name}={text}")), 0, "{name}={text}");
        }
        let own = "%27%3B%20DROP%20TABLE%20row%3B%20--%20%22%20OR%201%3D1";
        assert_eq!(
            count(&format!("{name}={own}")),
            all,
            "its own name is found"
        );
    }
    for country in [injected, "DE%27", "%25%25", "__"] {
        assert_eq!(site.get(&format!("overview?country={country}")).status, 400);
    }
    let store = Sqlite::open_to_read(&site.dir.path().join("lab.db")).expect("it is whole");
    assert!(store.extent().expect("it can be read").is_some());
}

#[test]
fn texts_of_others_end_no_event() {
    for hostile in HOSTILE {
        let live = Live::default();
        live.set_open(1, [(hostile.to_owned(), 7)]);
        let mut figures =
            Figures::between("now".to_owned(), &Sums::default(), &Sums::default(), 1.0);
        figures.open = live.open();
        let event = figures.event(5);
        let lines: Vec<&str> = event.split('\n').collect();
        assert_eq!(lines.len(), 5, "{event}");
        assert_eq!((lines[0], lines[1]), ("event: figures", "id: 5"));
        let data = lines[2].strip_prefix("data: ").expect("data");
        let data: serde_json::Value = serde_json::from_str(data).expect("it is JSON");
        assert_eq!(data["open"][hostile], 7);
        assert!(!event.contains('\r'));
    }
}

#[test]
fn no_output_has_a_full_address() {
    let site = site("plain");
    for target in targets() {
        for target in [
            target.clone(),
            target.replace('?', ".json?"),
            target.replace('?', ".csv?"),
        ] {
            let found = text(&site.get(&target));
            assert!(!found.contains("198.51.100.77"), "{target}");
        }
    }
    let networks = site.body("networks", 200);
    assert!(networks.contains("198.51.100.0/24"));
}

/// Errors of a store may have any text.
#[test]
fn reasons_of_errors_are_texts() {
    let dir = TempDir::new();
    let path = dir.path().join("<script>alert(1)</script>");
    std::fs::create_dir_all(&path).expect("a directory");
    let source = super::File {
        path,
        name: "<b>name</b>",
    };
    let pages = crate::web::pages::Pages::new(crate::web::Site {
        source: std::sync::Arc::new(source),
        live: None,
    });
    let site = Dashboard { pages, dir };
    let page = site.body("map", 503);
    assert!(
        !page.contains("<b>name") && !page.contains("<script>alert"),
        "{page}"
    );
}
