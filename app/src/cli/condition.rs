//! Conditions of `--fail-if` and levels of `--fail-on`: one grammar for all verbs.
//!
//! A condition is a figure, a comparison and a limit: `p99>50`, `status.5xx>0`, `warm.load>=800`. A verb has a
//! [`Vocabulary`] of figures and looks up their values; this module parses conditions and compares. A figure without a
//! value fails, since an unmeasured budget is not kept.
//!
//! Source: of our own; docs/verbs.md, "Conditions".

use clap::builder::{PossibleValuesParser, TypedValueParser};

use super::values::decimal;

/// Figures of a verb.
#[derive(Debug, Default)]
pub(super) struct Vocabulary {
    /// Names; a suffix `_ms` is optional.
    pub(super) names: Vec<&'static str>,
    /// Whether there are percentiles: `p95`.
    pub(super) percentiles: bool,
    /// Whether there are counts of statuses: `status.404`, `status.5xx`.
    pub(super) statuses: bool,
    /// Whether there are figures of the view with warm caches: `warm.load`.
    pub(super) warm: bool,
}

/// A figure and its limit.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Condition {
    /// The figure as written.
    written: String,
    figure: Figure,
    is_warm: bool,
    comparison: Comparison,
    limit: f64,
}

/// A figure of a [`Vocabulary`].
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Figure {
    /// A figure by one of its names.
    Named(&'static str),
    /// A percentile: its name, such as `p95`, and its share, above 0 and below 1.
    Percentile(String, f64),
    /// Responses with these statuses.
    Status(Statuses),
}

/// A set of statuses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Statuses {
    /// One.
    Code(u16),
    /// All with this first digit.
    Class(u16),
}

impl Statuses {
    /// Whether a status belongs to them.
    pub(super) fn contain(self, status: u16) -> bool {
        match self {
            Self::Code(code) => status == code,
            Self::Class(class) => status / 100 == class,
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Comparison {
    Above,
    Below,
    AtLeast,
    AtMost,
}

impl Comparison {
    /// Splits `p99>=50` into the figure, the comparison and the limit.
    fn split(text: &str) -> Option<(&str, Self, &str)> {
        let (figure, rest) = text.split_at(text.find(['<', '>'])?);
        let is_above = rest.starts_with('>');
        let limit = &rest[1..];
        Some(match (limit.strip_prefix('='), is_above) {
            (Some(limit), true) => (figure, Self::AtLeast, limit),
            (Some(limit), false) => (figure, Self::AtMost, limit),
            (None, true) => (figure, Self::Above, limit),
            (None, false) => (figure, Self::Below, limit),
        })
    }

    fn holds(self, value: f64, limit: f64) -> bool {
        match self {
            Self::Above => value > limit,
            Self::Below => value < limit,
            Self::AtLeast => value >= limit,
            Self::AtMost => value <= limit,
        }
    }

    fn words(self) -> &'static str {
        match self {
            Self::Above => "above",
            Self::Below => "below",
            Self::AtLeast => "at or above",
            Self::AtMost => "at or below",
        }
    }
}

impl Condition {
    /// Parses a condition with a figure of `known`.
    ///
    /// # Errors
    /// It is not a condition, or its figure is unknown.
    pub(super) fn parse(text: &str, known: &Vocabulary) -> Result<Self, String> {
        let wrong = || {
            format!(
                "invalid condition \"{text}\", expected one such as \"{}\"",
                known.example()
            )
        };
        let (written, comparison, limit) = Comparison::split(text).ok_or_else(wrong)?;
        let limit = decimal(limit.trim()).filter(|limit| limit.is_finite());
        let limit = limit.ok_or_else(wrong)?;
        let written = written.trim();
        let warm = written.strip_prefix(WARM).filter(|_| known.warm);
        let figure = known.figure(warm.unwrap_or(written));
        Ok(Self {
            written: written.to_owned(),
            figure: figure.ok_or_else(|| {
                format!(
                    "unknown figure \"{written}\", expected one of {}",
                    known.list()
                )
            })?,
            is_warm: warm.is_some(),
            comparison,
            limit,
        })
    }

    /// Its figure.
    pub(super) fn figure(&self) -> &Figure {
        &self.figure
    }

    /// Whether it is about the view with warm caches.
    pub(super) fn is_warm(&self) -> bool {
        self.is_warm
    }

    /// The sentence with which it fails `subject`, or `None` if the value is within the limit. No value fails.
    pub(super) fn failure(&self, subject: &str, value: Option<f64>) -> Option<String> {
        let (name, limit, comparison) = (&self.written, self.limit, self.comparison);
        match value.filter(|value| !value.is_nan()) {
            None => Some(format!("{subject}: {name} was not measured")),
            Some(value) => comparison.holds(value, limit).then(|| {
                let words = comparison.words();
                format!(
                    "{subject}: {name} is {}, {words} {limit}",
                    value_text(value)
                )
            }),
        }
    }
}

impl Vocabulary {
    fn figure(&self, word: &str) -> Option<Figure> {
        let is_named = |name: &&&str| **name == word || name.strip_suffix(MS) == Some(word);
        if let Some(name) = self.names.iter().find(is_named) {
            return Some(Figure::Named(name));
        }
        if let Some(statuses) = word.strip_prefix(STATUS).filter(|_| self.statuses) {
            return statuses_of(statuses).map(Figure::Status);
        }
        let percent = word.strip_prefix('p').filter(|_| self.percentiles)?;
        let percent = decimal(percent).filter(|percent| *percent > 0.0 && *percent < 100.0)?;
        Some(Figure::Percentile(word.to_owned(), percent / 100.0))
    }

    /// All figures, for messages.
    fn list(&self) -> String {
        let bare = |name: &&'static str| name.strip_suffix(MS).unwrap_or(name);
        let mut all: Vec<&str> = self.names.iter().map(bare).collect();
        if self.percentiles {
            all.push("percentiles such as p95");
        }
        if self.statuses {
            all.push("status.404, status.5xx and so on");
        }
        if self.warm {
            all.push("the same with the prefix \"warm.\"");
        }
        all.join(", ")
    }

    fn example(&self) -> &'static str {
        if self.percentiles {
            "p99>50"
        } else {
            "load>500"
        }
    }
}

/// `404` or `5xx`.
fn statuses_of(text: &str) -> Option<Statuses> {
    let class = text.strip_suffix("xx");
    let digits = class.unwrap_or(text);
    let is_number = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    let number: u16 = digits.parse().ok().filter(|_| is_number)?;
    match class {
        Some(_) if (1..=9).contains(&number) && digits.len() == 1 => Some(Statuses::Class(number)),
        None if (100..=999).contains(&number) => Some(Statuses::Code(number)),
        _ => None,
    }
}

/// A value with three decimals; a whole number without.
fn value_text(value: f64) -> String {
    match value.fract() == 0.0 {
        true => format!("{value:.0}"),
        false => format!("{value:.3}"),
    }
}

/// A level of `--fail-on`: findings of this weight and above fail.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FailOn<L> {
    /// Findings of this level and above.
    Level(L),
    /// No finding.
    Never,
}

impl<L: PartialOrd + Clone + Send + Sync + 'static> FailOn<L> {
    /// Parses a name of a level, or `never`.
    pub(super) fn parser<const N: usize>(
        levels: [(&'static str, L); N],
    ) -> impl TypedValueParser<Value = Self> {
        let names = levels.iter().map(|(name, _)| *name).chain([NEVER]);
        PossibleValuesParser::new(names.collect::<Vec<_>>()).map(move |name| {
            let level = levels.iter().find(|(known, _)| *known == name);
            level.map_or(Self::Never, |(_, level)| Self::Level(level.clone()))
        })
    }

    /// Whether one of these levels fails.
    pub(super) fn fails(&self, levels: impl IntoIterator<Item = L>) -> bool {
        match self {
            Self::Never => false,
            Self::Level(least) => levels.into_iter().any(|level| level >= *least),
        }
    }
}

/// The level that fails nothing.
const NEVER: &str = "never";

const WARM: &str = "warm.";
const STATUS: &str = "status.";
const MS: &str = "_ms";

#[cfg(test)]
mod tests {
    use super::*;

    fn all() -> Vocabulary {
        Vocabulary {
            names: vec!["rate", "load_ms"],
            percentiles: true,
            statuses: true,
            warm: true,
        }
    }

    fn read(text: &str) -> Condition {
        Condition::parse(text, &all()).unwrap_or_else(|why| panic!("{text}: {why}"))
    }

    #[test]
    fn figures_are_names_percentiles_and_statuses() {
        let percentile = |name: &str, share| Figure::Percentile(name.to_owned(), share);
        for (text, figure) in [
            ("rate<1000", Figure::Named("rate")),
            ("load>500", Figure::Named("load_ms")),
            ("load_ms>500", Figure::Named("load_ms")),
            ("warm.load>500", Figure::Named("load_ms")),
            ("p50>1", percentile("p50", 0.5)),
            (" p99.9 >= 1.5 ", percentile("p99.9", 0.999)),
            ("p0.1>1", percentile("p0.1", 0.001)),
            ("status.404>0", Figure::Status(Statuses::Code(404))),
            ("status.100>0", Figure::Status(Statuses::Code(100))),
            ("status.999>0", Figure::Status(Statuses::Code(999))),
            ("status.5xx>0", Figure::Status(Statuses::Class(5))),
        ] {
            let condition = read(text);
            let Figure::Percentile(name, share) = condition.figure() else {
                assert_eq!(condition.figure(), &figure, "{text}");
                assert_eq!(condition.is_warm(), text.starts_with(WARM), "{text}");
                continue;
            };
            let Figure::Percentile(expected, wanted) = figure else {
                panic!("{text}: a percentile");
            };
            assert!(
                *name == expected && (share - wanted).abs() < 1e-12,
                "{text}: {share}"
            );
        }
    }

    #[test]
    fn what_is_no_condition_is_refused() {
        for (text, why) in [
            ("", "expected one such as \"p99>50\""),
            ("p99", "invalid condition"),
            ("p99=5", "invalid condition"),
            ("p99>", "invalid condition"),
            ("p99>x", "invalid condition"),
            ("p99>-1", "invalid condition"),
            ("p99>+1", "invalid condition"),
            ("p99>nan", "invalid condition"),
            ("p99>inf", "invalid condition"),
            ("p99>>1", "invalid condition"),
            (
                "p99=>1",
                "unknown figure \"p99=\", expected one of rate, load, percentiles such as p95, status.404",
            ),
            ("p0>1", "expected one of"),
            ("p100>1", "expected one of"),
            ("p-1>1", "expected one of"),
            ("p>1", "expected one of"),
            ("pnan>1", "expected one of"),
            ("status.99>1", "expected one of"),
            ("status.1000>1", "expected one of"),
            ("status.0xx>1", "expected one of"),
            ("status.10xx>1", "expected one of"),
            ("status.+404>1", "expected one of"),
            ("status.xx>1", "expected one of"),
            ("status>1", "expected one of"),
            ("warm.warm.load>1", "expected one of"),
            ("lod>1", "expected one of"),
        ] {
            let error = Condition::parse(text, &all()).expect_err(text);
            assert!(error.contains(why), "{text}: {error}");
        }
        let few = Vocabulary {
            names: vec!["load_ms"],
            ..Vocabulary::default()
        };
        for text in ["p99>1", "status.404>0", "warm.load>1"] {
            let error = Condition::parse(text, &few).expect_err(text);
            assert!(error.ends_with("expected one of load"), "{error}");
        }
    }

    #[test]
    fn comparisons_hold_beyond_their_limit_or_at_it() {
        for (text, failing, passing) in [
            ("rate>10", &[10.001, 1e9][..], &[9.0, 10.0][..]),
            ("rate>=10", &[10.0, 11.0], &[9.999]),
            ("rate<10", &[0.0, 9.999], &[10.0, 11.0]),
            ("rate<=10", &[10.0, 9.0], &[10.001]),
            ("rate>0", &[0.001], &[0.0]),
        ] {
            let condition = read(text);
            let fails = |value: &f64| condition.failure("s", Some(*value)).is_some();
            assert!(failing.iter().all(fails), "{text}");
            assert!(!passing.iter().any(fails), "{text}");
        }
        let told = |value| read("load>=500").failure("http://h/", value);
        let above = "http://h/: load is 500.250, at or above 500";
        assert_eq!(told(Some(500.25)).as_deref(), Some(above));
        let whole = read("status.5xx>0").failure("h", Some(12.0));
        assert_eq!(whole.as_deref(), Some("h: status.5xx is 12, above 0"));
    }

    #[test]
    fn a_figure_without_a_value_fails() {
        for value in [None, Some(f64::NAN)] {
            let told = read("load<1").failure("h", value);
            assert_eq!(told.as_deref(), Some("h: load was not measured"));
        }
    }

    #[test]
    fn statuses_are_one_or_a_class() {
        let class = Statuses::Class(4);
        assert!([400, 404, 499].iter().all(|status| class.contain(*status)));
        assert!(![399, 500, 40].iter().any(|status| class.contain(*status)));
        let one = Statuses::Code(404);
        assert!(one.contain(404) && !one.contain(403) && !one.contain(405));
    }

    #[test]
    fn findings_fail_from_their_level_on() {
        let fails = |level: FailOn<u8>, found: &[u8]| level.fails(found.iter().copied());
        assert!(fails(FailOn::Level(2), &[1, 2]) && fails(FailOn::Level(2), &[3]));
        assert!(!fails(FailOn::Level(2), &[1]) && !fails(FailOn::Level(2), &[]));
        assert!(!fails(FailOn::Never, &[1, 2, 3]));
    }
}
