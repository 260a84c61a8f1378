//! Under which conditions something was measured.
//!
//! Source: proc(5), sysfs(5).

use std::fs;

use serde::{Deserialize, Serialize};

use crate::host::{Offloads, device_to, is_own};
use crate::load::Plan;

/// Conditions of a bench.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Conditions {
    /// Processors of this machine.
    pub processors: usize,
    /// Its kernel.
    pub kernel: String,
    /// The congestion control of its TCP.
    pub congestion_control: Option<String>,
    /// The kernel's least round trip, microseconds.
    pub round_trip_us: Option<u32>,
    /// The network device on the way to the server.
    pub device: Option<String>,
    /// The MTU of that device.
    pub mtu_bytes: Option<u64>,
    /// Offloads of that device.
    #[serde(default)]
    pub offloads: Offloads,
    /// The load of the machine over the last minute, at the end.
    pub load_average: Option<f64>,
    /// The share of its time in which the processors were busy.
    pub busy: f64,
    /// The share of its time that other machines on the same hardware took.
    pub steal: f64,
    /// Description of the emulated link, or of its absence.
    pub link: String,
}

impl Conditions {
    pub(crate) fn now(
        round_trip_us: Option<u32>,
        busy: f64,
        steal: f64,
        plan: Option<&Plan>,
    ) -> Self {
        let read = |path: &str| {
            let text = fs::read_to_string(path).ok()?;
            Some(text.trim().to_owned())
        };
        let loopback = plan.is_some_and(|plan| is_own(plan.address));
        let device = match loopback {
            true => Some("lo".to_owned()),
            false => plan.and_then(|plan| device_to(plan.address.ip())),
        };
        let of_device = |what: &str| {
            let path = format!("/sys/class/net/{}/{what}", device.as_deref()?);
            read(&path)?.parse().ok()
        };
        let load = read("/proc/loadavg");
        Self {
            processors: std::thread::available_parallelism().map_or(1, usize::from),
            kernel: read("/proc/sys/kernel/osrelease").unwrap_or_default(),
            congestion_control: read("/proc/sys/net/ipv4/tcp_congestion_control"),
            round_trip_us,
            mtu_bytes: of_device("mtu"),
            offloads: device.as_deref().map(Offloads::of).unwrap_or_default(),
            load_average: load
                .as_deref()
                .and_then(|text| text.split_whitespace().next()?.parse().ok()),
            busy,
            steal,
            link: match loopback {
                true => "loopback, no emulated link".to_owned(),
                false => "as it is, no emulated link".to_owned(),
            },
            device,
        }
    }
}
