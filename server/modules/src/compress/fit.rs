//! Memory cost of encoders; limits level and window to the memory and time available.
//!
//! The encoder of a stream lives as long as its client reads, so its size is limited by [`memory::allowance_bytes`].
//! Brotli reduces first its level, then its window; Zstandard reduces its level, which includes the window; gzip costs
//! the same at all levels. Compressing a body in one step blocks the thread, so slow levels do this for short bodies
//! only.
//!
//! Source: allocations of the libraries after 900 KB of a page. The memory they actually touch is in benches/README.md,
//! "Encoders".

use server_base::memory;

use super::coding::{Coding, Params};
use super::whole::WHOLE_BYTES;

/// Returns the settings of a stream's encoder and its cost, bytes; `None` if memory is too scarce for any.
pub(super) fn stream(params: Params, length: Option<u64>) -> Option<(Params, u64)> {
    within(params, length, memory::allowance_bytes())
}

/// Returns the settings of a stream's encoder on an otherwise idle connection.
pub(super) fn unhindered(params: Params, length: Option<u64>) -> Option<Params> {
    within(params, length, memory::CONNECTION_BYTES).map(|(params, _)| params)
}

/// Returns the smallest settings of a coding, for a response whose head has announced it before memory ran out.
pub(super) fn smallest(params: Params) -> (Params, u64) {
    let level = params.level.min(match params.coding {
        Coding::Brotli => 1,
        Coding::Zstd => 1,
        Coding::Gzip => 9,
    });
    let params = Params { level, ..params };
    (params, cost_bytes(params))
}

fn within(params: Params, length: Option<u64>, allowed: u64) -> Option<(Params, u64)> {
    let windowed = match params.coding {
        // Threads reuse gzip encoders, so their window must not change.
        Coding::Gzip => params,
        _ => Params {
            window_log: window_log(params.window_log, length),
            ..params
        },
    };
    let with = |level: u8, window_log: u8| Params {
        level: windowed.level.min(level),
        window_log: windowed.window_log.min(window_log),
        ..windowed
    };
    let choices = match params.coding {
        Coding::Gzip => vec![windowed],
        Coding::Zstd => (1..=params.level).rev().map(|n| with(n, 0)).collect(),
        Coding::Brotli => {
            let far = windowed.window_log;
            let tries = [
                (9, far),
                (6, far),
                (5, far),
                (4, far),
                (8, 16),
                (3, 16),
                (1, 16),
            ];
            tries.map(|(level, log)| with(level, log)).to_vec()
        }
    };
    let costed = choices
        .into_iter()
        .map(|choice| (choice, cost_bytes(choice)));
    costed.into_iter().find(|(_, cost)| *cost <= allowed)
}

/// Returns the window, limited to the size of the body: a larger one wastes memory.
pub(super) fn window_log(wanted: u8, length: Option<u64>) -> u8 {
    let Some(length) = length else { return wanted };
    let needed = u64::BITS - length.saturating_sub(1).leading_zeros();
    wanted.min((needed as u8).max(BROTLI_WINDOW_LOG_MIN))
}

/// Memory of an encoder, bytes.
fn cost_bytes(params: Params) -> u64 {
    let level = usize::from(params.level);
    let kib = match params.coding {
        Coding::Gzip => GZIP_KIB,
        Coding::Zstd => ZSTD_KIB[level.min(ZSTD_KIB.len() - 1)],
        Coding::Brotli if level < 2 => 210,
        Coding::Brotli if params.window_log <= 16 => match level {
            2 | 3 => 940,
            4..=8 => 1740,
            _ => 2510,
        },
        Coding::Brotli => {
            let window_kib = (1_u64 << params.window_log) >> 10;
            // For small windows the block size determines the buffer.
            let block_kib = if params.window_log < 19 { 1600 } else { 0 };
            let tables_kib = match level {
                2 => 1110,
                3 => 1170,
                4 => 1660,
                5 => 2230,
                6 => 3240,
                7 => 9400,
                8 => 17_600,
                9 => 36_200,
                _ => 3600 + window_kib * 9,
            };
            tables_kib + block_kib + 2 * window_kib
        }
    };
    kib << 10
}

/// Returns the longest body that is compressed in one step with these settings, bytes: about 50 ms of work.
pub(super) fn one_step_bytes(params: Params) -> u64 {
    match (params.coding, params.level) {
        (Coding::Brotli, 11..) => 48 << 10,
        (Coding::Brotli, 10) => 96 << 10,
        (Coding::Zstd, 16..) => 96 << 10,
        (Coding::Zstd, 13..16) => 256 << 10,
        _ => WHOLE_BYTES,
    }
}

/// Memory of zlib-rs at any level.
const GZIP_KIB: u64 = 300;
/// Memory of Zstandard by level, KiB; the last is for all higher levels. Level 0 does not exist.
const ZSTD_KIB: [u64; 13] = [
    1340, 1340, 2050, 3580, 4860, 5370, 5370, 7930, 7930, 15_100, 25_400, 25_400, 80_000,
];
/// The library's smallest.
pub(super) const BROTLI_WINDOW_LOG_MIN: u8 = 10;

#[cfg(test)]
mod tests {
    use super::*;

    const fn params(coding: Coding, level: u8, window_log: u8) -> Params {
        Params {
            coding,
            level,
            window_log,
        }
    }

    fn chosen(coding: Coding, level: u8, window_log: u8, allowed: u64) -> Option<(u8, u8)> {
        let wanted = params(coding, level, window_log);
        within(wanted, None, allowed).map(|(chosen, _)| (chosen.level, chosen.window_log))
    }

    #[test]
    fn all_that_is_configured_is_given_where_there_is_memory() {
        for level in 1..=9 {
            let much = u64::MAX;
            assert_eq!(chosen(Coding::Gzip, level, 0, much), Some((level, 0)));
            assert_eq!(chosen(Coding::Brotli, level, 24, much), Some((level, 24)));
        }
        assert_eq!(chosen(Coding::Zstd, 22, 0, u64::MAX), Some((22, 0)));
    }

    #[test]
    fn slowest_levels_of_brotli_are_for_no_stream() {
        assert_eq!(chosen(Coding::Brotli, 11, 19, u64::MAX), Some((9, 19)));
    }

    #[test]
    fn level_and_window_follow_the_memory() {
        let brotli = |kib: u64| chosen(Coding::Brotli, 11, 19, kib << 10);
        assert_eq!(brotli(4300), Some((6, 19)));
        assert_eq!(brotli(3584), Some((5, 19)));
        assert_eq!(brotli(2700), Some((4, 19)));
        assert_eq!(brotli(2000), Some((8, 16)));
        assert_eq!(brotli(1000), Some((3, 16)));
        assert_eq!(brotli(210), Some((1, 16)));
        assert_eq!(brotli(209), None);
        let zstd = |kib: u64| chosen(Coding::Zstd, 22, 0, kib << 10);
        assert_eq!(zstd(3584), Some((3, 0)));
        assert_eq!(zstd(1340), Some((1, 0)));
        assert_eq!(zstd(1339), None);
        assert_eq!(chosen(Coding::Gzip, 9, 0, 300 << 10), Some((9, 0)));
        assert_eq!(chosen(Coding::Gzip, 1, 0, (300 << 10) - 1), None);
    }

    #[test]
    fn settings_are_unhindered_until_memory_runs_short() {
        let wanted = params(Coding::Brotli, 6, 19);
        let now = || stream(wanted, None).map(|(params, _)| params);
        assert_eq!(now(), unhindered(wanted, None));
        let claim = memory::claim(1, memory::THREAD_BYTES - (4 << 20));
        assert!(now().is_some() && now() != unhindered(wanted, None));
        drop(claim);
        assert_eq!(now(), unhindered(wanted, None));
    }

    #[test]
    fn window_is_no_larger_than_the_body() {
        for (length, log) in [
            (0, 10),
            (1024, 10),
            (1025, 11),
            (1 << 19, 19),
            (1 << 30, 19),
        ] {
            assert_eq!(window_log(19, Some(length)), log, "{length}");
        }
        assert_eq!(window_log(24, None), 24);
    }
}
