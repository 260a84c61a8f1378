//! The payload of one direction, in order, with the times when it was there.

/// Bytes of a direction from its beginning to the first gap.
#[derive(Debug, Default)]
pub(super) struct Stream {
    pub(super) bytes: Vec<u8>,
    /// Each part's begin, and the packet with which it was there, in order.
    parts: Vec<Part>,
}

/// The kept part of a segment's payload.
#[derive(Clone, Copy, Debug)]
pub(super) struct Piece {
    /// The place of its first byte in the direction.
    pub(super) place: i64,
    pub(super) at_ns: u64,
    pub(super) packet: u64,
    /// Offset of its bytes in the kept bytes, and their number.
    pub(super) begin: usize,
    pub(super) bytes: usize,
}

/// Bytes that were there with one packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Part {
    pub(super) begin: usize,
    /// When they and all before them were there.
    pub(super) at_ns: u64,
    pub(super) packet: u64,
}

impl Stream {
    /// Joins pieces of one direction, which refer to `bytes`. If bytes were sent twice, the first ones count.
    pub(super) fn assemble(pieces: impl Iterator<Item = Piece>, bytes: &[u8]) -> Self {
        let mut pieces: Vec<Piece> = pieces.filter(|piece| piece.bytes > 0).collect();
        pieces.sort_by_key(|piece| (piece.place, piece.packet));
        let mut stream = Self::default();
        let mut at_ns = 0;
        for piece in pieces {
            let known = stream.bytes.len() as i64;
            if piece.place > known {
                break;
            }
            // Bytes before offset 0 are retransmissions of data before the capture.
            let skipped = (known - piece.place) as usize;
            let kept = bytes.get(piece.begin..piece.begin + piece.bytes);
            let new = kept
                .and_then(|kept| kept.get(skipped..))
                .unwrap_or_default();
            if new.is_empty() {
                continue;
            }
            at_ns = piece.at_ns.max(at_ns);
            stream.parts.push(Part {
                begin: stream.bytes.len(),
                at_ns,
                packet: piece.packet,
            });
            stream.bytes.extend_from_slice(new);
        }
        stream
    }

    /// The packet with which the byte at this place was there.
    pub(super) fn part(&self, place: usize) -> Option<Part> {
        let behind = self.parts.partition_point(|part| part.begin <= place);
        (place < self.bytes.len()).then(|| self.parts.get(behind.checked_sub(1)?).copied())?
    }
}
