//! One judge analyzes the facts of a server, of a capture and of a page.

use std::net::TcpListener;
use std::time::Duration;

use serde_json::{Value, json};

use super::checks;
use super::from_har::{connections, page::Page, responses};
use super::judge::Facts;
use super::judge::connect::{CapturedConnects, Connects, judge_connects};
use super::judge::first_flight::{self, Flight, Offer, judge_window};
use super::judge::handshake::{self, Version};
use super::judge::stall::sweep::{Subject, Sweep, SweepFacts};
use super::judge::stall::verdict::{PLACES, Sample, late_after};
use super::judge::stall::{self, Stalls};
use super::judge::tls_record_size::{self, SlowRecord};
use super::judge::write_size::{self, Run};
use super::visitor::tests::visiting;
use super::{Code, Finding, Severity};
use crate::capture::tests::{
    MS, capture, first_record, short_segments, syn_sent_again, tls, withheld,
};
use crate::capture::{connects, flights, hellos, runs, slow_records, stalls};
use crate::client::Url;
use crate::page::{Visit, har};
use crate::stats::Estimate;

/// The visit of an archive: a page, then an image of 1,500 bytes with these times and pieces.
fn visit(timings: &Value, pieces: &Value) -> Visit {
    let begin = "2026-01-01T00:00:00.000Z";
    let entry = |url: &str, timings: &Value, pieces: &Value| {
        json!({"pageref": "p", "startedDateTime": begin, "time": 70,
            "request": {"method": "GET", "url": url, "httpVersion": "h2", "cookies": [], "headers": [],
                "queryString": [], "headersSize": -1, "bodySize": 0},
            "response": {"status": 200, "statusText": "", "httpVersion": "h2", "cookies": [], "headers": [],
                "content": {"size": 1500, "mimeType": "image/png"}, "redirectURL": "",
                "headersSize": 100, "bodySize": 1500},
            "cache": {}, "timings": timings, "_chunks": pieces})
    };
    let page = json!({"connect": 50, "send": 0, "wait": 60, "receive": 1});
    let archive = json!({"log": {"version": "1.2", "creator": {"name": "t", "version": "1"},
        "pages": [{"id": "p", "startedDateTime": begin, "title": "t", "pageTimings": {}}],
        "entries": [entry("https://h/", &page, &json!([])), entry("https://h/a.png", timings, pieces)]}});
    let pages = har::read(archive.to_string().as_bytes()).expect("it is an archive");
    pages.into_iter().next().expect("it has a page").visit
}

#[test]
fn late_connections_of_all_sources_have_one_judge() {
    let judge: fn(Facts<'_, Connects, CapturedConnects>) -> Option<Finding> = judge_connects;
    // Requests: connections to a listener; the kernel answers at once.
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port is free");
    let address = listener.local_addr().expect("it has an address");
    let mut measured = Connects::default();
    visiting(address, |visitor| {
        measured = checks::connect::connects(visitor).expect("it listens");
    });
    assert_eq!(judge(Facts::Server(&measured)), None, "{measured:?}");
    for took_ms in &mut measured.took_ms {
        *took_ms += 1000.0;
    }
    let server = judge(Facts::Server(&measured)).expect("each waited for a second SYN");
    // Packets: a SYN, and a copy of it a second later.
    let captured = |after_us| connects(&capture(&syn_sent_again(after_us)));
    assert_eq!(judge(Facts::Packets(&captured(0))), None);
    let packets = captured(1000 * MS);
    let packets = judge(Facts::Packets(&packets)).expect("it was sent again");
    // A page: an archive in which a connection takes a second more than another one to the same host.
    let page = |connect_ms: u32| {
        let timings = json!({"connect": connect_ms, "send": 0, "wait": 60, "receive": 1});
        let visit = visit(&timings, &json!([]));
        judge(Facts::Page(connections::connects(&Page::new(&visit))))
    };
    assert_eq!(page(51), None);
    let page = page(1050).expect("it is late");
    for (found, severity) in [
        (&server, Severity::Bad),
        (&packets, Severity::Bad),
        (&page, Severity::Warn),
    ] {
        assert_eq!((found.code, found.severity), (Code::SlowConnect, severity));
        assert!((found.lost_ms - 1000.0).abs() < 100.0, "{found:?}");
        assert!(!found.fixes.is_empty(), "{found:?}");
    }
    let titles = [server.title, packets.title, page.title];
    assert!(
        titles[0].starts_with("7 of 7 connections took"),
        "{titles:?}"
    );
    assert!(
        titles[1].starts_with("1 of 1 connections needed"),
        "{titles:?}"
    );
    assert!(
        titles[2].starts_with("1 connection took twice"),
        "{titles:?}"
    );
}

/// Samples of one body at each place of a connection: 50 ms without a hold, and later by a hold of 200 ms.
fn sweep(late_ms: f64) -> Sweep {
    let hold = Duration::from_millis(200);
    let sample = |place: usize, end_ms: f64| Sample {
        subject: 0,
        place,
        first_ms: 50.0,
        end_ms,
        sent_bytes: 500,
    };
    let held = (0..3 * PLACES).map(|n| sample(n % PLACES, 50.0 + late_ms));
    Sweep {
        subjects: vec![Subject {
            url: Url::parse("http://h/a").expect("a URL"),
            bytes: 500,
            gzip: false,
        }],
        holds: vec![hold],
        free: vec![sample(0, 50.0)],
        held: vec![held.collect()],
        late_after_ms: vec![late_after(hold, None)],
    }
}

#[test]
fn stalls_of_all_sources_have_one_judge() {
    let judge: fn(Facts<'_, SweepFacts<'_>, Stalls>) -> Option<Finding> = stall::judge;
    let requests = |late_ms| {
        let sweep = sweep(late_ms);
        judge(Facts::Server(&SweepFacts {
            sweep: &sweep,
            edges: &[],
            round_trip_ms: 50.0,
            server: "nginx/1.7.7",
        }))
    };
    let packets = |held_us| {
        let capture = capture(&withheld(0, 50 * MS, held_us, 100));
        judge(Facts::Packets(&stalls(&capture)))
    };
    let page = |pause_ms: u32| {
        let timings = json!({"send": 0, "wait": 60, "receive": 1 + pause_ms});
        let pieces =
            json!([{"ts": 60.5, "bytes": 1450}, {"ts": 60.5 + f64::from(pause_ms), "bytes": 50}]);
        let visit = visit(&timings, &pieces);
        judge(Facts::Page(responses::pauses(&Page::new(&visit))))
    };
    let none = [requests(1.0), packets(MS), page(20)];
    assert_eq!(none, [None, None, None]);
    let found = [requests(250.0), packets(200 * MS), page(250)];
    let found = found.map(|one| one.expect("there is a stall"));
    let severities = found.each_ref().map(|one| one.severity);
    assert_eq!(severities, [Severity::Bad, Severity::Bad, Severity::Warn]);
    for one in &found {
        assert_eq!(one.code, Code::DelayedAckStall);
        assert!(
            one.fixes.iter().any(|line| line.contains("tcp_nodelay on")),
            "{one:?}"
        );
    }
    assert!(
        found[0].fixes[0].contains("upgrade to 1.7.8"),
        "{:?}",
        found[0].fixes
    );
}

/// Every finding has the code, fixes, and the severity of its source; the lost round trips agree.
fn agree(code: Code, found: &[(Option<Finding>, Severity)], round_trips: f64) {
    for (finding, severity) in found {
        let finding = finding.as_ref().expect("the source shows the fault");
        assert_eq!((finding.code, finding.severity), (code, *severity));
        assert_eq!(finding.lost_round_trips, round_trips, "{finding:?}");
    }
}

#[test]
fn flights_over_the_window_have_one_judge() {
    let judge: fn(Facts<'_, first_flight::Figures, [first_flight::Captured]>) -> Option<Finding> =
        judge_window;
    let server = |bytes| {
        judge(Facts::Server(&first_flight::Figures {
            flights: vec![Flight {
                offer: Offer::Tls13,
                bytes,
                round_trips: None,
            }],
            round_trip_ms: 50.0,
            ..first_flight::Figures::default()
        }))
    };
    let packets = |bytes| {
        judge(Facts::Packets(&flights(&capture(&tls(
            bytes, 0x0304, true,
        )))))
    };
    assert_eq!([server(14_000), packets(14_000)], [None, None]);
    let (server, packets) = (server(16_000), packets(16_000));
    let lost = [&server, &packets].map(|one| one.as_ref().map(|found| found.lost_ms));
    assert_eq!(lost, [Some(50.0); 2]);
    let found = [(server, Severity::Bad), (packets, Severity::Bad)];
    agree(Code::ChainOverWindow, &found, 1.0);
}

#[test]
fn handshakes_of_all_sources_have_one_judge() {
    let judge: fn(Facts<'_, handshake::Figures, [handshake::Captured]>) -> Option<Finding> =
        handshake::judge;
    let server = |trips: f64| {
        judge(Facts::Server(&handshake::Figures {
            version: Version::Tls13,
            is_preferred: true,
            retried: false,
            round_trips: Some(Estimate {
                value: trips,
                low: trips,
                high: trips,
                n: 9,
            }),
            flight_bytes: 4000,
            computed_ms: None,
            round_trip_ms: 50.0,
        }))
    };
    let packets = |version| judge(Facts::Packets(&hellos(&capture(&tls(3000, version, true)))));
    // `connect` of an archive includes `ssl`.
    let page = |tls_ms: u32| {
        let timings =
            json!({"connect": 50 + tls_ms, "ssl": tls_ms, "send": 0, "wait": 60, "receive": 1});
        let visit = visit(&timings, &json!([]));
        judge(Facts::Page(connections::handshakes(&Page::new(&visit))))
    };
    assert_eq!([server(1.1), packets(0x0304), page(55)], [None, None, None]);
    let found = [
        (server(2.0), Severity::Bad),
        (packets(0x0303), Severity::Warn),
    ];
    agree(Code::HandshakeRoundTrips, &found, 1.0);
    // A page has no packets: round trips are not counted.
    let found = page(100);
    assert_eq!(found.as_ref().map(|one| one.lost_ms), Some(50.0));
    agree(Code::HandshakeRoundTrips, &[(found, Severity::Warn)], 0.0);
}

#[test]
fn large_records_have_one_judge() {
    let judge: fn(Facts<'_, tls_record_size::Figures, [SlowRecord]>) -> Option<Finding> =
        tls_record_size::judge;
    let server = |record_bytes| {
        let sample = tls_record_size::Sample {
            small: 50.0,
            large: 100.0,
            record_bytes,
        };
        judge(Facts::Server(&tls_record_size::Figures {
            samples: vec![sample; 3],
            url: "https://h/".to_owned(),
            round_trip_ms: 50.0,
        }))
    };
    let packets = |bytes| {
        judge(Facts::Packets(&slow_records(&capture(&first_record(
            bytes,
        )))))
    };
    assert_eq!([server(13_999), packets(14_000)], [None, None]);
    let found = [
        (server(16_389), Severity::Bad),
        (packets(16_384), Severity::Warn),
    ];
    agree(Code::TlsRecordSize, &found, 1.0);
}

#[test]
fn small_writes_have_one_judge() {
    let judge: fn(Facts<'_, write_size::Figures, [Run]>) -> Option<Finding> = write_size::judge;
    let server = |segments| {
        let sample = write_size::Sample {
            first_took_ms: 0.4,
            segments,
            took_ms: 1.0,
        };
        judge(Facts::Server(&write_size::Figures {
            url: "http://h/".to_owned(),
            bytes: 12_000,
            samples: vec![sample; 3],
            round_trip_ms: 50.0,
        }))
    };
    let packets = |count| judge(Facts::Packets(&runs(&capture(&short_segments(count, 100)))));
    assert_eq!([server(20), packets(7)], [None, None]);
    let found = [(server(21), Severity::Warn), (packets(8), Severity::Warn)];
    agree(Code::WriteSize, &found, 0.0);
}
