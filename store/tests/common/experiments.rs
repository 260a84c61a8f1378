//! Rows of experiments, queries about them, and their results from a plain list of the rows.

use std::collections::{BTreeMap, BTreeSet};

use store::{
    ArmFigures, ArmStep, ArmTotals, Excluded, ExperimentQuery, ExperimentRows, ExperimentSettings,
    ExperimentSummary, Histogram, Step, Store, UserValue, Visit, VisitMetric,
};

use crate::common::{BEGIN, SERVERS};

const DAY: u64 = 86_400;
/// Time of all rows.
const DAYS: u64 = 4;
/// The start of experiments: page views before it have no arm.
const START: u64 = BEGIN + DAY;
const USERS: usize = 150;
const HOSTILE: &str = "it's \\ \"c\"\t\n{x:String} ?1";
/// Experiments by their settings: the last two have none, and the last one has no page view.
const EXPERIMENTS: [&str; 4] = ["spdy", HOSTILE, "'; DROP TABLE visit; --", "empty"];
const ARMS: [&str; 3] = ["control", "fast", "'; -- =%\\N"];

/// Returns random rows: some page views are sent again, and some users have two arms.
pub(crate) fn experiment_rows(seed: u64) -> ExperimentRows {
    let mut random = fastrand::Rng::with_seed(seed ^ 2);
    let mut rows = ExperimentRows::default();
    for experiment in &EXPERIMENTS[..3] {
        for _ in 0..USERS {
            add_user(&mut random, experiment, &mut rows.visits);
        }
        rows.visits.push(Visit {
            user: 0,
            view: u64::MAX,
            ..visit(&mut random, experiment, START + DAY)
        });
    }
    // SQLite keeps the first one that is stored, and ClickHouse the earliest.
    rows.visits.sort_by_key(|visit| visit.at_ms);
    rows.arms = (0..800).map(|_| figures(&mut random)).collect();
    let arms = |weights: &[u32]| {
        let named = ARMS.iter().zip(weights);
        named
            .map(|(arm, weight)| ((*arm).to_owned(), *weight))
            .collect::<Vec<_>>()
    };
    for (since_s, name, weights, share) in [
        (BEGIN, "spdy", &[50, 50][..], 10_000),
        (BEGIN + 100, "spdy", &[50, 50], 1_000),
        (BEGIN + 50, "empty", &[1, 10_000, 7], 10_000),
        (BEGIN + 70, HOSTILE, &[1, 1], 1),
        (START, HOSTILE, &[1, 2], 1),
        (START + 5, HOSTILE, &[1, 2], 2),
    ] {
        let settings = ExperimentSettings {
            name: name.to_owned(),
            arms: arms(weights),
            share,
            start_s: (share > 1).then_some(START),
            end_s: (share > 2).then_some(START + DAYS * DAY),
            window_s: DAY,
            pre_period_s: 7 * DAY,
            metrics: vec![VisitMetric::Load, VisitMetric::Files],
        };
        rows.settings.push((since_s, settings));
    }
    rows
}

/// Adds the page views of a user. The id may have all bits.
fn add_user(random: &mut fastrand::Rng, experiment: &str, visits: &mut Vec<Visit>) {
    let user = random.u64(..) >> [0, 0, 60][random.usize(0..3)];
    let arm = random.usize(0..ARMS.len());
    let first_s = BEGIN + random.u64(0..DAYS * DAY);
    for _ in 0..random.usize(1..6) {
        let at_s = match random.u8(0..3) {
            // At the end of the window or a little before.
            0 => first_s + DAY - random.u64(0..2),
            1 => first_s + random.u64(0..DAY),
            _ => BEGIN + random.u64(0..DAYS * DAY),
        };
        let is_mixed = random.u8(0..20) == 0;
        let arm = if is_mixed { random.usize(0..3) } else { arm };
        let mut view = visit(random, experiment, at_s);
        view.user = user;
        if at_s >= START {
            view.arm = ARMS[arm].to_owned();
        }
        if random.u8(0..8) == 0 {
            // Sent again, with other values.
            let later_s = random.u64(1..2 * DAY);
            visits.push(Visit {
                view: view.view,
                user,
                arm: ARMS[random.usize(0..3)].to_owned(),
                ..visit(random, experiment, at_s + later_s)
            });
        }
        visits.push(view);
    }
}

fn visit(random: &mut fastrand::Rng, experiment: &str, at_s: u64) -> Visit {
    let mut value = || (random.u8(0..4) > 0).then(|| random.u32(..u32::MAX) >> random.u32(0..32));
    Visit {
        values: [(); VisitMetric::ALL.len()].map(|()| value()),
        at_ms: at_s * 1000 + random.u64(0..1000),
        user: 0,
        view: random.u64(..),
        server: SERVERS[random.usize(0..3)].to_owned(),
        experiment: experiment.to_owned(),
        arm: String::new(),
        files: random.u32(0..200),
        files_failed: random.u32(0..3),
        files_truncated: random.u32(0..3),
        file_bytes: random.u64(0..1 << 40),
        is_failed: random.u8(0..9) == 0,
    }
}

/// Figures of a minute or a part of it. Few minutes in an hour: some meet.
fn figures(random: &mut fastrand::Rng) -> ArmFigures {
    let mut times = || {
        let mut histogram = Histogram::default();
        (0..random.u8(0..4)).for_each(|_| histogram.add(random.u64(..) >> random.u32(32..64)));
        histogram
    };
    let (first_byte, handshake) = (times(), times());
    let mut count = |below: u64| random.u64(0..below);
    ArmFigures {
        at_s: BEGIN + count(DAYS * 24) * 3600 + count(5) * 60 + count(60),
        server: SERVERS[count(3) as usize].to_owned(),
        experiment: EXPERIMENTS[count(2) as usize].to_owned(),
        // One arm in six is unknown.
        arm: [ARMS[0], ARMS[1], ARMS[2], ARMS[0], ARMS[1], "unknown"][count(6) as usize].to_owned(),
        connections: count(10),
        requests: count(1000),
        promised: count(1 << 40),
        sent: count(1 << 40),
        truncated: count(5),
        aborted: count(5),
        duration_ms: count(100_000),
        cpu_us: count(9000),
        cpu_connections: count(10),
        open_sum: count(6000),
        open_samples: count(3) * count(30),
        open_max: count(300),
        memory_max: count(1 << 30),
        first_byte,
        handshake,
    }
}

/// Kinds of periods.
const PERIODS: usize = 9;

fn queries() -> Vec<ExperimentQuery> {
    let names = EXPERIMENTS.into_iter().chain(["", "SPDY", "' OR 1 = 1 --"]);
    let periods: [_; PERIODS] = [
        (START, START + 3 * DAY, DAY, 7 * DAY),
        (START, START + 2 * DAY + 1, DAY, 3600),
        (START + 3600, u64::MAX, 0, DAY),
        (START, START + 3 * DAY, 3600, 0),
        (START + DAY, START + 2 * DAY + 59, 60, DAY),
        (0, u64::MAX, DAY, u64::MAX),
        (0, u64::MAX, u64::MAX, 0),
        (START + 1, START + 1, 0, 0),
        (START + DAY, START, 0, 0),
    ];
    let all = names.flat_map(|name| {
        periods.map(|(from_s, to_s, window_s, pre_period_s)| ExperimentQuery {
            experiment: name.to_owned(),
            from_s,
            to_s,
            window_s,
            pre_period_s,
        })
    });
    all.collect()
}

/// Compares the list of experiments with a list of rows. An engine may count page views that came again, with their times.
#[track_caller]
fn check_summaries(store: &dyn Store, summaries: &[ExperimentSummary], counts_repeats: bool) {
    let mut found = store.experiments().expect("a list");
    for name in EXPERIMENTS.into_iter().chain(["", "fast", SERVERS[0]]) {
        let expected = found.iter().find(|it| it.name == name).cloned();
        assert_eq!(store.experiment(name), Ok(expected), "{name}");
    }
    if counts_repeats {
        for (found, expected) in found.iter_mut().zip(summaries) {
            assert!(found.views >= expected.views, "{found:?}");
            assert!(found.first_s <= expected.first_s || expected.first_s.is_none());
            assert!(found.last_s >= expected.last_s, "{found:?}");
            found.views = expected.views;
            (found.first_s, found.last_s) = (expected.first_s, expected.last_s);
        }
    }
    assert_eq!(found, summaries);
}

/// Compares the results of all queries with those of a list. The list of experiments may count page views that came again.
///
/// # Panics
/// If a result differs.
#[track_caller]
pub(crate) fn check_experiments(store: &dyn Store, rows: &ExperimentRows, counts_repeats: bool) {
    let summaries = summaries(rows);
    check_summaries(store, &summaries, counts_repeats);
    for (n, query) in queries().into_iter().enumerate() {
        let summary = summaries.iter().find(|it| it.name == query.experiment);
        let arms = summary.map_or(&[][..], |summary| &summary.arms);
        let visits = stored(rows, &query.experiment);
        for metric in [VisitMetric::ALL[n % 12], VisitMetric::Load] {
            let mut found = Vec::new();
            let excluded = store.users(&query, metric, &mut |value| found.push(value));
            let (values, expected) = users(&visits, &query, metric, arms);
            assert_eq!(excluded, Ok(expected), "{query:?}");
            assert_eq!(found, values, "{query:?} {metric:?}");
        }
        assert_eq!(
            store.arm_totals(&query),
            Ok(totals(&visits, &query, arms)),
            "{query:?}"
        );
        // Each experiment has each step with other periods.
        let step = Step::ALL[(n + n / PERIODS) % 3];
        let found = store.arm_steps(&query, step).expect("steps");
        let expected = steps(&rows.arms, &query, step, arms);
        assert_eq!(found.len(), expected.len(), "{query:?}");
        for (found, expected) in found.iter().zip(&expected) {
            assert_eq!(found, expected, "{query:?}");
        }
    }
}

/// Page views of an experiment by user and id, each once.
fn stored<'v>(rows: &'v ExperimentRows, experiment: &str) -> BTreeMap<u64, Vec<&'v Visit>> {
    let mut first: BTreeMap<(u64, u64), &Visit> = BTreeMap::new();
    for visit in rows.visits.iter().filter(|it| it.experiment == experiment) {
        let own = first.entry((visit.user, visit.view)).or_insert(visit);
        if visit.at_ms < own.at_ms {
            *own = visit;
        }
    }
    let mut users: BTreeMap<u64, Vec<&Visit>> = BTreeMap::new();
    for ((user, _), visit) in first {
        users.entry(user).or_default().push(visit);
    }
    users
}

fn summaries(rows: &ExperimentRows) -> Vec<ExperimentSummary> {
    let of_visits = rows.visits.iter().map(|visit| &visit.experiment);
    let of_settings = rows.settings.iter().map(|(_, settings)| &settings.name);
    let names: BTreeSet<&String> = of_visits.chain(of_settings).collect();
    let summary = |name: &String| {
        let users = stored(rows, name);
        let views = users.values().flatten().filter(|it| !it.arm.is_empty());
        let views: Vec<_> = views.collect();
        let own = rows.settings.iter().filter(|(_, it)| it.name == *name);
        let own: Vec<_> = own.collect();
        // The list has them in the order of their times.
        let last = own.last().map(|(_, settings)| settings.clone());
        let mut arms: Vec<String> = last
            .iter()
            .flat_map(|it| it.arms.clone())
            .map(|it| it.0)
            .collect();
        let earlier = own
            .iter()
            .flat_map(|(_, it)| it.arms.iter().map(|it| it.0.clone()));
        let others: BTreeSet<String> = earlier
            .chain(views.iter().map(|it| it.arm.clone()))
            .collect();
        let known: BTreeSet<String> = arms.iter().cloned().collect();
        arms.extend(others.difference(&known).cloned());
        let since = own
            .iter()
            .rev()
            .take_while(|(_, it)| Some(&it.arms) == last.as_ref().map(|it| &it.arms));
        let times = || views.iter().map(|view| view.at_ms / 1000);
        ExperimentSummary {
            name: name.clone(),
            since_s: since.last().map_or(0, |(since_s, _)| *since_s),
            settings: last,
            arms,
            first_s: times().min(),
            last_s: times().max(),
            views: views.len() as u64,
        }
    };
    names.into_iter().map(summary).collect()
}

/// Page views of a user within the period, the earliest first. Page views before the start are not among them.
fn within<'v>(views: &[&'v Visit], query: &ExperimentQuery) -> Vec<&'v Visit> {
    let (from_ms, to_ms) = (
        query.from_s.saturating_mul(1000),
        query.to_s.saturating_mul(1000),
    );
    let is_within = |it: &&Visit| !it.arm.is_empty() && it.at_ms >= from_ms && it.at_ms < to_ms;
    let mut found: Vec<&Visit> = views.iter().copied().filter(is_within).collect();
    found.sort_by_key(|view| (view.at_ms, view.view));
    found
}

fn mean(views: &[&Visit], metric: VisitMetric) -> Option<f64> {
    let values: Vec<u64> = views
        .iter()
        .filter_map(|view| view.values[metric as usize])
        .map(u64::from)
        .collect();
    let sum = values.iter().sum::<u64>() as f64;
    (!values.is_empty()).then(|| sum / values.len() as f64)
}

fn users(
    users: &BTreeMap<u64, Vec<&Visit>>,
    query: &ExperimentQuery,
    metric: VisitMetric,
    arms: &[String],
) -> (Vec<UserValue>, Excluded) {
    let (mut values, mut excluded) = (Vec::new(), Excluded::default());
    for (user, views) in users {
        let mut window = within(views, query);
        let Some(first) = window.first().copied() else {
            continue;
        };
        match query.window_s {
            0 => window.truncate(1),
            window_s => {
                let end_ms = first.at_ms.saturating_add(window_s.saturating_mul(1000));
                window.retain(|view| view.at_ms < end_ms);
            }
        }
        let entered_s = first.at_ms / 1000;
        if window.iter().any(|view| view.arm != first.arm) {
            excluded.mixed += 1;
        } else if u128::from(entered_s + 1) + u128::from(query.window_s) > query.to_s.into() {
            excluded.unfinished += 1;
        } else if let Some(value) = mean(&window, metric) {
            let mut before = views.clone();
            let from_ms = query.from_s.saturating_mul(1000);
            let length_ms = query.pre_period_s.saturating_mul(1000);
            before.retain(|view| view.arm.is_empty() && view.at_ms < from_ms);
            before.retain(|view| from_ms - view.at_ms <= length_ms);
            let arm = arms.iter().position(|arm| *arm == first.arm);
            let value = UserValue {
                arm: arm.expect("a known arm"),
                entered_s,
                value,
                before: mean(&before, metric),
            };
            values.push((entered_s, *user, value));
        } else {
            excluded.unmeasured += 1;
        }
    }
    values.sort_by_key(|(entered_s, user, _)| (*entered_s, *user));
    (
        values.into_iter().map(|(_, _, value)| value).collect(),
        excluded,
    )
}

fn totals(
    users: &BTreeMap<u64, Vec<&Visit>>,
    query: &ExperimentQuery,
    arms: &[String],
) -> Vec<ArmTotals> {
    let of_arm = |(place, name): (usize, &String)| {
        let mut sums = ArmTotals {
            arm: place,
            ..ArmTotals::default()
        };
        for views in users.values() {
            let views = within(views, query);
            sums.users += u64::from(views.first().is_some_and(|first| first.arm == *name));
            for view in views.iter().filter(|view| view.arm == *name) {
                sums.views += 1;
                sums.failed_views += u64::from(view.is_failed);
                sums.files += u64::from(view.files);
                sums.files_failed += u64::from(view.files_failed);
                sums.files_truncated += u64::from(view.files_truncated);
                sums.file_bytes += view.file_bytes;
            }
        }
        sums
    };
    arms.iter().enumerate().map(of_arm).collect()
}

fn steps(all: &[ArmFigures], query: &ExperimentQuery, step: Step, arms: &[String]) -> Vec<ArmStep> {
    let whole = |at_s: u64| at_s.saturating_add(59) / 60 * 60;
    let mut minutes: BTreeMap<(u64, &str, &str), ArmFigures> = BTreeMap::new();
    for figures in all.iter().filter(|it| it.experiment == query.experiment) {
        let minute_s = figures.at_s / 60 * 60;
        if minute_s >= whole(query.from_s) && minute_s < whole(query.to_s) {
            let key = (minute_s, &*figures.arm, &*figures.server);
            minutes.entry(key).or_default().merge(figures);
        }
    }
    let start_of = |minute_s: u64| minute_s / step.seconds() * step.seconds();
    let mut found = Vec::new();
    let starts: BTreeSet<u64> = minutes.keys().map(|key| start_of(key.0)).collect();
    for start_s in starts {
        let of_step = || minutes.iter().filter(|(key, _)| start_of(key.0) == start_s);
        let sampled = of_step().filter(|(_, figures)| figures.open_samples > 0);
        let sampled: BTreeSet<u64> = sampled.map(|(key, _)| key.0).collect();
        for (arm, name) in arms.iter().enumerate() {
            let of_arm: Vec<_> = of_step().filter(|(key, _)| key.1 == *name).collect();
            if !of_arm.is_empty() {
                found.push(arm_step(start_s, arm, &of_arm, sampled.len()));
            }
        }
    }
    found
}

/// Adds up minutes of servers.
fn arm_step(
    start_s: u64,
    arm: usize,
    minutes: &[(&(u64, &str, &str), &ArmFigures)],
    sampled: usize,
) -> ArmStep {
    let mut sums = ArmFigures::default();
    let mut largest: BTreeMap<u64, (u64, u64)> = BTreeMap::new();
    let mut milli = 0;
    for (key, figures) in minutes {
        sums.merge(figures);
        let of_minute = largest.entry(key.0).or_default();
        of_minute.0 += figures.open_max;
        of_minute.1 += figures.memory_max;
        let mean = (figures.open_sum * 1000).checked_div(figures.open_samples);
        milli += mean.unwrap_or_default();
    }
    ArmStep {
        start_s,
        arm,
        connections: sums.connections,
        open_mean: milli as f64 / 1000.0 / sampled.max(1) as f64,
        open_max: largest.values().map(|it| it.0).max().unwrap_or_default(),
        requests: sums.requests,
        promised: sums.promised,
        sent: sums.sent,
        truncated: sums.truncated,
        aborted: sums.aborted,
        duration_ms: sums.duration_ms,
        cpu_us: sums.cpu_us,
        cpu_connections: sums.cpu_connections,
        memory_max: largest.values().map(|it| it.1).max().unwrap_or_default(),
        first_byte: sums.first_byte,
        handshake: sums.handshake,
    }
}
