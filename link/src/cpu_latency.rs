//! Keeps CPUs out of deep idle states while the link exists.
//!
//! A sleeping CPU takes 50 to 100 µs to wake, especially in virtual machines, and each exchange over the link wakes
//! four threads. The forwarding thread would be late by that without noticing. The kernel keeps CPUs awake while a
//! process requests a latency of 0. Needs root; without it, or without idle states, nothing changes. Source:
//! pm_qos_interface.rst of the kernel.

use std::fs::{File, OpenOptions};
use std::io::Write;

/// Limits the CPUs' wake-up latency while it exists: the kernel drops the request when the file is closed, however its
/// process ends.
#[derive(Debug)]
pub(crate) struct CpuLatencyGuard {
    _file: File,
}

impl CpuLatencyGuard {
    /// `None` if this is not permitted or not supported.
    pub(crate) fn keep() -> Option<Self> {
        let mut file = OpenOptions::new().write(true).open(DEVICE).ok()?;
        // Microseconds that waking may take.
        file.write_all(&0_i32.to_ne_bytes()).ok()?;
        Some(Self { _file: file })
    }
}

const DEVICE: &str = "/dev/cpu_dma_latency";
