//! The store process's work: samples of workers become rows of the store, and pages show the store.
//!
//! It reads records from the supervisor's socket, finds the country of each client and truncates the address. A thread writes the
//! rows ([`Writer`]). The full address stays in the memory of this process. Records of experiments have no address. Figures for
//! metrics go into a memory file that the workers read. Other threads answer requests for the dashboard ([`pages`]). Absent:
//! starting and ending the process, which is the supervisor's.

mod credentials;
mod engine;
mod experiments;
mod open_minutes;
mod pages;

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::FileExt;
use std::os::unix::net::UnixListener;
use std::sync::Arc;

use geoip::Places;
use lab::web::Live;
use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::net::RecvFlags;
use server_base::errlog::{Level, Printable};
use server_base::lab_store::LabStoreConf;
use server_base::samples::{ConnectionSample, Handshake, Record, Records, StoreFigures};
use store::{Connection, HandshakeKind, Network, Prefixes, Report, Stalls, Writer};

use crate::console::Console;
use credentials::Credentials;
pub(crate) use credentials::check_files;
pub(crate) use engine::{check_readable, open_to_read};
use experiments::ArmMinutes;
use open_minutes::{OpenMinutes, named};
use pages::Pages;

/// State of the store process.
pub(crate) struct Recorder {
    /// Settings of the store.
    pub(crate) conf: LabStoreConf,
    /// Socket with records of workers.
    pub(crate) samples: OwnedFd,
    /// The file of the figures.
    pub(crate) figures: File,
    /// At its end when the process is to finish.
    pub(crate) control: OwnedFd,
    /// Listener of the dashboard.
    pub(crate) dashboard: Option<UnixListener>,
    /// Contents of files that are read with the supervisor's rights.
    pub(crate) files: Files,
}

/// Contents of files that the worker's user may be unable to read.
#[derive(Default)]
pub(crate) struct Files {
    /// Countries by address.
    places: Option<Places>,
    /// Password and certificates of the store.
    credentials: Credentials,
}

impl Recorder {
    /// Reads databases of addresses, and the files of `lab_store`. Without databases, rows have no country. The log has
    /// the reason for each unreadable file.
    #[must_use]
    pub(crate) fn with_files(mut self, console: &Console) -> Self {
        match Credentials::read(&self.conf.engine) {
            Ok(credentials) => self.files.credentials = credentials,
            // The store then refuses us, or is not trusted, and this line has the cause.
            Err(why) => console.report(Level::Error, format_args!("{why}")),
        }
        if !self.conf.records {
            return self;
        }
        let files = self.conf.databases.iter();
        let files: Vec<_> = files.map(|path| path.to_string_lossy()).collect();
        match Places::open(&files, |file| std::fs::read(file)) {
            Ok(places) => self.files.places = Some(places),
            Err(error) => console.report(
                Level::Warn,
                format_args!("rtt_map records no countries: {error}"),
            ),
        }
        self
    }

    /// Writes samples and answers requests until the control socket or the socket of samples is at its end.
    pub(crate) fn run(mut self, console: &Console) {
        let dashboard = self.dashboard.take();
        let source = || engine::source(&self.conf.engine, &self.files.credentials);
        let pages =
            dashboard.map(|listener| Pages::start(listener, source(), self.conf.writes(), console));
        match self.conf.writes() {
            true => self.record(pages, console),
            false => self.wait_for_end(),
        }
    }

    /// Waits for the end of the control socket.
    fn wait_for_end(&self) {
        let mut control = [PollFd::new(&self.control, PollFlags::IN)];
        while matches!(
            rustix::event::poll(&mut control, None),
            Err(rustix::io::Errno::INTR)
        ) {}
    }

    /// Writes samples.
    fn record(&self, pages: Option<Pages>, console: &Console) {
        let log = console.clone();
        let name = self.conf.engine.to_string();
        let report = move |report: Report| say(&log, &name, &report);
        let writer = match engine::writer(&self.conf, &self.files.credentials, report) {
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
        for settings in &self.conf.experiments {
            // The queue is empty, and longer than the list.
            let _ = writer.offer_settings(wall_s(), experiments::settings(settings));
        }
        let mut rows = Rows {
            server: self.server(),
            row: self.row_maker(),
            live: pages.as_ref().and_then(Pages::live),
            open: OpenMinutes::new(self.server()),
            arms: ArmMinutes::new(self.server()),
            writer: &writer,
        };
        let mut message = vec![0; MESSAGE_BYTES_MAX];
        loop {
            let ready = self.wait();
            match self.receive(&mut message, ready.samples) {
                // The supervisor is gone.
                Ok(Some(0)) => break,
                // A record of an older program with an unknown format ends its message.
                Ok(Some(length)) => Records(&message[..length])
                    .filter_map(Record::decode)
                    .for_each(|record| rows.add(&record)),
                Ok(None) if ready.ends => break,
                Ok(None) => {}
                Err(error) => {
                    console.failed(Level::Alert, format_args!("recv() of samples"), &error);
                    break;
                }
            }
            rows.end_minutes();
            self.publish(&writer, rows.live);
        }
        rows.end();
        // The next store process gets the socket before the last rows are written.
        drop(pages);
        writer.close();
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

    /// Receives the next message, if any; returns its length, 0 at the end.
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

    /// Returns the name of this server.
    fn server(&self) -> String {
        let host = || String::from_utf8_lossy(&sys::process::hostname()).into_owned();
        self.conf.server.clone().unwrap_or_else(host)
    }

    /// Returns a function that makes rows of samples.
    fn row_maker(&self) -> impl Fn(&ConnectionSample) -> Connection {
        let network = self.conf.network;
        // Longer prefixes are an error of the configuration.
        let prefixes = network.and_then(|(v4, v6)| Prefixes::new(v4, v6).ok());
        let server = self.server();
        move |sample| {
            let place = self
                .files
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

    /// Shows the figures of the writer to the workers and to the pages.
    fn publish(&self, writer: &Writer, live: Option<&Arc<Live>>) {
        let counts = writer.counters().counts();
        if let Some(live) = live {
            live.set_store(counts);
        }
        let figures = figures(&counts);
        // The memory file has this size already, so the write cannot fail.
        let _ = self.figures.write_all_at(&figures.encode(), 0);
    }
}

/// Rows of the store, made of records.
struct Rows<'a, R> {
    /// Name of this server.
    server: String,
    /// Makes a row of a sample.
    row: R,
    live: Option<&'a Arc<Live>>,
    open: OpenMinutes,
    arms: ArmMinutes,
    writer: &'a Writer,
}

impl<R: Fn(&ConnectionSample) -> Connection> Rows<'_, R> {
    /// Adds a record. The writer counts the connections and page views that it drops.
    fn add(&mut self, record: &Record) {
        match record {
            Record::Sample(sample) => {
                self.live.inspect(|live| {
                    live.add_closed(sample.requests.into(), sample.statuses.map(u64::from));
                });
                let _ = self.writer.offer((self.row)(sample));
            }
            Record::Open(counts) => {
                self.live
                    .inspect(|live| live.set_open(WORKER, named(counts)));
                for sample in self.open.add(counts) {
                    // The next number of this minute is tried again only if it is larger.
                    let _ = self.writer.offer_open(sample);
                }
            }
            Record::Visit(visit) => {
                let row = experiments::visit(visit, &self.server);
                let _ = self.writer.offer_visit(row);
            }
            Record::Arm(connection) => {
                let past = self.arms.add(connection);
                self.offer_arms(past);
            }
            Record::ArmOpen(open) => {
                let past = self.arms.add_open(open);
                self.offer_arms(past);
            }
        }
    }

    /// Offers figures of arms of the minutes that are over.
    fn end_minutes(&mut self) {
        let past = self.arms.take_before(wall_s());
        self.offer_arms(past);
    }

    /// Offers all figures of arms.
    fn end(&mut self) {
        let all = self.arms.take_all();
        self.offer_arms(all);
    }

    fn offer_arms(&self, figures: Vec<store::ArmFigures>) {
        for row in figures {
            // Not counted: a full queue drops counted rows as well.
            let _ = self.writer.offer_arm(row);
        }
    }
}

struct Readiness {
    samples: bool,
    ends: bool,
}

/// Returns the time of the wall clock, Unix seconds.
fn wall_s() -> u64 {
    sys::clock::wall_us() / 1_000_000
}

fn figures(counts: &store::Counts) -> StoreFigures {
    StoreFigures {
        written: counts.written,
        dropped: counts.dropped,
        failed_writes: counts.failed,
        is_failing: counts.failing,
        batches_sent: counts.batches_sent,
        retries: counts.retries,
        spilled_batches: counts.spilled_batches,
        spilled_bytes: counts.spilled_bytes,
        spill_dropped: counts.spill_dropped,
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
fn say(console: &Console, name: &str, report: &Report) {
    let level = match report {
        Report::Opened { .. } | Report::Connected { .. } | Report::Recovered { .. } => {
            Level::Notice
        }
        Report::Dropped { .. } | Report::SpillFull { .. } => Level::Warn,
        Report::MovedAside { .. } => Level::Alert,
        Report::CannotWrite { .. } => Level::Error,
    };
    let name = Printable(name.as_bytes());
    match report {
        Report::Opened { .. } | Report::Connected { .. } => {
            console.report(level, format_args!("lab_store \"{name}\" is open"))
        }
        _ => console.report(level, format_args!("lab_store \"{name}\": {report}")),
    }
}

/// Number of the worker: there is one at a time.
const WORKER: u64 = 0;
/// Bytes of a message at most.
const MESSAGE_BYTES_MAX: usize = 64 << 10;
/// Interval of the figures for metrics.
const FIGURES_EVERY: Timespec = Timespec {
    tv_sec: 1,
    tv_nsec: 0,
};
