//! Statements over ClickHouse's HTTP interface.
//!
//! Source: ClickHouse's documentation, "HTTP Interface".

use std::fmt;

use super::text::{encode_value, one_line};
use super::transport::{HttpRequest, Transport, TransportError};
use crate::error::Error;

/// Codes of ClickHouse's errors, from its `ErrorCodes`.
pub(super) const UNKNOWN_TABLE: u32 = 60;
pub(super) const UNKNOWN_DATABASE: u32 = 81;

/// Name of the data in a request that inserts rows.
pub(super) const INCOMING: &str = "incoming";

/// Why a statement has no result. The texts are one line without the password.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Failure {
    /// The server has not executed it.
    NotSent(String),
    /// The server may have executed it.
    Unknown(String),
    /// ClickHouse reports an error. It may have executed a part.
    Refused {
        /// Its code, if the text has one.
        code: Option<u32>,
        /// Its text.
        reason: String,
    },
}

impl Failure {
    /// Code of ClickHouse's error.
    pub(super) fn code(&self) -> Option<u32> {
        match self {
            Self::Refused { code, .. } => *code,
            _ => None,
        }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (Self::NotSent(reason) | Self::Unknown(reason) | Self::Refused { reason, .. }) = self;
        write!(out, "ClickHouse: {reason}")
    }
}

impl From<Failure> for Error {
    fn from(failure: Failure) -> Self {
        Self::Other(failure.to_string())
    }
}

/// Rows of a statement that inserts.
pub(super) struct Incoming<'a> {
    /// Their columns, `name type, ...`.
    pub(super) structure: &'a str,
    /// The rows as TabSeparated.
    pub(super) rows: &'a [u8],
}

/// A connection to one server, with one user.
pub(super) struct Client {
    transport: Box<dyn Transport>,
    user: Option<String>,
    password: Option<String>,
}

impl fmt::Debug for Client {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Client")
            .field("user", &self.user)
            .finish_non_exhaustive()
    }
}

impl Client {
    pub(super) fn new(
        transport: Box<dyn Transport>,
        user: Option<String>,
        password: Option<String>,
    ) -> Self {
        Self {
            transport,
            user,
            password,
        }
    }

    /// Runs a query, and returns its rows as TabSeparated.
    pub(super) fn query(&mut self, text: &str) -> Result<String, Failure> {
        // Without it an error after the first rows would come with status 200.
        let target = "/?wait_end_of_query=1";
        let body = self.send(target, "text/plain; charset=UTF-8", text.as_bytes())?;
        String::from_utf8(body)
            .map_err(|_| Failure::Unknown("the response is not UTF-8".to_owned()))
    }

    /// Runs a statement without a result.
    pub(super) fn run(&mut self, text: &str) -> Result<(), Failure> {
        self.query(text).and_then(|rows| self.is_empty(&rows))
    }

    /// Runs a statement that inserts, with settings `name=value` of the URL.
    ///
    /// ClickHouse refuses a statement while another one with the same id runs.
    pub(super) fn insert(
        &mut self,
        text: &str,
        id: &str,
        settings: &[(&str, &str)],
        incoming: Option<&Incoming<'_>>,
    ) -> Result<(), Failure> {
        let mut target = String::from("/?wait_end_of_query=1");
        let mut add = |name: &str, value: &str| {
            target.push('&');
            target.push_str(name);
            target.push('=');
            encode_value(value, &mut target);
        };
        add("query_id", id);
        for (name, value) in settings {
            add(name, value);
        }
        let body = match incoming {
            None => self.send(&target, "text/plain; charset=UTF-8", text.as_bytes())?,
            Some(incoming) => {
                add("query", text);
                add(&format!("{INCOMING}_structure"), incoming.structure);
                let (boundary, form) = form_of(incoming.rows);
                let kind = format!("multipart/form-data; boundary={boundary}");
                self.send(&target, &kind, &form)?
            }
        };
        self.is_empty(&String::from_utf8_lossy(&body))
    }

    fn is_empty(&self, rows: &str) -> Result<(), Failure> {
        if rows.trim().is_empty() {
            return Ok(());
        }
        let line = one_line(rows.as_bytes(), self.password.as_deref());
        Err(Failure::Unknown(format!("unexpected response: {line}")))
    }

    fn send(&mut self, target: &str, kind: &str, body: &[u8]) -> Result<Vec<u8>, Failure> {
        let mut headers = vec![("Content-Type", kind)];
        if let Some(user) = &self.user {
            headers.push(("X-ClickHouse-User", user));
        }
        if let Some(password) = &self.password {
            headers.push(("X-ClickHouse-Key", password));
        }
        let request = HttpRequest {
            method: "POST",
            target,
            headers: &headers,
            body,
        };
        let secret = self.password.as_deref();
        let response = self.transport.send(&request).map_err(|error| match error {
            TransportError::NotSent(why) => Failure::NotSent(one_line(why.as_bytes(), secret)),
            TransportError::Unknown(why) => Failure::Unknown(one_line(why.as_bytes(), secret)),
        })?;
        // Any web server answers with 200.
        let is_clickhouse = response
            .headers
            .iter()
            .any(|(name, _)| name.to_ascii_lowercase().starts_with("x-clickhouse-"));
        if response.status == 200 && is_clickhouse {
            return Ok(response.body);
        }
        let code = code_of(&response.body);
        let mut line = one_line(&response.body, secret);
        if line.is_empty() {
            line.push_str("(empty)");
        }
        let reason = if response.status == 200 {
            format!("the response is not of ClickHouse: {line}")
        } else {
            format!("status {}: {line}", response.status)
        };
        Err(Failure::Refused { code, reason })
    }
}

/// Reads the code of an error, `Code: 60, ...` or `Code: 60. ...`.
fn code_of(body: &[u8]) -> Option<u32> {
    let digits = body.strip_prefix(b"Code: ")?;
    let end = digits.iter().position(|byte| !byte.is_ascii_digit())?;
    std::str::from_utf8(&digits[..end]).ok()?.parse().ok()
}

/// Puts rows into a form, RFC 7578. Returns its boundary and its bytes.
fn form_of(rows: &[u8]) -> (String, Vec<u8>) {
    // A line of rows never begins with hyphens and the boundary: its first field is a number.
    let boundary = "firstbyte-rows";
    let mut form = format!(
        "--{boundary}\r\nContent-Disposition: form-data; name=\"{INCOMING}\"; filename=\"{INCOMING}\"\r\n\
         Content-Type: application/octet-stream\r\n\r\n"
    )
    .into_bytes();
    form.extend_from_slice(rows);
    form.extend_from_slice(format!("\r\n--{boundary}--\r\n").as_bytes());
    (boundary.to_owned(), form)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_are_read_from_errors() {
        assert_eq!(code_of(b"Code: 60, e.displayText() = DB"), Some(60));
        assert_eq!(code_of(b"Code: 497. DB::Exception: x"), Some(497));
        for text in [
            &b""[..],
            b"Code: ",
            b"Code: x",
            b"<html>",
            b"Code: 99999999999, ",
        ] {
            assert_eq!(code_of(text), None);
        }
    }
}
