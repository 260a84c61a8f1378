//! Spread of the users of an experiment, for planning the next one.

use store::{ExperimentQuery, Store, VisitMetric};

use super::analysis::{Options, begin, read, users_per_day};
use super::error::AnalysisError;
use crate::stats::sequence::{Covaried, Cuped};

/// Spread of users.
#[derive(Clone, Debug, PartialEq)]
pub struct Spread {
    /// Name of the experiment.
    pub experiment: String,
    /// The metric.
    pub metric: VisitMetric,
    /// Users of the first arm with a value.
    pub users: u64,
    /// Standard deviation over mean in the first arm; `None` if the mean is 0, or with fewer than 2 users.
    pub cv: Option<f64>,
    /// Correlation of values with those of the pre-period that has the effect of CUPED, from 0 to 1; `None` if few are known.
    pub correlation: Option<f64>,
    /// Users of all arms per day; `None` before the first hour is over.
    pub users_per_day: Option<f64>,
}

/// Reads the spread of an experiment's users from visits before a time in Unix seconds. Without a name, the only experiment is
/// meant; without a metric, the primary one.
///
/// # Errors
/// If the store cannot be read, has no such experiment, or has several and none is named.
pub fn spread(
    store: &dyn Store,
    name: Option<&str>,
    metric: Option<VisitMetric>,
    at_s: u64,
) -> Result<Spread, AnalysisError> {
    let all = store.experiments()?;
    let found = match (name, &all[..]) {
        (None, [only]) => Some(only),
        (None, _) => None,
        (Some(name), all) => all.iter().find(|one| one.name == name),
    };
    let Some(summary) = found else {
        return Err(AnalysisError::Unknown(
            all.into_iter().map(|one| one.name).collect(),
        ));
    };
    let settings = begin(summary, at_s, &Options::default());
    let query = ExperimentQuery {
        experiment: summary.name.clone(),
        from_s: settings.since_s,
        to_s: at_s,
        window_s: settings.window_s,
        pre_period_s: settings.pre_period_s,
    };
    let own = summary.settings.as_ref();
    let primary = own.and_then(|own| own.metrics.first().copied());
    let metric = metric.or(primary).unwrap_or(VisitMetric::Load);
    let (samples, _) = read(store, &query, metric, settings.arms.len())?;
    let mut arms = vec![Covaried::default(); samples.arms.len()];
    for (arm, users) in arms.iter_mut().zip(&samples.arms) {
        users
            .iter()
            .for_each(|user| arm.push(user.value, user.before()));
    }
    let control = arms.first().map(Covaried::summary).unwrap_or_default();
    let cv = control.variance().sqrt() / control.mean();
    let reduction = Cuped::of(&arms).reduction;
    Ok(Spread {
        experiment: summary.name.clone(),
        metric,
        users: control.n(),
        cv: (control.n() > 1 && cv.is_finite()).then_some(cv),
        correlation: (reduction > 0.0).then(|| reduction.sqrt()),
        users_per_day: users_per_day(&samples),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::tests::memory::Memory;

    #[test]
    fn users_of_the_first_arm_decide() {
        let memory = Memory::generated(11, 4000, &[0.0, 0.5]);
        let at_s = memory.end_s();
        let found = spread(&memory, None, None, at_s).expect("it is the only one");
        let control = memory.users.iter().filter(|user| user.arm == 0);
        let values: Vec<f64> = control.map(|user| user.value).collect();
        let mean = values.iter().sum::<f64>() / values.len() as f64;
        let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
        let cv = (squares / (values.len() - 1) as f64).sqrt() / mean;
        assert_eq!(found.users, values.len() as u64);
        let own = found.cv.expect("users are many");
        assert!((own / cv - 1.0).abs() < 1e-9, "{own} {cv}");
        assert_eq!(found.experiment, "spdy");
        let rate = found.users_per_day.expect("hours of users");
        assert!((rate / 8640.0 - 1.0).abs() < 0.01, "{rate}");
        let named = spread(&memory, Some("spdy"), Some(found.metric), at_s);
        assert_eq!(named, Ok(found));
    }

    #[test]
    fn unknown_experiments_are_errors_and_empty_ones_have_no_spread() {
        let memory = Memory::generated(12, 1, &[0.0, 0.0]);
        let why = spread(&memory, Some("other"), None, memory.end_s());
        assert_eq!(why, Err(AnalysisError::Unknown(vec!["spdy".to_owned()])));
        let found = spread(&memory, None, None, memory.end_s()).expect("it is there");
        assert_eq!((found.cv, found.correlation), (None, None));
    }
}
