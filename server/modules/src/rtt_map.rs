//! `rtt_map`, `lab_store`, `lab_retention`, `lab_network`: samples of visitors' connections for the map of round-trip times.
//!
//! The module reads the settings and returns the share of connections to record. The driver takes the samples, and the
//! store process of the supervisor writes them. Absent: reading the store, which is the lab's.
//!
//! Source: docs/map.md. nginx has none of these directives.

mod lab_store;

use conf::{ConfError, Contexts, Directive, Word};
use server_base::config::ConfigContext;
use server_base::from_args::FromArgs;
use server_base::lab_store::{
    LEAST_BYTES, LabEngine, LabStoreConf, MAX_BYTES, RETENTION_S, ROWS_S, V4_PREFIX_MAX,
    V6_PREFIX_MAX,
};
use server_http::assemble::ConfigBuilder;
use server_http::module::Module;
use server_http::settings;
use server_http::settings_set::Conf;
use server_http::timing::ALL;
use server_http::wants::Wants;

use crate::geoip_database;
use crate::lab_dashboard;
use crate::split_clients::share;

/// The module.
pub(crate) const MODULE: Module = Module {
    name: "rtt_map",
    directives: &[PLAIN, ROWS],
    settings: &[<RttMapMain as Conf>::def],
    wants: Some(wants),
    on_demand: true,
    finish: Some(finish),
    ..Module::EMPTY
};

settings! {
    /// Settings of the module.
    pub(crate) struct RttMapMain: Main / PLAIN {
        /// Time for which histograms, and rows of single connections, are kept; the oldest rows go first at the limit of the size.
        retention "lab_retention": Retention = Retention::DEFAULT, "400d rows=30d size=1g", Contexts::HTTP;
        /// Prefix lengths of the clients' networks in rows, or no networks.
        network "lab_network": NetworkPrefixes = NetworkPrefixes(Some((V4_PREFIX_MAX, V6_PREFIX_MAX))), "/24 /48", Contexts::HTTP;
    }
    extra {
        /// `lab_store`.
        store: Option<StoreDirective>,
        /// `rtt_map`, with the error for a missing store.
        recording: Option<(u64, ConfError)>,
    }
}

/// A `lab_store`.
pub(crate) struct StoreDirective {
    store: lab_store::Store,
    /// The directive, for errors.
    at: Directive,
}

conf::directives! {
    const ROWS: ConfigBuilder;

    /// Records connections for the map of round-trip times; `sample` is the share of connections.
    directive "rtt_map": Contexts::HTTP, TAKE12, "off", "on [sample=percent%] | off" => |b, d| {
        conf::once(d, b.conf_mut::<RttMapMain>().recording.is_some())?;
        let missing = ConfError::directive(d, "needs a \"lab_store\" in \"http\"");
        let share = parse_share(d)?;
        b.conf_mut::<RttMapMain>().recording = Some((share, missing));
        Ok(())
    };

    /// The store for samples of connections and page views of experiments, with its parameters; `server` is the name of this server in its rows, by default the host's.
    directive "lab_store": Contexts::HTTP, ONE_MORE, "",
        "sqlite:path [server=name] | clickhouse:http[s]://host[:port]/database [server=name] [user=name] [password_file=path] [ca=path] [spill=path] [spill_size=size] [batch=time]"
        => store;
}

fn store(b: &mut ConfigBuilder, d: &Directive) -> Result<(), ConfError> {
    let store = lab_store::parse(b, d)?;
    let main = b.conf_mut::<RttMapMain>();
    conf::once(d, main.store.is_some())?;
    let at = d.owned_head();
    main.store = Some(StoreDirective { store, at });
    Ok(())
}

/// Returns the share of recorded connections, in hundredths of a percent; 0 for `off`.
fn parse_share(d: &Directive) -> Result<u64, ConfError> {
    let sample = |word: &Word| word.text.strip_prefix(b"sample=").and_then(share).flatten();
    let share = match (d.arg(0), d.args.get(1)) {
        (b"off", None) => Some(0),
        (b"on", None) => Some(ALL),
        (b"on", Some(word)) => sample(word).filter(|share| (1..=ALL).contains(share)),
        _ => None,
    };
    let word = d.args.last().filter(|_| d.arg(0) == b"on");
    share.ok_or_else(|| ConfError::invalid(d, word.unwrap_or(d.word(0))))
}

/// Limits of the contents of the store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Retention {
    histograms_s: u64,
    rows_s: u64,
    /// `None`: not written.
    max_bytes: Option<u64>,
}

impl Retention {
    const DEFAULT: Self = Self {
        histograms_s: RETENTION_S,
        rows_s: ROWS_S,
        max_bytes: None,
    };
}

impl FromArgs for Retention {
    const ARITY: conf::Arity = conf::Arity::TAKE123;
    const SYNTAX: &'static str = "time [rows=time] [size=size | size=off]";

    fn parse(_: &mut dyn ConfigContext, d: &Directive) -> Result<Self, ConfError> {
        let mut retention = Self {
            histograms_s: conf::time_s(d)?,
            ..Self::DEFAULT
        };
        retention.rows_s = retention.rows_s.min(retention.histograms_s);
        for word in &d.args[1..] {
            let text = word.text.as_slice();
            let (rows, size) = (text.strip_prefix(b"rows="), text.strip_prefix(b"size="));
            let time = rows.and_then(conf::parse_time_s);
            let size = size.and_then(|size| match size {
                b"off" => Some(0),
                size => conf::parse_offset(size).filter(|bytes| *bytes >= LEAST_BYTES),
            });
            match (time, size) {
                (Some(rows_s), _) => retention.rows_s = rows_s,
                (_, Some(bytes)) => retention.max_bytes = Some(bytes),
                _ => return Err(ConfError::parameter(d, word)),
            }
        }
        Ok(retention)
    }
}

/// Prefix lengths of networks in rows, for IPv4 and IPv6.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct NetworkPrefixes(Option<(u8, u8)>);

impl FromArgs for NetworkPrefixes {
    const ARITY: conf::Arity = conf::Arity::TAKE12;
    const SYNTAX: &'static str = "/v4-prefix /v6-prefix | off";

    fn parse(_: &mut dyn ConfigContext, d: &Directive) -> Result<Self, ConfError> {
        let bad = |word: &Word, most: u8| {
            let text = format!(
                "invalid prefix \"{}\", it must be \"/0\" to \"/{most}\": full addresses are not stored",
                word.as_str()
            );
            ConfError::word(d, word, text)
        };
        let prefix = |word: &Word, most: u8| {
            let bits = word
                .text
                .strip_prefix(b"/")
                .and_then(|bits| str::from_utf8(bits).ok());
            let bits = bits.filter(|bits| bits.bytes().all(|byte| byte.is_ascii_digit()));
            let bits = bits.and_then(|bits| bits.parse().ok());
            bits.filter(|bits| *bits <= most)
                .ok_or_else(|| bad(word, most))
        };
        match (d.arg(0), d.args.get(1)) {
            (b"off", None) => Ok(Self(None)),
            (_, Some(v6)) => Ok(Self(Some((
                prefix(d.word(0), V4_PREFIX_MAX)?,
                prefix(v6, V6_PREFIX_MAX)?,
            )))),
            _ => Err(bad(d.word(0), V4_PREFIX_MAX)),
        }
    }
}

/// The driver records the share of the connections.
fn wants(b: &mut ConfigBuilder, _: bool) -> Wants {
    Wants::connections(share_of(b))
}

/// Returns the share of recorded connections, in hundredths of a percent.
fn share_of(b: &mut ConfigBuilder) -> u64 {
    let recording = &b.conf_mut::<RttMapMain>().recording;
    recording.as_ref().map_or(0, |(share, _)| *share)
}

/// Hands the settings of the store to the supervisor.
fn finish(b: &mut ConfigBuilder) -> Result<(), ConfError> {
    let databases = geoip_database::take_files(b);
    let records = share_of(b) > 0;
    if !records {
        geoip_database::warn_of_no_effect(b);
    }
    let dashboard = lab_dashboard::socket(b);
    let experiments = std::mem::take(&mut b.main.experiments);
    let main = b.conf_mut::<RttMapMain>();
    let Some(StoreDirective { store, at }) = main.store.take() else {
        let missing = main.recording.take().map(|(_, missing)| missing);
        return missing.filter(|_| records).map_or(Ok(()), Err);
    };
    let (retention, network) = (*main.retention, *main.network);
    if !records && experiments.is_empty() && dashboard.is_none() {
        b.warn(ConfError::directive(
            &at,
            "has no effect without \"rtt_map on\", \"experiment\" or \"lab_dashboard\"",
        ));
        return Ok(());
    }
    if matches!(store.engine, LabEngine::ClickHouse(_)) && retention.max_bytes.is_some() {
        let text =
            "names a ClickHouse server, but \"size=\" of \"lab_retention\" limits a SQLite file";
        return Err(ConfError::directive(&at, text));
    }
    b.main.lab_store = Some(LabStoreConf {
        engine: store.engine,
        server: store.server,
        retention_s: retention.histograms_s,
        rows_s: retention.rows_s,
        max_bytes: retention.max_bytes.unwrap_or(MAX_BYTES),
        network: network.0,
        databases,
        records,
        experiments,
        dashboard,
    });
    Ok(())
}

/// Returns whether a `lab_store` is written.
pub(crate) fn has_store(b: &ConfigBuilder) -> bool {
    b.main_conf::<RttMapMain>().store.is_some()
}
