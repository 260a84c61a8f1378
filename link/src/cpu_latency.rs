//! Keeps CPUs out of deep idle states while the link exists.
//!
//! One that sleeps takes 50 to 100 µs to wake, on virtual machines above all, and each exchange over the link wakes
//! four threads: its own thread would be late by that and not know it. The kernel keeps them awake while a process
//! asks for a latency of nothing. Needs root; without it, and without idle states, all is as it is.
//! Source: pm_qos_interface.rst of the kernel.

use std::fs::{File, OpenOptions};
use std::io::Write;

/// Limits the CPUs' wake-up latency while it exists: the kernel drops the request when the file is closed, however its
/// process ends.
#[derive(Debug)]
pub(crate) struct CpuLatencyGuard {
    _file: File,
}

impl CpuLatencyGuard {
    /// Nothing where it is not allowed or not known.
    pub(crate) fn keep() -> Option<Self> {
        let mut file = OpenOptions::new().write(true).open(DEVICE).ok()?;
        // Microseconds that waking may take.
        file.write_all(&0_i32.to_ne_bytes()).ok()?;
        Some(Self { _file: file })
    }
}

const DEVICE: &str = "/dev/cpu_dma_latency";
