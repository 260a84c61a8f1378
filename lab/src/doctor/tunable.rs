//! Settings of a server's kernel that an examination may try, and the trait that sets them.
//!
//! The kernel is the target's. An examination changes it only by a [`Tuner`], and a network has one only with `--try`.
//!
//! Source: the kernel's ip-sysctl.rst, ip-route(8), ethtool(8).

/// A setting that can be tried.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Tunable {
    /// Segments that a connection begins with: `initcwnd` of the route to visitors.
    InitialWindow,
    /// `net.ipv4.tcp_slow_start_after_idle`: whether a connection that was idle begins with them again.
    SlowStartAfterIdle,
    /// `net.ipv4.tcp_congestion_control`.
    CongestionControl,
    /// `net.ipv4.tcp_autocorking`: whether small writes wait for packets in the device's queue.
    Autocorking,
    /// Generic segmentation offload of the device on the way to visitors: segments are cut just before it.
    SegmentationOffload,
}

impl Tunable {
    /// All of them.
    pub const ALL: [Self; 5] = [
        Self::InitialWindow,
        Self::SlowStartAfterIdle,
        Self::CongestionControl,
        Self::Autocorking,
        Self::SegmentationOffload,
    ];

    /// Its name in reports.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::InitialWindow => "initcwnd",
            Self::SlowStartAfterIdle => "tcp_slow_start_after_idle",
            Self::CongestionControl => "tcp_congestion_control",
            Self::Autocorking => "tcp_autocorking",
            Self::SegmentationOffload => "gso",
        }
    }

    /// Its sysctl, if no route or device has the setting. Connections of others are affected during a trial.
    #[must_use]
    pub const fn sysctl(self) -> Option<&'static str> {
        match self {
            Self::SlowStartAfterIdle => Some("net.ipv4.tcp_slow_start_after_idle"),
            Self::Autocorking => Some("net.ipv4.tcp_autocorking"),
            Self::InitialWindow | Self::CongestionControl | Self::SegmentationOffload => None,
        }
    }

    /// The command that sets it for all connections.
    #[must_use]
    pub fn command(self, value: &str) -> String {
        match self {
            Self::InitialWindow => {
                format!("ip route change default via GATEWAY dev DEVICE initcwnd {value}")
            }
            Self::SegmentationOffload => format!("ethtool -K DEVICE gso {value}"),
            Self::SlowStartAfterIdle | Self::CongestionControl | Self::Autocorking => {
                format!("sysctl -w net.ipv4.{}={value}", self.name())
            }
        }
    }
}

/// Access to the settings of the server's end of [`NetworkPath::Delayed`](super::NetworkPath::Delayed).
pub trait Tuner: Sync {
    /// Sets a setting, for the connections that are opened and the bytes that are sent from now on.
    ///
    /// # Errors
    /// A sentence: it cannot be set here.
    fn set(&self, tunable: Tunable, value: &str) -> Result<(), String>;

    /// Prints a sentence for the user at once: the report may never come.
    fn notify(&self, sentence: &str);
}

/// A changed setting. Dropping it restores the original value, also after a panic or an interruption.
pub(super) struct Changed<'a> {
    tuner: &'a dyn Tuner,
    tunable: Tunable,
    own: &'a str,
}

impl<'a> Changed<'a> {
    /// Prints the command that restores the setting, for the case that this process is killed.
    pub(super) fn begin(tuner: &'a dyn Tuner, tunable: Tunable, own: &'a str) -> Self {
        if let Some(name) = tunable.sysctl() {
            tuner.notify(&format!(
                "--try changes {name}, which is {own}, and restores it; if this process is killed: {}",
                tunable.command(own)
            ));
        }
        Self {
            tuner,
            tunable,
            own,
        }
    }

    pub(super) fn set(&self, value: &str) -> Result<(), String> {
        self.tuner.set(self.tunable, value)
    }
}

impl Drop for Changed<'_> {
    fn drop(&mut self) {
        if let Err(why) = self.set(self.own) {
            let (name, command) = (self.tunable.name(), self.tunable.command(self.own));
            self.tuner.notify(&format!(
                "{name} is not restored: {why}; restore it with: {command}"
            ));
        }
    }
}

#[cfg(test)]
pub(super) mod tests {
    use std::collections::HashMap;
    use std::panic::{AssertUnwindSafe, catch_unwind};
    use std::sync::{Mutex, MutexGuard, PoisonError};

    use super::*;

    /// A kernel in memory; one setting may be refused.
    #[derive(Default)]
    pub(in crate::doctor) struct Kernel {
        state: Mutex<State>,
    }

    #[derive(Default)]
    pub(in crate::doctor) struct State {
        pub(in crate::doctor) values: HashMap<Tunable, String>,
        pub(in crate::doctor) refused: Option<Tunable>,
        pub(in crate::doctor) told: Vec<String>,
        /// All that was set, in order.
        pub(in crate::doctor) set: Vec<(Tunable, String)>,
    }

    impl Kernel {
        pub(in crate::doctor) fn state(&self) -> MutexGuard<'_, State> {
            self.state.lock().unwrap_or_else(PoisonError::into_inner)
        }
    }

    impl Tuner for Kernel {
        fn set(&self, tunable: Tunable, value: &str) -> Result<(), String> {
            let mut state = self.state();
            if state.refused == Some(tunable) {
                return Err("it is read-only".to_owned());
            }
            state.set.push((tunable, value.to_owned()));
            state.values.insert(tunable, value.to_owned());
            Ok(())
        }

        fn notify(&self, sentence: &str) {
            self.state().told.push(sentence.to_owned());
        }
    }

    #[test]
    fn a_setting_is_restored_whatever_ends_its_trial() {
        let kernel = Kernel::default();
        let tunable = Tunable::Autocorking;
        let panicked = catch_unwind(AssertUnwindSafe(|| {
            let changed = Changed::begin(&kernel, tunable, "1");
            changed.set("0").expect("it can be set");
            assert_eq!(kernel.state().values[&tunable], "0");
            panic!("in the middle of a trial");
        }));
        assert!(panicked.is_err());
        assert_eq!(kernel.state().values[&tunable], "1");
        let told = &kernel.state().told;
        assert_eq!(told.len(), 1);
        assert!(told[0].ends_with("sysctl -w net.ipv4.tcp_autocorking=1"));
    }

    #[test]
    fn what_cannot_be_restored_is_told() {
        let kernel = Kernel::default();
        let changed = Changed::begin(&kernel, Tunable::InitialWindow, "10");
        assert!(kernel.state().told.is_empty(), "it is the link's alone");
        kernel.state().refused = Some(Tunable::InitialWindow);
        drop(changed);
        let told = kernel.state().told.concat();
        assert!(told.contains("initcwnd is not restored: it is read-only"));
    }
}
