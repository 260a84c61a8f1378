//! Files of keys, as clients write them for analysis (`SSLKEYLOGFILE`).
//!
//! Source: draft-ietf-tls-keylogfile.

use std::collections::HashMap;
use std::io::{BufRead, BufReader, Read};

use sys::os_error;

/// Keys by the random of the ClientHello.
#[derive(Debug, Default)]
pub struct KeyLog {
    by_random: HashMap<[u8; 32], Secrets>,
}

/// The secrets of a connection.
#[derive(Clone, Debug, Default)]
pub(in crate::capture) struct Secrets {
    /// TLS 1.2: the master secret.
    pub(in crate::capture) master: Vec<u8>,
    /// TLS 1.3: secrets of the client and of the server for the handshake; then those for application data.
    pub(in crate::capture) handshake: [Vec<u8>; 2],
    pub(in crate::capture) traffic: [Vec<u8>; 2],
}

impl KeyLog {
    /// Reads a file of keys; other lines are skipped.
    ///
    /// # Errors
    /// The file cannot be read, or has no key; a sentence.
    pub fn read(reader: impl Read) -> Result<Self, String> {
        let mut log = Self::default();
        let mut reader = BufReader::new(reader.take(FILE_BYTES_MAX));
        let mut line = Vec::new();
        loop {
            line.clear();
            let length = reader.read_until(b'\n', &mut line);
            if length.map_err(|error| os_error(&error))? == 0 {
                break;
            }
            log.add(&String::from_utf8_lossy(&line));
        }
        match log.by_random.is_empty() {
            true => Err("there are no keys of TLS in it".to_owned()),
            false => Ok(log),
        }
    }

    fn add(&mut self, line: &str) {
        let mut words = line.split_ascii_whitespace();
        let (Some(label), Some(random), Some(secret)) = (words.next(), words.next(), words.next())
        else {
            return;
        };
        let (Some(random), Some(secret)) = (bytes(random), bytes(secret)) else {
            return;
        };
        let Ok(random) = <[u8; 32]>::try_from(random) else {
            return;
        };
        // The longest hash of TLS has 48 bytes.
        let is_full =
            self.by_random.len() >= CONNECTIONS_MAX && !self.by_random.contains_key(&random);
        if secret.len() > SECRET_BYTES_MAX || secret.is_empty() || is_full {
            return;
        }
        let all = self.by_random.entry(random).or_default();
        match label {
            "CLIENT_RANDOM" => all.master = secret,
            "CLIENT_HANDSHAKE_TRAFFIC_SECRET" => all.handshake[0] = secret,
            "SERVER_HANDSHAKE_TRAFFIC_SECRET" => all.handshake[1] = secret,
            "CLIENT_TRAFFIC_SECRET_0" => all.traffic[0] = secret,
            "SERVER_TRAFFIC_SECRET_0" => all.traffic[1] = secret,
            _ => {}
        }
    }

    /// The secrets of the connection with this random.
    pub(in crate::capture) fn secrets(&self, random: &[u8; 32]) -> Option<&Secrets> {
        self.by_random.get(random)
    }
}

/// Bytes from hexadecimal digits.
fn bytes(text: &str) -> Option<Vec<u8>> {
    let digits = text.as_bytes();
    if !digits.len().is_multiple_of(2) || digits.len() > 2 * SECRET_BYTES_MAX {
        return None;
    }
    let digit = |byte: u8| char::from(byte).to_digit(16);
    let pair = |pair: &[u8]| Some((digit(pair[0])? << 4 | digit(pair[1])?) as u8);
    digits.chunks_exact(2).map(pair).collect()
}

/// The most that is read of a file.
const FILE_BYTES_MAX: u64 = 64 << 20;
/// Limit of connections with keys.
pub(in crate::capture) const CONNECTIONS_MAX: usize = 100_000;
/// The longest secret.
pub(in crate::capture) const SECRET_BYTES_MAX: usize = 64;
