//! Questions to a store, and their answers.

use crate::connection::Stalls;
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

/// Query: a period, filters, the property that groups connections, and the time of the histograms.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Query {
    /// Begin of the period, Unix seconds; later connections count, and those of this second.
    pub from_s: u64,
    /// End of the period, Unix seconds; earlier connections count.
    pub to_s: u64,
    /// Property that groups the connections.
    pub dimension: Dimension,
    /// Time of the histograms.
    pub metric: Metric,
    /// Connections of this protocol alone, such as `HTTP/2.0`.
    pub protocol: Option<String>,
    /// Connections of this server alone.
    pub server: Option<String>,
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
}

impl Totals {
    /// Adds other sums.
    pub fn merge(&mut self, other: &Self) {
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
        ];
        for (own, more) in pairs {
            *own = own.saturating_add(more);
        }
    }
}

/// Connections of one country, subdivision or operator.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Group {
    /// Country, subdivision or operator; empty if unknown.
    pub key: String,
    /// Sums over the connections.
    pub totals: Totals,
    /// Histogram of the metric.
    pub histogram: Histogram,
}

/// Groups of a period, sorted by key.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MapAnswer {
    /// Begin of the period that was read, Unix seconds. It is later than the begin of the query if roll-ups are coarser.
    pub from_s: u64,
    /// End of the period that was read, Unix seconds. It is later than the end of the query if roll-ups are coarser.
    pub to_s: u64,
    /// Groups with at least one connection.
    pub groups: Vec<Group>,
}

impl MapAnswer {
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
