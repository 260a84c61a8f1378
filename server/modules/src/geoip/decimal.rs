//! Numbers with a fixed number of digits after the point, rounded as nginx does: half away from zero.

/// Appends a number with `digits` digits behind the point. False for NaN, infinities, and more than 18 digits in front
/// of it.
pub(crate) fn append(number: f64, digits: u32, out: &mut Vec<u8>) -> bool {
    if !number.is_finite() || number.abs() >= WHOLE_MAX {
        return false;
    }
    let scale = 10u64.pow(digits);
    let whole = number.abs().trunc();
    let fraction = ((number.abs() - whole) * scale as f64 + 0.5) as u64;
    // A fraction that rounds up to one is carried.
    let (whole, fraction) = (whole as u64 + fraction / scale, fraction % scale);
    let sign = if number < 0.0 { "-" } else { "" };
    let width = digits as usize;
    out.extend_from_slice(format!("{sign}{whole}.{fraction:0width$}").as_bytes());
    true
}

/// The first number that is too large for the arithmetic of [`append`].
const WHOLE_MAX: f64 = 1e18;

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(number: f64, digits: u32) -> Option<String> {
        let mut out = Vec::new();
        append(number, digits, &mut out).then(|| String::from_utf8_lossy(&out).into_owned())
    }

    #[test]
    fn digits_are_those_of_nginx() {
        for (number, digits, expected) in [
            (0.0, 4, "0.0000"),
            (37.6202, 4, "37.6202"),
            (f64::from(55.7543_f32), 4, "55.7543"),
            (-33.8591, 4, "-33.8591"),
            (0.031_25, 4, "0.0313"),
            (-0.031_25, 4, "-0.0313"),
            (1.999_99, 4, "2.0000"),
            (51.5142, 5, "51.51420"),
            (0.000_01, 5, "0.00001"),
        ] {
            assert_eq!(shown(number, digits).as_deref(), Some(expected), "{number}");
        }
    }

    #[test]
    fn what_is_no_number_has_none() {
        for number in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, 1e18, -1e300] {
            assert_eq!(shown(number, 4), None, "{number}");
        }
        assert!(shown(999_999_999_999_999_872.0, 4).is_some());
    }
}
