//! Page views of one user after another, and the answers made of them.
//!
//! Both engines pass stored page views here, grouped by user. So both have the same answers.

use super::types::{ArmTotals, Excluded, ExperimentQuery, UserValue};

/// Page views of a user that count at most: the earliest ones. It bounds memory if a user sends beacons without end.
pub(crate) const VIEWS_MAX: usize = 10_000;

/// A stored page view, with the part that an answer needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct View<T> {
    pub(crate) view: u64,
    pub(crate) at_ms: u64,
    /// Place of the arm; `None` before the start of the experiment.
    pub(crate) arm: Option<usize>,
    pub(crate) part: T,
}

impl View<()> {
    /// Adds the part.
    pub(crate) fn with<T>(self, part: T) -> View<T> {
        View {
            view: self.view,
            at_ms: self.at_ms,
            arm: self.arm,
            part,
        }
    }
}

/// Files of a page view.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Files {
    pub(crate) is_failed: bool,
    pub(crate) files: u64,
    pub(crate) files_failed: u64,
    pub(crate) files_truncated: u64,
    pub(crate) file_bytes: u64,
}

/// Page views of one user.
struct OfUser<T> {
    user: Option<u64>,
    views: Vec<View<T>>,
}

impl<T: Copy + Ord> OfUser<T> {
    fn new() -> Self {
        Self {
            user: None,
            views: Vec::new(),
        }
    }

    /// Adds a page view. Before the first one of another user, passes the earlier user to `end`.
    fn add(&mut self, user: u64, view: View<T>, end: impl FnOnce(u64, &[View<T>])) {
        if self.user != Some(user) {
            self.end(end);
            self.user = Some(user);
        }
        self.views.push(view);
        if self.views.len() >= 2 * VIEWS_MAX {
            self.order();
        }
    }

    /// Passes the last user to `end`.
    fn end(&mut self, end: impl FnOnce(u64, &[View<T>])) {
        if let Some(user) = self.user.take() {
            self.order();
            end(user, &self.views);
        }
        self.views.clear();
    }

    /// Sorts page views by time. Of several with one id, the earliest remains.
    fn order(&mut self) {
        if self.views.len() > 1 {
            self.views.sort_unstable();
            self.views.dedup_by_key(|view| view.view);
            self.views
                .sort_unstable_by_key(|view| (view.at_ms, view.view));
        }
        self.views.truncate(VIEWS_MAX);
    }
}

/// Returns the page views in an arm within a period, and the place of the first one.
fn entered<'v, T>(views: &'v [View<T>], query: &ExperimentQuery) -> Option<(&'v View<T>, usize)> {
    let period = query.from_s.saturating_mul(1000)..query.to_s.saturating_mul(1000);
    let is_within = |view: &&View<T>| view.arm.is_some() && period.contains(&view.at_ms);
    let first = views.iter().find(is_within)?;
    Some((first, first.arm?))
}

/// Values of users on their way.
pub(crate) struct Users<'q> {
    query: &'q ExperimentQuery,
    views: OfUser<Option<u32>>,
    answer: UserAnswer,
}

/// Answer to [`Store::users`](crate::Store::users).
#[derive(Default)]
struct UserAnswer {
    /// Values with their users.
    values: Vec<(u64, UserValue)>,
    excluded: Excluded,
}

impl<'q> Users<'q> {
    pub(crate) fn new(query: &'q ExperimentQuery) -> Self {
        Self {
            query,
            views: OfUser::new(),
            answer: UserAnswer::default(),
        }
    }

    /// Adds a page view. All views of a user must follow each other.
    pub(crate) fn add(&mut self, user: u64, view: View<Option<u32>>) {
        let (query, answer) = (self.query, &mut self.answer);
        self.views.add(user, view, |user, views| {
            answer.end_user(query, user, views)
        });
    }

    /// Passes the values to `each` in the order of entry, then of the user.
    pub(crate) fn finish(mut self, each: &mut dyn FnMut(UserValue)) -> Excluded {
        let (query, answer) = (self.query, &mut self.answer);
        self.views
            .end(|user, views| answer.end_user(query, user, views));
        let UserAnswer {
            mut values,
            excluded,
        } = self.answer;
        values.sort_unstable_by_key(|(user, value)| (value.entered_s, *user));
        values.into_iter().for_each(|(_, value)| each(value));
        excluded
    }
}

impl UserAnswer {
    fn end_user(&mut self, query: &ExperimentQuery, user: u64, views: &[View<Option<u32>>]) {
        let Some((first, arm)) = entered(views, query) else {
            return;
        };
        let is_observed = |view: &&View<Option<u32>>| {
            let after_ms = view.at_ms.saturating_sub(first.at_ms);
            let is_first = std::ptr::eq(*view, first);
            let is_later =
                view.at_ms >= first.at_ms && after_ms < query.window_s.saturating_mul(1000);
            view.arm.is_some() && (is_first || is_later)
        };
        let observed = || views.iter().filter(is_observed);
        if observed().any(|view| view.arm != Some(arm)) {
            self.excluded.mixed += 1;
            return;
        }
        let entered_s = first.at_ms / 1000;
        // The second of the entry may not be over yet.
        if entered_s.saturating_add(query.window_s) >= query.to_s {
            self.excluded.unfinished += 1;
            return;
        }
        let Some(value) = mean(observed()) else {
            self.excluded.unmeasured += 1;
            return;
        };
        let from_ms = query.from_s.saturating_mul(1000);
        let pre_period = from_ms.saturating_sub(query.pre_period_s.saturating_mul(1000))..from_ms;
        let earlier = views.iter().filter(|view| view.arm.is_none());
        let before = mean(earlier.filter(|view| pre_period.contains(&view.at_ms)));
        let value = UserValue {
            arm,
            entered_s,
            value,
            before,
        };
        self.values.push((user, value));
    }
}

/// Returns the mean of the measured values.
fn mean<'v>(views: impl Iterator<Item = &'v View<Option<u32>>>) -> Option<f64> {
    let (mut sum, mut count) = (0u64, 0u64);
    for value in views.filter_map(|view| view.part) {
        sum += u64::from(value);
        count += 1;
    }
    (count > 0).then(|| sum as f64 / count as f64)
}

/// ArmSums of arms on their way.
pub(crate) struct ArmSums<'q> {
    query: &'q ExperimentQuery,
    views: OfUser<Files>,
    arms: Vec<ArmTotals>,
}

impl<'q> ArmSums<'q> {
    /// Begins with zeros for each of the arms.
    pub(crate) fn new(query: &'q ExperimentQuery, arms: usize) -> Self {
        let zeros = |arm| ArmTotals {
            arm,
            ..ArmTotals::default()
        };
        Self {
            query,
            views: OfUser::new(),
            arms: (0..arms).map(zeros).collect(),
        }
    }

    /// Adds a page view. Those of a user follow each other.
    pub(crate) fn add(&mut self, user: u64, view: View<Files>) {
        let (query, arms) = (self.query, &mut self.arms);
        self.views
            .add(user, view, |_, views| end_totals(query, arms, views));
    }

    pub(crate) fn finish(mut self) -> Vec<ArmTotals> {
        let (query, arms) = (self.query, &mut self.arms);
        self.views.end(|_, views| end_totals(query, arms, views));
        self.arms
    }
}

fn end_totals(query: &ExperimentQuery, arms: &mut [ArmTotals], views: &[View<Files>]) {
    let Some((_, first_arm)) = entered(views, query) else {
        return;
    };
    arms[first_arm].users += 1;
    let period = query.from_s.saturating_mul(1000)..query.to_s.saturating_mul(1000);
    for view in views.iter().filter(|view| period.contains(&view.at_ms)) {
        let Some(arm) = view.arm else {
            continue;
        };
        let (sums, part) = (&mut arms[arm], &view.part);
        sums.views += 1;
        sums.failed_views += u64::from(part.is_failed);
        sums.files = sums.files.saturating_add(part.files);
        sums.files_failed = sums.files_failed.saturating_add(part.files_failed);
        sums.files_truncated = sums.files_truncated.saturating_add(part.files_truncated);
        sums.file_bytes = sums.file_bytes.saturating_add(part.file_bytes);
    }
}

#[cfg(test)]
#[path = "views_tests.rs"]
mod tests;
