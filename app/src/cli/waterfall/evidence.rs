//! Packets of visits as evidence for stalls. They are in the file of `--pcap`, or with `--via` alone in an unnamed
//! file.

use std::fs::{self, File, OpenOptions};
use std::io::BufReader;
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use lab::capture::{self, Capture, KeyLog};
use link::via::Inside;

use super::views::Visits;

/// A file for the packets of a visit without `--pcap`. It has no name, so nothing remains of it.
pub(super) struct Unnamed(File);

impl Unnamed {
    /// Makes the file in the directory for temporary files; `None` if that is not possible.
    pub(super) fn create() -> Option<Self> {
        let name = format!("firstbyte-waterfall-{}.pcap", std::process::id());
        let path = std::env::temp_dir().join(name);
        let options = OpenOptions::new().write(true).create_new(true).clone();
        let file = options.open(&path).ok()?;
        fs::remove_file(&path).ok()?;
        Some(Self(file))
    }

    /// Its path for this process and the children that inherit it.
    pub(super) fn path(&self) -> PathBuf {
        format!("/proc/self/fd/{}", self.0.as_raw_fd()).into()
    }
}

/// Adds the stalls that packets of the link prove to the visits. If packets are missing, the visits get no evidence.
pub(super) fn add(visits: &mut Visits, inside: &Inside, key_log: Option<&Path>) {
    let Some(path) = &inside.spec.pcap else {
        return;
    };
    if let Some(mut capture) = read_capture(path, inside) {
        let log = key_log.and_then(|path| KeyLog::read(File::open(path).ok()?).ok());
        if let Some(log) = log {
            capture.decrypt(&log);
        }
        capture::note_withheld(&capture, visits.all_mut());
    }
}

/// The packets so far. The link writes them from a thread of its own, which may be a moment late.
fn read_capture(path: &Path, inside: &Inside) -> Option<Capture> {
    thread::park_timeout(SETTLING);
    let counters = inside.link.counters();
    let end = Instant::now() + WRITING_MAX;
    loop {
        let capture = capture::read(BufReader::new(File::open(path).ok()?)).ok()?;
        if counters.uncaptured == 0 && capture.packets >= counters.packets() {
            return Some(capture);
        }
        if counters.uncaptured > 0 || Instant::now() > end {
            return None;
        }
        thread::park_timeout(SETTLING);
    }
}

/// Time in which the link counts a packet that it has delivered.
const SETTLING: Duration = Duration::from_millis(20);
/// Longest wait until packets are in the file.
const WRITING_MAX: Duration = Duration::from_secs(2);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_without_a_name_is_written_and_read_by_its_path() {
        let file = Unnamed::create().expect("there is a directory");
        fs::write(file.path(), "packets").expect("it is written");
        assert_eq!(fs::read(file.path()).expect("it is read"), b"packets");
        let target = fs::read_link(file.path()).expect("it is open");
        assert!(
            target.to_string_lossy().ends_with("(deleted)"),
            "{target:?}"
        );
    }
}
