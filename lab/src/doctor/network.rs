//! Network path of an examination: directly to the target, or over a link with a known delay.

use std::time::{Duration, Instant};

use super::failure::Failure;
use super::tunable::Tuner;

/// The way of connections to the target.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NetworkPath {
    /// As the kernel has it.
    Direct,
    /// With the delay of [`Network::round_trip`], if any. The client's acknowledgements are held for this time, one of
    /// [`Network::holds`]; `None` sends them at once.
    Delayed(Option<Duration>),
}

/// How connections reach the target.
pub trait Network: Sync {
    /// The delay added on [`NetworkPath::Delayed`]; `None` if the network cannot add any.
    fn round_trip(&self) -> Option<Duration>;

    /// For how long acknowledgements can be held on [`NetworkPath::Delayed`], the longest first.
    fn holds(&self) -> &[Duration];

    /// The tuner of the target's kernel; `None` unless they may be tried.
    fn tuner(&self) -> Option<&dyn Tuner> {
        None
    }

    /// One sentence for the report: how connections reach the target, and why not better.
    fn description(&self) -> String;

    /// Runs a task once, on a thread that uses this path for its connections. Threads started by the task use it, too.
    ///
    /// # Errors
    /// There is no such path.
    fn run(
        &self,
        network_path: NetworkPath,
        task: &mut (dyn FnMut(&dyn SampleFilter) + Send),
    ) -> Result<(), Failure>;
}

/// Finds samples that the network spoiled.
pub trait SampleFilter: Sync {
    /// Returns for each sample, from its beginning to its end, whether it is void because the network path was late.
    fn are_void(&self, samples: &[(Instant, Instant)]) -> Vec<bool>;
}

/// The network as it is. Acknowledgements are held by the kernel's own rule (`TCP_QUICKACK` off).
#[derive(Clone, Debug, Default)]
pub struct Unchanged {
    /// Why there is no emulated link.
    pub why: String,
}

impl Network for Unchanged {
    fn round_trip(&self) -> Option<Duration> {
        None
    }

    fn holds(&self) -> &[Duration] {
        &[KERNEL_HOLD]
    }

    fn description(&self) -> String {
        format!(
            "the network as it is, acknowledgements delayed by this kernel (TCP_QUICKACK off): {}",
            self.why
        )
    }

    fn run(
        &self,
        _: NetworkPath,
        task: &mut (dyn FnMut(&dyn SampleFilter) + Send),
    ) -> Result<(), Failure> {
        task(&NeverVoid);
        Ok(())
    }
}

struct NeverVoid;

impl SampleFilter for NeverVoid {
    fn are_void(&self, samples: &[(Instant, Instant)]) -> Vec<bool> {
        vec![false; samples.len()]
    }
}

/// The least time for which Linux delays an acknowledgement (`TCP_DELACK_MIN`).
pub const KERNEL_HOLD: Duration = Duration::from_millis(40);
