//! Numbers as text, where a formatter would cost more than the rest of a line.

/// Writes a number in decimal; returns its digits.
pub fn decimal(mut number: u64, digits: &mut [u8; 20]) -> &[u8] {
    let mut at = digits.len();
    loop {
        at -= 1;
        digits[at] = b'0' + (number % 10) as u8;
        number /= 10;
        if number == 0 {
            return &digits[at..];
        }
    }
}

/// Appends a number in decimal.
pub fn push_decimal(out: &mut Vec<u8>, number: u64) {
    out.extend_from_slice(decimal(number, &mut [0; 20]));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_those_of_a_formatter() {
        for number in [0, 9, 10, 255, 1_000_000, u64::MAX] {
            let mut out = b"n".to_vec();
            push_decimal(&mut out, number);
            assert_eq!(out, format!("n{number}").into_bytes());
        }
    }
}
