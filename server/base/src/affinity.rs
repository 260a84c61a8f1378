//! `worker_cpu_affinity`: which CPUs each worker thread may use.
//!
//! Source: nginx documentation, "Core functionality".

use conf::{ConfError, Directive};

/// The CPU of each of `threads` threads, one after another.
pub fn auto_affinity(threads: u32) -> Vec<Vec<usize>> {
    let cpus = std::thread::available_parallelism().map_or(1, usize::from);
    (0..threads as usize).map(|t| vec![t % cpus]).collect()
}

/// Parses `worker_cpu_affinity`: the CPUs of each thread; one empty set for `auto` alone.
///
/// # Errors
/// A mask that has other characters than `0` and `1`.
pub fn cpu_affinity(d: &Directive) -> Result<Vec<Vec<usize>>, ConfError> {
    let mut words = d.args.iter();
    let auto = d.arg(0) == b"auto";
    if auto {
        words.next();
    }
    let mut masks = Vec::new();
    for word in words {
        let cpus: Vec<usize> = word
            .text
            .iter()
            .rev()
            .enumerate()
            .filter(|(_, b)| **b == b'1')
            .map(|(cpu, _)| cpu)
            .collect();
        if let Some(b) = word.text.iter().rev().find(|b| !matches!(b, b'0' | b'1')) {
            let text = format!(
                "invalid character \"{}\" in \"worker_cpu_affinity\"",
                char::from(*b)
            );
            return Err(ConfError::word(d, word, text));
        }
        masks.push(cpus);
    }
    Ok(match (auto, masks.first()) {
        (true, None) => vec![Vec::new()],
        (true, Some(cpus)) => cpus.iter().map(|cpu| vec![*cpu]).collect(),
        (false, _) => masks,
    })
}
