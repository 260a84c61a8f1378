//! Decrypted contents of a direction, with the record of each part.

/// Contents of a direction after its handshake.
#[derive(Debug, Default)]
pub(super) struct Plain {
    pub(super) bytes: Vec<u8>,
    /// One for each record with contents, in order.
    pub(super) parts: Vec<PlainPart>,
}

/// The contents of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct PlainPart {
    /// Offset of the part in the contents.
    pub(super) begin: usize,
    /// Offset of the record in the payload of TCP.
    pub(super) record: usize,
    /// When all of it was there.
    pub(super) at_ns: u64,
}

impl Plain {
    /// Adds the contents of a record.
    pub(super) fn push(&mut self, contents: &[u8], record: usize, at_ns: u64) {
        if contents.is_empty() {
            return;
        }
        let begin = self.bytes.len();
        self.parts.push(PlainPart {
            begin,
            record,
            at_ns,
        });
        self.bytes.extend_from_slice(contents);
    }

    /// When a byte of the contents was there.
    pub(super) fn at_ns(&self, place: usize) -> Option<u64> {
        let behind = self.parts.partition_point(|part| part.begin <= place);
        let part = self.parts.get(behind.checked_sub(1)?)?;
        (place < self.bytes.len()).then_some(part.at_ns)
    }

    /// Returns the offset in the payload of the record with this byte of the contents.
    pub(super) fn record_of(&self, place: usize) -> Option<usize> {
        let behind = self.parts.partition_point(|part| part.begin <= place);
        Some(self.parts.get(behind.checked_sub(1)?)?.record)
    }
}
