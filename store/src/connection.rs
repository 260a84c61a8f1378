//! A connection of a visitor, as the server describes it at its close.

use crate::network::Network;

/// Longest text of a row, bytes; longer texts are cut.
pub const TEXT_BYTES_MAX: usize = 256;

/// The TLS handshake of a connection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum HandshakeKind {
    /// Without TLS.
    #[default]
    None,
    /// A handshake with certificates.
    Full,
    /// A resumed session.
    Resumed,
    /// A resumed session with early data.
    Early,
}

impl HandshakeKind {
    /// Kinds by their number in the store.
    pub const ALL: [Self; 4] = [Self::None, Self::Full, Self::Resumed, Self::Early];

    /// Name in views and documents.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Full => "full",
            Self::Resumed => "resumed",
            Self::Early => "early",
        }
    }
}

/// Numbers of stalls by cause.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stalls {
    /// The client delayed its acknowledgement.
    pub delayed_ack: u64,
    /// A packet was lost and sent again.
    pub retransmit: u64,
    /// A window was full.
    pub window: u64,
}

/// A closed connection; one row of the store. Texts are cut to [`TEXT_BYTES_MAX`] bytes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Connection {
    /// Time of the close, Unix seconds.
    pub closed_s: u64,
    /// Name of the recording server.
    pub server: String,
    /// Protocol as `$server_protocol` has it, such as `HTTP/2.0`.
    pub protocol: String,
    /// Version of TLS as `$ssl_protocol` has it, or empty.
    pub tls: String,
    /// Network of the client, if it is kept.
    pub network: Option<Network>,
    /// Country of the client, ISO 3166 alpha-2.
    pub country: Option<[u8; 2]>,
    /// Subdivision of the country, ISO 3166-2 such as `US-CA`, or empty.
    pub subdivision: String,
    /// Network operator, such as `AS64496 Example`, or empty.
    pub operator: String,
    /// Whether a proxy is the other end of the connection: its RTTs are those of the proxy.
    pub via_proxy: bool,
    /// Least RTT, microseconds.
    pub min_rtt_us: Option<u32>,
    /// Smoothed RTT at the close, microseconds.
    pub rtt_us: Option<u32>,
    /// Retransmitted segments.
    pub retransmits: u32,
    /// Bytes sent.
    pub bytes_sent: u64,
    /// Bytes received.
    pub bytes_received: u64,
    /// Number of requests.
    pub requests: u32,
    /// Responses by class of status: 2xx, 3xx, 4xx, 5xx. Requests without a status are in none.
    pub statuses: [u32; 4],
    /// Time from accept to close, milliseconds.
    pub duration_ms: u64,
    /// Time of the TLS handshake, microseconds.
    pub handshake_us: Option<u32>,
    /// Kind of the TLS handshake.
    pub handshake_kind: HandshakeKind,
    /// Time to the first byte of the first response, microseconds.
    pub first_byte_us: Option<u32>,
    /// Stalls of the connection.
    pub stalls: Stalls,
}
