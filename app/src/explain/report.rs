//! The report: the model that is printed as text or as JSON.

use serde::Serialize;

/// An explanation.
#[derive(Debug, Serialize)]
pub(crate) struct Report {
    pub(super) request: Request,
    pub(super) listener: Listener,
    pub(super) handshake: Option<Handshake>,
    pub(super) server: Server,
    pub(super) steps: Vec<Step>,
    pub(super) passed: Option<Passed>,
    pub(super) answer: Answer,
    pub(super) location: Location,
    pub(super) settings: Vec<Setting>,
}

/// A line of the configuration.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(super) struct SourceLocation {
    /// The file as written in the configuration; "command line" for `-g`.
    pub(super) file: String,
    pub(super) line: u32,
}

/// The request.
#[derive(Debug, Serialize)]
pub(super) struct Request {
    pub(super) method: String,
    pub(super) target: String,
    pub(super) host: String,
    pub(super) from: String,
}

/// Listener of the connection.
#[derive(Debug, Serialize)]
pub(super) struct Listener {
    /// Address of the listening socket.
    pub(super) address: String,
    /// The `listen` of the chosen server; none for a server without one.
    pub(super) at: Option<SourceLocation>,
    /// Other addresses that the host may resolve to.
    pub(super) others: Vec<String>,
}

/// The handshake of a connection with TLS.
#[derive(Debug, Serialize)]
pub(super) struct Handshake {
    /// The server name sent by the client; none for an address.
    pub(super) name: Option<String>,
    /// First name of the server with the certificate.
    pub(super) server: String,
    /// The line that sets the certificate, or rejects the handshake.
    pub(super) at: Option<SourceLocation>,
    /// Reason of the handshake's failure.
    pub(super) refused: Option<&'static str>,
}

/// Server and location of the request.
#[derive(Debug, Serialize)]
pub(super) struct Server {
    /// Its first name.
    pub(super) name: String,
    pub(super) at: Option<SourceLocation>,
    /// `only`, `exact`, `wildcard`, `regex`, `default`, or `none` if the request has no valid host.
    #[serde(rename = "match")]
    pub(super) match_kind: &'static str,
    pub(super) why: String,
    /// The line with the matching name.
    pub(super) name_at: Option<SourceLocation>,
}

/// One thing that happens on the way.
#[derive(Debug, Serialize)]
pub(super) struct Step {
    /// Kind of step.
    pub(super) step: &'static str,
    pub(super) text: String,
    pub(super) at: Option<SourceLocation>,
}

/// Whom the request is passed on to.
#[derive(Debug, Serialize)]
pub(super) struct Passed {
    /// The first server that is tried; `None` if its name must be resolved first.
    pub(super) server: Option<String>,
    /// Name that must be resolved.
    pub(super) name: Option<String>,
    /// The group of the server, if `upstream` defines it.
    pub(super) group: Option<String>,
    /// The directive of the group's method; `None` if its servers take turns, or without a group.
    pub(super) method: Option<&'static str>,
    /// TLS of the connection.
    pub(super) tls: Option<PassedTls>,
    /// The request line and the fields that it gets, a line each.
    pub(super) request: Vec<String>,
    /// The parameters in place of the request, if it is an application.
    pub(super) parameters: Vec<String>,
}

/// TLS of a connection to a server.
#[derive(Debug, Serialize)]
pub(super) struct PassedTls {
    /// Name of the server (`proxy_ssl_name`); `None` if it is neither sent nor verified.
    pub(super) name: Option<String>,
    /// The handshake has the name (SNI).
    pub(super) sends_name: bool,
    /// The certificate is verified.
    pub(super) verifies: bool,
}

/// Response to the client.
#[derive(Debug, Serialize)]
pub(super) struct Answer {
    /// Its status; `None` if the connection is closed without a response.
    pub(super) status: Option<u16>,
    /// The step that decided it, or the reason for its absence.
    pub(super) reason: String,
    /// The file it is made from.
    pub(super) file: Option<String>,
    /// The field `Location`.
    pub(super) location: Option<String>,
    /// A short text that is the body.
    pub(super) text: Option<String>,
    /// The body is the server's own page for the status.
    pub(super) own_page: bool,
    /// The fields of its head but for those of the connection.
    pub(super) fields: Vec<(String, String)>,
}

/// A level of the configuration.
#[derive(Debug, Serialize)]
pub(super) struct Location {
    pub(super) text: String,
    pub(super) at: Option<SourceLocation>,
}

/// A setting in effect.
#[derive(Debug, Serialize)]
pub(super) struct Setting {
    pub(super) name: &'static str,
    pub(super) value: String,
    /// The configuration level with the value, or "default".
    pub(super) from: String,
    pub(super) at: Option<SourceLocation>,
}
