//! memcached requests of one turn share a connection: each gets its own value or is sent again alone, and a wrong
//! response reaches no other request.
//!
//! HTTP/2 streams in one write belong to one turn. Sources: memcached, doc/protocol.txt; nginx documentation,
//! `memcached_read_timeout`, `memcached_next_upstream`, `keepalive_requests`.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use firstbyte_tests::busy::Waits;
use firstbyte_tests::cache::{Cache, CacheStep, Reading, value};
use firstbyte_tests::h2::{self, Reply};
use firstbyte_tests::{H2Client, Server, hpack, wait_until};

fn server(cache: &Cache, directives: &str) -> Server {
    let pass = cache.name();
    Server::http_with(
        "worker_processes 1;",
        &format!(
            "log_format own '$uri $status $upstream_status $upstream_bytes_sent $upstream_bytes_received';
             access_log %%DIR%%/own.log own;
             upstream cache {{ server {pass} max_fails=0; keepalive 32; {directives} }}
             server {{ listen 127.0.0.1:%%PORT%%; http2 on; memcached_read_timeout 3s;
                 location / {{ set $memcached_key $uri; memcached_pass cache; }}
                 location /hasty/ {{ set $memcached_key $uri; memcached_pass cache; memcached_read_timeout 50ms; }}
                 location /unkept/ {{ set $memcached_key $uri; memcached_pass {pass}; }} }}"
        ),
    )
    .start()
}

/// Requests all paths in one write.
fn ask(client: &mut H2Client, paths: &[&str]) -> Vec<u32> {
    client.settle();
    let (mut streams, mut bytes) = (Vec::new(), Vec::new());
    for path in paths {
        let stream = client.take_stream();
        let block = hpack::write(&h2::request_fields("GET", path));
        let flags = h2::END_HEADERS | h2::END_STREAM;
        bytes.extend(h2::frame(h2::HEADERS, flags, stream, &block));
        streams.push(stream);
    }
    client.send(bytes);
    streams
}

fn replies(client: &mut H2Client, paths: &[&str]) -> Vec<Reply> {
    let streams = ask(client, paths);
    streams.into_iter().map(|s| client.reply(s)).collect()
}

/// Value of a key: more than a line, and its own.
fn kept(key: &str) -> String {
    format!("the secret of {key}, ").repeat(40)
}

/// Responses of a server that has all keys except those with `none`.
fn honest(reading: &Reading) -> Vec<u8> {
    let answer = |key: &String| match key.contains("none") {
        true => b"END\r\n".to_vec(),
        false => value(key, kept(key)),
    };
    reading.keys.iter().flat_map(answer).collect()
}

fn knows_all() -> Cache {
    Cache::scripted(|reading| vec![CacheStep::Text(honest(reading))])
}

#[track_caller]
fn is_own(reply: &Reply, path: &str) {
    let expected = match path.contains("none") {
        true => (404, false),
        false => (200, true),
    };
    let is_kept = reply.text() == kept(path);
    assert_eq!((reply.status, is_kept), expected, "{path}: {reply:.300?}");
}

const PATHS: [&str; 8] = [
    "/a", "/none/b", "/c", "/d", "/none/e", "/none/f", "/g", "/h",
];

#[test]
fn requests_of_one_turn_are_asked_in_one_write() {
    let cache = knows_all();
    let server = server(&cache, "");
    let mut client = H2Client::connect(server.port());
    for _ in 0..3 {
        let all = replies(&mut client, &PATHS);
        all.iter()
            .zip(PATHS)
            .for_each(|(reply, path)| is_own(reply, path));
    }
    let reads = cache.reads();
    assert_eq!(reads.len(), 3, "{reads:?}");
    assert!(reads.iter().all(|r| r.connection == 0 && r.keys == PATHS));
    // Byte counts are those of each request and of its own response.
    let log = || server.dir().read("own.log");
    wait_until("all is logged", || log().lines().count() == 24);
    for path in PATHS {
        let own = Reading {
            connection: 0,
            keys: vec![path.to_owned()],
        };
        let (sent, came) = (path.len() + 6, honest(&own).len());
        let status = if path.contains("none") { 404 } else { 200 };
        let line = format!("{path} {status} {status} {sent} {came}\n");
        assert_eq!(log().matches(&line).count(), 3, "{line}{}", log());
    }
}

#[test]
fn as_many_share_a_connection_as_may() {
    let cache = knows_all();
    let server_of_many = server(&cache, "");
    let paths: Vec<String> = (0..40).map(|n| format!("/{n}")).collect();
    let paths: Vec<&str> = paths.iter().map(String::as_str).collect();
    let mut client = H2Client::connect(server_of_many.port());
    let all = replies(&mut client, &paths);
    all.iter()
        .zip(&paths)
        .for_each(|(reply, path)| is_own(reply, path));
    let mut counts: Vec<usize> = cache.reads().iter().map(|r| r.keys.len()).collect();
    counts.sort_unstable();
    assert_eq!(counts, [8, 16, 16]);
    // `keepalive_requests` is a bound too.
    let cache = knows_all();
    let server_of_few = server(&cache, "keepalive_requests 3;");
    let mut client = H2Client::connect(server_of_few.port());
    let all = replies(&mut client, &PATHS);
    all.iter()
        .zip(PATHS)
        .for_each(|(reply, path)| is_own(reply, path));
    let reads = cache.reads();
    assert!(reads.iter().all(|r| r.keys.len() <= 3), "{reads:?}");
    assert_eq!(
        reads.iter().map(|r| r.keys.len()).sum::<usize>(),
        PATHS.len()
    );
}

#[test]
fn without_kept_connections_each_request_has_its_own() {
    let cache = knows_all();
    let server = server(&cache, "");
    let mut client = H2Client::connect(server.port());
    replies(&mut client, &["/unkept/a", "/unkept/b", "/unkept/c"]);
    let connections: BTreeSet<usize> = cache.reads().iter().map(|r| r.connection).collect();
    assert_eq!(connections.len(), 3);
}

/// Wrong responses to the first of several requests; the others would be correct.
fn lies() -> Vec<(&'static str, Vec<u8>)> {
    let next = value("/c", kept("/c"));
    let taking_in = format!("11\r\nEND\r\n{}", String::from_utf8_lossy(&next));
    let taking_in = taking_in
        .strip_suffix("\r\nEND\r\n")
        .expect("it is there")
        .len();
    vec![
        (
            "more is announced",
            b"VALUE /a 0 400\r\n11\r\nEND\r\n".to_vec(),
        ),
        (
            "all of the next is announced",
            format!("VALUE /a 0 {taking_in}\r\n11\r\nEND\r\n").into_bytes(),
        ),
        (
            "less is announced",
            b"VALUE /a 0 1\r\n11\r\nEND\r\n".to_vec(),
        ),
        ("no END", b"VALUE /a 0 2\r\n11\r\n".to_vec()),
        ("no line end", b"VALUE /a 0 2\r\n11".to_vec()),
        ("another END", b"VALUE /a 0 2\r\n11\r\nEND \r\n".to_vec()),
        ("no answer", Vec::new()),
        ("another key", value("/other", "x")),
        (
            "twice",
            [value("/a", kept("/a")), value("/a", kept("/a"))].concat(),
        ),
        ("an error", b"SERVER_ERROR out of memory\r\n".to_vec()),
        ("no length", b"VALUE /a 0 x\r\n".to_vec()),
        ("nothing but announced", b"VALUE /a 0 99\r\n".to_vec()),
    ]
}

/// Cuts a text at places drawn from a seed.
fn cut(text: &[u8], mut seed: u64) -> Vec<CacheStep> {
    let (mut said, mut rest) = (Vec::new(), text);
    while !rest.is_empty() {
        seed = seed
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        let len = ((seed >> 33) as usize % 300 + 1).min(rest.len());
        said.push(CacheStep::Text(rest[..len].to_vec()));
        said.push(CacheStep::Pause(Duration::from_micros(seed >> 54)));
        rest = &rest[len..];
    }
    said
}

#[test]
fn what_is_said_wrongly_to_one_reaches_no_other() {
    for seed in 1..4 {
        for (what, lie) in lies() {
            // Wrong responses for requests that come together, correct ones for a single request.
            let cache = Cache::scripted(move |reading| {
                if reading.keys.len() == 1 {
                    return vec![CacheStep::Text(honest(reading))];
                }
                let behind = Reading {
                    connection: 0,
                    keys: reading.keys[1..].to_vec(),
                };
                cut(&[lie.clone(), honest(&behind)].concat(), seed)
            });
            let server = server(&cache, "");
            let mut client = H2Client::connect(server.port());
            for (reply, path) in replies(&mut client, &["/a", "/c", "/d"])
                .iter()
                .zip(["/a", "/c", "/d"])
            {
                let is_kept = reply.text() == kept(path);
                assert_eq!(
                    (reply.status, is_kept),
                    (200, true),
                    "{what}, seed {seed}: {path}: {reply:.300?}"
                );
            }
        }
    }
}

#[test]
fn a_lie_to_one_that_is_asked_alone_is_its_own() {
    let cache = Cache::scripted(|reading| {
        let answer = |key: &String| match key.as_str() {
            "/a" => b"VALUE /a 0 5000\r\nshort\r\nEND\r\n".to_vec(),
            key => value(key, kept(key)),
        };
        vec![
            CacheStep::Text(reading.keys.iter().flat_map(answer).collect()),
            CacheStep::Pause(Duration::from_millis(300)),
            CacheStep::Close,
        ]
    });
    let server = server(&cache, "");
    let mut client = H2Client::connect(server.port());
    let streams = ask(&mut client, &["/a", "/c", "/d"]);
    let first = client.reply(streams[0]);
    assert!(
        first.reset.is_some(),
        "no part passes for the whole: {first:.300?}"
    );
    assert_eq!(first.text(), "short\r\nEND\r\n");
    for (stream, path) in streams[1..].iter().zip(["/c", "/d"]) {
        is_own(&client.reply(*stream), path);
    }
}

#[test]
fn a_connection_that_ends_anywhere_costs_nobody_an_answer() {
    let paths = ["/a", "/none/b", "/c"];
    let whole = honest(&Reading {
        connection: 0,
        keys: paths.map(str::to_owned).to_vec(),
    });
    for end in (0..whole.len()).step_by(97).chain([whole.len() - 1]) {
        let cache = Cache::scripted(move |reading| {
            let text = honest(reading);
            match reading.keys.len() {
                1 => vec![CacheStep::Text(text)],
                _ => vec![CacheStep::Text(text[..end].to_vec()), CacheStep::Close],
            }
        });
        let server = server(&cache, "");
        let mut client = H2Client::connect(server.port());
        let streams = ask(&mut client, &paths);
        for (at, (stream, path)) in streams.into_iter().zip(paths).enumerate() {
            let reply = client.reply(stream);
            // The last stream got the received part of its value, as it would alone.
            match at == 2 && reply.reset.is_some() {
                true => assert!(kept(path).starts_with(&reply.text())),
                false => is_own(&reply, path),
            }
        }
    }
}

#[test]
fn a_large_value_holds_no_small_one_up() {
    let large = |key: &str| kept(key).repeat(1000);
    let cache = Cache::scripted(move |reading| {
        let answer = |key: &String| match key.contains("large") {
            true => value(key, large(key)),
            false => value(key, kept(key)),
        };
        vec![CacheStep::Text(
            reading.keys.iter().flat_map(answer).collect(),
        )]
    });
    let server = server(&cache, "");
    // The windows are so small that the large value blocks its stream.
    let mut client = H2Client::narrow(server.port(), 3000);
    let streams = ask(&mut client, &["/large/a", "/b", "/large/c", "/d"]);
    for (stream, path) in [(streams[1], "/b"), (streams[3], "/d")] {
        is_own(&client.reply(stream), path);
    }
    client.window(0, 1 << 30);
    for (stream, path) in [(streams[0], "/large/a"), (streams[2], "/large/c")] {
        client.window(stream, 1 << 30);
        assert!(client.reply(stream).text() == large(path), "{path}");
    }
}

#[test]
fn a_client_that_takes_nothing_holds_no_other_up() {
    let cache = knows_all();
    let server = server(&cache, "");
    let mut client = H2Client::narrow(server.port(), 0);
    let streams = ask(&mut client, &["/a", "/b", "/c"]);
    for (stream, path) in [(streams[2], "/c"), (streams[1], "/b")] {
        client.window(stream, 100_000);
        is_own(&client.reply(stream), path);
    }
    assert_eq!(client.so_far(streams[0]).body, b"");
    client.window(streams[0], 100_000);
    is_own(&client.reply(streams[0]), "/a");
}

#[test]
fn an_answer_that_is_late_is_waited_for_by_its_own_request_alone() {
    let cache = Cache::scripted(|reading| {
        let slow = reading.keys.iter().any(|key| key == "/slow");
        let time = Duration::from_millis(if slow { 1500 } else { 0 });
        vec![CacheStep::Pause(time), CacheStep::Text(honest(reading))]
    });
    let server = server(&cache, "");
    let mut client = H2Client::connect(server.port());
    let waits = Waits::begin();
    let streams = ask(&mut client, &["/slow", "/b", "/c"]);
    is_own(&client.reply(streams[1]), "/b");
    is_own(&client.reply(streams[2]), "/c");
    waits.assert_below(waits.elapsed(), Duration::from_millis(1400));
    is_own(&client.reply(streams[0]), "/slow");
    assert_eq!(cache.request_count("/slow"), 2, "together and alone");
}

#[test]
fn the_time_for_an_answer_is_each_request_s_own() {
    let cache = Cache::scripted(|_| Vec::new());
    let server = server(&cache, "");
    let mut client = H2Client::connect(server.port());
    for reply in replies(&mut client, &["/hasty/a", "/hasty/b"]) {
        assert_eq!(reply.status, 504);
    }
    assert_eq!(cache.request_count("/hasty/b"), 1, "nobody is asked again");
}

#[test]
fn requests_that_are_given_up_leave_the_others_their_answers() {
    let cache = Cache::scripted(|reading| {
        vec![
            CacheStep::Pause(Duration::from_millis(50)),
            CacheStep::Text(honest(reading)),
        ]
    });
    let server = server(&cache, "");
    let mut client = H2Client::connect(server.port());
    for round in 0..5 {
        let streams = ask(&mut client, &PATHS);
        // The first, the last and some between.
        for at in [0, 7, 3, 4].into_iter().take(round) {
            client.cancel(streams[at]);
        }
        for (at, path) in PATHS.iter().enumerate() {
            if ![0, 7, 3, 4][..round.min(4)].contains(&at) {
                is_own(&client.reply(streams[at]), path);
            }
        }
    }
}

#[test]
fn a_key_that_is_too_long_shares_with_nobody() {
    let cache = knows_all();
    let server = server(&cache, "");
    let mut client = H2Client::connect(server.port());
    let long = format!("/{}", "k".repeat(250));
    let paths = ["/a", &long, "/b", &long[..250]];
    let all = replies(&mut client, &paths);
    all.iter()
        .zip(paths)
        .for_each(|(reply, path)| is_own(reply, path));
    let together: Vec<usize> = cache.reads().iter().map(|r| r.keys.len()).collect();
    assert_eq!(together.len(), 2, "{together:?}");
    assert!(
        cache
            .reads()
            .iter()
            .all(|r| r.keys.len() == 1 || !r.keys.contains(&long))
    );
}

#[test]
fn a_server_that_was_wrong_is_asked_singly_for_a_second() {
    let cache = Cache::scripted(|reading| {
        let is_wrong = reading.keys.len() > 1 && reading.keys[0] == "/wrong";
        let lie = b"VALUE /wrong 0 2\r\n".to_vec();
        vec![CacheStep::Text(if is_wrong {
            lie
        } else {
            honest(reading)
        })]
    });
    let server = server(&cache, "");
    let mut client = H2Client::connect(server.port());
    let together = |from: usize| {
        let reads = cache.reads();
        reads[from..].iter().filter(|r| r.keys.len() > 1).count()
    };
    let start = Instant::now();
    for (paths, shared) in [(["/wrong", "/b"], 1), (["/c", "/d"], 0)] {
        let from = cache.reads().len();
        for (reply, path) in replies(&mut client, &paths).iter().zip(paths) {
            is_own(reply, path);
        }
        // On a machine that is busy the second may have passed.
        if start.elapsed() < Duration::from_millis(900) {
            assert_eq!(together(from), shared, "{paths:?}");
        }
    }
    wait_until("they share a connection again", || {
        let from = cache.reads().len();
        replies(&mut client, &["/e", "/f"]);
        together(from) == 1
    });
}
