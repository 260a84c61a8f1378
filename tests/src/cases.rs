//! Tables of inputs that must each end in given responses and a closed connection.
//!
//! Every case gets a connection of its own. The whole table runs before anything fails, so one report names each input
//! with a wrong response. Then the same worker must still serve a connection that was open all along: bad input affects
//! no other client.

use std::io;

use crate::client::Client;
use crate::peer;
use crate::server::Server;

/// Which servers are held to a case.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Since {
    /// All versions of nginx, and firstbyte.
    Always,
    /// nginx since 1.MINOR, and firstbyte.
    Nginx(u32),
    /// Only firstbyte does so: stricter or better than nginx on purpose.
    Ours,
}

/// One input, and the expected response before the connection closes.
#[derive(Debug, Clone)]
pub struct Case {
    /// Description of the input, for the report.
    pub name: String,
    /// The bytes sent, in one piece.
    pub input: Vec<u8>,
    /// The statuses of all responses, in order.
    pub expected: Vec<u16>,
    /// Servers that must behave like this.
    pub since: Since,
}

impl Case {
    /// A case every server is held to.
    #[must_use]
    pub fn new(name: impl Into<String>, input: impl AsRef<[u8]>, expected: &[u16]) -> Self {
        let (name, input) = (name.into(), input.as_ref().to_vec());
        Self {
            name,
            input,
            expected: expected.to_vec(),
            since: Since::Always,
        }
    }

    /// Restricts the case to fewer servers.
    #[must_use]
    pub fn since(mut self, since: Since) -> Self {
        self.since = since;
        self
    }

    fn applies(&self) -> bool {
        match self.since {
            Since::Always => true,
            Since::Nginx(minor) => peer::knows_nginx(minor),
            Since::Ours => peer::is_firstbyte(),
        }
    }
}

/// Sends each case to the server's first port and compares.
///
/// # Panics
/// If a response differs, a connection stays open, or another connection or the worker is affected.
#[track_caller]
pub fn check(server: &Server, cases: &[Case]) {
    let mut bystander = server.client();
    let before = bystander.get("/").status;
    let workers = server.workers();
    let mut wrong = Vec::new();
    for case in cases.iter().filter(|case| case.applies()) {
        let mut client = server.client();
        let found = client.send(&case.input).statuses_until_close();
        if found.as_ref().ok() != Some(&case.expected) {
            let shown =
                String::from_utf8_lossy(&case.input[..case.input.len().min(300)]).into_owned();
            wrong.push(format!(
                "{}: wanted {:?}, found {found:?} for {shown:?}",
                case.name, case.expected
            ));
        }
    }
    assert!(
        wrong.is_empty(),
        "{} of {} wrong:\n{}",
        wrong.len(),
        cases.len(),
        wrong.join("\n")
    );
    assert_eq!(
        bystander.get("/").status,
        before,
        "another connection suffered"
    );
    assert_eq!(server.workers(), workers, "a worker was lost");
}

impl Client {
    /// The statuses of all responses up to the end of the connection.
    ///
    /// # Errors
    /// When the connection stays open or a response is cut short.
    pub fn statuses_until_close(&mut self) -> io::Result<Vec<u16>> {
        let mut statuses = Vec::new();
        self.limit_reading(std::time::Duration::from_millis(1500));
        loop {
            match self.try_response() {
                Ok(Some(response)) => statuses.push(response.status),
                Ok(None) => return Ok(statuses),
                Err(e) if e.kind() == io::ErrorKind::ConnectionReset => return Ok(statuses),
                Err(e) => return Err(io::Error::new(e.kind(), format!("{e} after {statuses:?}"))),
            }
        }
    }
}
