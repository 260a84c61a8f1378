//! `firstbyte bench --against` finds no difference between a location without a mirror, and one with a mirror that never
//! answers or is down.
//!
//! The server behind takes 20 ms for a response, and the comparison is exact enough to show 2 ms. So a client that waits for
//! its mirror is found, also with a single kept connection. Own executable: response times are compared.

#[path = "common/lab.rs"]
mod lab;
#[path = "common/tls_client.rs"]
mod tls_client;

use std::time::{Duration, Instant};

use firstbyte_tests::answers::serve;
use firstbyte_tests::backend::{Backend, Step};
use firstbyte_tests::busy::inconclusive;
use firstbyte_tests::port::Port;
use firstbyte_tests::{Server, peer};
use lab::{number, report, url};
use serde_json::Value;

/// Response time of the server behind.
const TIME: Duration = Duration::from_millis(20);

/// Ratio that a comparison must be able to show: 2 ms.
const SHOWN: f64 = 1.1;

/// Maximum number of comparisons: the interval is at 99 %, and other load makes it wide.
const TRIES: usize = 3;

/// A server with `/plain`, and the same with a mirror: `/silent` and `/down`.
fn server(silent: &Backend, down: &Port) -> Server {
    let behind = serve(|| {
        let came = Instant::now();
        // The loop continues if parking ends early.
        while let Some(left) = TIME.checked_sub(came.elapsed()) {
            std::thread::park_timeout(left);
        }
    });
    let location = |name: &str, mirror: &str| {
        format!("location /{name} {{ proxy_pass http://behind; {mirror} }}\n")
    };
    let locations = location("plain", "")
        + &location("silent", "mirror /to_silent;")
        + &location("down", "mirror /to_down;");
    Server::http_with(
        "worker_processes 1;",
        &format!(
            "upstream behind {{ server {behind}; keepalive 8; }}
             keepalive_requests 1000000; mirror_max 0; error_log %%DIR%%/error.log crit;
             server {{ listen 127.0.0.1:%%PORT%%; {locations}
                 location /to_silent {{ internal; proxy_pass http://{}; }}
                 location /to_down {{ internal; proxy_pass http://127.0.0.1:{}; }} }}",
            silent.name(),
            down.number()
        ),
    )
    .start()
}

/// Two locations in 20 blocks, a connection and six requests for each run: rates and mean times.
fn compared(first: &str, second: &str) -> [Value; 2] {
    let size = ["--connections", "1", "--requests", "6", "--blocks", "20"];
    let report = report(&[&[first, "--against", second], &size[..]].concat());
    let figures = &report["comparison"];
    [figures[0].clone(), figures[1].clone()]
}

/// Whether an interval is narrow enough to show a difference of [`SHOWN`].
fn is_narrow(figure: &Value) -> bool {
    let ratio = &figure["ratio"];
    let interval = number(&ratio["low"])..=number(&ratio["high"]);
    !interval.contains(&SHOWN) && !interval.contains(&(1.0 / SHOWN))
}

/// Fails if each comparison shows a difference. If none is exact enough, the machine is busy.
#[track_caller]
fn does_not_differ(server: &Server, location: &str) {
    let [plain, mirrored] = ["/plain", location].map(|path| url(server, 1, path));
    let (mut seen, mut differs) = (Vec::new(), true);
    for _ in 0..TRIES {
        let figures = compared(&plain, &mirrored);
        for figure in &figures {
            let (name, verdict, ratio) = (&figure["figure"], &figure["verdict"], &figure["ratio"]);
            println!("{location}: {name} {verdict} {ratio}");
        }
        let is_equal = |figure: &Value| figure["verdict"] == "no difference seen";
        if figures.iter().all(is_equal) {
            if figures.iter().all(is_narrow) {
                return;
            }
            differs = false;
        }
        seen.push(figures);
    }
    assert!(!differs, "{TRIES} comparisons: {seen:?}");
    inconclusive("no interval of a comparison is narrow");
}

#[test]
fn mirrors_that_never_answer_or_are_down_delay_no_client() {
    if !peer::is_firstbyte() {
        // nginx holds a kept connection until its mirrors have ended.
        return;
    }
    let silent = Backend::answering(|_| vec![Step::Hold]);
    let down = Port::reserve();
    let server = server(&silent, &down);
    does_not_differ(&server, "/silent");
    assert!(silent.request_count() >= 120, "each request was mirrored");
    does_not_differ(&server, "/down");
    // The end of the server waits for mirrors.
    drop(silent);
}
