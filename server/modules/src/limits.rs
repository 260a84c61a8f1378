//! What `limit_req` and `limit_conn` have in common: parameters, levels of their messages, statuses.

use conf::{Arity, ConfError, Directive, Word};
use server_core::config::ConfigContext;
use server_core::errlog::Level;
use server_core::keyword;
use server_core::typed::Typed;

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

/// A status for requests that are refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Refusal(pub(crate) u16);

impl Typed for Refusal {
    const ARITY: Arity = Arity::TAKE1;
    const SYNTAX: &'static str = "code";

    fn parse(_: &mut dyn ConfigContext, d: &Directive) -> Result<Self, ConfError> {
        let code = conf::between(d, conf::number(d)?, 400, 599)?;
        Ok(Self(code as u16))
    }
}

/// The status of a request for which there was no room in a zone, or that is over a limit.
pub(crate) const UNAVAILABLE: Refusal = Refusal(503);

/// A number above zero, as in `burst=5`.
pub(crate) fn positive(text: &[u8]) -> Option<u64> {
    conf::parse_number(text).filter(|n| *n > 0)
}

/// The error for a word that means nothing.
pub(crate) fn bad_parameter(d: &Directive, word: &Word) -> ConfError {
    let text = format!("invalid parameter \"{}\"", word.as_str());
    ConfError::word(d, word, text)
}

/// The error for a directive without its zone.
pub(crate) fn no_zone(d: &Directive) -> ConfError {
    let name = d.name();
    ConfError::at(d, format!("\"{name}\" must have \"zone\" parameter"))
}

/// The error for a zone that has another key than before a reload.
pub(crate) fn other_key(what: &str, name: &[u8], new: &str, old: &[u8]) -> ConfError {
    let (name, old) = (String::from_utf8_lossy(name), String::from_utf8_lossy(old));
    ConfError::new(format!(
        "{what} \"{name}\" uses the \"{new}\" key while previously it used the \"{old}\" key"
    ))
}

/// The error for a zone that is declared twice.
pub(crate) fn already_bound(d: &Directive, name: &[u8], key: &str) -> ConfError {
    let (what, name) = (d.name(), String::from_utf8_lossy(name));
    ConfError::at(
        d,
        format!("{what} \"{name}\" is already bound to key \"{key}\""),
    )
}
