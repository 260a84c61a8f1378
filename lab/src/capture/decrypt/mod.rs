//! Decrypted contents of TLS connections with known keys.
//!
//! TLS 1.3, and TLS 1.2 with authenticated encryption. Absent: renegotiation, early data, suites with CBC.
//! Source: RFC 8446 section 5, RFC 5246 section 6.

mod key_log;
mod keys;

#[cfg(test)]
mod tests;

use super::flow::{Flow, Side};
use super::hello::{self, TLS13};
use super::plain::Plain;
use super::records::{self, APPLICATION_DATA, CHANGE_CIPHER_SPEC, Record};
use super::stream::Stream;
use keys::{Opener, Suite};

pub use key_log::KeyLog;
pub(in crate::capture) use key_log::Secrets;

/// Contents of both directions.
#[derive(Debug)]
pub(super) struct Decrypted {
    pub(super) client: Plain,
    pub(super) server: Plain,
}

/// Decrypts a flow; `None` if it has no TLS, the log lacks its keys, or no record can be decrypted.
pub(super) fn open(flow: &Flow, log: &KeyLog) -> Option<Decrypted> {
    let client = hello::client(&flow.from_client)?;
    let server = hello::server(&flow.from_server)?;
    let secrets = log.secrets(&client.random)?;
    // A HelloRetryRequest names the suite that the ServerHello will have.
    let suite = Suite::numbered(server.suite)?;
    let decrypted = if server.version >= TLS13 {
        Decrypted {
            client: direction13(flow, Side::Client, secrets, suite)?,
            server: direction13(flow, Side::Server, secrets, suite)?,
        }
    } else {
        let [own, other] = Opener::tls12(suite, &secrets.master, [&client.random, &server.random])?;
        Decrypted {
            client: direction12(&flow.from_client, own),
            server: direction12(&flow.from_server, other),
        }
    };
    let is_empty = decrypted.client.bytes.is_empty() && decrypted.server.bytes.is_empty();
    (!is_empty).then_some(decrypted)
}

fn bytes<'s>(stream: &'s Stream, record: &Record) -> &'s [u8] {
    let end = record.begin + record.bytes;
    stream.bytes.get(record.begin..end).unwrap_or_default()
}

fn keep(plain: &mut Plain, record: &Record, contents: &[u8]) {
    plain.push(contents, record.begin, record.last.at_ns);
}

/// Decrypts the records after the ChangeCipherSpec of TLS 1.2.
fn direction12(stream: &Stream, mut opener: Opener) -> Plain {
    let mut plain = Plain::default();
    let records = records::of(stream);
    let behind = records
        .iter()
        .skip_while(|one| one.kind != CHANGE_CIPHER_SPEC);
    for record in behind.skip(1) {
        let Some(contents) = opener.open(bytes(stream, record)) else {
            break;
        };
        if record.kind == APPLICATION_DATA {
            keep(&mut plain, record, &contents);
        }
    }
    plain
}

/// Decrypts records of TLS 1.3: the handshake up to Finished, then application data.
fn direction13(flow: &Flow, side: Side, secrets: &Secrets, suite: Suite) -> Option<Plain> {
    let (stream, own) = match side {
        Side::Client => (&flow.from_client, 0),
        Side::Server => (&flow.from_server, 1),
    };
    let mut secret = secrets.traffic[own].clone();
    let mut opener = Opener::tls13(suite, &secrets.handshake[own])?;
    let mut next = Some(Opener::tls13(suite, &secret)?);
    let mut plain = Plain::default();
    let mut messages = Vec::new();
    let records = records::of(stream);
    for record in records.iter().filter(|one| one.kind == APPLICATION_DATA) {
        let Some(mut contents) = opener.open(bytes(stream, record)) else {
            // Early data is under a key of its own, and comes before the rest.
            if next.is_some() {
                continue;
            }
            break;
        };
        // The type is the last byte that is not padding (RFC 8446 section 5.4).
        let Some(length) = contents.iter().rposition(|byte| *byte != 0) else {
            break;
        };
        let kind = contents[length];
        contents.truncate(length);
        if kind == APPLICATION_DATA {
            keep(&mut plain, record, &contents);
        }
        if kind != records::HANDSHAKE {
            continue;
        }
        messages.extend_from_slice(&contents);
        for message in take_messages(&mut messages) {
            match message {
                FINISHED => {
                    if let Some(next) = next.take() {
                        opener = next;
                    }
                }
                KEY_UPDATE => {
                    secret = keys::next_secret(suite, &secret)?;
                    opener = Opener::tls13(suite, &secret)?;
                }
                _ => {}
            }
        }
    }
    Some(plain)
}

/// Takes whole messages of a handshake from the front; returns their types.
fn take_messages(bytes: &mut Vec<u8>) -> Vec<u8> {
    let mut kinds = Vec::new();
    let mut at = 0;
    while let Some([kind, a, b, c, rest @ ..]) = bytes.get(at..) {
        let length = usize::from(*a) << 16 | usize::from(*b) << 8 | usize::from(*c);
        if rest.len() < length {
            break;
        }
        kinds.push(*kind);
        at += 4 + length;
    }
    bytes.drain(..at);
    kinds
}

/// Types of messages.
const FINISHED: u8 = 20;
const KEY_UPDATE: u8 = 24;
