//! CRC-32 of IEEE 802.3, with which a stored head verifies its key.
//!
//! Absent: processing of several bytes at once, since keys are short.

/// Returns the checksum of bytes.
pub(crate) fn crc32(bytes: &[u8]) -> u32 {
    let step = |crc: u32, byte: &u8| (crc >> 8) ^ TABLE[((crc ^ u32::from(*byte)) & 0xff) as usize];
    !bytes.iter().fold(!0, step)
}

/// The change of a checksum by each byte.
const TABLE: [u32; 256] = table();

const fn table() -> [u32; 256] {
    let mut table = [0; 256];
    let mut byte = 0;
    while byte < table.len() {
        let (mut crc, mut bit) = (byte as u32, 0);
        while bit < 8 {
            let carry = if crc & 1 == 1 { POLYNOMIAL } else { 0 };
            crc = (crc >> 1) ^ carry;
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
        assert_eq!(crc32(b""), 0);
    }
}
