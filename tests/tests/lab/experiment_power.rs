//! `firstbyte experiment power` with users of access logs.

use firstbyte_tests::{TempDir, run};
use serde_json::Value;

/// Runs the verb with a log.
fn answered(log: &str, words: &[&str]) -> Result<Value, String> {
    let dir = TempDir::new();
    dir.write("a.log", log);
    dir.write("nginx.conf", format!(
        "events {{}}\nhttp {{\n log_format timed '$cookie_uid $request_time';\n access_log {}/a.log timed;\n}}\n",
        dir.path().display()
    ));
    let path = |name: &str| dir.path().join(name).display().to_string();
    let (log, conf) = (path("a.log"), path("nginx.conf"));
    let mut line = vec![
        "experiment",
        "power",
        "--json",
        "--effect",
        "1%",
        "--log",
        &log,
    ];
    line.extend(["--unit", "$cookie_uid"]);
    line.extend(words);
    if !words.contains(&"--format") {
        line.extend(["-c", &conf]);
    }
    let outcome = run(line);
    match outcome.code {
        0 => Ok(serde_json::from_str(&outcome.stdout).expect("it is JSON")),
        code => {
            assert_eq!(code, 1, "{outcome:?}");
            Err(outcome.stderr)
        }
    }
}

/// Half of the users wait three times as long: a deviation of 1 at a mean of 2.
fn lines(count: u32) -> String {
    (0..count)
        .map(|n| format!("u{} {}.000\n", n % 1000, 1 + n % 2 * 2))
        .collect()
}

#[test]
fn users_of_a_log_decide() {
    let found = answered(&lines(3000), &["--users-per-day", "1000"]).expect("it is read");
    assert_eq!(found["users_measured"], 1000);
    let cv = found["cv"].as_f64().expect("a number");
    assert!((cv - 0.5).abs() < 0.001, "{found}");
    let fixed = &found["methods"][0];
    // 2 * 0.5^2 * (1.960 + 0.842)^2 / ln(1.01)^2
    let users = fixed["users_per_arm"].as_f64().expect("a number");
    assert!((users / 39_640.0 - 1.0).abs() < 0.003, "{found}");
    let days = fixed["days"].as_f64().expect("a number");
    assert_eq!(days, (2.0 * users / 1000.0).ceil());
    let by_format = answered(&lines(3000), &["--format", "$cookie_uid $request_time"]);
    let by_format = by_format.expect("it is read")["cv"].as_f64();
    // Sums depend on the order of the users in the last digit.
    assert!((by_format.expect("a number") - cv).abs() < 1e-9, "{found}");
}

#[test]
fn logs_without_times_or_users_are_refused() {
    let why = answered(&lines(50), &["--value", "$upstream_time"]).expect_err("no such field");
    assert!(why.contains("has no $upstream_time"), "{why}");
    let why = answered(&lines(50), &["--format", "common"]).expect_err("it has no user");
    assert!(why.contains("has no $cookie_uid"), "{why}");
    let why = answered(&lines(29), &[]).expect_err("29 users are too few");
    assert!(why.contains("29 users with values"), "{why}");
    assert!(answered(&lines(30), &[]).is_ok() && answered(&lines(31), &[]).is_ok());
    let same = "u1 1.0\nu2 1.0\n".repeat(20);
    let why = answered(&same, &[]).expect_err("users do not differ");
    assert!(why.contains("2 users with values"), "{why}");
    let why = answered("x\ny\n", &[]).expect_err("no line has the format");
    assert!(
        why.contains("2 of 2 lines have no user or no value"),
        "{why}"
    );
}
