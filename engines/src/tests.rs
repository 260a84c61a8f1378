//! Random numbers and random cuts for tests of several engines, from a seed.

/// A small generator (xorshift), so that a seed determines the run.
pub(crate) struct Random(pub(crate) u64);

impl Random {
    /// A number below `limit`; 0 if that is 0.
    pub(crate) fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % limit.max(1) as u64) as usize
    }

    /// Cuts `input` into pieces of 1 to 40 bytes.
    pub(crate) fn pieces<'a>(&mut self, input: &'a [u8]) -> Vec<&'a [u8]> {
        let mut pieces = Vec::new();
        let mut rest = input;
        while !rest.is_empty() {
            let (piece, after) = rest.split_at(1 + self.below(rest.len().min(40)));
            pieces.push(piece);
            rest = after;
        }
        pieces
    }
}
