//! Values of the directives about caches, for any prefix.
//!
//! Absent: `*_cache_path`, which is in [`path`](super::path); rows and inheritance, which are in
//! [`upstream`](crate::upstream).
//!
//! Source: nginx documentation, `ngx_http_proxy_module`; errors are nginx's.

use conf::{Arity, ConfError, Directive};
use server_base::config::ConfigContext;
use server_base::from_args::FromArgs;

use super::conf::{CacheMethods, CacheValid, StatusMatch};
use crate::value::{Value, variable_names};

/// `*_cache`.
#[derive(Clone, Debug)]
pub enum CacheChoice {
    /// `off`.
    Off,
    /// A cache.
    On {
        /// Its name.
        name: CacheName,
        /// The directive, for errors about several directives.
        at: Box<Directive>,
    },
}

/// The name of a cache.
#[derive(Clone, Debug)]
pub enum CacheName {
    /// This one.
    Fixed(Box<[u8]>),
    /// It is computed for each request.
    Computed(Value),
}

impl FromArgs for CacheChoice {
    const SYNTAX: &'static str = "zone | off";

    fn parse(cx: &mut dyn ConfigContext, d: &Directive) -> Result<Self, ConfError> {
        if d.arg(0) == b"off" {
            return Ok(Self::Off);
        }
        let value = Value::compile(cx, d, d.word(0))?;
        let name = match value.constant() {
            Some(name) => CacheName::Fixed(name.into()),
            None => CacheName::Computed(value),
        };
        let at = Box::new(d.owned_head());
        Ok(Self::On { name, at })
    }
}

impl CacheChoice {
    /// Whether there is a cache.
    #[must_use]
    pub fn is_on(&self) -> bool {
        matches!(self, Self::On { .. })
    }
}

/// `*_cache_bypass`, `*_no_cache`, `*_cache_purge`: values, of which any must hold. Several directives of a level count
/// together.
#[derive(Clone, Debug, Default)]
pub struct AnyOf(pub Vec<Value>);

impl FromArgs for AnyOf {
    const ARITY: Arity = Arity::ONE_MORE;
    const SYNTAX: &'static str = "string ...";

    fn parse(cx: &mut dyn ConfigContext, d: &Directive) -> Result<Self, ConfError> {
        Self::default().parse_again(cx, d)
    }

    fn parse_again(mut self, cx: &mut dyn ConfigContext, d: &Directive) -> Result<Self, ConfError> {
        for word in &d.args {
            self.0.push(Value::compile(cx, d, word)?);
        }
        Ok(self)
    }
}

impl FromArgs for CacheValid {
    const ARITY: Arity = Arity::ONE_MORE;
    const SYNTAX: &'static str = "[code ...] time";

    fn parse(cx: &mut dyn ConfigContext, d: &Directive) -> Result<Self, ConfError> {
        Self::default().parse_again(cx, d)
    }

    fn parse_again(mut self, _: &mut dyn ConfigContext, d: &Directive) -> Result<Self, ConfError> {
        let last = d.word(d.args.len() - 1);
        let Some(seconds) = conf::parse_time_s(&last.text) else {
            let text = format!("invalid time value \"{}\"", last.as_str());
            return Err(ConfError::word(d, last, text));
        };
        let seconds = u32::try_from(seconds).unwrap_or(u32::MAX);
        let codes = &d.args[..d.args.len() - 1];
        if codes.is_empty() {
            for status in [200, 301, 302] {
                self.push(StatusMatch::Status(status), seconds);
            }
        }
        for word in codes {
            let statuses = match word.text.as_slice() {
                b"any" => Some(StatusMatch::Any),
                code => status(code).map(StatusMatch::Status),
            };
            let Some(statuses) = statuses else {
                let text = format!("invalid status \"{}\"", word.as_str());
                return Err(ConfError::word(d, word, text));
            };
            self.push(statuses, seconds);
        }
        Ok(self)
    }
}

/// A status from 100 to 599.
fn status(code: &[u8]) -> Option<u16> {
    let status = conf::parse_number(code)?;
    u16::try_from(status)
        .ok()
        .filter(|status| (100..=599).contains(status))
}

/// `*_cache_methods`, as written: bits of [`CacheMethods::NAMES`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MethodBits(pub u32);

impl FromArgs for MethodBits {
    const ARITY: Arity = Arity::ONE_MORE;
    const SYNTAX: &'static str = "GET | HEAD | POST ...";

    fn parse(cx: &mut dyn ConfigContext, d: &Directive) -> Result<Self, ConfError> {
        Self::default().parse_again(cx, d)
    }

    fn parse_again(self, cx: &mut dyn ConfigContext, d: &Directive) -> Result<Self, ConfError> {
        conf::mask_more(cx.conf_loader(), d, CacheMethods::NAMES, self.0).map(Self)
    }
}

/// `*_cache_key`.
#[derive(Clone, Debug)]
pub struct KeyText {
    /// The key.
    pub value: Value,
    /// Whether it has the method of the request.
    pub has_method: bool,
    /// Whether it depends on scheme, host and URI of the request alone.
    pub is_of_uri: bool,
}

/// Variables of scheme, host and URI.
const URI_VARIABLES: [&[u8]; 14] = [
    b"scheme",
    b"https",
    b"proxy_host",
    b"proxy_port",
    b"host",
    b"http_host",
    b"server_name",
    b"server_port",
    b"request_uri",
    b"uri",
    b"document_uri",
    b"args",
    b"query_string",
    b"is_args",
];

impl FromArgs for KeyText {
    const SYNTAX: &'static str = "string";

    fn parse(cx: &mut dyn ConfigContext, d: &Directive) -> Result<Self, ConfError> {
        let names = || variable_names(d.arg(0));
        Ok(Self {
            value: Value::compile(cx, d, d.word(0))?,
            has_method: names().any(|name| name == b"request_method"),
            is_of_uri: names().all(|name| URI_VARIABLES.contains(&name)),
        })
    }
}
