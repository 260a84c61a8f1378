//! The store process's work: samples of workers become rows of the store.
//!
//! It reads records from the supervisor's socket, finds the country of each client and truncates the address. A thread writes the
//! rows ([`Writer`]). The full address stays in the memory of this process. Figures for metrics go into a memory
//! file that the workers read. Absent: starting and ending the process, which is the supervisor's.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::FileExt;
use std::path::Path;

use geoip::Places;
use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::net::RecvFlags;
use server_base::errlog::{Level, Printable};
use server_base::lab_store::LabStoreConf;
use server_base::samples::{ConnectionSample, Handshake, RECORD_BYTES, Record, StoreFigures};
use store::{
    Connection, HandshakeKind, Network, Prefixes, Report, Retention, Settings, Stalls, Writer,
};

use crate::console::Console;

/// State of the store process.
pub(crate) struct Recorder {
    /// Settings of the store.
    pub(crate) conf: LabStoreConf,
    /// Messages of records come here.
    pub(crate) samples: OwnedFd,
    /// The file of the figures.
    pub(crate) figures: File,
    /// At its end when the process is to finish.
    pub(crate) control: OwnedFd,
    /// Countries by address.
    pub(crate) places: Option<Places>,
}

impl Recorder {
    /// Reads the databases of addresses. Without any, rows have no country, and the log has the reason.
    #[must_use]
    pub(crate) fn with_places(mut self, console: &Console) -> Self {
        let files = self.conf.databases.iter();
        let files: Vec<_> = files.map(|path| path.to_string_lossy()).collect();
        match Places::open(&files, |file| std::fs::read(file)) {
            Ok(places) => self.places = Some(places),
            Err(error) => console.report(
                Level::Warn,
                format_args!("rtt_map records no countries: {error}"),
            ),
        }
        self
    }

    /// Writes samples until the control socket or the socket of samples is at its end.
    pub(crate) fn run(self, console: &Console) {
        let log = console.clone();
        let path = self.conf.path.clone();
        let report = move |report: Report| say(&log, &path, &report);
        let writer = match Writer::start(self.settings(), report) {
            Ok(writer) => writer,
            Err(error) => {
                console.failed(
                    Level::Alert,
                    format_args!("starting the writer of the store"),
                    &error,
                );
                return;
            }
        };
        let row = self.row_maker();
        let mut message = vec![0; MESSAGE_BYTES_MAX];
        loop {
            let ready = self.wait();
            match self.receive(&mut message, ready.samples) {
                // The supervisor is gone.
                Ok(Some(0)) => break,
                Ok(Some(length)) => {
                    for record in message[..length].chunks_exact(RECORD_BYTES) {
                        match record.try_into().ok().and_then(Record::decode) {
                            // The writer counts the rows that it drops.
                            Some(Record::Sample(sample)) => {
                                let _ = writer.offer(row(&sample));
                            }
                            Some(Record::Open(_)) | None => {}
                        }
                    }
                }
                Ok(None) if ready.ends => break,
                Ok(None) => {}
                Err(error) => {
                    console.failed(Level::Alert, format_args!("recv() of samples"), &error);
                    break;
                }
            }
            self.publish(&writer);
        }
        writer.close();
    }

    fn settings(&self) -> Settings {
        Settings {
            retention: Retention {
                rows_s: self.conf.rows_s,
                rollups_s: self.conf.retention_s,
                max_bytes: match self.conf.max_bytes {
                    0 => u64::MAX,
                    bytes => bytes,
                },
            },
            ..Settings::new(&self.conf.path)
        }
    }

    /// Waits for samples, the end, or the next figures.
    fn wait(&self) -> Readiness {
        let mut all = [
            PollFd::new(&self.samples, PollFlags::IN),
            PollFd::new(&self.control, PollFlags::IN),
        ];
        // An error is found by the next read.
        let _ = rustix::event::poll(&mut all, Some(&FIGURES_EVERY));
        let [samples, control] = all.map(|one| !one.revents().is_empty());
        Readiness {
            samples,
            ends: control,
        }
    }

    /// Receives the next message if there is one; its length, 0 at the end.
    fn receive(&self, message: &mut [u8], is_ready: bool) -> io::Result<Option<usize>> {
        if !is_ready {
            return Ok(None);
        }
        let received = rustix::net::recv(self.samples.as_fd(), &mut *message, RecvFlags::DONTWAIT);
        match received {
            Ok((length, _)) => Ok(Some(length)),
            Err(rustix::io::Errno::AGAIN | rustix::io::Errno::INTR) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// Returns a function that makes rows of samples.
    fn row_maker(&self) -> impl Fn(&ConnectionSample) -> Connection {
        let network = self.conf.network;
        // Longer prefixes are an error of the configuration.
        let prefixes = network.and_then(|(v4, v6)| Prefixes::new(v4, v6).ok());
        let host = || String::from_utf8_lossy(&sys::process::hostname()).into_owned();
        let server = self.conf.server.clone().unwrap_or_else(host);
        move |sample| {
            let place = self
                .places
                .as_ref()
                .map(|places| places.find(sample.client));
            let place = place.unwrap_or_default();
            Connection {
                closed_s: sample.closed_ms / 1000,
                server: server.clone(),
                protocol: sample.version.as_str().to_owned(),
                tls: tls_name(sample.tls).to_owned(),
                network: prefixes.map(|prefixes| Network::of(sample.client, prefixes)),
                country: place.country,
                subdivision: place.subdivision.unwrap_or_default(),
                operator: place.operator.unwrap_or_default(),
                via_proxy: sample.via_proxy,
                min_rtt_us: sample.min_rtt_us,
                rtt_us: Some(sample.rtt_us),
                retransmits: sample.retransmits,
                bytes_sent: sample.bytes_sent,
                bytes_received: sample.bytes_received,
                requests: sample.requests,
                statuses: sample.statuses,
                duration_ms: sample.duration_ms.into(),
                handshake_us: sample.handshake_us,
                handshake_kind: match sample.handshake {
                    Handshake::None => HandshakeKind::None,
                    Handshake::Full => HandshakeKind::Full,
                    Handshake::Resumed => HandshakeKind::Resumed,
                    Handshake::Early => HandshakeKind::Early,
                },
                first_byte_us: sample.first_byte_us,
                stalls: stalls(sample.stalls),
            }
        }
    }

    /// Shows the figures of the writer to the workers.
    fn publish(&self, writer: &Writer) {
        let figures = figures(&writer.counters().counts());
        // A memory file takes the bytes that it has already.
        let _ = self.figures.write_all_at(&figures.encode(), 0);
    }
}

struct Readiness {
    samples: bool,
    ends: bool,
}

fn figures(counts: &store::Counts) -> StoreFigures {
    StoreFigures {
        written: counts.written,
        dropped: counts.dropped,
        failed_writes: counts.failed,
        is_failing: counts.failing,
    }
}

fn stalls([delayed_ack, retransmit, window]: [u16; 3]) -> Stalls {
    Stalls {
        delayed_ack: delayed_ack.into(),
        retransmit: retransmit.into(),
        window: window.into(),
    }
}

/// Returns the name of a version of TLS as `$ssl_protocol` has it.
fn tls_name(version: u16) -> &'static str {
    match version {
        0x0303 => "TLSv1.2",
        0x0304 => "TLSv1.3",
        _ => "",
    }
}

/// Writes a report of the writer to the error log.
fn say(console: &Console, path: &Path, report: &Report) {
    let level = match report {
        Report::Opened { .. } | Report::Connected { .. } | Report::Recovered { .. } => {
            Level::Notice
        }
        Report::Dropped { .. } | Report::SpillFull { .. } => Level::Warn,
        Report::MovedAside { .. } => Level::Alert,
        Report::CannotWrite { .. } => Level::Error,
    };
    let path = Printable::path(path);
    match report {
        Report::Opened { .. } => {
            console.report(level, format_args!("lab_store \"{path}\" is open"))
        }
        _ => console.report(level, format_args!("lab_store \"{path}\": {report}")),
    }
}

/// Bytes of a message at most.
const MESSAGE_BYTES_MAX: usize = 64 << 10;
/// Interval of the figures for metrics.
const FIGURES_EVERY: Timespec = Timespec {
    tv_sec: 1,
    tv_nsec: 0,
};
