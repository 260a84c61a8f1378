//! Power: how often 0.6 % is found at a coefficient of variation of 1.

use lab::stats::sequence::{
    Covaried, Cuped, Method, Question, Summary, Tuning, mean_ratio, mean_ratio_once, users_per_arm,
};

use super::distribution::normal;
use super::{ALPHA, LOOKS, Runs};

/// Prints the table.
pub(crate) fn print(runs: &Runs) {
    println!(
        "### Power\n\nShare of runs in which B, slower by 0.6 %, is found; lognormal times with a coefficient of variation of 1.\n"
    );
    println!(
        "| method | users of each arm | found | users by formula for a power of 0.8 |\n|---|---|---|---|"
    );
    let [fixed, once, always] = runs.sum(101, covaried);
    let [sequence, early] = runs.sum(102, plain);
    // The formula integrates over 50 looks; 100 looks find a little more.
    let always_at = Method::Sequence(Tuning::default());
    for (name, users, found, method, correlation) in [
        ("fixed horizon", FEW, fixed, Method::FixedHorizon, 0.0),
        (
            "fixed horizon, CUPED (correlation 0.7)",
            FEW,
            once,
            Method::FixedHorizon,
            CORRELATION,
        ),
        (
            "sequence of 100 looks, CUPED (correlation 0.7)",
            FEW,
            always,
            always_at,
            CORRELATION,
        ),
        ("sequence of 100 looks", MANY, sequence, always_at, 0.0),
        (
            "sequence, first half of its looks",
            MANY / 2,
            early,
            always_at,
            0.0,
        ),
    ] {
        let question = Question {
            effect: EFFECT,
            cv: 1.0,
            correlation,
            alpha: ALPHA,
            power: 0.8,
        };
        let needed = users_per_arm(&question, &method).unwrap_or_default();
        println!(
            "| {name} | {} | {} | {} |",
            thousands(users as u64),
            runs.percent(found),
            thousands(needed)
        );
    }
    println!();
}

/// Users with a pre-period: found by the fixed horizon, with CUPED by the fixed horizon, and by a sequence.
fn covaried(random: &mut fastrand::Rng) -> [u64; 3] {
    // The correlation of logarithms for that of values: exp(r s^2) - 1 = correlation (exp(s^2) - 1), with s^2 = ln 2.
    let shared = (1.0 + CORRELATION).log2();
    let own = (1.0 - shared * shared).sqrt();
    let mut arms = [Covaried::default(); 2];
    let mut is_found = false;
    let mut user = |arm: &mut Covaried, speed: f64| {
        let before = normal(random);
        let during = shared * before + own * normal(random);
        arm.push(speed * value(during), Some(value(before)));
    };
    for _ in 0..LOOKS {
        for _ in 0..FEW / LOOKS {
            user(&mut arms[0], 1.0);
            user(&mut arms[1], 1.0 + EFFECT);
        }
        let [a, b] = adjusted(&arms);
        let found = mean_ratio(&a, &b, ALPHA, &Tuning::default());
        is_found |= found.is_some_and(|found| found.is_found());
    }
    let once = |[a, b]: [Summary; 2]| {
        let found = mean_ratio_once(&a, &b, ALPHA);
        u64::from(found.is_some_and(|found| found.is_found()))
    };
    let plain = arms.map(|arm| arm.summary());
    [once(plain), once(adjusted(&arms)), u64::from(is_found)]
}

fn adjusted(arms: &[Covaried; 2]) -> [Summary; 2] {
    let cuped = Cuped::of(arms);
    arms.map(|arm| cuped.summary(&arm))
}

/// Users without one: found by a sequence, and in the first half of its looks.
fn plain(random: &mut fastrand::Rng) -> [u64; 2] {
    let mut arms = [Summary::default(); 2];
    for look in 1..=LOOKS {
        for _ in 0..MANY / LOOKS {
            arms[0].push(value(normal(random)));
            arms[1].push((1.0 + EFFECT) * value(normal(random)));
        }
        let found = mean_ratio(&arms[0], &arms[1], ALPHA, &Tuning::default());
        if found.is_some_and(|found| found.is_found()) {
            return [1, u64::from(look <= LOOKS / 2)];
        }
    }
    [0, 0]
}

/// A lognormal value with a coefficient of variation of 1.
fn value(normal: f64) -> f64 {
    (normal * std::f64::consts::LN_2.sqrt()).exp()
}

/// A number with commas.
fn thousands(number: u64) -> String {
    let digits = number.to_string();
    let groups: Vec<&str> = digits
        .as_bytes()
        .rchunks(3)
        .rev()
        .filter_map(|group| std::str::from_utf8(group).ok())
        .collect();
    groups.join(",")
}

const EFFECT: f64 = 0.006;
const CORRELATION: f64 = 0.7;
/// Users of each arm.
const FEW: usize = 450_000;
const MANY: usize = 800_000;
