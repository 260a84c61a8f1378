//! The families of metrics and their samples.

use std::fmt::Display;

use engines::http::probe::Stall;
use engines::http::{Protocol, Version};
use server_base::samples::StoreFigures;
use server_http::arm_meters::{self, ArmFigures};
use server_http::builtin::NGINX_VERSION;
use server_http::http::Http;
use server_http::meters::{self, BOUNDS, CLASSES, Event, Sums, Time};
use server_http::stats::{self, Open, Totals};

use super::caches::{self, CacheFacts};
use super::experiments;
use super::format::{Format, MetricType, Writer, seconds};
use super::process::Process;
use super::upstreams::{self, UpstreamFacts};

/// The values of a page.
pub(super) struct Facts {
    totals: Totals,
    open: [Open; Protocol::ALL.len()],
    sums: Sums,
    store: Option<StoreFigures>,
    arms: Vec<ArmFigures>,
    upstreams: UpstreamFacts,
    caches: CacheFacts,
    process: Option<Process>,
}

impl Facts {
    /// Reads the present values.
    ///
    /// `now_ms` is monotonic.
    pub(super) fn now(http: &Http, now_ms: u64) -> Self {
        Self {
            totals: stats::totals(),
            open: stats::open(),
            sums: meters::sums(),
            store: StoreFigures::published(),
            arms: arm_meters::figures(),
            upstreams: UpstreamFacts::now(http, now_ms),
            caches: CacheFacts::now(http),
            process: Process::now(),
        }
    }
}

/// The page.
pub(super) fn render(format: Format, facts: &Facts) -> String {
    let mut page = Writer::new(format);
    build(&mut page);
    connections(&mut page, facts);
    requests(&mut page, &facts.sums);
    times(&mut page, &facts.sums);
    events(&mut page, &facts.sums);
    if let Some(figures) = &facts.store {
        store(&mut page, figures);
    }
    experiments::write(&mut page, &facts.arms);
    upstreams::write(&mut page, &facts.upstreams);
    caches::write(&mut page, &facts.caches);
    files(&mut page, &facts.sums);
    if let Some(process) = &facts.process {
        self::process(&mut page, process);
    }
    page.end()
}

fn build(page: &mut Writer) {
    page.family(
        "firstbyte_build",
        MetricType::Info,
        "",
        "The running version, and the version of nginx it is compatible with.",
    );
    let labels = [
        ("version", env!("CARGO_PKG_VERSION")),
        ("nginx_version", NGINX_VERSION),
    ];
    page.sample("firstbyte_build_info", &labels, 1);
}

fn connections(page: &mut Writer, facts: &Facts) {
    page.family(
        "firstbyte_connections",
        MetricType::Gauge,
        "",
        "Open client connections.",
    );
    for (protocol, open) in Protocol::ALL.iter().zip(&facts.open) {
        for (state, count) in [
            ("waiting", open.waiting),
            ("reading", open.reading),
            ("writing", open.writing),
        ] {
            page.sample(
                "firstbyte_connections",
                &[("protocol", protocol.as_str()), ("state", state)],
                count,
            );
        }
    }
    let (name, help) = (
        "firstbyte_accepted_connections",
        "Connections accepted since the start.",
    );
    counters(page, name, help, "", &[("", facts.totals.accepted)]);
}

/// The counted protocols, with their indices in the counters.
fn protocols() -> impl Iterator<Item = (usize, &'static str)> {
    Version::ALL.iter().map(|v| v.as_str()).enumerate()
}

fn requests(page: &mut Writer, sums: &Sums) {
    page.family(
        "firstbyte_requests",
        MetricType::Counter,
        "",
        "Requests that have ended, by protocol and class of status.",
    );
    for (at, protocol) in protocols() {
        for (class, name) in CLASSES.iter().enumerate() {
            let count = sums.requests(at, class);
            page.sample(
                "firstbyte_requests_total",
                &[("protocol", protocol), ("class", name)],
                count,
            );
        }
    }
    bytes(page, "received", "requests", |at| sums.received(at));
    bytes(page, "sent", "responses", |at| sums.sent(at));
}

fn bytes(page: &mut Writer, name: &str, of: &str, sum: impl Fn(usize) -> u64) {
    let help = format!("Bytes of {of}, heads and bodies.");
    let name = format!("firstbyte_{name}_bytes");
    page.family(&name, MetricType::Counter, "bytes", &help);
    for (at, protocol) in protocols() {
        page.sample(&format!("{name}_total"), &[("protocol", protocol)], sum(at));
    }
}

fn times(page: &mut Writer, sums: &Sums) {
    for (of, name, help) in [
        (
            Time::Request,
            "firstbyte_request_duration_seconds",
            "Time from the end of the request head to the end of the response.",
        ),
        (
            Time::FirstByte,
            "firstbyte_first_byte_seconds",
            "Time from the end of the request head to the first byte of the response given to the kernel.",
        ),
        (
            Time::FirstByteSent,
            "firstbyte_first_byte_sent_seconds",
            "Time from the end of the request head until the first byte left the machine, of sampled responses.",
        ),
        (
            Time::FirstByteAcked,
            "firstbyte_first_byte_acked_seconds",
            "Time from the end of the request head until the first byte was acknowledged, of sampled responses.",
        ),
    ] {
        page.family(name, MetricType::Histogram, "seconds", help);
        let histogram = sums.histogram(of);
        let bucket = format!("{name}_bucket");
        for ((_, bound), within) in BOUNDS.iter().zip(histogram.within) {
            page.sample(&bucket, &[("le", bound)], within);
        }
        page.sample(&bucket, &[("le", "+Inf")], histogram.count);
        page.sample(&format!("{name}_sum"), &[], seconds(histogram.sum_us));
        page.sample(&format!("{name}_count"), &[], histogram.count);
    }
}

fn events(page: &mut Writer, sums: &Sums) {
    let (name, help) = (
        "firstbyte_respawned_workers",
        "Workers that ended without a command and were replaced, since the start of the supervisor.",
    );
    counters(page, name, help, "", &[("", stats::respawned())]);
    for family in EVENTS {
        let counts = (family.events.iter()).map(|(value, event)| (*value, sums.events(*event)));
        let counts: Vec<_> = counts.collect();
        counters(page, family.name, family.help, family.label, &counts);
    }
}

/// Figures of the store process.
fn store(page: &mut Writer, figures: &StoreFigures) {
    let (name, help) = (
        "firstbyte_lab_store_samples",
        "Samples that the store process has received, by whether it could write them.",
    );
    let counts = [("written", figures.written), ("dropped", figures.dropped)];
    counters(page, name, help, "result", &counts);
    let help = "Writes to the store that failed and are tried again.";
    let counts = [("", figures.failed_writes)];
    counters(page, "firstbyte_lab_store_failed_writes", help, "", &counts);
    let help = "Whether the store cannot be written at present.";
    let failing = u64::from(figures.is_failing);
    gauge(page, "firstbyte_lab_store_failing", "", help, failing);
    batches(page, figures);
}

/// Figures of batches for ClickHouse.
fn batches(page: &mut Writer, figures: &StoreFigures) {
    for (name, help, count) in [
        (
            "firstbyte_lab_store_batches",
            "Batches that ClickHouse has stored.",
            figures.batches_sent,
        ),
        (
            "firstbyte_lab_store_retries",
            "Batches sent again because ClickHouse did not confirm them.",
            figures.retries,
        ),
        (
            "firstbyte_lab_store_spill_dropped_samples",
            "Samples dropped because the spill directory was full.",
            figures.spill_dropped,
        ),
    ] {
        counters(page, name, help, "", &[("", count)]);
    }
    let (name, batches) = (
        "firstbyte_lab_store_spilled_batches",
        figures.spilled_batches,
    );
    let help = "Batches in the spill directory.";
    gauge(page, name, "", help, batches);
    let (name, bytes) = ("firstbyte_lab_store_spilled_bytes", figures.spilled_bytes);
    let help = "Bytes of the batches in the spill directory.";
    gauge(page, name, "bytes", help, bytes);
}

fn files(page: &mut Writer, sums: &Sums) {
    let files = sums.files();
    let help = "Files kept open for reuse.";
    gauge(page, "firstbyte_open_files", "", help, files.kept);
    let (name, bytes) = ("firstbyte_open_files_memory_bytes", files.memory_bytes);
    let help = "Memory of cached small files.";
    gauge(page, name, "bytes", help, bytes);
    let (name, help) = (
        "firstbyte_file_lookups",
        "File lookups, by whether the file was already open.",
    );
    let counts = [("hit", files.hits), ("miss", files.misses)];
    counters(page, name, help, "result", &counts);
}

/// A family of counters, each with its value of the label; one with an empty value has no label.
fn counters(page: &mut Writer, name: &str, help: &str, label: &str, counts: &[(&str, u64)]) {
    page.family(name, MetricType::Counter, "", help);
    let sample = format!("{name}_total");
    for (value, count) in counts {
        let labels = [(label, *value)];
        let labels = &labels[usize::from(value.is_empty())..];
        page.sample(&sample, labels, count);
    }
}

/// A family of one gauge.
fn gauge(page: &mut Writer, name: &str, unit: &str, help: &str, value: impl Display) {
    page.family(name, MetricType::Gauge, unit, help);
    page.sample(name, &[], value);
}

#[rustfmt::skip] // One line a gauge.
fn process(page: &mut Writer, process: &Process) {
    let (name, help) = ("process_cpu_seconds", "Processor time of the worker.");
    page.family(name, MetricType::Counter, "seconds", help);
    page.sample("process_cpu_seconds_total", &[], process.cpu_s);
    gauge(page, "process_resident_memory_bytes", "bytes", "Resident memory of the worker.", process.resident_bytes);
    gauge(page, "process_virtual_memory_bytes", "bytes", "Virtual memory of the worker.", process.virtual_bytes);
    gauge(page, "process_threads", "", "Threads of the worker.", process.threads);
    gauge(page, "process_open_fds", "", "Open descriptors of the worker.", process.open_fds);
    let help = "Start time of the worker, seconds since 1970.";
    gauge(page, "process_start_time_seconds", "seconds", help, process.started_s);
}

/// Events of one counter family, each with its value of the label; an event without a value has no label.
struct Events {
    name: &'static str,
    help: &'static str,
    label: &'static str,
    events: &'static [(&'static str, Event)],
}

const EVENTS: &[Events] = &[
    Events {
        name: "firstbyte_first_byte_samples",
        help: "Responses sampled for their first byte, by whether other data was in flight before it.",
        label: "connection",
        events: &[("idle", Event::SampledIdle), ("busy", Event::SampledBusy)],
    },
    Events {
        name: "firstbyte_first_byte_stalls",
        help: "Sampled responses on idle connections whose first byte was acknowledged late.",
        label: "cause",
        events: &[
            (Stall::DelayedAck.as_str(), Event::StallDelayedAck),
            (Stall::Retransmit.as_str(), Event::StallRetransmit),
            (Stall::Window.as_str(), Event::StallWindow),
        ],
    },
    Events {
        name: "firstbyte_tls_handshakes",
        help: "TLS handshakes that succeeded.",
        label: "kind",
        events: &[
            ("full", Event::HandshakeFull),
            ("resumed", Event::HandshakeResumed),
        ],
    },
    Events {
        name: "firstbyte_tls_handshake_failures",
        help: "TLS handshakes that failed.",
        label: "reason",
        events: &[
            ("plain_http", Event::FailedPlainHttp),
            ("not_tls", Event::FailedNotTls),
            ("rejected", Event::FailedRejected),
            ("no_certificate", Event::FailedNoCertificate),
            ("alert", Event::FailedAlert),
            ("protocol", Event::FailedProtocol),
            ("abandoned", Event::FailedAbandoned),
            ("timeout", Event::FailedTimeout),
            ("no_common_protocol", Event::FailedVersion),
            ("no_common_cipher", Event::FailedCipher),
            ("refused_certificate", Event::FailedCertificate),
        ],
    },
    Events {
        name: "firstbyte_tls_client_certificate_failures",
        help: "Handshakes with clients without an accepted certificate, whose requests are refused.",
        label: "reason",
        events: &[
            ("missing", Event::ClientCertificateMissing),
            ("expired", Event::ClientCertificateExpired),
            ("revoked", Event::ClientCertificateRevoked),
            ("other", Event::ClientCertificateRefused),
        ],
    },
    Events {
        name: "firstbyte_shed_connections",
        help: "Connections closed to make room for others.",
        label: "connection",
        events: &[
            ("kept_alive", Event::ShedKeptAlive),
            ("silent", Event::ShedSilent),
            ("upstream", Event::ShedUpstream),
        ],
    },
    Events {
        name: "firstbyte_accept_pauses",
        help: "Times that no connection could be closed, and new ones had to wait.",
        label: "",
        events: &[("", Event::AcceptPause)],
    },
    Events {
        name: "firstbyte_refused_connections",
        help: "Connections closed unserved, since no other could be closed for them.",
        label: "",
        events: &[("", Event::Refused)],
    },
    Events {
        name: "firstbyte_reloads",
        help: "Configurations received by the worker after its first, by whether they were applied.",
        label: "result",
        events: &[("taken", Event::Reload), ("failed", Event::ReloadFailed)],
    },
    Events {
        name: "firstbyte_lab_samples",
        help: "Samples of connections, page views and arms for the store, by whether the worker could queue them.",
        label: "result",
        events: &[
            ("queued", Event::SampleQueued),
            ("dropped", Event::SampleDropped),
        ],
    },
    Events {
        name: "firstbyte_experiment_beacons",
        help: "Accepted beacons of page views, by whether their user is in an experiment.",
        label: "result",
        events: &[
            ("recorded", Event::BeaconRecorded),
            ("outside", Event::BeaconOutside),
        ],
    },
    Events {
        name: "firstbyte_experiment_beacons_refused",
        help: "Refused beacons of page views.",
        label: "reason",
        events: &[
            ("content_type", Event::BeaconContentType),
            ("cross_site", Event::BeaconCrossSite),
            ("too_large", Event::BeaconTooLarge),
            ("address_rate", Event::BeaconAddressRate),
            ("user_rate", Event::BeaconUserRate),
            ("version", Event::BeaconVersion),
            ("malformed", Event::BeaconMalformed),
            ("limit", Event::BeaconLimit),
            ("old", Event::BeaconOld),
            ("backwards", Event::BeaconBackwards),
            ("future", Event::BeaconFuture),
            ("no_user", Event::BeaconNoUser),
            ("forged_user", Event::BeaconForgedUser),
            ("forged_arm", Event::BeaconForgedArm),
            ("replay", Event::BeaconReplay),
            ("not_live", Event::BeaconNotLive),
        ],
    },
];
