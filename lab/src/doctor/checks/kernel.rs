//! kernel-settings: settings of this machine's kernel that affect the first byte, if the target is on this machine.
//!
//! Nothing is changed here (see `trials`). Absent: settings of other machines, which cannot be read.
//!
//! Source: the kernel's ip-sysctl.rst, ip-route(8), ethtool(8).

use std::fs;
use std::net::{IpAddr, Ipv4Addr};
use std::process::{Command, Stdio};
use std::str::FromStr;

use serde_json::{Value, json};

use crate::doctor::code::kernel_settings;
use crate::doctor::{Examination, Failure, Finding, Plan, Severity, Tunable};
use crate::host::{Offloads, device_to, is_own};

/// Settings of a kernel; `None` if a setting cannot be read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Figures {
    /// `net.ipv4.tcp_autocorking`.
    pub(super) autocorking: Option<bool>,
    /// `net.ipv4.tcp_slow_start_after_idle`.
    pub(super) slow_start_after_idle: Option<bool>,
    /// `net.ipv4.tcp_congestion_control`.
    pub(super) congestion_control: Option<String>,
    /// `net.ipv4.tcp_available_congestion_control`.
    pub(super) available: Vec<String>,
    /// `net.ipv4.tcp_fastopen`: bit 2 is the server's.
    pub(super) fast_open: Option<u32>,
    /// `net.core.somaxconn`.
    pub(super) backlog_max: Option<u32>,
    /// Least `initcwnd` of all routes, segments; `None` if no route has one, which means ten.
    pub(super) initial_window: Option<u32>,
    /// The device on the way to clients, and its offloads.
    pub(super) device: Option<(String, Offloads)>,
}

impl Figures {
    /// Reads the settings of this machine that affect packets between the target and its visitors.
    pub(super) fn here(x: &Examination<'_>) -> Self {
        // Connections of a machine to itself use `lo`; visitors arrive at the device of the default route.
        let device = match x.address().ip().is_loopback() {
            true => Some("lo".to_owned()),
            false => device_to(IpAddr::V4(ANYBODY)),
        };
        read(device)
    }

    pub(super) fn measured(&self) -> Value {
        let offloads = self.device.as_ref().map(|(name, offloads)| {
            json!({"device": name, "tso": offloads.tso, "gso": offloads.gso, "gro": offloads.gro})
        });
        json!({
            "tcp_autocorking": self.autocorking,
            "tcp_slow_start_after_idle": self.slow_start_after_idle,
            "tcp_congestion_control": self.congestion_control,
            "tcp_fastopen": self.fast_open,
            "somaxconn": self.backlog_max,
            "initcwnd": self.initial_window,
            "offloads": offloads,
        })
    }
}

/// Reads the settings if the target is on this machine.
pub(super) fn run(x: &mut Examination<'_>) -> Result<Vec<Finding>, Failure> {
    if !is_own(x.address()) {
        return Ok(Vec::new());
    }
    let figures = Figures::here(x);
    x.measure("kernel", figures.measured());
    Ok(judge(&figures, x.plan).into_iter().collect())
}

fn read(device: Option<String>) -> Figures {
    let is_on = |name| setting::<u32>(name).map(|value| value != 0);
    let device = device.map(|name| {
        let offloads = Offloads::of(&name);
        (name, offloads)
    });
    Figures {
        autocorking: is_on("net/ipv4/tcp_autocorking"),
        slow_start_after_idle: is_on("net/ipv4/tcp_slow_start_after_idle"),
        congestion_control: setting("net/ipv4/tcp_congestion_control"),
        available: setting("net/ipv4/tcp_available_congestion_control")
            .map(|names: String| names.split(' ').map(str::to_owned).collect())
            .unwrap_or_default(),
        fast_open: setting("net/ipv4/tcp_fastopen"),
        backlog_max: setting("net/core/somaxconn"),
        initial_window: routes().as_deref().and_then(initial_window),
        device,
    }
}

fn setting<T: FromStr>(name: &str) -> Option<T> {
    let text = fs::read_to_string(format!("/proc/sys/{name}")).ok()?;
    text.trim().parse().ok()
}

/// All routes as printed by iproute2; `None` if it is not installed.
fn routes() -> Option<String> {
    let output = Command::new("ip")
        .args(["route", "show", "table", "all"])
        .stdin(Stdio::null())
        .output()
        .ok()?;
    output
        .status
        .success()
        .then(|| String::from_utf8_lossy(&output.stdout).into_owned())
}

/// An address of documents (RFC 5737), to which only the default route leads.
const ANYBODY: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 1);

/// kernel-settings: a note with the settings that differ from the usual advice for first bytes. Their effect depends on the
/// network, so it is no more than a note. With `--try`, settings that can be tried are left to their trials.
pub(super) fn judge(figures: &Figures, plan: &Plan) -> Option<Finding> {
    let mut said = Vec::new();
    let window = figures
        .initial_window
        .filter(|segments| *segments < USUAL_WINDOW);
    if figures.slow_start_after_idle == Some(true) {
        let what =
            "idle connections restart with the initial window (tcp_slow_start_after_idle = 1)";
        let fix = Tunable::SlowStartAfterIdle.command("0");
        said.push((what.to_owned(), fix));
    }
    if figures.autocorking == Some(true) {
        let what = "small writes wait for packets in the device's queue (tcp_autocorking = 1)";
        let fix = Tunable::Autocorking.command("0") + ", if pieces of a response are sent late";
        said.push((what.to_owned(), fix));
    }
    if let Some(window) = window {
        let what = format!("a route has an initial window of {window} segments (initcwnd)");
        said.push((what, Tunable::InitialWindow.command("10")));
    }
    if plan.tries {
        said.clear();
    }
    let can_be_tried = !said.is_empty();
    if let Some(backlog) = figures.backlog_max.filter(|most| *most < BACKLOG_MIN) {
        let what = format!("at most {backlog} connections can wait to be accepted (somaxconn)");
        said.push((what, "sysctl -w net.core.somaxconn=4096".to_owned()));
    }
    if said.is_empty() {
        return None;
    }
    let (what, fixes): (Vec<String>, Vec<String>) = said.into_iter().unzip();
    let text = kernel_settings::noted(what.join("; "));
    let found = Finding::of(text, Severity::Note).proof("settings", figures.measured());
    let mut found = found.fix_first(fixes);
    if can_be_tried {
        let command = plan.command();
        found = found.fix(format!("as root: {command} --try measures their effect"));
    }
    Some(found)
}

/// The `initcwnd` in the output of `ip route`: the least of all routes.
pub(super) fn initial_window(routes: &str) -> Option<u32> {
    let words: Vec<&str> = routes.split_whitespace().collect();
    let windows = words.windows(2).filter(|pair| pair[0] == "initcwnd");
    windows.filter_map(|pair| pair[1].parse().ok()).min()
}

/// RFC 6928.
pub(super) const USUAL_WINDOW: u32 = 10;
/// Kernels before 5.4 had 128, which a page of some resources and some visitors fill.
const BACKLOG_MIN: u32 = 1024;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::client::Url;

    #[test]
    fn settings_that_differ_are_named_with_what_changes_them() {
        let best = Figures {
            autocorking: Some(false),
            slow_start_after_idle: Some(false),
            initial_window: Some(10),
            backlog_max: Some(BACKLOG_MIN),
            ..Figures::default()
        };
        let mut plan = Plan::new(Url::parse("http://h/").expect("a URL"));
        assert_eq!(judge(&best, &plan), None);
        let unknown = judge(&Figures::default(), &plan);
        assert_eq!(unknown, None, "what is unknown is not judged");
        let usual = Figures {
            autocorking: Some(true),
            slow_start_after_idle: Some(true),
            initial_window: Some(3),
            backlog_max: Some(128),
            ..best
        };
        let found = judge(&usual, &plan).expect("four differ");
        assert_eq!(found.severity, Severity::Note);
        assert_eq!(found.fixes.len(), 5);
        assert!(found.title.contains("3 segments"), "{}", found.title);
        plan.tries = true;
        let found = judge(&usual, &plan).expect("one cannot be tried");
        assert_eq!(found.fixes, ["sysctl -w net.core.somaxconn=4096"]);
    }

    #[test]
    fn least_initial_window_of_all_routes_counts() {
        let routes = "default via 192.0.2.1 dev eth0 initcwnd 20\n192.0.2.0/24 dev eth0 initcwnd 4\n10.0.0.0/8 dev x\n";
        assert_eq!(initial_window(routes), Some(4));
        assert_eq!(initial_window("default dev x initcwnd"), None);
        assert_eq!(initial_window(""), None);
    }
}
