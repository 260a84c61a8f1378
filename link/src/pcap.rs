//! Packets into a file that tcpdump and Wireshark read: classic pcap, nanoseconds, packets as they leave the link.
//!
//! A thread of its own writes, so that a slow disk delays no packet. Packets that it cannot keep up with are left out
//! and counted. The file is complete when the link is dropped; of one that is killed the last moment is missing.
//! Source: draft-ietf-opsawg-pcap.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::Path;
use std::sync::mpsc::{self, Receiver, SyncSender, TryRecvError};
use std::sync::{Arc, OnceLock};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use sys::os_error;

/// The sending end of a capture.
#[derive(Debug)]
pub(crate) struct Capture {
    packets: Option<SyncSender<(Instant, Vec<u8>)>>,
    thread: Option<JoinHandle<()>>,
    /// Number of packets that were not written.
    pub(crate) left_out: u64,
    /// The sentence about an end before the last packet.
    failure: Failure,
}

/// The sentence about a file that ends early, shared with the thread that writes it.
pub(crate) type Failure = Arc<OnceLock<String>>;

impl Capture {
    /// Makes the file, or empties it, and starts to write.
    pub(crate) fn create(path: &Path) -> io::Result<Self> {
        let file = File::create(path).map_err(|error| {
            let text = format!("{}: {}", path.display(), os_error(&error));
            io::Error::new(error.kind(), text)
        })?;
        let clock = Clock::now();
        let (sender, receiver) = mpsc::sync_channel(WAITING_MAX);
        let mut file = BufWriter::new(file);
        file.write_all(&head())?;
        file.flush()?;
        let failure = Failure::default();
        let (told, path) = (Arc::clone(&failure), path.to_owned());
        let thread = thread::Builder::new().name("pcap".into()).spawn(move || {
            if let Err(error) = write(file, clock, &receiver) {
                let reason = os_error(&error);
                let why = format!("{} ends early: {reason}", path.display());
                told.get_or_init(|| why);
            }
        })?;
        Ok(Self {
            packets: Some(sender),
            thread: Some(thread),
            left_out: 0,
            failure,
        })
    }

    /// Returns the place of the sentence about an end before the last packet.
    pub(crate) fn failure(&self) -> Failure {
        Arc::clone(&self.failure)
    }

    /// Hands on a packet that left at this time.
    pub(crate) fn packet(&mut self, at: Instant, packet: Vec<u8>) {
        let Some(packets) = &self.packets else {
            return;
        };
        if packets.try_send((at, packet)).is_err() {
            self.left_out += 1;
        }
    }
}

impl Drop for Capture {
    fn drop(&mut self) {
        self.packets = None;
        if let Some(thread) = self.thread.take() {
            // A panic was reported by its thread; a second one here would end the process.
            let _ = thread.join();
        }
    }
}

/// Writes until there is no more to come.
fn write(
    mut file: BufWriter<File>,
    clock: Clock,
    packets: &Receiver<(Instant, Vec<u8>)>,
) -> io::Result<()> {
    loop {
        let next = match packets.try_recv() {
            Ok(next) => next,
            Err(TryRecvError::Disconnected) => return file.flush(),
            Err(TryRecvError::Empty) => {
                // Written packets become readable while the link is quiet.
                file.flush()?;
                match packets.recv() {
                    Ok(next) => next,
                    Err(_) => return Ok(()),
                }
            }
        };
        let (at, packet) = next;
        file.write_all(&record_head(clock.unix(at), packet.len()))?;
        file.write_all(&packet)?;
    }
}

/// Converts an instant to the time of day.
#[derive(Clone, Copy, Debug)]
struct Clock {
    moment: Instant,
    unix: Duration,
}

impl Clock {
    fn now() -> Self {
        let unix = SystemTime::now().duration_since(UNIX_EPOCH);
        Self {
            moment: Instant::now(),
            unix: unix.unwrap_or_default(),
        }
    }

    fn unix(self, at: Instant) -> Duration {
        self.unix + at.saturating_duration_since(self.moment)
    }
}

/// Header of a file: version 2.4, times in UTC.
fn head() -> [u8; 24] {
    let mut head = [0; 24];
    head[..4].copy_from_slice(&MAGIC.to_le_bytes());
    head[4..6].copy_from_slice(&2_u16.to_le_bytes());
    head[6..8].copy_from_slice(&4_u16.to_le_bytes());
    head[16..20].copy_from_slice(&SNAP_BYTES.to_le_bytes());
    head[20..].copy_from_slice(&LINKTYPE_RAW.to_le_bytes());
    head
}

/// Header of a packet.
fn record_head(unix: Duration, bytes: usize) -> [u8; 16] {
    // The format's seconds have 32 bits, up to the year 2106; packets are far shorter than 4 GiB.
    let seconds = u32::try_from(unix.as_secs()).unwrap_or(u32::MAX);
    let bytes = u32::try_from(bytes).unwrap_or(SNAP_BYTES);
    let mut head = [0; 16];
    for (to, number) in head
        .chunks_exact_mut(4)
        .zip([seconds, unix.subsec_nanos(), bytes, bytes])
    {
        to.copy_from_slice(&number.to_le_bytes());
    }
    head
}

/// The magic number of a file with times in nanoseconds.
const MAGIC: u32 = 0xa1b2_3c4d;
/// Packets begin with their IP header.
const LINKTYPE_RAW: u32 = 101;
/// No packet is longer.
const SNAP_BYTES: u32 = 65_535;
/// Maximum number of packets that wait to be written.
const WAITING_MAX: usize = 16_384;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_cannot_be_made_is_named_with_the_systems_error() {
        let error = Capture::create(Path::new("/none/at/all"));
        let text = error.err().map(|error| error.to_string());
        let shown = "/none/at/all: 2: No such file or directory";
        assert_eq!(text.as_deref(), Some(shown));
    }

    #[test]
    fn file_and_packets_have_their_heads() {
        let shown = head().map(|byte| format!("{byte:02x}")).concat();
        assert_eq!(shown, "4d3cb2a1020004000000000000000000ffff000065000000");
        let head = record_head(Duration::new(0x0102_0304, 5), 40);
        assert_eq!(head, [4, 3, 2, 1, 5, 0, 0, 0, 40, 0, 0, 0, 40, 0, 0, 0]);
    }
}
