//! Our archives and archives of other programs, for tests.

mod faults;
mod others;
mod round_trip;

use serde_json::{Value, json};

use super::read;
use crate::page::{Resource, Visit};

fn visits(archive: &str) -> Vec<Visit> {
    let pages = read(archive.as_bytes()).unwrap_or_else(|fault| panic!("{fault}: {archive}"));
    pages.into_iter().map(|page| page.visit).collect()
}

/// An archive with one entry, into which members are put.
fn with(entry: Value, page: Value) -> String {
    let mut whole = json!({
        "pageref": "p",
        "startedDateTime": "2017-06-28T09:00:00.100Z",
        "time": 12,
        "request": { "method": "GET", "url": "https://a.test/x#part", "headers": [] },
        "response": { "status": 200, "httpVersion": "HTTP/2.0" },
        "timings": { "send": 0, "wait": 10, "receive": 2 },
    });
    let mut of_page =
        json!({ "id": "p", "startedDateTime": "2017-06-28T09:00:00.000Z", "title": "T" });
    for (object, more) in [(&mut whole, entry), (&mut of_page, page)] {
        for (name, value) in more.as_object().expect("an object") {
            object[name] = value.clone();
        }
    }
    json!({ "log": {
        "version": "1.2",
        "creator": { "name": "Any", "version": "1" },
        "pages": [of_page],
        "entries": [whole],
    } })
    .to_string()
}

fn one(entry: Value) -> Resource {
    let mut visit = visits(&with(entry, json!({}))).remove(0);
    visit.resources.remove(0)
}
