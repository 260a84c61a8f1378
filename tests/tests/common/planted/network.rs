//! A network of a test's own: its settings are its own, and end with the test.

use std::fs;
use std::net::{Ipv4Addr, UdpSocket};
use std::panic::resume_unwind;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use firstbyte_tests::via;
use sys::namespace::Network;

use crate::site::pause;

/// Runs a test on a thread in a network namespace of its own. It has a loopback device, and a default route over a
/// device that drops all packets; `route` is its options for ip-route(8). If links are not possible, the test is
/// skipped with a message: `None`.
pub(crate) fn in_own_network<T: Send>(route: &str, test: impl FnOnce() -> T + Send) -> Option<T> {
    if !via::possible() {
        return None;
    }
    let network = Network::create().expect("there can be links, and for those networks");
    let ran = thread::scope(|scope| {
        let inside = scope.spawn(|| {
            network.enter().expect("it was made here");
            for line in [
                "link set lo up",
                "tuntap add dev visitors mode tun",
                "address add 203.0.113.1/24 dev visitors",
                "link set visitors up",
                &format!("route add default dev visitors {route}"),
            ] {
                let ip = Command::new("ip").args(line.split_whitespace()).status();
                assert!(ip.expect("ip starts").success(), "{line}");
            }
            test()
        });
        inside.join()
    });
    Some(ran.unwrap_or_else(|panic| resume_unwind(panic)))
}

/// A sysctl of the calling thread's network.
pub(crate) fn sysctl(name: &str) -> String {
    let text = fs::read_to_string(path(name)).expect("the kernel has it");
    text.trim().to_owned()
}

/// Sets a sysctl; returns whether that was possible. It is not if /proc is read-only.
pub(crate) fn set_sysctl(name: &str, value: &str) -> bool {
    match fs::write(path(name), value) {
        Ok(()) => true,
        Err(error) => via::skipped(&format!("{name}: {error}")),
    }
}

fn path(name: &str) -> String {
    format!("/proc/sys/{}", name.replace('.', "/"))
}

/// A command that sees a file of its own in the place of /etc/resolv.conf.
pub(crate) fn resolving_by(resolv_conf: &Path, program: &Path) -> Command {
    let mut command = Command::new("unshare");
    let script = r#"mount --bind "$0" /etc/resolv.conf && exec "$@""#;
    command.args(["--mount", "sh", "-c", script]);
    command.arg(resolv_conf).arg(program);
    command
}

/// A name server on port 53 of 127.0.0.1 for one name, the address of this machine. Each response is delayed by a set
/// time.
pub(crate) struct NameServer {
    is_over: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl NameServer {
    /// # Panics
    /// When the network of the calling thread has a server there.
    pub(crate) fn serve(name: &'static str, delay: Duration) -> Self {
        let socket = UdpSocket::bind(ADDRESS).expect("the network is new");
        let is_over = Arc::new(AtomicBool::new(false));
        let over = Arc::clone(&is_over);
        let thread = thread::spawn(move || {
            let mut query = [0; 512];
            while let Ok((length, from)) = socket.recv_from(&mut query) {
                if over.load(Ordering::Relaxed) {
                    return;
                }
                let Some(response) = response(&query[..length], name) else {
                    continue;
                };
                let socket = socket.try_clone().expect("there are descriptors");
                // Questions for both families come at once.
                thread::spawn(move || {
                    pause(delay);
                    let _ = socket.send_to(&response, from);
                });
            }
        });
        Self {
            is_over,
            thread: Some(thread),
        }
    }
}

impl Drop for NameServer {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Relaxed);
        // Wakes the reading thread.
        let woken = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0));
        let _ = woken.and_then(|socket| socket.send_to(&[0], ADDRESS));
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// The response to a query with one question (RFC 1035 section 4.1); `None` if the query is malformed.
fn response(query: &[u8], name: &str) -> Option<Vec<u8>> {
    let question = query.get(12..)?;
    let end = question.iter().position(|byte| *byte == 0)? + 5;
    let question = question.get(..end)?;
    let labels = name.split('.').flat_map(|label| {
        let length = [label.len() as u8];
        [&length[..], label.as_bytes()].concat()
    });
    let known: Vec<u8> = labels.chain([0]).collect();
    let (asked, kind) = question.split_at(end - 4);
    let is_known = asked.eq_ignore_ascii_case(&known);
    let has_address = is_known && kind == [0, 1, 0, 1];
    // Recursion is available; a name that is not known does not exist.
    let status = if is_known { 0x80 } else { 0x83 };
    let counts = [0, 1, 0, u8::from(has_address), 0, 0, 0, 0];
    let mut response = [&query[..2], &[0x81, status], &counts, question].concat();
    if has_address {
        // The name at offset 12, A, IN, no time to live, 127.0.0.1.
        response.extend([0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 0, 0, 4, 127, 0, 0, 1]);
    }
    Some(response)
}

/// The default port of name servers.
const ADDRESS: (Ipv4Addr, u16) = (Ipv4Addr::LOCALHOST, 53);
