//! The lead of a page about experiments: state, verdict, warnings.

use store::VisitMetric;

use crate::experiment::Report;
use crate::time::{DAY_S, length, readable};

/// Sentences above the figures.
#[derive(Clone, Debug, Default, PartialEq)]
pub(in crate::web) struct Lead {
    /// Heading of the page.
    pub(in crate::web) heading: String,
    /// State and times.
    pub(in crate::web) about: String,
    /// Verdict, the most important sentence first.
    pub(in crate::web) sentences: Vec<String>,
    pub(in crate::web) warnings: Vec<String>,
    /// An example of a configuration.
    pub(in crate::web) example: Option<&'static str>,
    /// The page is to be loaded again soon.
    pub(in crate::web) is_in_progress: bool,
    /// Form of the page of an experiment.
    pub(in crate::web) form: Option<Form>,
}

/// Choices of the page of an experiment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::web) struct Form {
    pub(in crate::web) experiment: String,
    pub(in crate::web) metrics: Vec<VisitMetric>,
    pub(in crate::web) chosen: Option<VisitMetric>,
    pub(in crate::web) is_a_a: bool,
}

impl Lead {
    /// Returns the lead of a report.
    pub(in crate::web) fn of(report: &Report) -> Self {
        let mut about = format!(
            "{}: visits from {} to {} UTC ({})",
            report.state.label(),
            readable(report.since_s),
            readable(minute(report.at_s)),
            length(rounded(report.at_s.saturating_sub(report.since_s)))
        );
        if report.share_percent < 100.0 {
            about.push_str(&format!(", {} % of users", report.share_percent));
        }
        Self {
            heading: format!("Experiment {}", report.experiment),
            about,
            sentences: report.verdict.sentences.clone(),
            warnings: report.warnings.clone(),
            ..Self::default()
        }
    }

    /// Returns the lead of a store without experiments.
    pub(in crate::web) fn none() -> Self {
        Self {
            heading: "No experiments yet".to_owned(),
            sentences: vec![
                "The store has no experiments. Next steps: configure one in http, load the configuration, and visit a page.".to_owned(),
            ],
            example: Some(CONFIGURATION),
            ..Self::default()
        }
    }

    /// Returns the lead of an analysis in progress.
    pub(in crate::web) fn in_progress(name: &str) -> Self {
        Self {
            heading: format!("Experiment {name}"),
            sentences: vec![
                "The first analysis is in progress. It takes seconds for a million users."
                    .to_owned(),
            ],
            is_in_progress: true,
            ..Self::default()
        }
    }
}

/// Begin of the minute of a time.
pub(in crate::web) fn minute(unix_s: u64) -> u64 {
    unix_s - unix_s % 60
}

/// Length to the nearest day if it has several, else to the nearest hour or minute.
fn rounded(seconds: u64) -> u64 {
    let unit = match seconds {
        s if s >= 2 * DAY_S => DAY_S,
        s if s >= 2 * 3600 => 3600,
        _ => 60,
    };
    (seconds + unit / 2) / unit * unit
}

const CONFIGURATION: &str = "lab_store sqlite:/var/lib/firstbyte/lab/store.db;
experiment_key /etc/firstbyte/experiment.key;
experiment fast {
    user cookie;
    host static.example.com;
    arm control host=s1.example.com protocols=http/1.1;
    arm fast host=s2.example.com protocols=h2,http/1.1;
}";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_are_short() {
        let all =
            [59, 3599, 2 * 3600 + 1, 86_399, 1_450_537].map(|seconds| length(rounded(seconds)));
        assert_eq!(all, ["1 min", "1 h", "2 h", "24 h", "17 days"]);
        assert_eq!(minute(119), 60);
    }
}
