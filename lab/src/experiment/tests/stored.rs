//! Analyses of a store of SQLite with page views by lot.

#[path = "../../../../store/examples/visits/mod.rs"]
mod visits;

use firstbyte_tests::TempDir;
use store::{Sqlite, Visit};

use super::memory::START_S;
use crate::experiment::{Options, Outcome, Report, Statistic, analysis};
use crate::time::DAY_S;
use visits::MadeUp;

/// Reports of a made-up experiment at some times; `change` changes its page views.
fn reports(effect: f64, at_s: &[u64], change: impl Fn(&mut Vec<Visit>)) -> Vec<Report> {
    let dir = TempDir::new();
    let path = dir.path().join("lab.db");
    let mut store = Sqlite::open(&path).expect("a new store").store;
    MadeUp::new(2500, effect, START_S, 5).each(&mut |mut rows| {
        change(&mut rows.visits);
        store.commit_all(&[], &[], &rows).expect("it has room");
    });
    drop(store);
    let store = Sqlite::open_to_read(&path).expect("it is whole");
    let options = Options {
        effect: None,
        ..Options::default()
    };
    let one = |at_s: &u64| analysis(&store, "made-up", *at_s, &options).expect("it can be read");
    at_s.iter().map(one).collect()
}

#[test]
fn a_store_has_the_figures_of_its_rows() {
    let times = [START_S + 7 * DAY_S, START_S + 20 * DAY_S];
    let all = reports(0.4, &times, |_| {});
    let [half, whole] = &all[..] else {
        panic!("two reports");
    };
    assert_eq!(whole.users(), 2500);
    assert!(
        half.users() > 1000 && half.users() < 1500,
        "{}",
        half.users()
    );
    assert!(half.uncounted.unfinished > 100 && whole.uncounted.unfinished == 0);
    for report in [half, whole] {
        let measured: u64 = report.metrics[0]
            .values
            .iter()
            .map(|values| values.users)
            .sum();
        let others =
            report.uncounted.unfinished + report.uncounted.unmeasured + report.uncounted.mixed;
        assert_eq!(measured + others, report.users());
        assert!(!report.sample_ratio.is_mismatch);
    }
    assert_eq!(whole.metrics.len(), 3);
    let cuped = whole.metrics[0]
        .cuped
        .expect("half of the users have a value before");
    assert!(
        (0.4..0.6).contains(&cuped.share) && cuped.reduction > 0.05,
        "{cuped:?}"
    );
    for statistic in Statistic::ALL {
        let change = whole.metrics[0]
            .comparison("variant", statistic)
            .and_then(|one| one.change);
        let change = change.expect("users are many");
        assert!(
            change.low < 40.0 && change.high > 40.0,
            "{statistic:?}: {change:?}"
        );
    }
    assert_eq!(whole.verdict.outcome, Outcome::Difference);
    for arm in &whole.arms {
        let server = arm.server.as_ref().expect("figures of the server");
        assert_eq!(server.cpu_us_per_connection, Some(900.0));
        assert!(server.first_byte_ms.is_some() && server.handshake_ms.is_some());
        assert!(arm.failed_views > 0 && arm.files_failed > 0 && arm.files_truncated > 0);
    }
}

#[test]
fn users_in_two_arms_are_excluded_with_a_warning() {
    let change = |visits: &mut Vec<Visit>| {
        // Every view of each tenth user is in the other arm than the view before.
        let mut n = 0;
        for visit in visits
            .iter_mut()
            .filter(|visit| !visit.arm.is_empty() && visit.user % 10 == 0)
        {
            n += 1;
            visit.arm = if n % 2 == 0 { "control" } else { "variant" }.to_owned();
        }
    };
    let all = reports(0.0, &[START_S + 20 * DAY_S], change);
    let report = &all[0];
    assert!(report.uncounted.mixed > 50, "{}", report.uncounted.mixed);
    let has_warning = report
        .warnings
        .iter()
        .any(|one| one.contains("had visits in several arms"));
    assert!(has_warning, "{:?}", report.warnings);
}
