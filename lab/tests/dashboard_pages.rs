//! Pages of the dashboard in Chromium: accessible by axe-core in light and dark, on a desk and on a telephone; usable by keyboard and
//! without script; charts zoom; figures are live; nothing is requested from another host.

mod dashboard;

use std::ffi::OsString;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use dashboard::memory::Memory;
use dashboard::{Dashboard, Experiment, filled};
use firstbyte_tests::TempDir;
use firstbyte_tests::judge::{browser, judged_by};
use lab::experiment::{Options, analysis};
use lab::web::experiment_page;
use store::Sqlite;

/// Asserts that the checker finds no fault in the pages.
#[track_caller]
fn judge(site: &Dashboard, browser: &std::path::Path, dir: &TempDir, pages: &[&str]) {
    let base = site.url("");
    let arguments = [base.as_str()].into_iter().chain(pages.iter().copied());
    let found = judged_by("dashboard.js", browser, dir, arguments.map(OsString::from));
    assert_eq!(found, format!("judged {}\n", pages.len()));
}

/// Keeps the figures of a worker fresh until it is dropped.
struct Pulse {
    ends: Arc<AtomicBool>,
    thread: Option<thread::JoinHandle<()>>,
}

impl Pulse {
    fn start(site: &Dashboard) -> Self {
        let (live, ends) = (Arc::clone(&site.live), Arc::new(AtomicBool::new(false)));
        let stop = Arc::clone(&ends);
        let run = move || {
            while !stop.load(Ordering::Relaxed) {
                let open = [("HTTP/1.1".to_owned(), 12), ("HTTP/2.0".to_owned(), 87)];
                live.set_open(1, open);
                live.add_closed(3, [3, 0, 0, 0]);
                // A worker sends its counts in this rhythm.
                thread::park_timeout(Duration::from_millis(500));
            }
        };
        Self {
            ends,
            thread: Some(thread::spawn(run)),
        }
    }
}

impl Drop for Pulse {
    fn drop(&mut self) {
        self.ends.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            thread.thread().unpark();
            assert!(thread.join().is_ok() || thread::panicking());
        }
    }
}

#[test]
fn pages_have_no_fault() {
    let Some(browser) = browser() else { return };
    let dir = TempDir::new();
    let file = dir.path().join("lab.db");
    filled(&file, 20_000);
    let site = Dashboard::start(&file);
    let pages = [
        "overview?period=7d",
        "map?country=DE&period=7d&percentile=95",
        "times",
        "requests?period=1h",
        "connections?country=DE",
        "stalls",
        "networks",
        "servers?metric=handshake&protocol=HTTP%2F2.0",
        "compare",
        "overview?from=2020-01-01&to=2020-01-02&server=none",
        "map?percentile=99",
        "none",
    ];
    judge(&site, &browser, &dir, &pages);
}

#[test]
fn pages_are_used_by_keyboard_without_script_and_live() {
    let Some(browser) = browser() else { return };
    let dir = TempDir::new();
    let file = dir.path().join("lab.db");
    filled(&file, 5_000);
    let site = Dashboard::start(&file);
    let _pulse = Pulse::start(&site);
    judge(&site, &browser, &dir, &["use=99"]);
}

#[test]
fn pages_of_empty_and_missing_stores_have_no_fault() {
    let Some(browser) = browser() else { return };
    let dir = TempDir::new();
    let file = dir.path().join("lab.db");
    drop(Sqlite::open(&file).expect("a new store"));
    judge(
        &Dashboard::start(&file),
        &browser,
        &dir,
        &["overview", "map"],
    );
    let missing = dir.path().join("missing.db");
    judge(&Dashboard::start(&missing), &browser, &dir, &["overview"]);
}

#[test]
fn pages_of_experiments_have_no_fault() {
    let Some(browser) = browser() else { return };
    let dir = TempDir::new();
    let mut memory = Memory::generated(1, 4000, &[0.0, -0.1]).with_before();
    memory.failed_percent = vec![1, 5];
    let site = Dashboard::of(Arc::new(Experiment(memory)));
    let page = "experiments?experiment=spdy";
    site.await_analysis(page);
    judge(&site, &browser, &dir, &["experiments", page, "tour"]);
    // More arms than colours, and no users.
    for other in [
        Memory::generated(2, 3000, &[0.0; 8]),
        Memory::generated(3, 0, &[0.0; 2]),
    ] {
        let site = Dashboard::of(Arc::new(Experiment(other)));
        site.await_analysis(page);
        judge(&site, &browser, &dir, &[page]);
    }
}

#[test]
fn reports_of_experiments_have_no_fault() {
    let Some(browser) = browser() else { return };
    let dir = TempDir::new();
    let script =
        "</title></style><script>document.body.remove()</script><img src=x onerror=alert(1)>";
    let long = "\u{4e2d}".repeat(300);
    let mut memory = Memory::generated(1, 500, &[0.0, -0.1, 0.0]);
    script.clone_into(&mut memory.summary.name);
    long.clone_into(&mut memory.summary.arms[1]);
    memory.summary.settings.get_or_insert_default().arms[1].0 = long;
    let report = analysis(&memory, script, memory.end_s(), &Options::default());
    dir.write(
        "report.html",
        experiment_page(&report.expect("it can be read")),
    );
    firstbyte_tests::judge::judge(&browser, &dir, &["report.html"]);
}
