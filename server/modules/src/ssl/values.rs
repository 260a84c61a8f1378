//! Types of the values of `ssl_*` directives.

use std::ops::Deref;
use std::sync::Arc;

use conf::{Arity, ConfError, Directive};
use server_base::config::ConfigContext;
use server_base::from_args::FromArgs;
use server_base::keyword;
use tls::{ClientMode, Versions};

/// A directive with one word, which is read after the block `http`. `None` if it is absent or its word is empty.
#[derive(Clone, Debug, Default)]
pub(crate) struct DeferredDirective(Option<Arc<Directive>>);

impl Deref for DeferredDirective {
    type Target = Option<Arc<Directive>>;

    fn deref(&self) -> &Self::Target {
        &self.0
    }
}

/// Compares directives by address: equal directives that are written twice differ.
impl PartialEq for DeferredDirective {
    fn eq(&self, other: &Self) -> bool {
        self.0.as_ref().map(Arc::as_ptr) == other.0.as_ref().map(Arc::as_ptr)
    }
}

impl FromArgs for DeferredDirective {
    const SYNTAX: &'static str = "string";

    fn parse(_: &mut dyn ConfigContext, d: &Directive) -> Result<Self, ConfError> {
        Ok(Self((!d.arg(0).is_empty()).then(|| Arc::new(d.clone()))))
    }
}

/// A directive with the name of a file.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct File(DeferredDirective);

impl Deref for File {
    type Target = Option<Arc<Directive>>;

    fn deref(&self) -> &Self::Target {
        &self.0
    }
}

impl FromArgs for File {
    const SYNTAX: &'static str = "file";

    fn parse(b: &mut dyn ConfigContext, d: &Directive) -> Result<Self, ConfError> {
        DeferredDirective::parse(b, d).map(Self)
    }
}

/// A time in seconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Seconds(pub(crate) u64);

impl FromArgs for Seconds {
    const SYNTAX: &'static str = "time";

    fn parse(_: &mut dyn ConfigContext, d: &Directive) -> Result<Self, ConfError> {
        conf::time_s(d).map(Self)
    }
}

/// `ssl_protocols`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Protocols(pub(crate) Versions);

impl FromArgs for Protocols {
    const ARITY: Arity = Arity::ONE_MORE;
    const SYNTAX: &'static str = "[SSLv2] [SSLv3] [TLSv1] [TLSv1.1] [TLSv1.2] [TLSv1.3]";

    fn parse(b: &mut dyn ConfigContext, d: &Directive) -> Result<Self, ConfError> {
        let bits = conf::mask(b.conf_loader(), d, NAMES)?;
        let versions = match (bits & TLS12 != 0, bits & TLS13 != 0) {
            (true, true) => Some(Versions::Both),
            (true, false) => Some(Versions::Tls12),
            (false, true) => Some(Versions::Tls13),
            (false, false) => None,
        };
        let mut obsolete = d.args.iter().filter(|word| {
            let supported = [&b"TLSv1.2"[..], b"TLSv1.3"];
            !supported
                .iter()
                .any(|name| name.eq_ignore_ascii_case(&word.text))
        });
        let Some(word) = obsolete.next() else {
            // The directive has at least one argument, so there is a version.
            return Ok(Self(versions.unwrap_or_default()));
        };
        let text = format!("protocol \"{}\" is not supported", word.as_str());
        let hint = "TLSv1.2 and TLSv1.3 are supported; older protocols are insecure (RFC 8996)";
        let Some(versions) = versions else {
            return Err(ConfError::word(d, word, text).with_hint(hint));
        };
        b.warn(ConfError::word(d, word, format!("{text}, ignored")));
        Ok(Self(versions))
    }
}

const TLS12: u32 = 1;
const TLS13: u32 = 2;
const NAMES: &[(&str, u32)] = &[
    ("SSLv2", 4),
    ("SSLv3", 8),
    ("TLSv1", 16),
    ("TLSv1.1", 32),
    ("TLSv1.2", TLS12),
    ("TLSv1.3", TLS13),
];

keyword! {
    /// `ssl_verify_client`.
    pub enum VerifyClient {
        /// No certificate is requested.
        Off = "off",
        /// A trusted certificate is required.
        On = "on",
        /// A certificate is optional, but must be trusted.
        Optional = "optional",
        /// A certificate is optional and may be untrusted, but must be well-formed.
        OptionalNoCa = "optional_no_ca",
    }
}

impl VerifyClient {
    pub(super) fn mode(self) -> Option<ClientMode> {
        match self {
            Self::Off => None,
            Self::On => Some(ClientMode::Required),
            Self::Optional => Some(ClientMode::Optional),
            Self::OptionalNoCa => Some(ClientMode::OptionalNoCa),
        }
    }
}

/// `ssl_session_cache`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) enum CacheKind {
    /// No sessions are stored.
    #[default]
    None,
    /// A cache for one server, with this number of sessions.
    Builtin(usize),
    /// A named cache shared by servers, with its size in bytes.
    Shared(Vec<u8>, u64),
}

/// Default number of sessions, as in OpenSSL.
pub(super) const BUILTIN_SESSIONS: usize = 20_480;
