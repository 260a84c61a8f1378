//! `--fail-if`: what makes a bench a failure.

use lab::report::{Report, ServerReport};

use crate::cli::values::decimal;

/// A figure and what it must not be.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Threshold {
    figure: String,
    above: bool,
    limit: f64,
}

impl Threshold {
    /// Reads `p99>50` and its like.
    ///
    /// # Errors
    /// It is none.
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        let wrong = || format!("\"{text}\" is no condition such as \"p99>50\"");
        let at = text.find(['<', '>']).ok_or_else(wrong)?;
        let (figure, rest) = text.split_at(at);
        let figure = figure.trim().to_owned();
        let limit = decimal(rest[1..].trim()).ok_or_else(wrong)?;
        if !FIGURES.contains(&figure.as_str()) {
            return Err(format!("\"{figure}\" is none of {}", FIGURES.join(", ")));
        }
        Ok(Self {
            figure,
            above: rest.starts_with('>'),
            limit,
        })
    }

    fn value(&self, server: &ServerReport) -> Option<f64> {
        let times = server.main_times();
        match self.figure.as_str() {
            "rate" => server.rate.map(|rate| rate.value),
            "errors" => Some(server.failed() as f64),
            "mean" => times.map(|times| times.mean_ms),
            "max" => times.map(|times| times.max_ms),
            "cpu" => server.server_cpu_us.map(|cpu| cpu.value),
            "memory" => server.server_memory_bytes.map(|bytes| bytes as f64 / 1e6),
            percentile => times.and_then(|times| times.percentile(percentile)),
        }
    }

    /// Whether it is about times, which are measured by samples.
    pub(super) fn is_of_times(&self) -> bool {
        !matches!(self.figure.as_str(), "rate" | "errors" | "cpu" | "memory")
    }

    /// Conditions under which a report is a failure; a missing measurement is one, too.
    pub(super) fn exceeded(&self, report: &Report) -> Vec<String> {
        let mut found = Vec::new();
        for server in &report.servers {
            let (name, figure, limit) = (&server.name, &self.figure, self.limit);
            match self.value(server) {
                Some(value) if self.above && value > limit => {
                    found.push(format!("{name}: {figure} is {value:.3}, above {limit}"));
                }
                Some(value) if !self.above && value < limit => {
                    found.push(format!("{name}: {figure} is {value:.3}, below {limit}"));
                }
                Some(_) => {}
                None => found.push(format!("{name}: {figure} was not measured")),
            }
        }
        found
    }
}

/// Metrics for comparison: responses a second, failures, milliseconds, microseconds of the server's CPU, megabytes of its
/// memory.
const FIGURES: [&str; 12] = [
    "rate", "errors", "mean", "max", "p50", "p75", "p90", "p99", "p99.9", "p99.99", "cpu", "memory",
];
