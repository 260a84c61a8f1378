//! Broken and hostile archives, and limits.

use serde_json::{Value, json};

use super::super::{
    ENTRIES_MAX, FIELDS_MAX, FILE_BYTES_MAX, NOTES_MAX, PAGES_MAX, PIECES_MAX, TIME_MS_MAX,
    WITHHELD_MAX, read, write,
};
use super::{one, visits, with};

/// The fault of an archive that is refused.
fn refused(archive: &[u8]) -> String {
    read(archive)
        .map(|_| ())
        .expect_err("it is refused")
        .to_string()
}

#[test]
fn what_is_broken_is_told_with_its_path() {
    for (entry, why) in [
        (json!({ "request": 5 }), "request: it is 5, not an object"),
        (json!({ "request": null }), "request: it is missing"),
        (json!({ "request": {} }), "request.url: it is missing"),
        (
            json!({ "request": { "url": [] } }),
            "request.url: it is a list, not a text",
        ),
        (
            json!({ "timings": [] }),
            "timings: it is a list, not an object",
        ),
        (
            json!({ "timings": { "wait": "soon" } }),
            "timings.wait: it is \"soon\", not a number",
        ),
        (
            json!({ "timings": { "wait": "NaN" } }),
            "timings.wait: it is \"NaN\", not a number",
        ),
        (
            json!({ "timings": { "wait": -5 } }),
            "timings.wait: -5 is not a valid time",
        ),
        (
            json!({ "timings": { "receive": 1e12 } }),
            "timings.receive: 1000000000000 ms are more than a week",
        ),
        (
            json!({ "timings": { "ssl": true } }),
            "timings.ssl: it is true, not a number",
        ),
        (
            json!({ "startedDateTime": null }),
            "startedDateTime: it is missing",
        ),
        (
            json!({ "startedDateTime": " " }),
            "startedDateTime: it is missing",
        ),
        (
            json!({ "startedDateTime": "now" }),
            "startedDateTime: \"now\" is not a date from 1970 to 2200",
        ),
        (
            json!({ "startedDateTime": "2019-01-01T00:00:00Z" }),
            "startedDateTime: more than a week from the start of its page",
        ),
        (
            json!({ "response": { "bodySize": 1e30 } }),
            "response.bodySize: 1000000000000000000000000000000 bytes are too many",
        ),
        (
            json!({ "response": { "content": "x" } }),
            "response.content: it is \"x\", not an object",
        ),
        (
            json!({ "response": { "headers": {} } }),
            "response.headers: it is an object, not a list",
        ),
        (
            json!({ "request": { "url": "u", "headers": [{ "name": "a" }, 7] } }),
            "request.headers[1]: it is 7, not an object",
        ),
        (
            json!({ "request": { "url": "u", "headers": [{}] } }),
            "request.headers[0].name: it is missing",
        ),
        (
            json!({ "_chunks": [{ "ts": -9, "bytes": 1 }] }),
            "_chunks[0].ts: -9 is not a valid time",
        ),
    ] {
        let told = refused(with(entry, json!({})).as_bytes());
        assert_eq!(told, format!("log.entries[0].{why}"));
    }
    let told = refused(with(json!({}), json!({ "startedDateTime": "0000-00-00" })).as_bytes());
    assert_eq!(
        told,
        "log.pages[0].startedDateTime: \"0000-00-00\" is not a date from 1970 to 2200"
    );
    let told = refused(with(json!({}), json!({ "pageTimings": { "onLoad": {} } })).as_bytes());
    assert_eq!(
        told,
        "log.pages[0].pageTimings.onLoad: it is an object, not a number"
    );
}

#[test]
fn what_is_no_archive_is_told() {
    let deep = format!("{{\"log\":{}{}", "[".repeat(100_000), "]".repeat(100_000));
    for (archive, why) in [
        (&b""[..], "it is empty"),
        (b" \n", "it is empty"),
        (
            b"<html>",
            "it is not JSON: expected value at line 1 column 1",
        ),
        (b"{\"log\": {", "it is not JSON: EOF while parsing"),
        (b"{\"log\": NaN}", "it is not JSON: expected value"),
        (
            b"{\"log\": {\"entries\": [{\"time\": 1e999}]}}",
            "it is not JSON: number out of range",
        ),
        (
            b"{\"log\": {\"a\": \"\xff\xfe\"}}",
            "invalid UTF-8 at byte 15",
        ),
        (b"[]", "not a HAR file: it is a list, not an object"),
        (b"null", "not a HAR file: it is missing"),
        (b"{}", "not a HAR file: log: it is missing"),
        (
            b"{\"log\": 1}",
            "not a HAR file: log: it is 1, not an object",
        ),
        (b"{\"log\": {}}", "log.entries: it is missing"),
        (
            b"{\"log\": {\"entries\": []}}",
            "log.entries: there are none",
        ),
        (
            b"{\"log\": {\"entries\": {}}}",
            "log.entries: it is an object, not a list",
        ),
        (
            b"{\"log\": {}, \"log\": {}}",
            "not a HAR file: duplicate field `log`",
        ),
        (deep.as_bytes(), "it is not JSON: "),
    ] {
        let told = refused(archive);
        assert!(told.starts_with(why), "{told}, not {why}");
    }
}

#[test]
fn what_is_odd_is_taken() {
    // Unknown members are skipped at any depth.
    let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
    let archive = with(json!({ "_deep": "DEEP" }), json!({})).replace("\"DEEP\"", &deep);
    assert_eq!(visits(&archive).len(), 1);
    let marked = format!("\u{feff}{}", with(json!({}), json!({})));
    assert_eq!(visits(&marked).len(), 1);
    let bare = one(json!({ "timings": null, "response": null, "connection": null }));
    assert_eq!((bare.phases.wait_ms, bare.status), (Some(12.0), 0));
    // Clocks that are read apart, and sizes that were not counted.
    let odd = one(json!({
        "timings": { "wait": -0.3 },
        "response": { "status": 12_999, "headersSize": -193, "bodySize": "17" },
        "_initiator": 5, "_load_start": "x",
    }));
    assert_eq!((odd.phases.wait_ms, odd.status), (Some(0.0), 0));
    assert_eq!(odd.error.as_deref(), Some("status 12999"));
    assert_eq!((odd.head_bytes, odd.body_bytes), (None, Some(17)));
}

/// Programs write empty texts, nulls and zero dates for members that they do not know.
#[test]
fn empty_members_are_missing_ones() {
    for date in [json!(""), json!(null), json!("0001-01-01T00:00:00Z")] {
        let page = json!({
            "startedDateTime": date, "title": "", "_url": "",
            "pageTimings": { "onLoad": "", "onContentLoad": null, "_firstPaint": -1 },
        });
        let entry = json!({
            "time": null, "timings": { "wait": "", "dns": null, "ssl": "-1" },
            "request": { "method": "", "url": "http://a.test/", "headers": "" },
            "response": { "status": "", "content": "", "bodySize": "", "headers": null, "_error": "" },
            "_priority": "", "_remote": "", "serverIPAddress": "", "_chunks": "", "cache": "",
        });
        let visit = visits(&with(entry, page)).remove(0);
        let resource = &visit.resources[0];
        // The visit begins with its first request.
        assert_eq!(resource.start_ms, 0.0, "{date}");
        assert_eq!(visit.started_unix_ms, 1_498_640_400_100.0);
        assert_eq!(
            (visit.title, visit.url),
            (None, "http://a.test/".to_owned())
        );
        assert_eq!(visit.timings.load_ms, None);
        assert_eq!((resource.status, resource.method.as_str()), (0, "GET"));
        assert_eq!(
            (resource.phases.wait_ms, resource.phases.tls_ms),
            (None, None)
        );
        let texts = (&resource.priority, &resource.remote, &resource.error);
        assert_eq!(texts, (&None, &None, &None));
    }
    let without = visits(&with(
        json!({ "timings": "", "response": "", "time": "" }),
        json!({}),
    ));
    assert_eq!(without[0].resources[0].phases.wait_ms, None);
}

#[test]
fn entries_without_a_page_are_of_the_first() {
    for name in [json!(""), json!(null)] {
        let found = visits(&with(json!({ "pageref": name }), json!({})));
        assert_eq!((found.len(), found[0].resources.len()), (1, 1), "{name}");
    }
}

#[test]
fn times_at_the_limit_are_written_and_read_again() {
    let longest =
        json!({ "blocked": TIME_MS_MAX, "connect": TIME_MS_MAX, "ssl": 1, "wait": TIME_MS_MAX });
    let archive = with(
        json!({ "timings": longest }),
        json!({ "pageTimings": { "onLoad": TIME_MS_MAX } }),
    );
    let first = visits(&archive).remove(0);
    assert_eq!(first.timings.load_ms, Some(TIME_MS_MAX));
    assert_eq!(visits(&write(&[&first])), [first]);
}

#[test]
fn lists_have_limits() {
    let field = json!({ "name": "a", "value": "b" });
    let fields = |n: usize| {
        with(
            json!({ "request": { "url": "u", "headers": vec![field.clone(); n] } }),
            json!({}),
        )
    };
    assert_eq!(
        visits(&fields(FIELDS_MAX))[0].resources[0]
            .request_fields
            .len(),
        FIELDS_MAX
    );
    let told = refused(fields(FIELDS_MAX + 1).as_bytes());
    assert_eq!(
        told,
        "log.entries[0].request.headers: there are more than 1000 fields"
    );
    // Makes `n` entries; `of_page` returns the page of each.
    let entries = |n: usize, of_page: fn(usize) -> Value| {
        let entry = |place| {
            json!({
                "pageref": of_page(place), "startedDateTime": "2020-01-01T00:00:00Z", "request": { "url": "u" },
            })
        };
        let list: Vec<Value> = (0..n).map(entry).collect();
        json!({ "log": { "entries": list } }).to_string()
    };
    let of_one = entries(ENTRIES_MAX, |_| Value::Null);
    assert_eq!(visits(&of_one)[0].resources.len(), ENTRIES_MAX);
    let told = refused(entries(ENTRIES_MAX + 1, |_| Value::Null).as_bytes());
    assert_eq!(told, "log.entries: there are more than 100000 entries");
    let of_each = entries(PAGES_MAX, |place| json!(place));
    assert_eq!(visits(&of_each).len(), PAGES_MAX);
    let told = refused(entries(PAGES_MAX + 1, |place| json!(place)).as_bytes());
    assert_eq!(
        told,
        "log.entries[1000].pageref: there are more than 1000 pages"
    );
    let piece = json!({ "ts": 1, "bytes": 1 });
    let pieces = |n: usize| with(json!({ "_chunks": vec![piece.clone(); n] }), json!({}));
    assert_eq!(
        visits(&pieces(PIECES_MAX))[0].resources[0].pieces.len(),
        PIECES_MAX
    );
    assert!(refused(pieces(PIECES_MAX + 1).as_bytes()).ends_with("more than 100000 pieces"));
    let notes = |n: usize| with(json!({}), json!({ "_notes": vec!["a"; n] }));
    assert_eq!(visits(&notes(NOTES_MAX))[0].notes.len(), NOTES_MAX + 1);
    assert!(refused(notes(NOTES_MAX + 1).as_bytes()).starts_with("log.pages[0]._notes: "));
    let pauses = |n: usize| with(json!({}), json!({ "_withheld": vec![json!({}); n] }));
    let found = visits(&pauses(WITHHELD_MAX)).remove(0).withheld;
    assert_eq!(found.map(|all| all.len()), Some(WITHHELD_MAX));
    let why = refused(pauses(WITHHELD_MAX + 1).as_bytes());
    assert!(why.starts_with("log.pages[0]._withheld: "), "{why}");
}

#[test]
fn a_file_beyond_the_limit_is_refused_unread() {
    let mut file = vec![b' '; FILE_BYTES_MAX as usize];
    assert_eq!(refused(&file), "it is empty");
    file.push(b' ');
    assert_eq!(refused(&file), "it is larger than 128 MiB");
}
