//! A receiver of samples without a sending thread.

use std::hint::black_box;
use std::sync::atomic::{AtomicU64, Ordering};

use server_base::experiment::{ArmConnection, Visit};
use server_base::samples::{ConnectionSample, SampleSink};

/// Encodes samples like a worker's queue.
#[derive(Debug, Default)]
pub(crate) struct SampleCounter(AtomicU64);

impl SampleSink for SampleCounter {
    fn record(&self, sample: &ConnectionSample) {
        black_box(sample.encode());
        self.0.fetch_add(1, Ordering::Relaxed);
    }

    fn visit(&self, visit: &Visit) {
        black_box(visit.encode());
    }

    fn arm(&self, connection: &ArmConnection) {
        black_box(connection.encode());
    }
}
