//! Short form of HTTP/2 frames for the fuzz targets `h2` and `h2_client`: one byte each for type, flags, stream and
//! length, then the payload. So the fuzzer need not guess lengths. Also the limits of both roles.

use engines::h2::Settings;

/// Returns the limits chosen by a byte.
pub fn settings(limits: u8) -> Settings {
    Settings {
        preread_bytes: if limits & 2 == 0 { 65_536 } else { 20 },
        field_bytes: if limits & 4 == 0 { 8192 } else { 20 },
        header_bytes: if limits & 8 == 0 { 32_768 } else { 80 },
        max_headers: if limits & 4 == 0 { 1000 } else { 2 },
        ignore_invalid_headers: limits & 16 == 0,
        underscores_in_headers: limits & 16 != 0,
        abuse_budget: if limits & 32 == 0 { 1000 } else { 10 },
        header_table_bytes: if limits & 64 == 0 { 4096 } else { 64 },
        ..Settings::default()
    }
}

/// Converts frames from short form. `times` returns the number of repetitions for a type byte.
pub fn in_full(mut short: &[u8], times: impl Fn(u8) -> u32) -> Vec<u8> {
    let mut out = Vec::new();
    while let Some((&[kind, flags, stream, len], rest)) = short.split_first_chunk::<4>() {
        let (payload, rest) = rest.split_at(usize::from(len).min(rest.len()));
        short = rest;
        for _ in 0..times(kind) {
            let claimed = payload.len() as u32;
            out.extend_from_slice(&claimed.to_be_bytes()[1..]);
            out.extend_from_slice(&[kind % 18, flags]);
            out.extend_from_slice(&u32::from(stream % 16).to_be_bytes());
            out.extend_from_slice(payload);
        }
    }
    out
}
