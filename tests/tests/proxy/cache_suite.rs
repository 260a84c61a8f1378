//! The suite http-tests/cache-tests, by RFC 9111 and by nginx's rules: tests that do not pass are listed with reasons.
//!
//! `FIRSTBYTE_CACHE_TESTS` is the folder of a checkout of <https://github.com/http-tests/cache-tests>; node is needed. The
//! lists are in `tests/cache-tests`. Some tests of the suite wait for times of a second, so a test counts as passed if it
//! passes in one of [`RUNS`] runs. Absent: tests that need a browser, and checks without a verdict.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use firstbyte_tests::port::Port;
use firstbyte_tests::programs::Program;
use firstbyte_tests::skip::skip;
use firstbyte_tests::{Server, TempDir, peer};

/// The least numbers of tests with a verdict, of each kind. A checkout with fewer is not the suite.
const REQUIRED_MIN: usize = 160;
const OPTIMAL_MIN: usize = 105;

/// Runs before a difference from the list is a failure.
const RUNS: usize = 3;

/// Kinds of tests by their id.
type Kinds = BTreeMap<String, String>;

/// Returns the suite's folder, or reports that the test is skipped.
fn checkout() -> Option<PathBuf> {
    let folder = std::env::var_os("FIRSTBYTE_CACHE_TESTS").map(PathBuf::from);
    if folder.is_none() {
        skip("FIRSTBYTE_CACHE_TESTS names no checkout of http-tests/cache-tests");
    }
    // The lists are those of the server under test.
    folder.filter(|_| peer::is_firstbyte())
}

/// Runs the suite's server, which is stopped when the program is dropped.
fn start_origin(checkout: &Path) -> (Program, TempDir, Port) {
    let (dir, port) = (TempDir::new(), Port::reserve());
    let mut start = Command::new("node");
    start
        .arg(checkout.join("test-engine/server/server.mjs"))
        .current_dir(dir.path())
        .env("npm_config_protocol", "http")
        .env("npm_config_port", port.number().to_string())
        .env("npm_config_pidfile", dir.path().join("pid"));
    let program = Program::start(&dir, "origin", &mut start).accepting(port.number());
    (program, dir, port)
}

/// Runs the server under test, with the configuration of the suite's own nginx.
fn start_cache(origin: u16, directives: &str) -> Server {
    let http = format!(
        "proxy_cache_path %%DIR%%/cache levels=1:2 keys_zone=one:8m max_size=1000m inactive=600m;
         server {{ listen 127.0.0.1:%%PORT%%;
             location / {{ proxy_pass http://127.0.0.1:{origin}; proxy_cache one;
                 proxy_cache_revalidate on; proxy_http_version 1.1; {directives} }} }}"
    );
    Server::http_with("", &http).start()
}

/// The part of `tests/cache-tests` with this name.
fn listed(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("cache-tests");
    folder.join(name)
}

/// Runs the suite once. Returns the kinds of all tests, and the outcomes of failed ones.
#[track_caller]
fn run(checkout: &Path, directives: &str) -> (Kinds, Kinds) {
    let (_origin, _dir, port) = start_origin(checkout);
    let server = start_cache(port.number(), directives);
    let output = Command::new("node")
        .args(["--no-warnings".as_ref(), listed("outcomes.mjs").as_os_str()])
        .arg(checkout)
        .arg(format!("http://127.0.0.1:{}", server.port()))
        .current_dir(checkout)
        .output()
        .expect("node is there; .ci/setup installs it");
    let printed = String::from_utf8_lossy(&output.stdout).into_owned();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{printed}{errors}");
    let (mut all, mut failed) = (Kinds::new(), Kinds::new());
    for line in printed.lines() {
        let parts: Vec<&str> = line.splitn(4, '\t').collect();
        let [id, kind, outcome, note] = parts[..] else {
            panic!("four parts in {line:?}");
        };
        all.insert(id.into(), kind.into());
        if outcome != "pass" {
            failed.insert(id.into(), format!("{kind}, {outcome}: {note}"));
        }
    }
    (all, failed)
}

/// Reads a list: id and kind of each test that does not pass. Each line has a reason.
fn read_list(name: &str) -> Kinds {
    let text = std::fs::read_to_string(listed(name)).expect("the list is readable");
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    let parsed = lines.map(|line| match line.splitn(3, ' ').collect::<Vec<_>>()[..] {
        [id, kind, reason] if !reason.trim().is_empty() => (id.into(), kind.into()),
        _ => panic!("{name}: {line:?} has no id, kind and reason"),
    });
    parsed.collect()
}

/// Asserts that the list contains exactly the tests that fail.
#[track_caller]
fn assert_agrees(name: &str, directives: &str, passed_min: (usize, usize)) {
    let expected = read_list(name);
    let Some(checkout) = checkout() else {
        return;
    };
    let (all, mut failed) = run(&checkout, directives);
    let mut passed = expected.clone();
    passed.retain(|id, _| !failed.contains_key(id));
    let is_agreed = |failed: &Kinds, passed: &Kinds| {
        passed.is_empty() && failed.keys().all(|id| expected.contains_key(id))
    };
    for _ in 1..RUNS {
        if is_agreed(&failed, &passed) {
            break;
        }
        let (_, again) = run(&checkout, directives);
        failed.retain(|id, _| expected.contains_key(id) || again.contains_key(id));
        passed.retain(|id, _| !again.contains_key(id));
    }
    failed.retain(|id, _| !expected.contains_key(id));
    assert!(failed.is_empty(), "not in {name}: {failed:#?}");
    assert!(
        passed.is_empty(),
        "passed, so remove from {name}: {passed:#?}"
    );
    let count = |kinds: &Kinds, kind: &str| kinds.values().filter(|one| *one == kind).count();
    let (required, optimal) = (count(&all, "required"), count(&all, "optimal"));
    assert!(required >= REQUIRED_MIN, "{required} required tests");
    assert!(optimal >= OPTIMAL_MIN, "{optimal} optimal tests");
    for (kind, all, min) in [
        ("required", required, passed_min.0),
        ("optimal", optimal, passed_min.1),
    ] {
        let passed = all - count(&expected, kind);
        assert!(
            passed >= min,
            "{passed} {kind} tests pass, fewer than {min}"
        );
    }
}

#[test]
fn the_rules_of_the_rfc_pass_all_tests_but_those_listed() {
    assert_agrees("not_passed.txt", "", (153, 92));
}

/// nginx 1.31.4 passes 99 required and 59 optimal tests with this configuration.
#[test]
fn nginx_rules_pass_all_tests_but_those_listed() {
    let directives = "proxy_cache_rfc off;";
    assert_agrees("not_passed_rfc_off.txt", directives, (99, 58));
}
