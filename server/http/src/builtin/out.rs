//! Formatting of variables' values.

/// The buffer that a variable is appended to.
pub(crate) type Out = Vec<u8>;

pub(crate) fn put(out: &mut Out, bytes: &[u8]) -> bool {
    out.extend_from_slice(bytes);
    true
}

pub(crate) fn put_number(out: &mut Out, n: u64) -> bool {
    let mut digits = [0; 20];
    out.extend_from_slice(crate::reply::decimal(n, &mut digits));
    true
}

pub(crate) fn put_opt(out: &mut Out, bytes: Option<&[u8]>) -> bool {
    match bytes {
        Some(bytes) => put(out, bytes),
        None => false,
    }
}

/// A number with leading zeros; the digits above the third are left out.
pub(crate) fn put_three_digits(out: &mut Out, n: u64) -> bool {
    let digits = [100, 10, 1].map(|unit| b'0' + (n / unit % 10) as u8);
    put(out, &digits)
}

/// Seconds with milliseconds: `1.234`.
pub(crate) fn put_seconds(out: &mut Out, ms: u64) -> bool {
    put_number(out, ms / 1000);
    out.push(b'.');
    put_three_digits(out, ms % 1000)
}
