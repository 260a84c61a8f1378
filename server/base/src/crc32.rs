//! CRC-32 of IEEE 802.3, as in nginx: the hash that chooses a server, and the check of a stored key.
//!
//! Absent: processing of several bytes at once, since keys are short.

/// A checksum of the bytes so far.
#[derive(Clone, Copy, Debug)]
pub struct Crc32(u32);

impl Crc32 {
    /// Makes the checksum of no bytes.
    #[must_use]
    pub fn new() -> Self {
        Self(!0)
    }

    /// Appends bytes.
    #[must_use]
    pub fn update(self, bytes: &[u8]) -> Self {
        let step =
            |crc: u32, byte: &u8| (crc >> 8) ^ TABLE[((crc ^ u32::from(*byte)) & 0xff) as usize];
        Self(bytes.iter().fold(self.0, step))
    }

    /// Returns the checksum.
    #[must_use]
    pub fn value(self) -> u32 {
        !self.0
    }
}

impl Default for Crc32 {
    fn default() -> Self {
        Self::new()
    }
}

/// Returns the checksum of bytes.
#[must_use]
pub fn crc32(bytes: &[u8]) -> u32 {
    Crc32::new().update(bytes).value()
}

/// The change of a checksum by each byte.
const TABLE: [u32; 256] = table();

const fn table() -> [u32; 256] {
    let mut table = [0; 256];
    let mut byte = 0;
    while byte < table.len() {
        let (mut crc, mut bit) = (byte as u32, 0);
        while bit < 8 {
            crc = match crc & 1 {
                1 => (crc >> 1) ^ POLYNOMIAL,
                _ => crc >> 1,
            };
            bit += 1;
        }
        table[byte] = crc;
        byte += 1;
    }
    table
}

const POLYNOMIAL: u32 = 0xedb8_8320;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_check_value_is_that_of_the_standard() {
        assert_eq!(crc32(b"123456789"), 0xcbf4_3926);
        let in_parts = Crc32::new().update(b"1234").update(b"").update(b"56789");
        assert_eq!(in_parts.value(), 0xcbf4_3926);
        assert_eq!(Crc32::new().value(), 0);
    }
}
