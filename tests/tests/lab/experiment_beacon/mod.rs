//! `experiment_beacon`: the script and its hash; hostile beacons of every kind over HTTP/1.1 and HTTP/2, refused and counted exactly.
//!
//! Browsers are the subject of `experiment_browsers.rs`.

mod site;

use crate::recorded;
use std::time::Instant;

use base64ct::{Base64, Encoding};
use firstbyte_tests::client::request;
use firstbyte_tests::{H2Client, Server};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use site::*;

#[test]
fn hostile_beacons_are_refused_and_counted() {
    let server = site("rate=10000r/s").start();
    let senders: [Box<dyn Sender>; 3] = [
        Box::new(Http1(server.port())),
        Box::new(Chunked(server.port())),
        Box::new(Http2(H2Client::connect(server.port()))),
    ];
    for (round, mut sender) in senders.into_iter().enumerate() {
        hostile(&server, &mut *sender, round as u64);
    }
    assert_counters(
        &server,
        &[
            ("recorded", 6),
            ("content_type", 15),
            ("cross_site", 21),
            ("too_large", 6),
            ("version", 3),
            ("malformed", 18),
            ("limit", 6),
            ("old", 3),
            ("backwards", 3),
            ("future", 3),
            ("no_user", 3),
            ("forged_user", 6),
            ("forged_arm", 3),
            ("replay", 3),
            ("not_live", 3),
        ],
    );
    assert_eq!(server.get("/f.txt").text(), "0123456789");
}

/// Sends beacons of every kind as one user.
fn hostile(server: &Server, sender: &mut dyn Sender, round: u64) {
    let user = user(server);
    let (own, other) = match &*user.arm {
        "one" => ("one.test", "two.test"),
        _ => ("two.test", "one.test"),
    };
    let good = fields(&user.cookie);
    let view = round * 100 + 1;
    let whole = beacon(view, own);
    let mut expect = |what: &str, status: u16, fields: &[(&str, &str)], body: &str| {
        assert_eq!(
            sender.post(fields, body.as_bytes()),
            status,
            "{what}, round {round}"
        );
    };
    for kind in [
        "",
        "application/json",
        "text/plainer",
        "text/html",
        "multipart/form-data",
    ] {
        expect(kind, 415, &but(&good, "Content-Type", kind), &whole);
    }
    for origin in [
        "",
        "null",
        "http://evil.test",
        "http://localhost:81",
        "http://localhost.evil.test",
    ] {
        expect(origin, 403, &but(&good, "Origin", origin), &whole);
    }
    for site in ["cross-site", "same-site"] {
        expect(site, 403, &but(&good, "Sec-Fetch-Site", site), &whole);
    }
    for (bytes, status) in [(4095, 400), (4096, 400), (4097, 413), (40_000, 413)] {
        expect("size", status, &good, &"a".repeat(bytes));
    }
    expect(
        "version",
        400,
        &good,
        &whole.replacen("firstbyte 1", "firstbyte 2", 1),
    );
    expect("empty", 400, &good, "");
    expect("json", 400, &good, "{\"view\": 1}");
    expect("type", 400, &good, &whole.replacen("a 5230", "a true", 1));
    expect("cut", 400, &good, &whole[..whole.len() - 1]);
    expect(
        "limit",
        400,
        &good,
        &whole.replacen(" 103\n", " 4000000000\n", 1),
    );
    expect("files", 400, &good, &whole.replacen("20 3 1", "3 3 1", 1));
    expect(
        "old",
        400,
        &good,
        &whole.replacen("a 5230", "a 86400001", 1),
    );
    expect(
        "backwards",
        400,
        &good,
        &whole.replacen("80000 95000", "95001 95000", 1),
    );
    expect("future", 400, &good, &whole.replacen("a 5230", "a 52", 1));
    expect("no cookie", 400, &but(&good, "Cookie", ""), &whole);
    let mut forged = user.cookie.clone();
    let last = forged.pop().expect("it has a value");
    forged.push(if last == '0' { '1' } else { '0' });
    expect("forged cookie", 403, &but(&good, "Cookie", &forged), &whole);
    let name = user.cookie.split('=').next().expect("it has a name");
    expect(
        "invented cookie",
        403,
        &but(&good, "Cookie", &format!("{name}=admin")),
        &whole,
    );
    expect("arm", 403, &good, &beacon(view, other));
    expect(
        "not live",
        204,
        &good,
        &whole.replacen("a 5230", "a 7200000", 1),
    );
    expect("good", 204, &good, &whole);
    expect("replay", 409, &good, &whole);
    // Browsers before 2023 do not send it.
    expect(
        "no metadata",
        204,
        &but(&good, "Sec-Fetch-Site", ""),
        &beacon(view + 1, own),
    );
}

#[test]
fn floods_are_refused_by_user_and_by_address() {
    let server = site("rate=5r/m").start();
    let began = Instant::now();
    let user = user(&server);
    let host = format!("{}.test", user.arm);
    let mut sender = Http1(server.port());
    let good = fields(&user.cookie);
    let statuses: Vec<u16> = (0..40)
        .map(|view| sender.post(&good, beacon(view, &host).as_bytes()))
        .collect();
    let count = |status: u16| statuses.iter().filter(|it| **it == status).count() as u64;
    // Five at once, and one every 12 seconds; of an address 16 times as many.
    let more = began.elapsed().as_secs() / 12 + 1;
    assert!((5..=5 + more).contains(&count(204)), "{statuses:?}");
    assert_eq!(count(204) + count(429), 40);
    let nobody = but(&good, "Cookie", "");
    let statuses: Vec<u16> = (0..80)
        .map(|view| sender.post(&nobody, beacon(view, &host).as_bytes()))
        .collect();
    let of_nobody = |status: u16| statuses.iter().filter(|it| **it == status).count() as u64;
    let more = began.elapsed().as_secs() * 80 / 60 + 1;
    assert!((40..=40 + more).contains(&of_nobody(400)), "{statuses:?}");
    assert_eq!(of_nobody(400) + of_nobody(429), 80);
    assert_counters(
        &server,
        &[
            ("recorded", count(204)),
            ("user_rate", count(429)),
            ("no_user", of_nobody(400)),
            ("address_rate", of_nobody(429)),
        ],
    );
    server.wait_for_text(
        "error.log",
        "experiment beacon refused: the rate of its user",
    );
}

/// A view has one row for each experiment. Before the start it has no arm.
#[test]
fn views_are_stored_with_the_arm_of_the_server() {
    let start = utc(now_s() + HOUR_S);
    let later = format!("experiment later {{ start {start}; arm a; arm b; }}");
    let server = site_with("", &later).start();
    let user = user(&server);
    let view = beacon(7, &format!("{}.test", user.arm));
    let unloaded = beacon(8, "elsewhere.test").replacen(" 950000\np", " -\np", 1);
    let mut sender = Http1(server.port());
    for view in [view, unloaded] {
        assert_eq!(sender.post(&fields(&user.cookie), view.as_bytes()), 204);
    }
    let mut stored = Vec::new();
    firstbyte_tests::wait_until("four rows are stored", || {
        stored = recorded::rows(&server, VIEWS);
        stored.len() == 4
    });
    let row = |n: usize| {
        stored[n]
            .as_object()
            .expect("a row")
            .values()
            .cloned()
            .collect::<Vec<_>>()
    };
    let expected = [
        json!([
            "e", user.arm, 7, 950_000, 940_000, 20, 3, 1, 48_213, 0, 80_000, 103
        ]),
        json!(["e", user.arm, 8, null, null, 0, 0, 0, 0, 1, 80_000, 103]),
        json!([
            "later", "", 7, 950_000, 700_000, 1, 0, 0, 10, 0, 80_000, 103
        ]),
        json!(["later", "", 8, null, 700_000, 1, 0, 0, 10, 1, 80_000, 103]),
    ];
    for (n, expected) in expected.iter().enumerate() {
        assert_eq!(Value::Array(row(n)), *expected, "row {n}");
    }
}

/// Rows of page views in the order of the assertion.
const VIEWS: &str = "SELECT e.text AS a, r.text AS b, view_id AS c, load_us AS d, files_us AS e, files AS f, files_failed AS g,
    files_truncated AS h, file_bytes AS i, is_failed AS j, first_byte_us AS k, layout_shift AS l
    FROM visit JOIN name e ON e.id = experiment JOIN name r ON r.id = arm ORDER BY e.text, view_id";

/// A reload does not forget views: the tables belong to the process.
#[test]
fn replay_after_a_reload_is_refused() {
    let server = site("rate=100r/s").start();
    let user = user(&server);
    let host = format!("{}.test", user.arm);
    let mut sender = Http1(server.port());
    let good = fields(&user.cookie);
    assert_eq!(sender.post(&good, beacon(1, &host).as_bytes()), 204);
    let new = "location = /new { return 200; } location = /hash";
    server.rewrite_conf(|text| text.replace("location = /hash", new));
    server.signal(firstbyte_tests::Signal::HUP);
    firstbyte_tests::wait_until("the new configuration is served", || {
        server.get("/new").status == 200
    });
    assert_eq!(sender.post(&good, beacon(1, &host).as_bytes()), 409);
    assert_eq!(sender.post(&good, beacon(2, &host).as_bytes()), 204);
}

/// A page that was made for users outside does not count in an arm, for example that of an open tab when the share grows.
#[test]
fn pages_of_users_outside_do_not_count() {
    let server = site("").start();
    let user = user(&server);
    let mut sender = Http1(server.port());
    let good = fields(&user.cookie);
    let of_outside = beacon(1, "static.test");
    assert_eq!(sender.post(&good, of_outside.as_bytes()), 204);
    assert_counters(&server, &[("not_live", 1)]);
    let own = format!("h {}.test 1 0 0 10 700000\n.", user.arm);
    let of_both = beacon(2, "static.test").replace("\n.", &format!("\n{own}"));
    assert_eq!(sender.post(&good, of_both.as_bytes()), 204);
    assert_counters(&server, &[("not_live", 1), ("recorded", 1)]);
}

/// The host of an arm may be that of the pages, from which all users load files.
#[test]
fn host_of_pages_can_be_that_of_an_arm() {
    let server = Server::http(
        "lab_store sqlite:%%DIR%%/lab/store.db; experiment_key %%DIR%%/key; access_log off;
         experiment e { arm one host=localhost; arm two host=two.test; }
         server { listen 127.0.0.1:%%PORT%%; server_name localhost;
           location = /arm { return 200 \"$experiment_e\"; }
           location = /beacon { experiment_beacon; } location = /metrics { metrics; } }
         server { listen 127.0.0.1:%%PORT%%; server_name two.test; }",
    )
    .file("key", "0123456789abcdef0123456789abcdef")
    .start();
    let mut recorded = 0;
    let mut users = [None, None];
    while users.iter().any(Option::is_none) {
        let user = user(&server);
        let place = usize::from(user.arm == "two");
        users[place] = Some(user);
    }
    let [one, two] = users.map(|user| user.expect("each arm has one"));
    let mut sender = Http1(server.port());
    for (view, user, host, status) in [
        (1, &one, "localhost", 204),
        (2, &two, "two.test", 204),
        // Files of the page alone: it was made for the other arm.
        (3, &two, "localhost", 403),
        (4, &one, "two.test", 403),
    ] {
        let text = match host {
            "localhost" => beacon(view, "other.test"),
            host => beacon(view, host),
        };
        let found = sender.post(&fields(&user.cookie), text.as_bytes());
        assert_eq!(found, status, "view {view}");
        recorded += u64::from(status == 204);
    }
    assert_counters(&server, &[("recorded", recorded), ("forged_arm", 2)]);
}

#[test]
fn size_limit_is_that_of_the_location() {
    let server = site("max_size=512").start();
    let user = user(&server);
    let good = fields(&user.cookie);
    let mut http1 = Http1(server.port());
    let mut chunked = Chunked(server.port());
    let mut http2 = Http2(H2Client::connect(server.port()));
    let senders: [&mut dyn Sender; 3] = [&mut http1, &mut chunked, &mut http2];
    for sender in senders {
        for (bytes, status) in [(511, 400), (512, 400), (513, 413)] {
            assert_eq!(sender.post(&good, &vec![b'a'; bytes]), status, "{bytes}");
        }
    }
    assert_counters(&server, &[("malformed", 6), ("too_large", 3)]);
}

#[test]
fn script_is_a_constant_with_its_hash() {
    let server = site("").start();
    let answer = server.get("/beacon");
    assert_eq!(answer.status, 200);
    assert_eq!(answer.header("Content-Type"), Some("text/javascript"));
    assert_eq!(answer.header("Cache-Control"), Some("max-age=3600"));
    let script = answer.text();
    assert!(
        script.contains("sendBeacon") && !script.contains("//"),
        "{script}"
    );
    let digest = Base64::encode_string(&Sha256::digest(script.as_bytes()));
    assert_eq!(server.get("/hash").text(), format!("sha256-{digest}"));
    let etag = answer.header("ETag").expect("it has one");
    let known = format!("If-None-Match: {etag}");
    let mut client = server.client();
    assert_eq!(client.get_with("/beacon", &[&known]).status, 304);
    assert_eq!(client.head("/beacon").status, 200);
    let mut h2 = H2Client::connect(server.port());
    assert_eq!(h2.fetch("/beacon").text(), script);
    client.send(request("PUT", "/beacon", &["Content-Length: 0"]));
    assert_eq!(client.response().status, 405);
    assert_counters(&server, &[]);
}

/// Responses of other hosts have no such field.
#[test]
fn hosts_of_arms_announce_lengths_and_errors() {
    let server = site("").start();
    let timing = |host: &str, path: &str| {
        let host = format!("Host: {host}");
        let answer = server.client().get_with(path, &[&host]);
        answer.header("Server-Timing").map(str::to_owned)
    };
    let length = Some("size;dur=10".to_owned());
    assert_eq!(timing("one.test", "/f.txt"), length);
    assert_eq!(timing("two.test", "/f.txt"), length);
    assert_eq!(timing("localhost", "/f.txt"), None);
    assert_eq!(timing("one.test", "/none"), Some("error".to_owned()));
    assert_eq!(timing("localhost", "/none"), None);
}
