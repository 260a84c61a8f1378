//! Experiments from the first request to the report: pages with cookies, files from hosts of arms, beacons, store, analysis.
//!
//! Users are simulated. Each one loads the page and the files of its arm over a socket, and sends a beacon with times from a
//! seeded distribution. So the true effect of an arm is known. Arms are assigned by the server at random.
//!
//! `make test` makes one run of 2,000 users with an effect, and one without. `LAB_LONG=1` makes 200 of each, and finds shares of 51
//! to 49 among 50,000 users.

mod users;

use firstbyte_tests::experiment::{comparison, holds};
use firstbyte_tests::{Backend, Signal, backend, peer, wait_until};
use serde_json::Value;
use users::{Experiment, Faults, Planted};

/// Users of a run.
const USERS: usize = 2_000;
/// Factor of the times in the second arm.
const EFFECT: f64 = 1.05;
/// Number of runs with `LAB_LONG`, and the least number of runs with an interval that contains the true effect.
const RUNS: u64 = 200;
const HELD_LEAST: u64 = 190;
/// Runs without an effect that may report one: 5 %.
const ALARMS_MOST: u64 = 10;
const STATISTICS: [&str; 3] = ["mean", "p50", "p80"];

fn is_long() -> bool {
    std::env::var_os("LAB_LONG").is_some()
}

/// Seeds of the users' times. The server draws the arms, so a seed does not repeat a run.
fn seeds(first: u64) -> impl Iterator<Item = u64> {
    let count = if is_long() { RUNS } else { 1 };
    println!("seeds {first} to {}", first + count - 1);
    first..first + count
}

#[test]
fn intervals_hold_the_true_effect() {
    if !peer::is_firstbyte() {
        return;
    }
    let (mut runs, mut held) = (0, 0);
    for seed in seeds(1) {
        let report = Experiment::begin("").run(seed, USERS, EFFECT);
        let all = STATISTICS
            .iter()
            .all(|one| holds(&report, one, (EFFECT - 1.0) * 100.0));
        runs += 1;
        held += u64::from(all);
        if !all {
            println!("seed {seed}: {}", report["metrics"][0]["comparisons"]);
        }
        // Intervals without ends would hold everything.
        let mean = comparison(&report, "mean");
        let low = mean["low_percent"].as_f64().expect("a lower end");
        let high = mean["high_percent"].as_f64().expect("an upper end");
        assert!(low > -50.0 && high < 100.0 && low < high, "{mean}");
    }
    println!("{held} of {runs} runs hold the true effect");
    assert!(
        held + (RUNS - HELD_LEAST) * runs / RUNS >= runs,
        "{held} of {runs}"
    );
}

#[test]
fn equal_arms_have_no_difference() {
    if !peer::is_firstbyte() {
        return;
    }
    let (mut runs, mut alarms) = (0, 0);
    for seed in seeds(1001) {
        let report = Experiment::begin("").run(seed, USERS, 1.0);
        let outcome = report["verdict"]["outcome"].as_str().expect("an outcome");
        runs += 1;
        if outcome != "no_difference" {
            alarms += 1;
            println!("seed {seed}: {}", report["verdict"]);
        }
    }
    println!("{alarms} of {runs} runs report a difference");
    assert!(alarms * RUNS <= ALARMS_MOST * runs, "{alarms} of {runs}");
}

#[test]
fn failed_and_truncated_files_are_counted_exactly() {
    if !peer::is_firstbyte() {
        return;
    }
    // The upstream server announces 1000 bytes, and closes after 400.
    let upstream = Backend::answering(|_| {
        let head = "HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n";
        vec![
            backend::send(format!("{head}{}", "x".repeat(400))),
            backend::Step::Close,
        ]
    });
    let cut = format!(
        "location /cut/ {{ proxy_pass http://{}; }}",
        upstream.name()
    );
    let mut experiment = Experiment::begin(&cut);
    let mut planted = [Planted::default(), Planted::default()];
    for user in 0..60 {
        let faults = Faults {
            is_unloaded: user % 7 == 0,
            missing: user % 4,
            cut: user % 3,
        };
        let mut clients = experiment.clients();
        let (arm, files) = experiment.visit(&mut clients, user as u64, 1_000_000, faults);
        planted[arm].add(&files, faults);
    }
    // Users without a load time have no value.
    let measured = 60 - 60_usize.div_ceil(7);
    let report = experiment.report(measured);
    for (arm, planted) in report["arms"]
        .as_array()
        .expect("arms")
        .iter()
        .zip(&planted)
    {
        assert!(planted.truncated > 0 && planted.failed > 0, "{planted:?}");
        for (name, expected) in [
            ("users", planted.users),
            ("views", planted.users),
            ("failed_views", planted.unloaded),
            ("files", planted.files),
            ("files_failed", planted.failed),
            ("files_truncated", planted.truncated),
            ("file_bytes", planted.bytes),
        ] {
            assert_eq!(arm[name], expected, "{name} of {arm}");
        }
    }
    // The server counts its own responses. Its figures of a minute are stored at the end of the minute or of the server.
    experiment.server.signal(Signal::QUIT);
    assert_eq!(experiment.server.wait_for_exit(), 0);
    let mut report = report;
    let server =
        |report: &Value, arm: usize, name: &str| report["arms"][arm]["server"][name].as_u64();
    wait_until("the server has the truncated responses", || {
        report = experiment.report(measured);
        let both = planted.iter().enumerate();
        both.into_iter()
            .all(|(arm, planted)| server(&report, arm, "truncated") == Some(planted.truncated))
    });
    for (arm, planted) in planted.iter().enumerate() {
        let number = |name: &str| server(&report, arm, name).expect("a number");
        assert_eq!(
            number("bytes_promised") - number("bytes_sent"),
            600 * planted.truncated
        );
        assert_eq!(number("aborted"), 0);
    }
}

#[test]
fn an_arm_that_loses_users_blocks_the_verdict() {
    if !peer::is_firstbyte() {
        return;
    }
    // Shares of 51 to 49 need many users to be significant; 2,000 users are enough for 60 to 40.
    let (users, first) = if is_long() {
        (50_000, 25_500)
    } else {
        (2_000, 1_200)
    };
    let experiment = Experiment::begin("");
    let mut left = [first, users - first];
    let mut clients = experiment.clients();
    let mut view = 0;
    while left != [0, 0] {
        let page = experiment.page(&mut clients, None);
        // Beacons of the other users are lost.
        if left[page.arm] > 0 {
            left[page.arm] -= 1;
            view += 1;
            experiment.beacon(
                &mut clients,
                &page,
                view,
                Some(1_000_000),
                &users::Files::default(),
            );
        }
    }
    let report = experiment.report(users);
    println!("{}", report["sample_ratio"]);
    assert_eq!(
        report["sample_ratio"]["is_mismatch"], true,
        "{}",
        report["sample_ratio"]
    );
    assert_eq!(report["verdict"]["outcome"], "sample_ratio");
}

#[test]
fn assignment_survives_reload_restart_and_another_server() {
    if !peer::is_firstbyte() {
        return;
    }
    let mut experiment = Experiment::begin("");
    let mut clients = experiment.clients();
    let pages: Vec<_> = (0..100)
        .map(|_| experiment.page(&mut clients, None))
        .collect();
    for arm in 0..2 {
        assert!(
            pages.iter().any(|page| page.arm == arm),
            "all users are in one arm"
        );
    }
    let again = |experiment: &Experiment| {
        let mut clients = experiment.clients();
        for page in &pages {
            let found = experiment.page(&mut clients, Some(&page.cookie));
            assert_eq!((found.arm, &found.cookie), (page.arm, &page.cookie));
        }
    };
    again(&experiment);
    experiment
        .server
        .rewrite_conf(|conf| conf.replace("'<head><script", "'<head><!-- new --><script"));
    experiment.server.signal(Signal::HUP);
    wait_until("the configuration is new", || {
        let reply = experiment
            .server
            .client()
            .get_with("/", &["Host: www.test"]);
        reply.text().contains("<!-- new -->")
    });
    again(&experiment);
    drop(clients);
    experiment.server.signal(Signal::QUIT);
    assert_eq!(experiment.server.wait_for_exit(), 0);
    experiment.server.launch(false);
    again(&experiment);
    // Another server of a fleet: other ports, the same key.
    again(&Experiment::begin(""));
    let other = Experiment::with_key("", "ffeeddccbbaa99887766554433221100");
    let mut clients = other.clients();
    let found = other.page(&mut clients, Some(&pages[0].cookie));
    assert_ne!(
        found.cookie, pages[0].cookie,
        "another key takes no cookie of this one"
    );
}
