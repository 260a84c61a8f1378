//! Pages of experiments: list, figures, forms, hostile names, and analyses that take long.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

use firstbyte_tests::TempDir;
use firstbyte_tests::wait::holds_within;
use serde_json::Value;
use store::Store;

use super::hostile::{HOSTILE, tags};
use super::{Dashboard, text};
use crate::experiment::tests::memory::Memory;
use crate::time::now_s;
use crate::web::analyses::{Age, Analyses, Found, Limits};
use crate::web::http::{CSV, HTML, Handler, JSON, Request};
use crate::web::pages::Pages;
use crate::web::site::{Site, Source};

/// A store in memory.
struct InMemory(Memory);

impl Source for InMemory {
    fn open(&self) -> Result<Box<dyn Store>, String> {
        Ok(Box::new(self.0.clone()))
    }

    fn name(&self) -> String {
        "memory".to_owned()
    }
}

/// A site that waits for its analyses, on a busy machine too.
fn site(memory: Memory) -> Dashboard {
    of(Arc::new(InMemory(memory)), LIFE, PATIENCE)
}

fn of(source: Arc<dyn Source>, life: Duration, wait: Duration) -> Dashboard {
    let site = Site { source, live: None };
    Dashboard {
        pages: Pages::with(
            site,
            Limits {
                life,
                error_life: LIFE,
                wait,
            },
        ),
        dir: TempDir::new(),
    }
}

const LIFE: Duration = Duration::from_secs(600);
const PATIENCE: Duration = Duration::from_secs(60);

/// An experiment that ended a moment ago, with names of its own.
fn recent(effects: &[f64], name: &str) -> Memory {
    // One time for all, so that pages of two experiments differ in their names alone.
    static NOW_S: OnceLock<u64> = OnceLock::new();
    let mut memory = Memory::generated(1, 1500, effects);
    let moved = NOW_S.get_or_init(now_s) - 6000 - memory.end_s();
    for user in &mut memory.users {
        user.entered_s += moved;
    }
    let summary = &mut memory.summary;
    summary.name = name.to_owned();
    summary.since_s += moved;
    summary.first_s = summary.first_s.map(|first| first + moved);
    summary.last_s = summary.last_s.map(|last| last + moved);
    let settings = memory.settings();
    settings.name = name.to_owned();
    settings.start_s = None;
    settings.end_s = None;
    memory
}

#[test]
fn experiments_are_listed_with_links() {
    let site = site(recent(&[0.0, -0.1], "spdy"));
    let page = site.body("experiments", 200);
    assert!(page.contains("<h1>Experiments</h1>"), "{page}");
    assert!(
        page.contains("href=\"experiments?experiment=spdy\""),
        "{page}"
    );
    assert!(
        !page.contains("type=\"range\""),
        "an experiment has its own period"
    );
    let found = site.json("experiments.json");
    let row = &found["tables"]["experiments"][0];
    assert_eq!(
        (&row["experiment"], &row["arms"]),
        (&"spdy".into(), &2.into())
    );
    assert_eq!(
        (&row["state"], &row["primary_metric"]),
        (&"running".into(), &"load".into())
    );
    site.body("experiments?experiment=none", 404);
    site.body("experiments.json?experiment=none", 404);
    site.body("experiments?experiment=spdy&visit=none", 400);
}

#[test]
fn an_experiment_is_a_page_tables_and_json() {
    let site = site(recent(&[0.0, -0.1], "spdy"));
    let query = "experiment=spdy";
    let page = site.get(&format!("experiments?{query}"));
    let body = text(&page);
    assert_eq!((page.status, page.kind), (200, HTML), "{body}");
    for part in [
        "<h1>Experiment spdy</h1>",
        "class=\"verdict\"",
        "fast: page load is",
        "Change against control",
        "class=\"band s0\"",
        "Open connections by arm",
        "<select name=\"visit\"",
        "Truncated",
    ] {
        assert!(body.contains(part), "{part}: {body}");
    }
    let json = site.get(&format!("experiments.json?{query}"));
    assert_eq!((json.status, json.kind), (200, JSON));
    let json: Value = serde_json::from_str(&text(&json)).expect("it is JSON");
    assert_eq!(json["report"]["format"], "firstbyte-experiment/1");
    assert_eq!(json["report"]["verdict"]["outcome"], "difference");
    let tables = json["tables"].as_object().expect("an object");
    let wanted = [
        "arms",
        "changes",
        "course_mean",
        "course_p50",
        "course_p80",
        "course_p95",
        "cpu",
        "open",
        "server",
    ];
    assert_eq!(
        tables.keys().map(String::as_str).collect::<Vec<_>>(),
        wanted
    );
    for (id, table) in tables {
        let csv = site.get(&format!("experiments.csv?{query}&table={id}"));
        assert_eq!((csv.status, csv.kind), (200, CSV), "{id}");
        let rows = table.as_array().expect("an array").len();
        assert!(rows > 0, "{id}");
        assert_eq!(text(&csv).lines().count(), rows + 1, "{id}");
        assert!(
            body.contains(&format!("experiments.csv?{query}&amp;table={id}")),
            "{id}"
        );
    }
}

#[test]
fn another_metric_and_a_a_are_chosen_by_the_address() {
    let site = site(recent(&[0.0, 0.0], "spdy"));
    let page = site.body("experiments?experiment=spdy&visit=first_byte", 200);
    assert!(
        page.contains("First byte, mean: change over time"),
        "{page}"
    );
    assert!(
        page.contains("<option value=\"first_byte\" selected>"),
        "{page}"
    );
    let page = site.body("experiments?experiment=spdy&aa=1", 200);
    assert!(page.contains("A/A test passed"), "{page}");
    // Other pages do not have the parameters of an experiment.
    assert!(page.contains("href=\"overview\""), "{page}");
}

#[test]
fn an_open_interval_has_too_few_users() {
    let mut memory = recent(&[0.0, 0.0], "spdy");
    memory.users.truncate(60);
    let found = site(memory).json("experiments.json?experiment=spdy");
    let rows = found["tables"]["changes"].as_array().expect("an array");
    let means = rows.iter().filter(|row| row["statistic"] == "mean");
    let verdicts: Vec<&Value> = means.map(|row| &row["verdict"]).collect();
    assert_eq!(verdicts, ["too few users"; 2]);
}

#[test]
fn a_page_without_connections_tells_it() {
    let mut memory = recent(&[0.0, 0.0], "spdy");
    memory.has_steps = false;
    let page = site(memory).body("experiments?experiment=spdy", 200);
    let note = "No connection of an arm has been recorded yet.";
    assert!(
        page.contains(note) && !page.contains("Open connections by arm"),
        "{page}"
    );
}

#[test]
fn a_store_without_experiments_shows_how_to_configure_one() {
    let empty = super::example();
    let page = empty.body("experiments", 200);
    assert!(
        page.contains("No experiments yet") && page.contains("experiment_key"),
        "{page}"
    );
    assert_eq!(
        empty.json("experiments.json")["tables"]["experiments"],
        Value::Array(Vec::new())
    );
}

/// Returns the tags of a page. Marks of an axis count once: their number depends on the time of the analysis.
fn shape(page: &str) -> BTreeMap<String, usize> {
    let mut all = tags(page);
    for mark in ["line class stroke x1 x2 y1 y2", "text text-anchor x y"] {
        all.entry(mark.to_owned()).and_modify(|count| *count = 1);
    }
    all
}

#[test]
fn hostile_names_stay_texts() {
    let of = |name: &str| {
        let mut memory = recent(&[0.0, -0.1], name);
        memory.summary.arms = vec![format!("{name}1"), format!("{name}2")];
        let arms = memory
            .summary
            .arms
            .iter()
            .map(|arm| (arm.clone(), 50))
            .collect();
        memory.settings().arms = arms;
        site(memory)
    };
    let target = |name: &str, form: &str| {
        let params = crate::web::params::Params::parse("", now_s()).expect("nothing to read");
        format!(
            "experiments{form}{}",
            params.query(&[("experiment", Some(name))])
        )
    };
    let plain = of("plain");
    for hostile in HOSTILE {
        let site = of(hostile);
        for (own, wanted) in [
            (
                site.body("experiments", 200),
                plain.body("experiments", 200),
            ),
            (
                site.body(&target(hostile, ""), 200),
                plain.body(&target("plain", ""), 200),
            ),
        ] {
            assert_eq!(shape(&own), shape(&wanted), "{hostile}");
            let is_hidden = |c: char| c != '\n' && (c.is_control() || c == '\u{202e}');
            let at = own.find(is_hidden);
            let near = at.map(|at| own[..at].chars().rev().take(80).collect::<Vec<_>>());
            let near = near.map(|near| near.into_iter().rev().collect::<String>());
            assert_eq!(near, None, "{hostile}");
        }
        let json = site.json(&target(hostile, ".json"));
        assert_eq!(json["report"]["experiment"], hostile);
        let csv = site.body(&target(hostile, ".csv"), 200);
        assert!(
            csv.lines()
                .skip(1)
                .all(|line| !line.contains(|c: char| c.is_control())),
            "{csv}"
        );
    }
}

#[test]
fn hostile_names_stay_texts_in_reports() {
    let page = |name: &str| {
        let mut memory = recent(&[0.0, -0.1], name);
        memory.summary.arms[1] = name.to_owned();
        memory.settings().arms[1].0 = name.to_owned();
        let options = crate::experiment::Options::default();
        let report = crate::experiment::analysis(&memory, name, now_s(), &options);
        crate::web::experiment_page(&report.expect("it can be read"))
    };
    let plain = page("plain");
    let own = plain.replace("http://www.w3.org/2000/svg", "");
    for part in ["<script", "http:", "href=\"experiments"] {
        assert!(!own.contains(part), "{part}");
    }
    for hostile in HOSTILE {
        let own = page(hostile);
        assert_eq!(shape(&own), shape(&plain), "{hostile}");
        assert!(
            !own.contains(|c: char| c != '\n' && (c.is_control() || c == '\u{202e}')),
            "{hostile}"
        );
    }
}

/// A source that opens when the test lets it.
struct Gated {
    memory: Memory,
    opened: AtomicUsize,
    gate: Mutex<Receiver<()>>,
}

impl Gated {
    fn new(memory: Memory) -> (Arc<Self>, Sender<()>) {
        let (open, gate) = channel();
        let gated = Self {
            memory,
            opened: AtomicUsize::new(0),
            gate: Mutex::new(gate),
        };
        (Arc::new(gated), open)
    }
}

impl Source for Gated {
    fn open(&self) -> Result<Box<dyn Store>, String> {
        // The first one is opened by the thread of the page.
        if self.opened.fetch_add(1, Ordering::SeqCst) > 0 {
            let gate = self.gate.lock().map_err(|_| "poisoned")?;
            gate.recv().map_err(|_| "closed")?;
        }
        Ok(Box::new(self.memory.clone()))
    }

    fn name(&self) -> String {
        "gated".to_owned()
    }
}

/// Returns status and text of a target, by one thread of a site.
fn getter(site: &Dashboard) -> impl FnMut(&str) -> (u16, String) {
    let mut worker = site.pages.worker();
    move |target: &str| {
        let (path, query) = target.split_once('?').unwrap_or((target, ""));
        let request = Request {
            path: path.to_owned(),
            query: query.to_owned(),
        };
        let response = worker(&request);
        (response.status, text(&response))
    }
}

#[test]
fn pages_are_answered_while_an_analysis_is_in_progress() {
    let (source, open) = Gated::new(recent(&[0.0, -0.1], "spdy"));
    let wait = Duration::from_millis(1);
    let site = of(Arc::clone(&source) as Arc<dyn Source>, LIFE, wait);
    let mut get = getter(&site);
    let target = "experiments?experiment=spdy";
    let (status, page) = get(target);
    assert_eq!(status, 200);
    assert!(
        page.contains("The first analysis is in progress") && page.contains("data-reload"),
        "{page}"
    );
    assert_eq!(get("experiments.json?experiment=spdy").0, 503);
    assert_eq!(get("experiments.csv?experiment=spdy").0, 503);
    assert!(
        get("experiments")
            .1
            .contains("href=\"experiments?experiment=spdy\"")
    );
    open.send(()).expect("an analysis waits");
    assert!(holds_within(PATIENCE, || get(target)
        .1
        .contains("fast: page load is")));
    assert_eq!(
        source.opened.load(Ordering::SeqCst),
        2,
        "one analysis served all"
    );
}

#[test]
fn an_old_analysis_is_shown_while_a_new_one_is_in_progress() {
    let (source, open) = Gated::new(recent(&[0.0, -0.1], "spdy"));
    let wait = Duration::from_millis(1);
    let site = of(Arc::clone(&source) as Arc<dyn Source>, Duration::ZERO, wait);
    let mut get = getter(&site);
    let target = "experiments?experiment=spdy";
    get(target);
    open.send(()).expect("an analysis waits");
    assert!(holds_within(PATIENCE, || get(target)
        .1
        .contains("fast: page load is")));
    let (status, page) = get(target);
    assert_eq!(status, 200);
    assert!(page.contains("This is the last analysis"), "{page}");
    // A failure replaces no report, and no other analysis begins at once.
    drop(open);
    let failed = "The newest analysis failed: closed.";
    assert!(holds_within(PATIENCE, || get(target).1.contains(failed)));
    let opened = source.opened.load(Ordering::SeqCst);
    for _ in 0..3 {
        let (status, page) = get(target);
        assert!(
            status == 200 && page.contains("fast: page load is"),
            "{page}"
        );
        assert!(
            page.contains(failed) && !page.contains("This is the last analysis. A"),
            "{page}"
        );
    }
    assert_eq!(source.opened.load(Ordering::SeqCst), opened);
}

#[test]
fn a_new_analysis_follows_a_failure() {
    let (source, open) = Gated::new(recent(&[0.0, -0.1], "spdy"));
    let analyses = Analyses::new(
        Arc::clone(&source) as Arc<dyn Source>,
        Limits {
            life: Duration::ZERO,
            error_life: Duration::ZERO,
            wait: PATIENCE,
        },
    );
    source.opened.store(1, Ordering::SeqCst);
    let key = ("spdy".to_owned(), false);
    let age = || match analyses.find(&key) {
        Found::Report { age, .. } => Some(age),
        _ => None,
    };
    open.send(()).expect("the gate is there");
    assert_eq!(age(), Some(Age::Old));
    *source.gate.lock().expect("whole") = channel().1;
    assert_eq!(age(), Some(Age::Failed("closed".to_owned())));
    let (open, gate) = channel();
    *source.gate.lock().expect("whole") = gate;
    open.send(()).expect("the gate is there");
    assert_eq!(age(), Some(Age::Old));
}

#[test]
fn an_analysis_that_fails_is_an_error_with_its_reason() {
    let (source, open) = Gated::new(recent(&[0.0, -0.1], "spdy"));
    drop(open);
    let site = of(source, LIFE, PATIENCE);
    let mut get = getter(&site);
    let (status, page) = get("experiments?experiment=spdy");
    assert_eq!(status, 503, "{page}");
    assert!(page.contains("closed"), "{page}");
}
