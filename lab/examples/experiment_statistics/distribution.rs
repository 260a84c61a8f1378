//! Distributions of page times with known means and quantiles.

use fastrand::Rng;

/// A distribution of times, milliseconds.
#[derive(Clone, Copy)]
pub(crate) enum Distribution {
    /// Logarithms are normal with a deviation of 1.
    Lognormal,
    /// Index 2.5: the third moment is infinite.
    Pareto,
    /// 60 % of users near 300 ms, 40 % near 2 s (logarithms are logistic).
    Bimodal,
}

impl Distribution {
    pub(crate) const ALL: [Self; 3] = [Self::Lognormal, Self::Pareto, Self::Bimodal];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Lognormal => "lognormal, sigma 1",
            Self::Pareto => "Pareto, index 2.5",
            Self::Bimodal => "bimodal",
        }
    }

    /// A value by chance.
    pub(crate) fn value(self, random: &mut Rng) -> f64 {
        match self {
            Self::Lognormal => MEDIAN_MS * normal(random).exp(),
            Self::Pareto => LEAST_MS * (1.0 - random.f64()).powf(-1.0 / INDEX),
            Self::Bimodal => bimodal(random.f64()),
        }
    }

    pub(crate) fn mean(self) -> f64 {
        match self {
            Self::Lognormal => MEDIAN_MS * 0.5_f64.exp(),
            Self::Pareto => LEAST_MS * INDEX / (INDEX - 1.0),
            Self::Bimodal => {
                let angle = std::f64::consts::PI * SHAPE;
                (FAST * FAST_MS + (1.0 - FAST) * SLOW_MS) * angle / angle.sin()
            }
        }
    }

    /// A quantile of [`QUANTILES`], by its place.
    pub(crate) fn quantile(self, place: usize) -> f64 {
        let p = QUANTILES[place];
        match self {
            Self::Lognormal => MEDIAN_MS * NORMAL_QUANTILES[place].exp(),
            Self::Pareto => LEAST_MS * (1.0 - p).powf(-1.0 / INDEX),
            Self::Bimodal => bimodal(p),
        }
    }
}

fn bimodal(p: f64) -> f64 {
    let (ms, p) = match p < FAST {
        true => (FAST_MS, p / FAST),
        false => (SLOW_MS, (p - FAST) / (1.0 - FAST)),
    };
    ms * (p / (1.0 - p)).powf(SHAPE)
}

/// A standard normal number (Marsaglia's polar method).
pub(crate) fn normal(random: &mut Rng) -> f64 {
    loop {
        let (x, y) = (2.0 * random.f64() - 1.0, 2.0 * random.f64() - 1.0);
        let square = x * x + y * y;
        if square > 0.0 && square < 1.0 {
            return x * (-2.0 * square.ln() / square).sqrt();
        }
    }
}

/// Quantiles of the tables, and those of the normal distribution.
pub(crate) const QUANTILES: [f64; 3] = [0.5, 0.8, 0.95];
const NORMAL_QUANTILES: [f64; 3] = [0.0, 0.841_621_233_6, 1.644_853_627];

const MEDIAN_MS: f64 = 800.0;
const LEAST_MS: f64 = 500.0;
const INDEX: f64 = 2.5;
const FAST: f64 = 0.6;
const FAST_MS: f64 = 300.0;
const SLOW_MS: f64 = 2000.0;
const SHAPE: f64 = 0.1;
