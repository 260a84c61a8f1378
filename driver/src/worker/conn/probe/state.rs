//! State that the probe keeps of a connection; most have none, and pay one pointer.

use super::record::Recording;
use super::sample::Sample;

/// The sampled response and the recording of a connection.
#[derive(Default)]
pub(crate) struct ProbeState(Option<Box<Parts>>);

#[derive(Default)]
struct Parts {
    sample: Option<Box<Sample>>,
    recording: Option<Recording>,
}

impl ProbeState {
    /// The response with requested kernel timestamps.
    #[inline]
    pub(super) fn sample(&self) -> Option<&Sample> {
        self.0.as_ref()?.sample.as_deref()
    }

    /// The response with requested kernel timestamps, mutable.
    pub(super) fn sample_mut(&mut self) -> Option<&mut Sample> {
        self.0.as_mut()?.sample.as_deref_mut()
    }

    /// Begins a sample.
    pub(super) fn set_sample(&mut self, sample: Sample) {
        self.0.get_or_insert_default().sample = Some(Box::new(sample));
    }

    /// Drops the sample, and the memory unless the connection is recorded.
    pub(super) fn drop_sample(&mut self) {
        if let Some(parts) = &mut self.0 {
            parts.sample = None;
        }
        self.0.take_if(|parts| parts.recording.is_none());
    }

    /// Returns whether the connection is recorded.
    #[inline]
    pub(super) fn is_recording(&self) -> bool {
        self.0
            .as_ref()
            .is_some_and(|parts| parts.recording.is_some())
    }

    /// The recording.
    #[inline]
    pub(super) fn recording_mut(&mut self) -> Option<&mut Recording> {
        self.0.as_mut()?.recording.as_mut()
    }

    /// Begins a recording.
    pub(super) fn record(&mut self, recording: Recording) {
        self.0.get_or_insert_default().recording = Some(recording);
    }

    /// Drops the recording, and the memory unless a response is sampled.
    #[cold]
    pub(super) fn stop_recording(&mut self) {
        if let Some(parts) = &mut self.0 {
            parts.recording = None;
        }
        self.0.take_if(|parts| parts.sample.is_none());
    }

    /// Ends the recording.
    pub(super) fn take_recording(&mut self) -> Option<Recording> {
        self.0.as_mut()?.recording.take()
    }
}
