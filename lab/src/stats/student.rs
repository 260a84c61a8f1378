//! Student's t distribution, and the incomplete beta function behind it.

/// Returns the quantile `p` of Student's t with `freedom` degrees of freedom; `p` is at least 0.5.
pub(super) fn t_quantile(p: f64, freedom: f64) -> f64 {
    let (mut low, mut high) = (0.0, 1.0);
    while t_below(high, freedom) < p && high < 1e9 {
        high *= 2.0;
    }
    for _ in 0..BISECTIONS {
        let middle = (low + high) / 2.0;
        if t_below(middle, freedom) < p {
            low = middle;
        } else {
            high = middle;
        }
    }
    (low + high) / 2.0
}

/// The probability that Student's t is below `t`, which is not negative.
fn t_below(t: f64, freedom: f64) -> f64 {
    let x = freedom / (freedom + t * t);
    1.0 - 0.5 * incomplete_beta(freedom / 2.0, 0.5, x)
}

/// The regularized incomplete beta function, by its continued fraction (Lentz).
pub(super) fn incomplete_beta(a: f64, b: f64, x: f64) -> f64 {
    if x <= 0.0 || x >= 1.0 {
        return x.clamp(0.0, 1.0);
    }
    // The fraction converges quickly on one side; the other is its complement.
    if x > (a + 1.0) / (a + b + 2.0) {
        return 1.0 - incomplete_beta(b, a, 1.0 - x);
    }
    let front = ln_gamma(a + b) - ln_gamma(a) - ln_gamma(b) + a * x.ln() + b * (1.0 - x).ln();
    let keep = |value: f64| if value.abs() < TINY { TINY } else { value };
    let (mut c, mut d) = (1.0, 1.0 / keep(1.0 - (a + b) * x / (a + 1.0)));
    let mut fraction = d;
    for m in 1..FRACTIONS {
        let m = f64::from(m);
        let even = m * (b - m) * x / ((a + 2.0 * m - 1.0) * (a + 2.0 * m));
        d = 1.0 / keep(1.0 + even * d);
        c = keep(1.0 + even / c);
        fraction *= c * d;
        let odd = -(a + m) * (a + b + m) * x / ((a + 2.0 * m) * (a + 2.0 * m + 1.0));
        d = 1.0 / keep(1.0 + odd * d);
        c = keep(1.0 + odd / c);
        fraction *= c * d;
        if (c * d - 1.0).abs() < 1e-13 {
            break;
        }
    }
    front.exp() * fraction / a
}

/// The logarithm of the gamma function above 0, by Stirling's series after shifting upwards.
pub(super) fn ln_gamma(mut x: f64) -> f64 {
    let mut shift = 0.0;
    while x < 10.0 {
        shift -= x.ln();
        x += 1.0;
    }
    let (inverse, square) = (1.0 / x, 1.0 / (x * x));
    let series = inverse * (1.0 / 12.0 - square * (1.0 / 360.0 - square / 1260.0));
    shift + (x - 0.5) * x.ln() - x + 0.5 * std::f64::consts::TAU.ln() + series
}

const BISECTIONS: u32 = 60;
/// Terms of the fraction; large parameters need about the root of the larger one.
const FRACTIONS: u32 = 20_000;
const TINY: f64 = 1e-300;

#[cfg(test)]
mod tests {
    use super::*;

    /// Values of any table of Student's t.
    #[test]
    fn quantiles_are_those_of_the_tables() {
        for (p, freedom, expected) in [
            (0.975, 1.0, 12.706),
            (0.975, 4.0, 2.776),
            (0.975, 19.0, 2.093),
            (0.995, 19.0, 2.861),
            (0.995, 2.0, 9.925),
            (0.975, 1e6, 1.960),
        ] {
            let found = t_quantile(p, freedom);
            assert!((found - expected).abs() < 0.001, "{p} {freedom}: {found}");
        }
    }
}
