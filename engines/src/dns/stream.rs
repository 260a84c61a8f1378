//! Messages in a TCP stream: each follows its length, cut anywhere.
//!
//! Source: RFC 1035, section 4.2.2; RFC 7766, section 8.

/// Cuts a stream into messages. It holds at most one incomplete message, and the bytes that one read brought behind
/// it.
#[derive(Debug, Default)]
pub struct Frames {
    bytes: Vec<u8>,
    /// Number of bytes of `bytes` already returned.
    told: usize,
}

impl Frames {
    /// Takes bytes; call [`Frames::message`] until it returns `None` before the next call.
    pub fn receive(&mut self, bytes: &[u8]) {
        self.bytes.drain(..self.told);
        self.told = 0;
        self.bytes.extend_from_slice(bytes);
    }

    /// The next whole message.
    pub fn message(&mut self) -> Option<&[u8]> {
        let rest = &self.bytes[self.told..];
        let (length, rest) = rest.split_first_chunk::<2>()?;
        let length = usize::from(u16::from_be_bytes(*length));
        if rest.len() < length {
            return None;
        }
        let start = self.told + 2;
        self.told = start + length;
        Some(&self.bytes[start..self.told])
    }
}
