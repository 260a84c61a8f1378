//! Each rule with a page that has its fault, and with pages that have it not.

use super::*;
use crate::doctor::judge::compression::PAGE_BYTES_MIN as TEXT_BYTES_MIN;
use crate::doctor::judge::connect::{LOOKUP_MS as DNS_MS, PAGE_CONNECT_MS as CONNECT_MS};
use crate::doctor::judge::header_bloat::PAGE_BYTES as HEAD_BYTES;
use crate::doctor::judge::http2::STREAMS_MIN;
use crate::doctor::judge::redirects::REDIRECTS_MIN;
use crate::doctor::judge::slow_server::WARN_MS as SERVER_MS;
use crate::doctor::{Code, Severity};
use crate::page::{Kind, Phases, Piece, Resource};

/// A resource of 500 bytes over HTTP/2 on a connection that was there, with a round trip of 50 ms.
fn resource(url: &str) -> Resource {
    Resource {
        url: url.to_owned(),
        method: "GET".to_owned(),
        status: 200,
        protocol: "h2".to_owned(),
        connection: Some(1),
        phases: Phases {
            send_ms: Some(0.0),
            wait_ms: Some(55.0),
            receive_ms: Some(1.0),
            ..Phases::default()
        },
        body_bytes: Some(500),
        content_bytes: Some(500),
        mime_type: "text/html".to_owned(),
        ..Resource::default()
    }
}

/// The first resource of a page: with look-up, connection and handshake of one round trip each.
fn document() -> Resource {
    let mut document = resource("https://h/");
    document.kind = Kind::Document;
    document.phases.dns_ms = Some(20.0);
    document.phases.connect_ms = Some(50.0);
    document.phases.tls_ms = Some(51.0);
    document
}

fn judge(resources: Vec<Resource>) -> Vec<Finding> {
    from_har(&Visit {
        url: "https://h/".to_owned(),
        resources,
        round_trip_ms: Some(50.0),
        ..Visit::default()
    })
}

fn codes(resources: Vec<Resource>) -> Vec<Code> {
    judge(resources).iter().map(|one| one.code).collect()
}

/// A document changed.
fn with(change: impl FnOnce(&mut Resource)) -> Vec<Resource> {
    let mut document = document();
    change(&mut document);
    vec![document]
}

#[test]
fn a_sound_page_has_no_finding() {
    assert_eq!(judge(vec![document(), resource("https://h/a.css")]), []);
    assert_eq!(judge(Vec::new()), []);
}

#[test]
fn names_that_take_long_are_slow() {
    let dns = |ms| with(|one| one.phases.dns_ms = Some(ms));
    let found = judge(dns(DNS_MS));
    assert_eq!((found[0].code, found[0].lost_ms), (Code::SlowDns, DNS_MS));
    assert_eq!(codes(dns(DNS_MS - 0.1)), []);
}

#[test]
fn a_connection_far_above_the_round_trip_is_slow() {
    let connect = |ms| with(|one| one.phases.connect_ms = Some(ms));
    let found = judge(connect(1050.0));
    assert_eq!(
        (found[0].code, found[0].lost_ms),
        (Code::SlowConnect, 1000.0)
    );
    assert_eq!(codes(connect(50.0 + CONNECT_MS)), [Code::SlowConnect]);
    assert_eq!(codes(connect(49.9 + CONNECT_MS)), []);
}

#[test]
fn a_handshake_of_two_round_trips_has_one_too_many() {
    let tls = |ms| with(|one| one.phases.tls_ms = Some(ms));
    assert_eq!(codes(tls(101.0)), [Code::HandshakeRoundTrips]);
    assert_eq!(codes(tls(60.0)), []);
}

#[test]
fn many_requests_by_http_1_miss_streams() {
    let page = |count: usize, protocol: &str| {
        let one = |n| {
            let mut one = resource(&format!("https://h/{n}"));
            one.protocol = protocol.to_owned();
            one.phases.queued_ms = Some(30.0);
            one
        };
        (0..count).map(one).collect::<Vec<_>>()
    };
    let found = judge(page(STREAMS_MIN, "http/1.1"));
    assert_eq!((found[0].code, found[0].lost_ms), (Code::NoHttp2, 30.0));
    assert_eq!(codes(page(STREAMS_MIN - 1, "http/1.1")), []);
    assert_eq!(codes(page(100, "h2")), []);
}

#[test]
fn a_connection_that_is_closed_costs_the_next_request_one() {
    let page = |says: &str| {
        let mut first = document();
        first.response_fields = vec![("Connection".into(), says.into())];
        let mut second = document();
        second.phases.dns_ms = None;
        second.start_ms = first.end_ms() + 1.0;
        vec![first, second]
    };
    let found = judge(page("close"));
    assert_eq!(
        (found[0].code, found[0].lost_ms),
        (Code::NoKeepalive, 101.0)
    );
    assert_eq!(codes(page("keep-alive")), []);
    // A second connection in parallel was not opened because of the close.
    let mut beside = page("close");
    beside[1].start_ms = 0.0;
    assert_eq!(codes(beside), []);
}

#[test]
fn texts_are_compressed() {
    let text = |bytes: u64, kind: &str, coding: Option<&str>| {
        with(|one| {
            one.body_bytes = Some(bytes);
            one.content_bytes = Some(bytes);
            one.mime_type = kind.to_owned();
            let coding = coding.map(|coding| ("content-encoding".into(), coding.into()));
            one.response_fields = coding.into_iter().collect();
        })
    };
    assert_eq!(
        codes(text(TEXT_BYTES_MIN, "text/css", None)),
        [Code::NoCompression]
    );
    assert_eq!(
        codes(text(9000, "application/json; charset=utf-8", None)),
        [Code::NoCompression]
    );
    assert_eq!(codes(text(TEXT_BYTES_MIN - 1, "text/css", None)), []);
    assert_eq!(codes(text(9000, "text/css", Some("br"))), []);
    assert_eq!(codes(text(9000, "image/png", None)), []);
}

#[test]
fn redirects_one_after_the_other_are_a_chain() {
    let page = |redirects: usize| {
        let mut all: Vec<Resource> = (0..redirects)
            .map(|n| {
                let mut one = resource(&format!("http://h{n}/"));
                one.status = 301;
                one
            })
            .collect();
        all.push(document());
        all
    };
    let found = judge(page(REDIRECTS_MIN));
    assert_eq!(
        (found[0].code, found[0].lost_ms),
        (Code::RedirectChain, 112.0)
    );
    assert_eq!(found[0].severity, Severity::Warn, "as by URL");
    let more = judge(page(REDIRECTS_MIN + 1));
    assert_eq!(more[0].severity, Severity::Bad);
    assert_eq!(codes(page(REDIRECTS_MIN - 1)), []);
}

#[test]
fn static_files_of_the_site_are_kept() {
    let file = |url: &str, fields: &[(&str, &str)]| {
        let mut one = resource(url);
        one.mime_type = "text/css".to_owned();
        let fields = fields.iter();
        one.response_fields = fields
            .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
            .collect();
        vec![document(), one]
    };
    let never: &[(&str, &str)] = &[("cache-control", "no-store")];
    let found = judge(file("https://h/a.css", never));
    assert_eq!(
        (found[0].code, found[0].severity),
        (Code::PoorCaching, Severity::Warn)
    );
    assert_eq!((found[0].lost_ms, found[0].lost_round_trips), (50.0, 1.0));
    assert_eq!(
        codes(file("https://static.h/a.css", never)),
        [Code::PoorCaching]
    );
    assert_eq!(codes(file("https://other/a.css", never)), []);
    assert_eq!(codes(file("https://noth/a.css", never)), []);
    assert_eq!(
        codes(file("https://h/a.css", &[("cache-control", "max-age=60")])),
        []
    );
    assert_eq!(codes(file("https://h/a.css", &[])), [], "nothing is known");
}

#[test]
fn heads_are_small() {
    let head = |bytes| with(|one| one.head_bytes = Some(bytes));
    assert_eq!(codes(head(HEAD_BYTES)), [Code::HeaderBloat]);
    assert_eq!(codes(head(HEAD_BYTES - 1)), []);
    let policy = |length: usize| {
        let field = ("content-security-policy".to_owned(), "x".repeat(length));
        with(|one| one.response_fields = vec![field])
    };
    assert_eq!(codes(policy(4000)), [Code::HeaderBloat]);
    assert_eq!(codes(policy(400)), []);
}

#[test]
fn servers_say_or_show_that_they_are_slow() {
    let waits = |wait_ms, timing: Option<&str>| {
        with(|one| {
            one.phases.wait_ms = Some(wait_ms);
            let timing = timing.map(|value| ("server-timing".into(), value.into()));
            one.response_fields = timing.into_iter().collect();
        })
    };
    let found = judge(waits(500.0, Some("db;dur=400")));
    assert_eq!((found[0].code, found[0].lost_ms), (Code::SlowServer, 400.0));
    assert_eq!(found[0].evidence["examples"][0]["by"], "Server-Timing");
    let found = judge(waits(300.0, None));
    assert_eq!((found[0].code, found[0].lost_ms), (Code::SlowServer, 250.0));
    assert_eq!(codes(waits(SERVER_MS + 49.0, None)), []);
}

#[test]
fn a_pause_of_an_acknowledgements_length_is_a_warning() {
    let pause = |ms: f64| {
        with(|one| {
            one.body_bytes = Some(1500);
            one.mime_type = "image/png".to_owned();
            one.phases.receive_ms = Some(ms + 1.0);
            let first = one.first_byte_ms();
            one.pieces = vec![
                Piece {
                    at_ms: first + 0.5,
                    bytes: 1400,
                },
                Piece {
                    at_ms: first + 0.5 + ms,
                    bytes: 100,
                },
            ];
        })
    };
    let found = judge(pause(250.0));
    assert_eq!(
        (found[0].code, found[0].severity),
        (Code::DelayedAckStall, Severity::Warn)
    );
    assert_eq!(codes(pause(20.0)), []);
}

#[test]
fn what_comes_from_a_cache_asked_nobody() {
    let mut all = with(|one| one.phases.dns_ms = Some(500.0));
    all[0].from_cache = true;
    assert_eq!(judge(all), []);
}

#[test]
fn a_finding_shows_a_bounded_part_of_a_page() {
    let long = "x".repeat(100_000);
    let all: Vec<Resource> = (0..2000)
        .map(|n| {
            let mut one = resource(&format!("https://h/{n}{long}"));
            one.phases.dns_ms = Some(f64::from(n));
            one
        })
        .collect();
    let found = judge(all);
    let text = serde_json::to_string(&found[0]).unwrap_or_default();
    assert!(text.len() < 20_000, "{}", text.len());
    assert_eq!(found[0].lost_ms, 1999.0);
}
