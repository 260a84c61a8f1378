//! Messages between two pipes: JSON, each ended by a NUL.
//!
//! Absent: reading and writing; see [`super::pipe`].

use serde::Deserialize;
use serde_json::{Value, json};

/// A message from the browser: a response if it has an `id`, else an event.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct Message {
    /// The number of the command that it answers.
    pub(super) id: Option<u64>,
    pub(super) method: String,
    pub(super) params: Value,
    pub(super) session_id: Option<String>,
    pub(super) result: Value,
    pub(super) error: Option<Failure>,
}

/// Why a command failed.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Failure {
    pub(super) message: String,
}

/// A command, with the NUL behind it.
pub(super) fn encode(id: u64, session: Option<&str>, method: &str, params: &Value) -> Vec<u8> {
    let mut command = json!({"id": id, "method": method, "params": params});
    if let Some(session) = session {
        command["sessionId"] = session.into();
    }
    let mut bytes = command.to_string().into_bytes();
    bytes.push(0);
    bytes
}

/// Received bytes, until they are whole messages.
#[derive(Debug, Default)]
pub(super) struct Messages {
    received: Vec<u8>,
    /// Bytes at the beginning that were returned as messages.
    taken: usize,
    /// How far there is no NUL.
    searched: usize,
}

impl Messages {
    /// Adds bytes from the pipe.
    ///
    /// # Errors
    /// A message is longer than [`MESSAGE_BYTES_MAX`].
    pub(super) fn receive(&mut self, bytes: &[u8]) -> Result<(), String> {
        self.received.drain(..self.taken);
        self.searched -= self.taken;
        self.taken = 0;
        self.received.extend_from_slice(bytes);
        if self.received.len() > MESSAGE_BYTES_MAX && !self.received.contains(&0) {
            return Err("the browser sends a message that is too long".to_owned());
        }
        Ok(())
    }

    /// Returns the next complete message.
    ///
    /// # Errors
    /// It is not of the protocol.
    pub(super) fn next(&mut self) -> Result<Option<Message>, String> {
        let rest = &self.received[self.searched..];
        let Some(length) = rest.iter().position(|byte| *byte == 0) else {
            self.searched = self.received.len();
            return Ok(None);
        };
        let end = self.searched + length;
        let text = &self.received[self.taken..end];
        (self.taken, self.searched) = (end + 1, end + 1);
        let message = serde_json::from_slice(text).map_err(|error| {
            let start = String::from_utf8_lossy(&text[..text.len().min(SHOWN_BYTES)]);
            format!("the browser does not speak the DevTools protocol: {error} in {start:?}")
        })?;
        Ok(Some(message))
    }
}

/// The longest message: pictures and pieces of a trace have a few megabytes.
pub(super) const MESSAGE_BYTES_MAX: usize = 64 << 20;
/// Most bytes of an invalid message in an error text.
const SHOWN_BYTES: usize = 60;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_are_the_same_wherever_they_are_cut() {
        let bytes =
            b"{\"id\":1,\"result\":{\"a\":2}}\0{\"method\":\"Page.x\",\"sessionId\":\"S\"}\0";
        for cut in 0..bytes.len() {
            let mut messages = Messages::default();
            let mut seen = Vec::new();
            for piece in [&bytes[..cut], &bytes[cut..]] {
                messages.receive(piece).expect("short");
                while let Some(message) = messages.next().expect("JSON") {
                    seen.push((message.id, message.method, message.session_id));
                }
            }
            let event = (None, "Page.x".to_owned(), Some("S".to_owned()));
            assert_eq!(seen, [(Some(1), String::new(), None), event], "{cut}");
        }
    }

    #[test]
    fn what_is_no_message_is_told() {
        let mut messages = Messages::default();
        messages.receive(b"Usage: cat\0\"x\"\0").expect("short");
        let why = messages.next().expect_err("no JSON");
        assert!(
            why.contains("does not speak the DevTools protocol"),
            "{why}"
        );
        assert!(why.contains("Usage: cat"), "{why}");
        messages.next().expect_err("no object");
        assert!(messages.next().expect("nothing").is_none());
    }

    #[test]
    fn message_without_end_is_an_error_past_the_limit() {
        let mut messages = Messages::default();
        let half = vec![b' '; MESSAGE_BYTES_MAX / 2];
        messages.receive(&half).expect("below");
        messages.receive(&half).expect("at the limit");
        assert!(messages.next().expect("no end").is_none());
        messages.receive(b"x").expect_err("past it");
    }

    #[test]
    fn commands_end_with_nul() {
        let bytes = encode(7, Some("S"), "Page.enable", &json!({}));
        let (nul, text) = bytes.split_last().expect("not empty");
        assert_eq!(*nul, 0);
        let value: Value = serde_json::from_slice(text).expect("JSON");
        let expected = json!({"id": 7, "method": "Page.enable", "params": {}, "sessionId": "S"});
        assert_eq!(value, expected);
    }
}
