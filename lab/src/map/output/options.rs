//! Options of all outputs of a map.

/// Options of all outputs of a map.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// Heading.
    pub title: String,
    /// Names of the logs, or of the store.
    pub source: String,
    /// Least number of samples of a country with a colour; 1 or more.
    pub min_samples: u64,
    /// Reasons to read the figures with care, a sentence each.
    pub warnings: Vec<String>,
    /// First and last moment of the samples, seconds since 1970 in UTC.
    pub period: Option<(i64, i64)>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            title: "Round-trip times by country".to_owned(),
            source: String::new(),
            min_samples: MIN_SAMPLES,
            warnings: Vec::new(),
            period: None,
        }
    }
}

/// Default of [`Options::min_samples`].
///
/// With 20 samples, the 95 % interval of the median has the ranks 6 to 15: the middle half of the times.
pub const MIN_SAMPLES: u64 = 20;
