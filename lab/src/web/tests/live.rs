//! Events: figures of the recording process, and of a store.

use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;
use store::{Connection, Counts, OpenSample};

use super::{Dashboard, File};
use crate::time::now_s;
use crate::web::events;
use crate::web::live::Live;
use crate::web::site::Site;

/// Data of an event.
fn data(event: &str) -> Value {
    let line = event.lines().find_map(|line| line.strip_prefix("data: "));
    serde_json::from_str(line.expect("data")).expect("it is JSON")
}

fn site(dashboard: &Dashboard, live: Option<Arc<Live>>) -> Site {
    let source = File {
        path: dashboard.dir.path().join("lab.db"),
        name: "example",
    };
    Site {
        source: Arc::new(source),
        live,
    }
}

#[test]
fn events_of_a_process_have_its_figures() {
    let live = Arc::new(Live::default());
    let site = site(&Dashboard::of(&[], &[]), Some(Arc::clone(&live)));
    assert_eq!(events::period(&site), Duration::from_secs(1));
    let mut next = events::events(&site);
    let open = |http1, http2| {
        [
            ("HTTP/1.1".to_owned(), http1),
            ("HTTP/2.0".to_owned(), http2),
        ]
    };
    live.set_open(1, open(5, 7));
    // A second worker during a reload, and newer figures of the first one.
    live.set_open(2, open(1, 0));
    live.set_open(1, open(4, 7));
    live.add_closed(3, [1, 1, 0, 1]);
    live.set_store(Counts {
        queued: 9,
        dropped: 2,
        failing: true,
        ..Counts::default()
    });
    let found = data(&next().expect("an event"));
    assert_eq!(found["format"], "firstbyte-dashboard/1");
    assert_eq!(
        found["open"],
        serde_json::json!({ "HTTP/1.1": 5, "HTTP/2.0": 7 })
    );
    let positive = |name: &str| found[name].as_f64().is_some_and(|rate| rate > 0.0);
    assert!(
        positive("connections_per_s") && positive("requests_per_s"),
        "{found}"
    );
    assert_eq!(found["statuses_per_s"][2], 0.0);
    let wanted = serde_json::json!({ "queued": 9, "dropped": 2, "failing": true });
    assert_eq!(found["store"], wanted);
    let later = data(&next().expect("an event"));
    assert_eq!(later["requests_per_s"], 0.0, "each connection counts once");
}

#[test]
fn events_of_a_store_have_the_rates_of_its_last_minutes() {
    let minute = now_s() / 60 * 60;
    let row = |closed_s| Connection {
        closed_s,
        server: "web-1".to_owned(),
        protocol: "HTTP/1.1".to_owned(),
        country: Some(*b"DE"),
        requests: 10,
        statuses: [9, 0, 1, 0],
        ..Connection::default()
    };
    // 30 connections of the last five minutes, and one that is older.
    let mut rows = vec![row(minute - 120); 30];
    rows.push(row(minute - 3600));
    let open = |minutes: u64, connections| OpenSample {
        at_s: minute - 60 * minutes,
        server: "web-1".to_owned(),
        protocol: "HTTP/1.1".to_owned(),
        connections,
    };
    let dashboard = Dashboard::of(&rows, &[open(3, 80), open(2, 50)]);
    let site = site(&dashboard, None);
    assert_eq!(events::period(&site), Duration::from_secs(5));
    let mut next = events::events(&site);
    let found = data(&next().expect("an event"));
    assert_eq!(found["connections_per_s"], 0.1);
    assert_eq!(found["requests_per_s"], 1.0);
    assert_eq!(
        found["statuses_per_s"],
        serde_json::json!([0.9, 0.0, 0.1, 0.0])
    );
    assert_eq!(found["open"], serde_json::json!({ "HTTP/1.1": 50 }));
    assert_eq!(found["store"], Value::Null);
}

#[test]
fn a_store_that_cannot_be_read_gives_no_event_until_it_can() {
    let dashboard = Dashboard::of(&[], &[]);
    let path = dashboard.dir.path().join("lab.db");
    let aside = dashboard.dir.path().join("aside.db");
    std::fs::rename(&path, &aside).expect("it is there");
    let site = site(&dashboard, None);
    let mut next = events::events(&site);
    assert_eq!(next(), None);
    std::fs::rename(&aside, &path).expect("it is there");
    assert!(next().is_some());
}
