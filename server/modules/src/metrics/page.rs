//! The families of metrics and their samples.

use engines::http::probe::Stall;
use server_http::builtin::NGINX_VERSION;
use server_http::meters::{self, BOUNDS, CLASSES, Event, Sums, Time};
use server_http::stats::{self, Open, Protocol, Totals};

use super::format::{Format, Kind, Writer, seconds};
use super::process::Process;

/// All that a page shows.
pub(super) struct Facts {
    totals: Totals,
    open: [Open; stats::PROTOCOLS.len()],
    sums: Sums,
    process: Option<Process>,
}

impl Facts {
    /// As they are now.
    pub(super) fn now() -> Self {
        Self {
            totals: stats::totals(),
            open: stats::open(),
            sums: meters::sums(),
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
    samples(&mut page, &facts.sums);
    handshakes(&mut page, &facts.sums);
    shed(&mut page, &facts.sums);
    reloads(&mut page, &facts.sums);
    files(&mut page, &facts.sums);
    if let Some(process) = &facts.process {
        self::process(&mut page, process);
    }
    page.end()
}

fn build(page: &mut Writer) {
    page.family(
        "firstbyte_build",
        Kind::Info,
        "",
        "The version that runs, and the version of nginx it understands.",
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
        Kind::Gauge,
        "",
        "Open client connections.",
    );
    for (protocol, open) in stats::PROTOCOLS.iter().zip(&facts.open) {
        let name = match protocol {
            Protocol::Http1 => "http/1",
            Protocol::Spdy => "spdy",
            Protocol::Http2 => "http/2",
            Protocol::Http3 => "http/3",
        };
        for (state, count) in [
            ("waiting", open.waiting),
            ("reading", open.reading),
            ("writing", open.writing),
        ] {
            page.sample(
                "firstbyte_connections",
                &[("protocol", name), ("state", state)],
                count,
            );
        }
    }
    page.family(
        "firstbyte_accepted_connections",
        Kind::Counter,
        "",
        "Connections accepted since the start.",
    );
    page.sample(
        "firstbyte_accepted_connections_total",
        &[],
        facts.totals.accepted,
    );
}

/// The protocols that are counted, with their places in the counters.
fn protocols() -> impl Iterator<Item = (usize, &'static str)> {
    meters::PROTOCOLS.iter().map(|v| v.as_str()).enumerate()
}

fn requests(page: &mut Writer, sums: &Sums) {
    page.family(
        "firstbyte_requests",
        Kind::Counter,
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
    page.family(&name, Kind::Counter, "bytes", &help);
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
        page.family(name, Kind::Histogram, "seconds", help);
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

fn samples(page: &mut Writer, sums: &Sums) {
    let counted = |page: &mut Writer, name: &str, label: &str, values: &[(&str, Event)]| {
        for (value, event) in values {
            page.sample(name, &[(label, value)], sums.events(*event));
        }
    };
    page.family(
        "firstbyte_first_byte_samples",
        Kind::Counter,
        "",
        "Responses whose first byte the kernel was asked about, by whether others were under way before it.",
    );
    counted(
        page,
        "firstbyte_first_byte_samples_total",
        "connection",
        &[("idle", Event::SampledIdle), ("busy", Event::SampledBusy)],
    );
    page.family(
        "firstbyte_first_byte_stalls",
        Kind::Counter,
        "",
        "Sampled responses on idle connections whose first byte was acknowledged late.",
    );
    counted(
        page,
        "firstbyte_first_byte_stalls_total",
        "cause",
        &[
            (Stall::DelayedAck.as_str(), Event::StallDelayedAck),
            (Stall::Retransmit.as_str(), Event::StallRetransmit),
            (Stall::Window.as_str(), Event::StallWindow),
        ],
    );
}

fn handshakes(page: &mut Writer, sums: &Sums) {
    page.family(
        "firstbyte_tls_handshakes",
        Kind::Counter,
        "",
        "TLS handshakes that succeeded.",
    );
    for (kind, event) in [
        ("full", Event::HandshakeFull),
        ("resumed", Event::HandshakeResumed),
    ] {
        page.sample(
            "firstbyte_tls_handshakes_total",
            &[("kind", kind)],
            sums.events(event),
        );
    }
    page.family(
        "firstbyte_tls_handshake_failures",
        Kind::Counter,
        "",
        "TLS handshakes that failed.",
    );
    for (reason, event) in [
        ("plain_http", Event::FailedPlainHttp),
        ("not_tls", Event::FailedNotTls),
        ("rejected", Event::FailedRejected),
        ("no_certificate", Event::FailedNoCertificate),
        ("alert", Event::FailedAlert),
        ("protocol", Event::FailedProtocol),
        ("abandoned", Event::FailedAbandoned),
    ] {
        page.sample(
            "firstbyte_tls_handshake_failures_total",
            &[("reason", reason)],
            sums.events(event),
        );
    }
}

fn shed(page: &mut Writer, sums: &Sums) {
    page.family(
        "firstbyte_shed_connections",
        Kind::Counter,
        "",
        "Connections closed to make room for others.",
    );
    for (connection, event) in [
        ("kept_alive", Event::ShedKeptAlive),
        ("silent", Event::ShedSilent),
        ("upstream", Event::ShedUpstream),
    ] {
        page.sample(
            "firstbyte_shed_connections_total",
            &[("connection", connection)],
            sums.events(event),
        );
    }
    page.family(
        "firstbyte_accept_pauses",
        Kind::Counter,
        "",
        "Times that nobody could be closed, and new connections had to wait.",
    );
    page.sample(
        "firstbyte_accept_pauses_total",
        &[],
        sums.events(Event::AcceptPause),
    );
}

fn reloads(page: &mut Writer, sums: &Sums) {
    page.family(
        "firstbyte_reloads",
        Kind::Counter,
        "",
        "Configurations that came to the worker after its first.",
    );
    for (result, event) in [("taken", Event::Reload), ("failed", Event::ReloadFailed)] {
        page.sample(
            "firstbyte_reloads_total",
            &[("result", result)],
            sums.events(event),
        );
    }
}

fn files(page: &mut Writer, sums: &Sums) {
    let files = sums.files();
    page.family(
        "firstbyte_open_files",
        Kind::Gauge,
        "",
        "Files that are kept open to be served again.",
    );
    page.sample("firstbyte_open_files", &[], files.kept);
    page.family(
        "firstbyte_open_files_memory_bytes",
        Kind::Gauge,
        "bytes",
        "Memory that kept bytes of small files take.",
    );
    page.sample("firstbyte_open_files_memory_bytes", &[], files.memory_bytes);
    page.family(
        "firstbyte_file_lookups",
        Kind::Counter,
        "",
        "Files asked for, by whether they were open already.",
    );
    page.sample(
        "firstbyte_file_lookups_total",
        &[("result", "hit")],
        files.hits,
    );
    page.sample(
        "firstbyte_file_lookups_total",
        &[("result", "miss")],
        files.misses,
    );
}

fn process(page: &mut Writer, process: &Process) {
    page.family(
        "process_cpu_seconds",
        Kind::Counter,
        "seconds",
        "Processor time of the worker.",
    );
    page.sample("process_cpu_seconds_total", &[], process.cpu_s);
    for (name, unit, help, value) in [
        (
            "process_resident_memory_bytes",
            "bytes",
            "Memory of the worker in RAM.",
            process.resident_bytes as f64,
        ),
        (
            "process_virtual_memory_bytes",
            "bytes",
            "Memory of the worker in all.",
            process.virtual_bytes as f64,
        ),
        (
            "process_threads",
            "",
            "Threads of the worker.",
            process.threads as f64,
        ),
        (
            "process_open_fds",
            "",
            "Open descriptors of the worker.",
            process.open_fds as f64,
        ),
        (
            "process_start_time_seconds",
            "seconds",
            "When the worker began, seconds since 1970.",
            process.started_s,
        ),
    ] {
        page.family(name, Kind::Gauge, unit, help);
        page.sample(name, &[], value);
    }
}
