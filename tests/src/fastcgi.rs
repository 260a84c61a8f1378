//! FastCGI records for scripted servers, valid and invalid.
//!
//! A script of [`crate::Backend::scripted`] begins with [`request`], which reads one whole request. Its other steps are
//! the records that it sends. Source: FastCGI 1.0 specification, sections 3.3, 5.3, 5.5 and 8.

use crate::backend::Step;

/// Types of records.
pub const END_REQUEST: u8 = 3;
/// Input of the application.
pub const STDIN: u8 = 5;
/// Output of the application.
pub const STDOUT: u8 = 6;
/// Messages of the application.
pub const STDERR: u8 = 7;

/// Request id used by nginx and firstbyte, which send one request at a time on a connection.
pub const ID: u16 = 1;

/// A record of version 1 without padding.
///
/// # Panics
/// When the content is longer than 65,535 bytes.
#[must_use]
pub fn record(kind: u8, id: u16, content: impl AsRef<[u8]>) -> Vec<u8> {
    let content = content.as_ref();
    let length = u16::try_from(content.len()).expect("content of one record");
    let [id_high, id_low] = id.to_be_bytes();
    let [high, low] = length.to_be_bytes();
    [&[1, kind, id_high, id_low, high, low, 0, 0], content].concat()
}

/// Sends a record of output.
#[must_use]
pub fn stdout(content: impl AsRef<[u8]>) -> Step {
    Step::Send(record(STDOUT, ID, content))
}

/// Sends a record of messages.
#[must_use]
pub fn stderr(content: impl AsRef<[u8]>) -> Step {
    Step::Send(record(STDERR, ID, content))
}

/// Sends the end of output and of the request, the application's status being 0.
#[must_use]
pub fn end() -> Step {
    let status = [0; 8];
    Step::Send([record(STDOUT, ID, ""), record(END_REQUEST, ID, status)].concat())
}

/// Reads a request up to the end of its input.
#[must_use]
pub fn request() -> Step {
    Step::Until(record(STDIN, ID, ""))
}
