//! `firstbyte bench --against` finds a planted difference of 5 % between two real servers, and no difference between a
//! server and itself.
//!
//! Each server delays a response by wall-clock time, as a disk does. Computing would take longer on a machine with other
//! load. Own executable: 5 % of a response time must be visible.

#[path = "common/lab.rs"]
mod lab;
#[path = "common/tls_client.rs"]
mod tls_client;

use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use firstbyte_tests::answers::serve;
use lab::{number, report};
use serde_json::Value;

/// Response time of the faster server. Client, loopback and all wake-ups add to it, here some tenths of a millisecond.
const TIME: Duration = Duration::from_millis(20);

/// Ratio of the response times of the slower and the faster server.
const PLANTED: f64 = 1.05;

/// A common part of both times reduces a ratio: 0.8 ms of it, which is the most allowed for, make 1.048 of 1.05.
const DILUTED: f64 = 0.002;

/// Maximum number of comparisons. The interval is at 99 %: one of a hundred is wrong even on an idle machine. Under
/// other load, a few outliers may make it too wide.
const TRIES: usize = 3;

/// Sets real-time priority for this thread and its later children, servers and client. Otherwise each of the five
/// wake-ups of a request may wait 3 ms for another task's time slice. They are idle nearly all the time, so they delay
/// no other task. Needs root; without it the machine has to be quieter.
fn run_first() {
    let thread = rustix::thread::gettid().as_raw_nonzero().to_string();
    let _ = Command::new("chrt")
        .args(["--fifo", "--pid", "1", &thread])
        .stderr(Stdio::null())
        .status();
}

/// The URL of a server that takes so long for each response.
fn taking(time: Duration) -> String {
    let address = serve(move || {
        let came = Instant::now();
        // The loop continues if parking ends early.
        while let Some(left) = time.checked_sub(came.elapsed()) {
            std::thread::park_timeout(left);
        }
    });
    format!("http://{address}/")
}

/// Two servers in 20 blocks, a connection and six requests for each run: the comparison of rates, and of mean times.
fn compared(first: &str, second: &str) -> [Value; 2] {
    let size = ["--connections", "1", "--requests", "6", "--blocks", "20"];
    let report = report(&[&[first, "--against", second], &size[..]].concat());
    let figures = &report["comparison"];
    assert_eq!(
        (&figures[0]["figure"], &figures[1]["figure"]),
        (&"rate".into(), &"mean_ms".into())
    );
    [figures[0].clone(), figures[1].clone()]
}

/// Compares servers with these response times, three times at most, until the result is as expected. With equal times,
/// a server is compared with itself.
#[track_caller]
fn comes_out(first: Duration, second: Duration, expected: impl Fn(&[Value; 2]) -> bool) {
    run_first();
    let [first, second] = match first == second {
        true => {
            let url = taking(first);
            [url.clone(), url]
        }
        false => [taking(first), taking(second)],
    };
    let mut seen = Vec::new();
    for _ in 0..TRIES {
        let figures = compared(&first, &second);
        for figure in &figures {
            println!(
                "{}: {} {}",
                figure["figure"], figure["verdict"], figure["ratio"]
            );
        }
        if expected(&figures) {
            return;
        }
        seen.push(figures);
    }
    panic!("{TRIES} comparisons: {seen:?}");
}

/// Returns whether the interval of a ratio contains a number. `DILUTED` allows for time common to both servers, which
/// brings ratios nearer to 1.
fn holds(figure: &Value, ratio: f64) -> bool {
    let (low, high) = (
        number(&figure["ratio"]["low"]),
        number(&figure["ratio"]["high"]),
    );
    (low - DILUTED..=high + DILUTED).contains(&ratio)
}

#[test]
fn server_that_needs_five_percent_longer_is_found() {
    comes_out(TIME, TIME.mul_f64(PLANTED), |[rate, mean]| {
        let found = |figure: &Value| figure["verdict"] == "first is better";
        let whole = holds(rate, 1.0 / PLANTED) && holds(mean, PLANTED);
        found(rate) && found(mean) && whole
    });
}

#[test]
fn server_that_is_compared_with_itself_does_not_differ() {
    comes_out(TIME, TIME, |[rate, mean]| {
        let neither = |figure: &Value| figure["verdict"] == "no difference seen";
        // And by an interval that would have shown the difference of the other test.
        let narrow = |figure| !holds(figure, PLANTED) && !holds(figure, 1.0 / PLANTED);
        neither(rate) && neither(mean) && narrow(rate) && narrow(mean)
    });
}
