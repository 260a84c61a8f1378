//! The normal distribution.

/// The chance of a value below `z`.
pub(super) fn below(z: f64) -> f64 {
    if z.abs() > LARGEST {
        return f64::from(z > 0.0);
    }
    // Marsaglia's series: z + z^3/3 + z^5/(3*5) + ...
    let (mut term, mut sum, mut odd) = (z, z, 1.0);
    while term.abs() > 1e-17 * sum.abs() {
        odd += 2.0;
        term *= z * z / odd;
        sum += term;
    }
    0.5 + sum * density(z)
}

/// The value with the chance `p` below it, within 8 deviations.
pub(super) fn quantile(p: f64) -> f64 {
    let (mut low, mut high) = (-LARGEST, LARGEST);
    for _ in 0..60 {
        let middle = (low + high) / 2.0;
        match below(middle) < p {
            true => low = middle,
            false => high = middle,
        }
    }
    (low + high) / 2.0
}

/// The density at `z`.
pub(super) fn density(z: f64) -> f64 {
    (-0.5 * z * z).exp() / std::f64::consts::TAU.sqrt()
}

/// Chances beyond are less than the precision of a number.
const LARGEST: f64 = 8.0;

#[cfg(test)]
mod tests {
    use super::*;

    /// Values of any table of the normal distribution.
    #[test]
    fn quantiles_are_those_of_the_tables() {
        for (p, expected) in [
            (0.5, 0.0),
            (0.8, 0.841_621),
            (0.975, 1.959_964),
            (0.0005, -3.290_527),
        ] {
            assert!((quantile(p) - expected).abs() < 1e-6, "{p}");
            assert!((below(expected) - p).abs() < 1e-6, "{p}");
        }
        assert_eq!((below(9.0), below(-9.0)), (1.0, 0.0));
    }
}
