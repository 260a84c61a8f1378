//! Questions to a store, and their answers.

use crate::connection::Stalls;
use crate::error::Error;
use crate::histogram::Histogram;

/// Property of connections that groups them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Dimension {
    /// Country, ISO 3166 alpha-2.
    #[default]
    Country,
    /// Subdivision of a country, ISO 3166-2.
    Subdivision,
    /// Network operator.
    Operator,
}

impl Dimension {
    /// Dimensions by their number in the store.
    pub const ALL: [Self; 3] = [Self::Country, Self::Subdivision, Self::Operator];
}

/// Time that a histogram counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Metric {
    /// Least RTT of a connection.
    #[default]
    MinRtt,
    /// Smoothed RTT at the close of a connection.
    Rtt,
    /// Time to the first byte of a connection's first response.
    FirstByte,
    /// Time of the TLS handshake.
    Handshake,
}

impl Metric {
    /// Metrics by their number in a row.
    pub const ALL: [Self; 4] = [Self::MinRtt, Self::Rtt, Self::FirstByte, Self::Handshake];
}

/// Length of the steps of a period.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// 60 seconds.
    Minute,
    /// 3,600 seconds.
    Hour,
    /// 86,400 seconds, a day of UTC.
    Day,
}

impl Step {
    /// Steps, the shortest first.
    pub const ALL: [Self; 3] = [Self::Minute, Self::Hour, Self::Day];

    /// Length in seconds.
    #[must_use]
    pub fn seconds(self) -> u64 {
        match self {
            Self::Minute => 60,
            Self::Hour => 3600,
            Self::Day => 86_400,
        }
    }
}

/// Property that groups connections and is the key of each group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Grouping {
    /// Country, subdivision or operator. Only countries add up to all connections: the key is empty if a country is unknown.
    Dimension(Dimension),
    /// Protocol, such as `HTTP/2.0`.
    Protocol,
    /// Name of the recording server.
    Server,
    /// Time of the close. The key is the begin of the step in decimal Unix seconds; steps without connections are absent. A step
    /// is as long as the roll-ups of its time if those are longer.
    Time(Step),
}

impl Default for Grouping {
    fn default() -> Self {
        Self::Dimension(Dimension::Country)
    }
}

impl Grouping {
    /// Dimension of the roll-ups that have these groups.
    pub(crate) fn dimension(self) -> Dimension {
        match self {
            Self::Dimension(dimension) => dimension,
            Self::Protocol | Self::Server | Self::Time(_) => Dimension::Country,
        }
    }
}

/// Query: a period, filters, the property that groups connections, and the time of the histograms.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Query {
    /// Begin of the period, Unix seconds; later connections count, and those of this second.
    pub from_s: u64,
    /// End of the period, Unix seconds; earlier connections count.
    pub to_s: u64,
    /// Property that groups the connections.
    pub grouping: Grouping,
    /// Time of the histograms.
    pub metric: Metric,
    /// Connections of this protocol alone, such as `HTTP/2.0`.
    pub protocol: Option<String>,
    /// Connections of this server alone.
    pub server: Option<String>,
    /// Connections of this country alone, ISO 3166 alpha-2; empty: of unknown countries. Subdivisions are of this country if their name
    /// begins with its code and a hyphen. Operators have no country: [`Query::check`].
    pub country: Option<String>,
}

impl Query {
    /// Checks that roll-ups can answer the query.
    ///
    /// # Errors
    /// [`Error::Other`] for operators of one country: no roll-up has both.
    pub fn check(&self) -> Result<(), Error> {
        let by_operator = self.grouping == Grouping::Dimension(Dimension::Operator);
        if by_operator && self.country.is_some() {
            let why = "operators cannot be filtered by country";
            return Err(Error::Other(why.to_owned()));
        }
        Ok(())
    }
}

/// Sums over connections.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    /// Number of connections.
    pub connections: u64,
    /// Number of their requests.
    pub requests: u64,
    /// Bytes sent.
    pub bytes_sent: u64,
    /// Bytes received.
    pub bytes_received: u64,
    /// Retransmitted segments.
    pub retransmits: u64,
    /// Connections through a proxy; histograms of RTTs leave them out.
    pub via_proxy: u64,
    /// Stalls by cause.
    pub stalls: Stalls,
    /// Responses by class of status: 2xx, 3xx, 4xx, 5xx. Requests without a status are in none.
    pub statuses: [u64; 4],
    /// Time from accept to close, milliseconds.
    pub duration_ms: u64,
}

impl Totals {
    /// Adds other sums.
    pub fn merge(&mut self, other: &Self) {
        for (own, more) in self.statuses.iter_mut().zip(other.statuses) {
            *own = own.saturating_add(more);
        }
        let pairs = [
            (&mut self.connections, other.connections),
            (&mut self.requests, other.requests),
            (&mut self.bytes_sent, other.bytes_sent),
            (&mut self.bytes_received, other.bytes_received),
            (&mut self.retransmits, other.retransmits),
            (&mut self.via_proxy, other.via_proxy),
            (&mut self.stalls.delayed_ack, other.stalls.delayed_ack),
            (&mut self.stalls.retransmit, other.stalls.retransmit),
            (&mut self.stalls.window, other.stalls.window),
            (&mut self.duration_ms, other.duration_ms),
        ];
        for (own, more) in pairs {
            *own = own.saturating_add(more);
        }
    }
}

/// Connections with the same value of a property.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Group {
    /// Value of the property; empty if unknown.
    pub key: String,
    /// Sums over the connections.
    pub totals: Totals,
    /// Histogram of the metric.
    pub histogram: Histogram,
}

/// Groups of a period, sorted by key; groups of time by time.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Answer {
    /// Begin of the period that was read, Unix seconds. It is later than the begin of the query if roll-ups are coarser.
    pub from_s: u64,
    /// End of the period that was read, Unix seconds. It is later than the end of the query if roll-ups are coarser.
    pub to_s: u64,
    /// Groups with at least one connection.
    pub groups: Vec<Group>,
}

impl Answer {
    /// Adds up the totals of all groups.
    #[must_use]
    pub fn totals(&self) -> Totals {
        let mut sums = Totals::default();
        for group in &self.groups {
            sums.merge(&group.totals);
        }
        sums
    }
}

/// Connections of one truncated network.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NetworkGroup {
    /// Network such as `192.0.2.0/24`; empty if it is not stored.
    pub network: String,
    /// Sums over the connections.
    pub totals: Totals,
}

/// Networks of a period. They are counted from rows, which are deleted before roll-ups.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Networks {
    /// Networks with most connections first; equal ones by name.
    pub groups: Vec<NetworkGroup>,
    /// Number of counted connections, for all networks.
    pub connections: u64,
    /// Whether the period has more than [`NETWORK_ROWS_MAX`] rows: then only about that many, the newest, are
    /// counted.
    pub is_cut: bool,
}

/// Most rows counted by [`Store::networks`](crate::Store::networks). If each has a network of its own, SQLite needs
/// a third of a second of processor time and 70 MB for them.
pub const NETWORK_ROWS_MAX: u64 = 200_000;

/// Number of open connections of a server at one time.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OpenSample {
    /// Time, Unix seconds. A store keeps the minute, and of the samples within it the largest.
    pub at_s: u64,
    /// Name of the server.
    pub server: String,
    /// Protocol as in [`Connection::protocol`](crate::Connection::protocol).
    pub protocol: String,
    /// Number of open connections.
    pub connections: u64,
}

/// Open connections of one protocol during a step of time, for all servers together.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct OpenConnections {
    /// Begin of the step, Unix seconds.
    pub start_s: u64,
    /// Protocol.
    pub protocol: String,
    /// Mean over the minutes of the step with a sample of any protocol.
    pub mean: f64,
    /// Largest number of a minute.
    pub max: u64,
}
