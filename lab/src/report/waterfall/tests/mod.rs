//! Pictures of made-up visits: places of numbers, edges, well-formed XML, hostile texts.

mod drawn;
mod hostile;
mod overlay;
mod pages;

use std::slice::from_ref;

use crate::page::{Agent, Kind, PageTimings, Phases, Piece, Resource, Runs, Views, Visit};

/// The runs of at least one visit.
pub(super) fn runs(visits: &[Visit]) -> Runs<'_> {
    Runs::of(visits).expect("there is a visit")
}

/// The picture of a visit.
pub(super) fn svg(visit: &Visit) -> String {
    super::svg(runs(from_ref(visit)).shown())
}

/// A visit by itself.
pub(super) fn view(visit: &Visit) -> Views<'_> {
    let (first, warm) = (runs(from_ref(visit)), None);
    Views { first, warm }
}

/// A visit for a terminal.
pub(super) fn text(visit: &Visit) -> String {
    super::text(&view(visit))
}

/// A resource on connection 7 with all phases: 30 ms of waiting, 40 ms of receiving, 10 ms for each other one.
pub(super) fn resource(number: usize, start_ms: f64) -> Resource {
    Resource {
        url: format!("https://www.example.org/assets/{number}.css"),
        method: "GET".to_owned(),
        kind: Kind::Stylesheet,
        status: 200,
        protocol: "h2".to_owned(),
        connection: Some(7),
        remote: Some("192.0.2.1:443".to_owned()),
        start_ms,
        phases: Phases {
            queued_ms: Some(10.0),
            dns_ms: Some(10.0),
            connect_ms: Some(10.0),
            tls_ms: Some(10.0),
            send_ms: Some(10.0),
            wait_ms: Some(30.0),
            receive_ms: Some(40.0),
        },
        pieces: [90.0, 100.0, 120.0]
            .map(|at| Piece {
                at_ms: start_ms + at,
                bytes: 1_000,
            })
            .to_vec(),
        response_fields: vec![("server-timing".to_owned(), "app;dur=5".to_owned())],
        head_bytes: Some(200),
        body_bytes: Some(3_000),
        ..Resource::default()
    }
}

/// A visit with this number of resources, each 5 ms behind the one before.
pub(super) fn visit(resources: usize) -> Visit {
    Visit {
        url: "https://www.example.org/".to_owned(),
        title: Some("An example".to_owned()),
        agent: Agent {
            name: "Chromium".to_owned(),
            version: "126".to_owned(),
            is_browser: true,
        },
        resources: (0..resources)
            .map(|n| resource(n, n as f64 * 5.0))
            .collect(),
        timings: PageTimings {
            first_byte_ms: Some(80.0),
            first_paint_ms: Some(100.0),
            first_contentful_paint_ms: Some(101.0),
            largest_contentful_paint_ms: Some(110.0),
            dom_content_loaded_ms: Some(115.0),
            load_ms: Some(120.0),
        },
        round_trip_ms: Some(10.0),
        notes: vec!["the link was not emulated".to_owned()],
        ..Visit::default()
    }
}

/// A test binary without optimisation on a busy machine is slower than the shipped one by this.
pub(super) const SLOW: u128 = 5;
