//! Archives that are written and read again.

use std::time::{SystemTime, UNIX_EPOCH};

use serde_json::{Value, json};

use super::super::{BYTES_MAX, write};
use super::visits;
use crate::page::{Agent, Kind, PageTimings, Phases, Piece, Resource, View, Visit, Withheld};

/// A visit with any values that a source may have, by chance.
fn any_visit(rng: &mut fastrand::Rng) -> Visit {
    let mut ms = |most: f64| Some(rng.f64() * most);
    let timings = PageTimings {
        first_byte_ms: ms(100.0),
        first_paint_ms: ms(300.0),
        first_contentful_paint_ms: ms(300.0),
        largest_contentful_paint_ms: None,
        dom_content_loaded_ms: ms(1000.0),
        load_ms: ms(5000.0),
    };
    let round_trip_ms = ms(100.0);
    let count = rng.usize(1..40);
    Visit {
        url: "https://a.test:8443/?q=1".to_owned(),
        title: rng
            .bool()
            .then(|| "A page\u{1F310} \"quoted\" \u{0}".to_owned()),
        agent: Agent {
            name: "Chromium".to_owned(),
            version: "140.0".to_owned(),
            is_browser: rng.bool(),
        },
        view: if rng.bool() { View::Warm } else { View::Cold },
        started_unix_ms: rng.f64() * 2e12,
        resources: (0..count)
            .map(|place| any_resource(rng, place, count))
            .collect(),
        timings,
        filmstrip: Vec::new(),
        round_trip_ms,
        withheld: rng.bool().then(|| {
            let request = [None, Some("GET /a".to_owned())];
            let one = Withheld {
                port: rng.u16(..),
                request: request[rng.usize(0..2)].clone(),
                from_ms: rng.f64() * -100.0,
                to_ms: rng.f64() * 100.0,
                bytes: rng.u64(..1500),
            };
            vec![one; rng.usize(0..3)]
        }),
        notes: vec!["busy".to_owned(); rng.usize(0..3)],
    }
}

fn any_resource(rng: &mut fastrand::Rng, place: usize, count: usize) -> Resource {
    let kinds = [
        Kind::Document,
        Kind::Script,
        Kind::Image,
        Kind::Fetch,
        Kind::Other,
    ];
    let mut ms = || rng.bool().then(|| rng.f64() * 100.0);
    let phases = Phases {
        queued_ms: ms(),
        dns_ms: ms(),
        connect_ms: ms(),
        tls_ms: ms(),
        send_ms: ms(),
        wait_ms: ms(),
        receive_ms: ms(),
    };
    let mut some = |most: u64| rng.bool().then(|| rng.u64(0..most));
    let (head_bytes, body_bytes, content_bytes) = (some(2000), some(1 << 40), some(1 << 50));
    let connection = some(u64::MAX);
    let fields = |n: usize| vec![("X-Name".to_owned(), "a value".to_owned()); n];
    let pieces = (0..rng.u32(0..5)).map(|n| Piece {
        at_ms: f64::from(n) * 0.1 + rng.f64(),
        bytes: rng.u64(0..1 << 50),
    });
    Resource {
        pieces: pieces.collect(),
        url: format!("https://a.test:8443/{place}?a=%20&b"),
        method: "GET".to_owned(),
        kind: kinds[rng.usize(0..kinds.len())],
        status: rng.u16(0..1000),
        protocol: ["", "http/1.1", "h2", "spdy/3.1"][rng.usize(0..4)].to_owned(),
        connection,
        remote: [None, Some("[::1]:8443"), Some("unix:/a")][rng.usize(0..3)].map(str::to_owned),
        start_ms: rng.f64() * 5000.0,
        phases,
        request_fields: fields(rng.usize(0..3)),
        response_fields: fields(rng.usize(0..3)),
        head_bytes,
        body_bytes,
        content_bytes,
        mime_type: ["", "text/html", "x-unknown"][rng.usize(0..3)].to_owned(),
        from_cache: rng.bool(),
        priority: rng.bool().then(|| "VeryHigh".to_owned()),
        initiator: rng.bool().then(|| rng.usize(0..count)),
        error: rng.bool().then(|| "net::ERR_ABORTED".to_owned()),
    }
}

#[test]
fn what_is_written_reads_as_equal_visits() {
    let time = SystemTime::now().duration_since(UNIX_EPOCH);
    let seed = time.map_or(0, |time| time.as_secs());
    let mut rng = fastrand::Rng::with_seed(seed);
    for _ in 0..100 {
        let written: Vec<Visit> = (0..rng.usize(1..4)).map(|_| any_visit(&mut rng)).collect();
        let archive = write(&written.iter().collect::<Vec<_>>());
        assert_eq!(visits(&archive), written, "seed {seed}");
    }
}

#[test]
fn an_archive_has_all_mandatory_members() {
    let mut visit = any_visit(&mut fastrand::Rng::with_seed(1));
    let resource = visit.resources.first_mut().expect("there is one");
    resource.phases = Phases {
        connect_ms: Some(20.5),
        tls_ms: Some(30.0),
        wait_ms: Some(9.0),
        ..Phases::default()
    };
    resource.response_fields = vec![("LOCATION".to_owned(), "/there".to_owned())];
    let archive: Value = serde_json::from_str(&write(&[&visit])).expect("it is JSON");
    let log = &archive["log"];
    assert_eq!(log["version"], "1.2");
    assert_eq!(log["browser"]["name"], "Chromium");
    let page = &log["pages"][0];
    for name in ["startedDateTime", "id", "title", "pageTimings"] {
        assert!(!page[name].is_null(), "{name}");
    }
    let entry = &log["entries"][0];
    for (object, names) in [
        (
            entry,
            "pageref startedDateTime time request response cache timings",
        ),
        (
            &entry["request"],
            "method url httpVersion cookies headers queryString headersSize bodySize",
        ),
        (
            &entry["response"],
            "status statusText httpVersion cookies headers content redirectURL headersSize bodySize",
        ),
        (&entry["response"]["content"], "size mimeType"),
        (
            &entry["timings"],
            "blocked dns connect ssl send wait receive",
        ),
    ] {
        for name in names.split(' ') {
            assert!(!object[name].is_null(), "{name}");
        }
    }
    // The handshake is a part of `connect`; -1 is a phase that did not take place.
    let timings = &entry["timings"];
    assert_eq!(
        (&timings["connect"], &timings["ssl"]),
        (&json!(50.5), &json!(30.0))
    );
    assert_eq!(
        (&timings["dns"], &timings["send"]),
        (&json!(-1), &json!(0.0))
    );
    assert_eq!(entry["time"], json!(59.5));
    assert_eq!(entry["response"]["redirectURL"], "/there");
    assert_eq!(
        entry["request"]["queryString"][0],
        json!({ "name": "a", "value": "%20" })
    );
}

#[test]
fn what_is_not_finite_is_written_as_unknown() {
    let mut visit = any_visit(&mut fastrand::Rng::with_seed(2));
    visit.started_unix_ms = f64::NAN;
    visit.timings.load_ms = Some(f64::INFINITY);
    visit.resources.truncate(1);
    visit.resources[0].start_ms = f64::NEG_INFINITY;
    visit.resources[0].phases.wait_ms = Some(f64::NAN);
    visit.resources[0].body_bytes = Some(u64::MAX);
    let again = &visits(&write(&[&visit]))[0];
    assert_eq!(again.timings.load_ms, None);
    assert_eq!(again.resources[0].phases.wait_ms, Some(0.0));
    assert_eq!(again.resources[0].body_bytes, Some(BYTES_MAX));
}
