//! Figures of each view, in all forms.

use std::collections::BTreeSet;

use serde_json::Value;
use store::{Connection, OpenSample};

use super::{Dashboard, example, paths, rows, text};
use crate::time::now_s;
use crate::web::http::{CSV, HTML, JSON};

#[test]
fn each_view_is_a_page_a_table_and_json() {
    let site = example();
    for path in paths() {
        let page = site.get(&format!("{path}?period=24h"));
        let body = text(&page);
        assert_eq!((page.status, page.kind), (200, HTML), "{path}: {body}");
        for part in [
            "<h1>",
            "<main",
            "href=\"#main\"",
            "aria-current=\"page\"",
            "<form",
            "type=\"range\"",
        ] {
            assert!(body.contains(part), "{path}: {part}");
        }
        let json = site.get(&format!("{path}.json?period=24h"));
        assert_eq!((json.status, json.kind), (200, JSON), "{path}");
        let json: Value = serde_json::from_str(&text(&json)).expect("it is JSON");
        assert_eq!(json["format"], "firstbyte-dashboard/1");
        assert_eq!(json["view"], path);
        let tables = json["tables"].as_object().expect("an object");
        assert!(!tables.is_empty(), "{path}");
        for (id, table) in tables {
            let csv = site.get(&format!("{path}.csv?period=24h&table={id}"));
            assert_eq!((csv.status, csv.kind), (200, CSV), "{path} {id}");
            assert_eq!(csv.file, Some(format!("{path}-{id}.csv")));
            let csv = text(&csv);
            let rows = table.as_array().expect("an array");
            assert_eq!(csv.lines().count(), rows.len() + 1, "{path} {id}");
            assert!(!rows.is_empty(), "{path} {id} has rows");
            let heads: BTreeSet<&str> = csv.lines().next().expect("heads").split(',').collect();
            let members = rows[0].as_object().expect("an object").keys();
            assert_eq!(members.map(String::as_str).collect::<BTreeSet<_>>(), heads);
            // The link of the table is on the page.
            assert!(
                body.contains(&format!("{path}.csv?table={id}")),
                "{path} {id}"
            );
        }
        site.body(&format!("{path}.csv?table=none"), 404);
    }
    assert!(site.body("", 200).contains("<h1>Overview</h1>"));
}

#[test]
fn all_links_are_relative_and_one_level_deep() {
    let site = example();
    for path in paths() {
        let body = site.body(&format!("{path}?country=DE&protocol=HTTP%2F2.0"), 200);
        for attribute in ["href=\"", "src=\"", "action=\"", "data-live=\""] {
            for part in body.split(attribute).skip(1) {
                let target = part.split('"').next().expect("a target");
                let place = target.split('?').next().expect("a path");
                assert!(!place.contains(['/', ':']), "{path}: {target}");
                let is_known = place.starts_with('#') || place == "events";
                assert!(
                    is_known || site.get(target.replace("&amp;", "&").as_str()).status == 200,
                    "{target}"
                );
            }
        }
        for forbidden in [
            " style=\"",
            "<style",
            " onclick",
            " onload",
            "javascript:",
            "http:",
            "https:",
        ] {
            let found = body
                .replace("http://www.w3.org/2000/svg", "")
                .contains(forbidden);
            assert!(!found, "{path}: {forbidden}");
        }
        assert_eq!(
            body.matches("<script").count(),
            body.matches("<script defer src=").count()
        );
    }
}

/// Two connections with known figures.
fn two() -> Vec<Connection> {
    let one = Connection {
        closed_s: now_s() - 600,
        server: "web-1".to_owned(),
        protocol: "HTTP/2.0".to_owned(),
        country: Some(*b"DE"),
        min_rtt_us: Some(20_000),
        first_byte_us: Some(50_000),
        handshake_us: Some(40_000),
        requests: 5,
        statuses: [2, 1, 1, 1],
        bytes_sent: 1000,
        bytes_received: 100,
        retransmits: 3,
        duration_ms: 4000,
        ..Connection::default()
    };
    let other = Connection {
        server: "web-2".to_owned(),
        protocol: "HTTP/1.1".to_owned(),
        country: None,
        via_proxy: true,
        handshake_us: None,
        statuses: [5, 0, 0, 0],
        ..one.clone()
    };
    vec![one, other]
}

#[test]
fn figures_are_those_of_the_rows() {
    let site = Dashboard::of(&two(), &[]);
    let all = site.json("overview.json");
    let totals = &all["tables"]["totals"][0];
    for (name, wanted) in [
        ("connections", 2.0),
        ("requests", 10.0),
        ("status_2xx", 7.0),
        ("status_3xx", 1.0),
        ("status_4xx", 1.0),
        ("status_5xx", 1.0),
        ("bytes_sent", 2000.0),
        ("bytes_received", 200.0),
        ("retransmits", 6.0),
        ("via_proxy", 1.0),
        ("mean_duration_ms", 4000.0),
    ] {
        assert_eq!(totals[name].as_f64(), Some(wanted), "{name}");
    }
    let times = &all["tables"]["times"];
    assert_eq!(times[0]["metric"], "min_rtt");
    assert_eq!(
        (times[0]["samples"].as_u64(), times[0]["median_ms"].as_f64()),
        (Some(1), Some(20.0))
    );
    assert_eq!(
        (times[1]["samples"].as_u64(), times[1]["median_ms"].as_f64()),
        (Some(2), Some(50.0))
    );
    assert_eq!(
        (times[2]["samples"].as_u64(), times[2]["p80_ms"].as_f64()),
        (Some(1), Some(40.0))
    );
    let series = all["tables"]["series"].as_array().expect("an array");
    let sum = |name: &str| {
        series
            .iter()
            .filter_map(|row| row[name].as_u64())
            .sum::<u64>()
    };
    assert_eq!(
        (sum("connections"), sum("requests"), sum("status_5xx")),
        (2, 10, 1)
    );
    let page = site.body("overview", 200);
    for figure in ["10.0 %", "70.0 %", "20.0 ms", "50.0 ms", "1.95 KiB"] {
        assert!(page.contains(figure), "{figure}");
    }
}

#[test]
fn filters_reach_the_store() {
    let site = Dashboard::of(&two(), &[]);
    let connections = |query: &str| {
        let all = site.json(&format!("overview.json?{query}"));
        all["tables"]["totals"][0]["connections"]
            .as_u64()
            .expect("a number")
    };
    for (query, wanted) in [
        ("", 2),
        ("period=1h", 2),
        ("protocol=HTTP%2F2.0", 1),
        ("protocol=HTTP%2F3.0", 0),
        ("server=web-2", 1),
        ("server=web-2&protocol=HTTP%2F2.0", 0),
        ("country=DE", 1),
        ("country=unknown", 1),
        ("country=FR", 0),
        ("shift=-1", 0),
        ("from=2020-01-01&to=2020-01-02", 0),
    ] {
        assert_eq!(connections(query), wanted, "{query}");
    }
    let times = site.json("times.json?protocol=HTTP%2F2.0");
    let quantiles = times["tables"]["quantiles"].as_array().expect("an array");
    assert!(quantiles.iter().all(|row| row["protocol"] != "HTTP/1.1"));
    let servers = site.json("servers.json");
    let names = servers["tables"]["servers"]
        .as_array()
        .expect("an array")
        .iter();
    let names: Vec<_> = names
        .map(|row| row["server"].as_str().expect("text"))
        .collect();
    assert_eq!(names, ["web-1", "web-2"]);
}

#[test]
fn map_has_countries_and_their_subdivisions() {
    let site = example();
    let map = site.json("map.json");
    let countries = map["tables"]["countries"].as_array().expect("an array");
    assert_eq!(countries[0]["country"], "DE");
    assert_eq!(countries[0]["name"], "Germany");
    assert_eq!(countries[0]["enough"], "yes");
    assert!(map["tables"]["subdivisions"].is_null());
    let page = site.body("map", 200);
    assert!(
        page.contains("href=\"map?country=DE\""),
        "countries are links"
    );
    assert!(page.contains("Median round-trip time"));
    let page = site.body("map?metric=handshake&percentile=95", 200);
    assert!(page.contains("95th percentile of the time of the TLS handshake"));
    // Subdivisions are counted by whole hours.
    let germany = site.json("map.json?country=DE&period=7d");
    let parts = germany["tables"]["subdivisions"]
        .as_array()
        .expect("an array");
    let names: BTreeSet<_> = parts
        .iter()
        .map(|row| row["subdivision"].as_str().expect("text"))
        .collect();
    assert_eq!(names, BTreeSet::from(["DE-BE", "DE-BY"]));
    let page = site.body("map?country=DE", 200);
    assert!(page.contains("Country: Germany"), "the filter is shown");
}

#[test]
fn open_connections_are_means_of_their_steps() {
    let now = now_s() / 60 * 60;
    let open = |minutes: u64, protocol: &str, connections| OpenSample {
        at_s: now - minutes * 60,
        server: "web-1".to_owned(),
        protocol: protocol.to_owned(),
        connections,
    };
    let samples = [
        open(2, "HTTP/1.1", 4),
        open(2, "HTTP/2.0", 10),
        open(1, "HTTP/1.1", 6),
    ];
    let site = Dashboard::of(&two(), &samples);
    let found = site.json("connections.json?period=1h");
    let rows: Vec<_> = found["tables"]["open"]
        .as_array()
        .expect("an array")
        .iter()
        .collect();
    let of = |protocol: &str| {
        rows.iter()
            .filter(|row| row["protocol"] == protocol)
            .count()
    };
    assert_eq!(
        (of("HTTP/1.1"), rows[0]["max"].as_u64()),
        (2, Some(4)),
        "{rows:?}"
    );
    let page = site.body("connections?period=1h&country=DE", 200);
    assert!(page.contains("An open connection has no country"));
    let closed = site.json("connections.json");
    assert_eq!(closed["tables"]["closed"][1]["mean_duration_ms"], 4000.0);
}

#[test]
fn stalls_are_counted_by_cause() {
    let mut rows = two();
    rows[0].stalls.delayed_ack = 3;
    rows[1].stalls.window = 1;
    let site = Dashboard::of(&rows, &[]);
    let found = site.json("stalls.json");
    let causes = &found["tables"]["causes"];
    assert_eq!(causes[0]["stalls"], 3);
    assert_eq!(causes[0]["per_1000_requests"], 300.0);
    assert_eq!(causes[1]["stalls"], 0);
    assert_eq!(causes[2]["stalls"], 1);
}

#[test]
fn networks_are_truncated_and_most_connections_are_first() {
    let site = example();
    let found = site.json("networks.json");
    let networks = found["tables"]["networks"].as_array().expect("an array");
    assert!(
        networks
            .iter()
            .all(|row| row["network"] == "198.51.100.0/24"),
        "{networks:?}"
    );
    assert_eq!(networks[0]["share_percent"], 100.0);
    let operators = found["tables"]["operators"].as_array().expect("an array");
    assert_eq!(operators[0]["operator"], "AS64496 Example Net");
    let germany = site.json("networks.json?country=DE");
    assert!(germany["tables"]["operators"].is_null());
}

#[test]
fn equal_periods_have_no_difference_and_slower_ones_are_found() {
    let now = now_s();
    let day = 86_400;
    let before = rows::rows(11, 4000, now - day, day);
    let same = rows::rows(12, 4000, now, day);
    let mut slower = same.clone();
    for row in &mut slower {
        row.min_rtt_us = row.min_rtt_us.map(|us| us * 3 / 2);
    }
    let verdicts = |after: &[Connection]| {
        let site = Dashboard::of(&[&before[..], after].concat(), &[]);
        let found = site.json("compare.json");
        let countries = found["tables"]["countries"].as_array().expect("an array");
        let text = |row: &Value| row["verdict"].as_str().expect("text").to_owned();
        countries.iter().map(text).collect::<Vec<_>>()
    };
    let equal = verdicts(&same);
    assert_eq!(equal[0], "no difference beyond chance", "{equal:?}");
    assert!(equal.iter().all(|text| !text.contains('%')), "{equal:?}");
    let other = verdicts(&slower);
    assert!(other[0].ends_with(" % slower"), "{other:?}");
}

#[test]
fn an_empty_store_shows_the_next_steps() {
    let site = Dashboard::of(&[], &[]);
    for path in paths() {
        let page = site.body(path, 200);
        for words in [
            "Next steps",
            "rtt_map on;",
            "lab_store sqlite:",
            "firstbyte -t",
        ] {
            assert!(page.contains(words), "{path}: {words}");
        }
        assert!(!page.contains("<svg"), "no empty charts");
        assert_eq!(
            site.json(&format!("{path}.json"))["tables"],
            serde_json::json!({})
        );
        site.body(&format!("{path}.csv"), 404);
    }
}

#[test]
fn a_period_without_connections_leads_to_one_with_some() {
    let site = Dashboard::of(&two(), &[]);
    let page = site.body("times?from=2020-01-01&to=2020-01-02&server=web-1", 200);
    assert!(page.contains("No connections in this period"));
    let link = page
        .split("href=\"")
        .find(|part| part.contains("Show the newest"))
        .expect("a link");
    let link = link
        .split('"')
        .next()
        .expect("its target")
        .replace("&amp;", "&");
    let page = site.body(&link, 200);
    assert!(!page.contains("No connections in this period"), "{link}");
    assert!(page.contains("Show"), "{link}");
}

#[test]
fn a_store_that_cannot_be_read_is_an_error_with_its_reason() {
    let site = example();
    site.body("times", 200);
    let path = site.dir.path().join("lab.db");
    std::fs::write(
        &path,
        "no store, but a text that is long enough for a header ".repeat(100),
    )
    .expect("a file");
    for target in ["times", "times.json", "times.csv"] {
        let body = site.body(target, 503);
        assert!(body.contains("store") || body.contains("file"), "{body}");
    }
    let page = site.body("times?period=1h", 503);
    assert!(
        page.contains("href=\"times?period=1h\""),
        "a link tries again: {page}"
    );
}

#[test]
fn wrong_parameters_are_errors_with_a_way_back() {
    let site = example();
    for target in [
        "map?percentile=99",
        "map?from=x",
        "map?metric=%3Cscript%3E",
        "map?country=%27",
    ] {
        let page = site.body(target, 400);
        assert!(
            page.contains("has no meaning here") && page.contains("href=\"map\""),
            "{page}"
        );
        assert!(!page.contains("<script>"));
        let json = site.body(&target.replace("map", "map.json"), 400);
        assert!(json.contains("\"error\""), "{json}");
        site.body(&target.replace("map", "map.csv"), 400);
    }
    for target in [
        "none",
        "map/",
        "map.xml",
        "..",
        "assets/app.js",
        ".csv",
        "overview.csv.csv",
    ] {
        site.body(target, 404);
    }
}

#[test]
fn long_periods_are_answered() {
    let site = example();
    for query in [
        "period=400d",
        "period=90d&shift=-3",
        "from=2017-01-01",
        "shift=-10000",
        "shift=10000",
    ] {
        for path in paths() {
            let body = site.body(&format!("{path}?{query}"), 200);
            assert!(body.len() < 1_500_000, "{path} {query}: {}", body.len());
        }
    }
}

#[test]
fn next_period_is_a_link_unless_it_is_in_the_future() {
    let site = Dashboard::of(&two(), &[]);
    for (query, wanted) in [
        ("", false),
        ("?shift=-1", true),
        ("?shift=-2&period=1h", true),
    ] {
        let page = site.body(&format!("stalls{query}"), 200);
        assert_eq!(page.contains("rel=\"next\""), wanted, "{query}");
        assert!(page.contains("rel=\"prev\""), "{query}");
    }
}
