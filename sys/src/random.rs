//! Unpredictable random bytes. Source: getrandom(2).

use std::io;

use rustix::rand::{GetRandomFlags, getrandom};

use super::retry;

/// Fills `bytes`.
///
/// # Errors
/// The system has no such call.
pub fn fill(bytes: &mut [u8]) -> io::Result<()> {
    let mut filled = 0;
    while filled < bytes.len() {
        filled += retry(|| getrandom(&mut bytes[filled..], GetRandomFlags::empty()))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_differ() {
        let mut two = [[0; 32]; 2];
        for bytes in &mut two {
            fill(bytes).expect("random bytes");
        }
        assert!(two[0] != two[1] && two[0] != [0; 32]);
    }
}
