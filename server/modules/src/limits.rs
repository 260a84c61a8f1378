//! Shared by `limit_req` and `limit_conn`: zones and their counts, parameters, levels of their messages, statuses.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};

use conf::{ConfError, Directive, Word};
use server_base::config::ConfigContext;
use server_base::errlog::{Level, Printable};
use server_base::from_args::FromArgs;
use server_base::keyword;
use server_base::zone::{self, Zone};
use server_http::assemble::ConfigBuilder;
use server_http::decision::LimitResult;
use server_http::exchange::{Ctx, Exchange};
use server_http::value::Value;

keyword! {
    /// `limit_req_log_level`, `limit_conn_log_level`.
    pub enum LimitLevel {
        /// Informational.
        Info = "info",
        /// Notices.
        Notice = "notice",
        /// Warnings.
        Warn = "warn",
        /// Errors.
        Error = "error",
    }
}

impl LimitLevel {
    /// For refusals.
    pub(crate) fn level(self) -> Level {
        match self {
            Self::Info => Level::Info,
            Self::Notice => Level::Notice,
            Self::Warn => Level::Warn,
            Self::Error => Level::Error,
        }
    }

    /// For delays: one less severe.
    pub(crate) fn milder(self) -> Level {
        match self {
            Self::Info | Self::Notice => Level::Info,
            Self::Warn => Level::Notice,
            Self::Error => Level::Warn,
        }
    }
}

/// The status of refused requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RejectStatus(pub(crate) u16);

impl FromArgs for RejectStatus {
    const SYNTAX: &'static str = "code";

    fn parse(_: &mut dyn ConfigContext, d: &Directive) -> Result<Self, ConfError> {
        let code = conf::between(d, conf::number(d)?, 400, 599)?;
        Ok(Self(code as u16))
    }
}

/// Default status of requests over a limit, or without room in the zone.
pub(crate) const UNAVAILABLE: RejectStatus = RejectStatus(503);

/// Appends the value of `$limit_conn_status` or `$limit_req_status`; returns whether there is one.
pub(crate) fn write_result(result: Option<LimitResult>, out: &mut Vec<u8>) -> bool {
    let name: &[u8] = match result {
        None => return false,
        Some(LimitResult::Passed) => b"PASSED",
        Some(LimitResult::Delayed) => b"DELAYED",
        Some(LimitResult::Rejected) => b"REJECTED",
        Some(LimitResult::DelayedDryRun) => b"DELAYED_DRY_RUN",
        Some(LimitResult::RejectedDryRun) => b"REJECTED_DRY_RUN",
    };
    out.extend_from_slice(name);
    true
}

/// A number above zero, as in `burst=5`.
pub(crate) fn positive(text: &[u8]) -> Option<u64> {
    conf::parse_number(text).filter(|n| *n > 0)
}

/// The error for a directive without its zone.
pub(crate) fn no_zone(d: &Directive) -> ConfError {
    let name = d.name();
    ConfError::at(d, format!("\"{name}\" must have \"zone\" parameter"))
}

/// Counts of the results of a zone. They stay over reloads while a configuration has the zone.
#[derive(Debug, Default)]
pub(crate) struct LimitCounts([AtomicU64; OUTCOMES]);

impl LimitCounts {
    /// Returns the counts of a zone of a module: those in use, or new ones.
    fn attach(module: &'static str, name: &[u8]) -> Arc<Self> {
        let mut zones = COUNTS.lock().unwrap_or_else(PoisonError::into_inner);
        zones.retain(|_, counts| counts.strong_count() > 0);
        let id = (module, name.to_vec());
        if let Some(counts) = zones.get(&id).and_then(Weak::upgrade) {
            return counts;
        }
        let counts = Arc::default();
        zones.insert(id, Arc::downgrade(&counts));
        counts
    }

    /// Counts a result.
    pub(crate) fn count(&self, outcome: LimitResult) {
        self.0[outcome as usize].fetch_add(1, Ordering::Relaxed);
    }

    /// Returns the number of results of a kind.
    pub(crate) fn of(&self, outcome: LimitResult) -> u64 {
        self.0[outcome as usize].load(Ordering::Relaxed)
    }

    /// Sets all counts to 0.
    pub(crate) fn reset(&self) {
        (self.0.iter()).for_each(|count| count.store(0, Ordering::Relaxed));
    }
}

/// Number of values of [`LimitResult`].
const OUTCOMES: usize = LimitResult::RejectedDryRun as usize + 1;

/// The counts in use, by the names of module and zone.
static COUNTS: Mutex<Registry> = Mutex::new(BTreeMap::new());

type Registry = BTreeMap<(&'static str, Vec<u8>), Weak<LimitCounts>>;

/// A zone of `limit_req_zone` or `limit_conn_zone`: an entry for each value of a key.
pub(crate) struct LimitZone<V> {
    /// Index of the zone in the configuration.
    pub(crate) id: usize,
    /// Its name.
    pub(crate) name: Vec<u8>,
    key: Value,
    key_text: String,
    /// The entries of the zone.
    pub(crate) entries: Arc<Zone<V>>,
    /// Its results.
    pub(crate) counts: Arc<LimitCounts>,
}

impl<V: Send + 'static> LimitZone<V> {
    /// Declares a zone with the first argument of `d` as its key. `place` is the word with its name and size, `module`
    /// its owner, and `what` its name in messages. `key_of` returns the key of a zone if it is declared already.
    ///
    /// # Errors
    /// The zone is already declared with another size, module or key.
    pub(crate) fn declare(
        b: &mut ConfigBuilder,
        d: &Directive,
        key: Value,
        (word, (name, size)): (&Word, (&[u8], u64)),
        (module, what): (&'static str, &str),
        key_of: impl Fn(&mut ConfigBuilder, usize) -> Option<String>,
    ) -> Result<Self, ConfError> {
        let id = zone::refer(b, d, word, name, size, module)?;
        let shown = String::from_utf8_lossy(name);
        if let Some(key) = key_of(b, id) {
            let text = format!("{} \"{shown}\" is already bound to key \"{key}\"", d.name());
            return Err(ConfError::at(d, text));
        }
        let key_text = d.arg_str(0);
        let entries = zone::attach(module, name, size, d.arg(0)).map_err(|old| {
            let old = String::from_utf8_lossy(&old);
            ConfError::new(format!(
                "{what} \"{shown}\" uses the \"{key_text}\" key while previously it used the \"{old}\" key"
            ))
        })?;
        Ok(Self {
            id,
            name: name.to_vec(),
            key,
            key_text: key_text.to_owned(),
            entries,
            counts: LimitCounts::attach(module, name),
        })
    }

    /// Returns the key as written in the configuration.
    pub(crate) fn key_text(&self) -> String {
        self.key_text.clone()
    }

    /// Computes the key of a request; `None` if it is empty or longer than `most` bytes.
    pub(crate) fn key(&self, x: &mut Exchange, cx: &mut Ctx<'_>, most: usize) -> Option<Vec<u8>> {
        let key = self.key.to_vec(x, cx);
        if key.len() > most {
            let (name, key) = (&self.key_text, Printable(&key));
            x.log(
                Level::Error,
                format_args!(
                    "the value of the \"{name}\" key is more than {most} bytes: \"{key}\""
                ),
            );
            return None;
        }
        Some(key).filter(|key| !key.is_empty())
    }
}
