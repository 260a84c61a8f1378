//! Messages of a compromised worker to the supervisor, which must not wait for it.
//!
//! The test sends in the worker's place, on a copy of its end of the control socket made by pidfd_getfd(2).

use std::fs;
use std::io::{Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use firstbyte_tests::busy::Waits;
use firstbyte_tests::skip::skip;
use firstbyte_tests::wait::DEADLINE;
use firstbyte_tests::{Server, Signal, peer, process, wait_until};
use rustix::process::{Pid, PidfdFlags, PidfdGetfdFlags, pidfd_getfd, pidfd_open};

/// The worker's end of its control socket: its only UNIX-domain socket.
fn control_socket(worker: u32) -> Option<UnixStream> {
    let known = fs::read_to_string("/proc/net/unix").unwrap_or_default();
    let pid = Pid::from_raw(i32::try_from(worker).ok()?)?;
    let pidfd = pidfd_open(pid, PidfdFlags::empty()).ok()?;
    for entry in fs::read_dir(format!("/proc/{worker}/fd")).ok()?.flatten() {
        let target = fs::read_link(entry.path()).ok()?;
        let inode = target
            .to_str()?
            .strip_prefix("socket:[")
            .map(|inode| inode.replace(']', ""));
        let is_unix = inode.is_some_and(|inode| known.contains(&format!(" {inode}")));
        if is_unix {
            let number = entry.file_name().to_str()?.parse().ok()?;
            let fd: OwnedFd = pidfd_getfd(pidfd, number, PidfdGetfdFlags::empty()).ok()?;
            return Some(UnixStream::from(fd));
        }
    }
    None
}

/// A server, its worker, and the worker's end of the control socket.
fn taken_over() -> Option<(Server, u32, UnixStream)> {
    let user = if peer::is_root() { "user root;" } else { "" };
    let server = Server::whole(&format!(
        "{user} daemon off; pid %%DIR%%/nginx.pid; error_log %%DIR%%/error.log info; events {{ }}
         http {{ access_log off; client_body_temp_path %%DIR%%/body;
             server {{ listen 127.0.0.1:%%PORT%%; location = /generation {{ return 200 g1; }} }} }}"
    ))
    .allow("exited on signal 9")
    .start();
    assert_eq!(server.get("/generation").text(), "g1");
    let worker = server.workers()[0];
    match control_socket(worker) {
        Some(socket) => Some((server, worker, socket)),
        None => {
            skip("descriptors of another process cannot be read");
            None
        }
    }
}

#[test]
fn a_worker_that_trickles_a_message_does_not_hold_the_supervisor() {
    if !peer::is_firstbyte() {
        return;
    }
    let Some((server, worker, mut socket)) = taken_over() else {
        return;
    };
    // As long as may be, a byte at a time.
    let header = [(64_u64 << 10).to_le_bytes(), 0_u64.to_le_bytes()].concat();
    socket.write_all(&header[..1]).expect("it is taken");
    let began = Instant::now();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for byte in header[1..].iter().chain(std::iter::repeat(&b' ')) {
                std::thread::park_timeout(Duration::from_millis(100));
                if socket.write_all(&[*byte]).is_err() || began.elapsed() > 2 * DEADLINE {
                    return;
                }
            }
        });
        server.rewrite_conf(|text| text.replace("200 g1;", "200 g2;"));
        server.signal(Signal::HUP);
        // The supervisor still handles HUP.
        let waits = Waits::begin();
        server.wait_for_text("error.log", "reconfiguring");
        waits.assert_below(waits.elapsed(), Duration::from_secs(3));
        wait_until("another worker is there", || {
            !process::is_alive(worker) && !server.workers().is_empty()
        });
        wait_until("it serves by what HUP brought", || {
            server.get("/generation").text() == "g2"
        });
    });
    server.wait_for_text("error.log", "control message of worker process");
}

#[test]
fn a_message_longer_than_the_limit_costs_the_worker_its_life() {
    if !peer::is_firstbyte() {
        return;
    }
    for header in [[(64 << 10) + 1, 0_u64], [2, 1]] {
        let Some((server, worker, mut socket)) = taken_over() else {
            return;
        };
        socket
            .write_all(&header.map(u64::to_le_bytes).concat())
            .expect("it is taken");
        wait_until("another worker is there", || {
            !process::is_alive(worker) && !server.workers().is_empty()
        });
        wait_until("it serves", || server.get("/generation").text() == "g1");
        drop(socket.read(&mut [0]));
    }
}
