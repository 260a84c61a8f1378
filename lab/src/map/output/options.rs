//! Options of all outputs of a map.

/// Share of the times below the time that colours show.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Quantile {
    /// Half of the times.
    #[default]
    Median,
    /// 80 % of the times.
    P80,
    /// 95 % of the times.
    P95,
}

/// Time that a map shows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Subject {
    /// Least round-trip time of a connection.
    #[default]
    RoundTrip,
    /// Smoothed round-trip time at the close.
    SmoothedRoundTrip,
    /// Time to the first byte of the first response.
    FirstByte,
    /// Time of the TLS handshake.
    Handshake,
}

impl Options {
    /// Name of the times for a legend, such as `Median round-trip time`.
    pub(super) fn name_of_times(&self) -> String {
        let quantile = match self.quantile {
            Quantile::Median => "Median",
            Quantile::P80 => "80th percentile of the",
            Quantile::P95 => "95th percentile of the",
        };
        let subject = match self.subject {
            Subject::RoundTrip => "round-trip time",
            Subject::SmoothedRoundTrip => "smoothed round-trip time",
            Subject::FirstByte => "time to the first byte",
            Subject::Handshake => "time of the TLS handshake",
        };
        format!("{quantile} {subject}")
    }
}

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
    /// Share of the times below the time that colours show.
    pub quantile: Quantile,
    /// Time that the map shows.
    pub subject: Subject,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            title: "Round-trip times by country".to_owned(),
            source: String::new(),
            min_samples: MIN_SAMPLES,
            warnings: Vec::new(),
            period: None,
            quantile: Quantile::Median,
            subject: Subject::RoundTrip,
        }
    }
}

/// Default of [`Options::min_samples`].
///
/// With 20 samples, the 95 % interval of the median has the ranks 6 to 15: the middle half of the times.
pub const MIN_SAMPLES: u64 = 20;
