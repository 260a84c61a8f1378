//! Tests of values of users: windows, ends of periods, arms, page views that are sent again.

use super::*;

const DAY_S: u64 = 86_400;
const FROM_S: u64 = 20_000 * DAY_S;

fn query(window_s: u64) -> ExperimentQuery {
    ExperimentQuery {
        experiment: "spdy".to_owned(),
        from_s: FROM_S,
        to_s: FROM_S + 10 * DAY_S,
        window_s,
        pre_period_s: DAY_S,
    }
}

/// A page view so many milliseconds after the begin, in an arm (`None` before the start).
fn view(after_ms: i64, view: u64, arm: Option<usize>, part: Option<u32>) -> View<Option<u32>> {
    View {
        view,
        at_ms: (FROM_S * 1000)
            .checked_add_signed(after_ms)
            .expect("a time"),
        arm,
        part,
    }
}

fn users(
    query: &ExperimentQuery,
    views: &[(u64, View<Option<u32>>)],
) -> (Vec<UserValue>, Excluded) {
    let mut users = Users::new(query);
    for (user, view) in views {
        users.add(*user, *view);
    }
    let mut found = Vec::new();
    let excluded = users.finish(&mut |value| found.push(value));
    (found, excluded)
}

/// Value of the only user.
#[track_caller]
fn value(query: &ExperimentQuery, views: &[View<Option<u32>>]) -> UserValue {
    let views: Vec<_> = views.iter().map(|view| (7, *view)).collect();
    let (found, excluded) = users(query, &views);
    assert_eq!((found.len(), excluded), (1, Excluded::default()));
    found[0]
}

#[test]
fn value_is_the_mean_of_the_window() {
    let day_ms = DAY_S as i64 * 1000;
    let views = [
        view(500, 1, Some(1), Some(100)),
        view(500 + day_ms - 1, 2, Some(1), Some(200)),
        view(500 + day_ms, 3, Some(1), Some(9000)),
        view(600, 4, Some(1), None),
    ];
    let found = value(&query(DAY_S), &views);
    let expected = UserValue {
        arm: 1,
        entered_s: FROM_S,
        value: 150.0,
        before: None,
    };
    assert_eq!(found, expected);
    // The first page view alone.
    assert_eq!(value(&query(0), &views).value, 100.0);
}

#[test]
fn pre_period_ends_at_the_begin() {
    let day_ms = DAY_S as i64 * 1000;
    let views = [
        view(0, 1, Some(0), Some(100)),
        view(-day_ms - 1, 2, None, Some(9000)),
        view(-day_ms, 3, None, Some(10)),
        view(-1, 4, None, Some(20)),
        view(0, 5, None, Some(9000)),
        // Of earlier weights.
        view(-2, 6, Some(1), Some(9000)),
    ];
    assert_eq!(value(&query(DAY_S), &views).before, Some(15.0));
    let without = ExperimentQuery {
        pre_period_s: 0,
        ..query(DAY_S)
    };
    assert_eq!(value(&without, &views).before, None);
    // A user with earlier views only has not entered.
    let (found, excluded) = users(&query(DAY_S), &[(7, views[2])]);
    assert_eq!((found, excluded), (Vec::new(), Excluded::default()));
}

#[test]
fn users_count_when_their_window_is_over() {
    for (window_s, after_s, finished) in [
        (DAY_S, 9 * DAY_S - 1, true),
        (DAY_S, 9 * DAY_S, false),
        (0, 10 * DAY_S - 1, true),
        (10 * DAY_S, 0, false),
        (10 * DAY_S - 1, 0, true),
        (u64::MAX, 0, false),
    ] {
        let views = [(7, view(after_s as i64 * 1000 + 999, 1, Some(0), Some(5)))];
        let (found, excluded) = users(&query(window_s), &views);
        assert_eq!(found.len(), usize::from(finished), "{window_s} {after_s}");
        assert_eq!(excluded.unfinished, u64::from(!finished));
    }
    // Page views before and after the period do not count.
    for after_ms in [-1, 10 * DAY_S as i64 * 1000] {
        let views = [(7, view(after_ms, 1, Some(0), Some(5)))];
        let (found, excluded) = users(&query(0), &views);
        assert_eq!((found, excluded), (Vec::new(), Excluded::default()));
    }
}

#[test]
fn two_arms_in_a_window_exclude_a_user() {
    let day_ms = DAY_S as i64 * 1000;
    let both = |after_ms| {
        [
            (7, view(0, 1, Some(0), Some(5))),
            (7, view(after_ms, 2, Some(1), Some(6))),
        ]
    };
    let (found, excluded) = users(&query(DAY_S), &both(day_ms - 1));
    assert_eq!((found.len(), excluded.mixed), (0, 1));
    // A value does not change once its window is over.
    let (found, excluded) = users(&query(DAY_S), &both(day_ms));
    assert_eq!((found.len(), excluded.mixed), (1, 0));
    // Even if no value was measured, or the window is not over.
    let mut views = both(1);
    views.iter_mut().for_each(|(_, view)| view.part = None);
    let (_, excluded) = users(&query(11 * DAY_S), &views);
    let mixed = Excluded {
        mixed: 1,
        ..Excluded::default()
    };
    assert_eq!(excluded, mixed);
    let (_, excluded) = users(&query(0), &[(7, view(0, 1, Some(0), None))]);
    assert_eq!(excluded.unmeasured, 1);
}

#[test]
fn page_view_counts_once() {
    let views = [
        view(5, 1, Some(0), Some(300)),
        // Sent again later, and in another arm.
        view(9, 1, Some(1), Some(900)),
        view(7, 2, Some(0), Some(100)),
    ];
    assert_eq!(value(&query(DAY_S), &views).value, 200.0);
    let query = query(DAY_S);
    let mut totals = ArmSums::new(&query, 2);
    let part = Files {
        is_failed: true,
        files: 3,
        ..Files::default()
    };
    for View {
        view, at_ms, arm, ..
    } in views
    {
        let view = View {
            view,
            at_ms,
            arm,
            part,
        };
        totals.add(7, view);
    }
    let found = totals.finish();
    let first = &found[0];
    assert_eq!((first.users, first.views), (1, 2));
    assert_eq!((first.failed_views, first.files), (2, 6));
    assert_eq!((found[1].arm, found[1].views), (1, 0));
}

#[test]
fn users_are_in_the_order_of_entry() {
    let at = |after_s: i64| view(after_s * 1000, 1, Some(0), Some(after_s as u32));
    let views = [(9, at(3)), (2, at(3)), (u64::MAX, at(1)), (1, at(5))];
    let (found, _) = users(&query(DAY_S), &views);
    let times: Vec<_> = found.iter().map(|value| value.entered_s - FROM_S).collect();
    assert_eq!(times, [1, 3, 3, 5]);
    // A later end only appends.
    let mut early = query(DAY_S);
    early.to_s = FROM_S + DAY_S + 4;
    let (earlier, excluded) = users(&early, &views);
    assert_eq!((earlier.as_slice(), excluded.unfinished), (&found[..3], 1));
}

#[test]
fn page_views_of_a_user_have_a_limit() {
    let count = 3 * VIEWS_MAX as i64;
    // The latest first.
    let views: Vec<_> = (0..count)
        .rev()
        .map(|n| {
            (
                7,
                view(n, n as u64, Some(0), Some(u32::from(n >= VIEWS_MAX as i64))),
            )
        })
        .collect();
    let (found, _) = users(&query(DAY_S), &views);
    assert_eq!(found[0].value, 0.0);
    let query = query(DAY_S);
    let mut totals = ArmSums::new(&query, 1);
    for (
        user,
        View {
            view, at_ms, arm, ..
        },
    ) in views
    {
        let part = Files::default();
        totals.add(
            user,
            View {
                view,
                at_ms,
                arm,
                part,
            },
        );
    }
    assert_eq!(totals.finish()[0].views, VIEWS_MAX as u64);
}
