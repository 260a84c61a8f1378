//! The target of an examination, and how much that may cost.

use std::path::PathBuf;
use std::time::Duration;

use super::command::quoted;
use crate::client::trust::Trust;
use crate::client::{Protocol, Url};

/// The target of an examination, and its limits.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The target.
    pub url: Url,
    /// More URLs of the same server, for sizes that the target does not have.
    pub more: Vec<Url>,
    /// URLs of the same server with an application that flushes a first part early.
    pub flushed: Vec<Url>,
    /// A directory that the target's server serves under the target's path: files are written there, and removed.
    pub docroot: Option<PathBuf>,
    /// The protocol that is spoken; `None` offers h2 and http/1.1 in TLS, and speaks HTTP/1.1 without.
    pub protocol: Option<Protocol>,
    /// Whose certificates are trusted.
    pub trust: Trust,
    /// The file that [`Plan::trust`] is from, for [`Plan::command`].
    pub cacert: Option<PathBuf>,
    /// Limit of time for a connection or a response.
    pub timeout: Duration,
    /// Limit of requests for all checks together.
    pub requests_max: u32,
    /// Whether settings of the target's kernel are changed for a while, to measure their cost.
    pub tries: bool,
}

impl Plan {
    /// A plan with the usual limits.
    #[must_use]
    pub fn new(url: Url) -> Self {
        Self {
            url,
            more: Vec::new(),
            flushed: Vec::new(),
            docroot: None,
            protocol: None,
            trust: Trust::Browsers,
            cacert: None,
            timeout: TIMEOUT,
            requests_max: REQUESTS,
            tries: false,
        }
    }

    /// The protocols that a connection offers, the preferred one first.
    #[must_use]
    pub fn protocols(&self) -> Vec<Protocol> {
        match (self.protocol, self.url.tls) {
            (Some(one), _) => vec![one],
            (None, true) => vec![Protocol::H2, Protocol::H1],
            (None, false) => vec![Protocol::H1],
        }
    }

    /// The command that examines the same again.
    #[must_use]
    pub fn command(&self) -> String {
        let mut line = format!("firstbyte doctor {}", quoted(&self.url.to_string()));
        match self.protocol {
            None => {}
            Some(Protocol::H1) => line += " --protocol h1",
            Some(Protocol::H2) => line += " --protocol h2",
            Some(Protocol::Spdy) => line += " --protocol spdy",
        }
        for (option, urls) in [("--url", &self.more), ("--flush", &self.flushed)] {
            for url in urls {
                line += &format!(" {option} {}", quoted(&url.to_string()));
            }
        }
        if let Some(docroot) = &self.docroot {
            line += &format!(" --docroot {}", quoted(&docroot.to_string_lossy()));
        }
        if let Some(file) = &self.cacert {
            line += &format!(" --cacert {}", quoted(&file.to_string_lossy()));
        }
        if matches!(self.trust, Trust::Nobody) {
            line += " -k";
        }
        if self.tries {
            line += " --try";
        }
        line
    }

    /// The target and the URLs of `more`, without those of `flushed`.
    pub fn urls(&self) -> impl Iterator<Item = &Url> {
        std::iter::once(&self.url).chain(&self.more)
    }
}

/// Default limit of requests for an examination.
pub const REQUESTS: u32 = 400;
/// The most requests that a plan may allow.
pub const REQUESTS_MAX: u32 = 100_000;
/// Requests reserved for trials of kernel settings, if planned.
pub const TRIAL_REQUESTS: u32 = 96;
/// Limit of open connections, so that the doctor is no load on the server.
pub const CONNECTIONS_MAX: usize = 4;
/// Default limit of time for a connection or a response.
pub const TIMEOUT: Duration = Duration::from_secs(30);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_can_be_pasted_into_a_shell() {
        let url = Url::parse("https://h:1/a?b=1&c='").expect("a URL");
        let mut plan = Plan::new(url);
        plan.protocol = Some(Protocol::Spdy);
        plan.docroot = Some("/srv/my site".into());
        plan.trust = Trust::Nobody;
        plan.tries = true;
        let expected = [
            "firstbyte doctor",
            r"'https://h:1/a?b=1&c='\'''",
            "--protocol spdy --docroot '/srv/my site' -k --try",
        ];
        assert_eq!(plan.command(), expected.join(" "));
    }
}
