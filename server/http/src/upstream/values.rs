//! Values of upstream directives.
//!
//! Source: nginx documentation, `ngx_http_proxy_module`.

use std::net::{IpAddr, SocketAddr};

use conf::{Arity, ConfError, Directive};
use server_base::config::ConfigContext;
use server_base::files::TempDir;
use server_base::from_args::{FromArgs, Size};

use super::conf::{IgnoredHeaders, Store};
use crate::value::Value;

impl FromArgs for IgnoredHeaders {
    const ARITY: Arity = Arity::ONE_MORE;
    const SYNTAX: &'static str = "field ...";

    fn parse(cx: &mut dyn ConfigContext, d: &Directive) -> Result<Self, ConfError> {
        Self::default().parse_again(cx, d)
    }

    fn parse_again(self, cx: &mut dyn ConfigContext, d: &Directive) -> Result<Self, ConfError> {
        conf::mask_more(cx.conf_loader(), d, Self::NAMES, self.0).map(Self)
    }
}

/// Number and size of the buffers for a response, as many as one likes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ResponseBuffers(pub u64, pub u64);

impl FromArgs for ResponseBuffers {
    const ARITY: Arity = Arity::TAKE2;
    const SYNTAX: &'static str = "number size";

    fn parse(_: &mut dyn ConfigContext, d: &Directive) -> Result<Self, ConfError> {
        conf::buffers(d).map(|(number, size)| Self(number, size as u64))
    }
}

/// `*_bind`.
#[derive(Clone, Debug)]
pub struct Bind(pub Option<(Value, bool)>);

impl FromArgs for Bind {
    const ARITY: Arity = Arity::TAKE12;
    const SYNTAX: &'static str = "address [transparent] | off";

    fn parse(cx: &mut dyn ConfigContext, d: &Directive) -> Result<Self, ConfError> {
        if d.args.len() == 1 && d.arg(0) == b"off" {
            return Ok(Self(None));
        }
        let value = Value::compile(cx, d, d.word(0))?;
        if value
            .constant()
            .is_some_and(|text| local_address(text).is_none())
        {
            let text = format!("invalid address \"{}\"", d.arg_str(0));
            return Err(ConfError::word(d, d.word(0), text));
        }
        let transparent = match d.args.get(1) {
            None => false,
            Some(word) if word.text == b"transparent" => true,
            Some(word) => {
                let text = format!("invalid parameter \"{}\"", word.as_str());
                return Err(ConfError::word(d, word, text));
            }
        };
        Ok(Self(Some((value, transparent))))
    }
}

/// A local address with or without a port, which is 0 then: `192.0.2.1`, `192.0.2.1:80`, `[::1]:80`, `::1`.
pub fn local_address(text: &[u8]) -> Option<SocketAddr> {
    let text = std::str::from_utf8(text).ok()?;
    let bare = text.strip_prefix('[').and_then(|t| t.strip_suffix(']'));
    let ip: Option<IpAddr> = bare.unwrap_or(text).parse().ok();
    match ip {
        Some(ip) => Some(SocketAddr::new(ip, 0)),
        None => text.parse().ok(),
    }
}

/// `*_temp_path`.
#[derive(Clone, Debug)]
pub struct TempPath(pub TempDir);

impl FromArgs for TempPath {
    const ARITY: Arity = Arity::TAKE1234;
    const SYNTAX: &'static str = "path [level1 [level2 [level3]]]";

    fn parse(cx: &mut dyn ConfigContext, d: &Directive) -> Result<Self, ConfError> {
        let invalid = |n: usize| {
            let text = format!("\"{}\" directive invalid value", d.name());
            ConfError::word(d, d.word(n), text)
        };
        let mut levels = [0; 3];
        let mut digits = 0;
        for (level, n) in levels.iter_mut().zip(1..d.args.len()) {
            let number = conf::parse_number(d.arg(n)).filter(|n| (1..=DIGITS).contains(n));
            let number = number.ok_or_else(|| invalid(n))?;
            digits += number;
            *level = number as u8;
        }
        if digits > DIGITS {
            return Err(invalid(d.args.len() - 1));
        }
        let path = d.arg(0);
        let path = cx.full_path(path.strip_suffix(b"/").unwrap_or(path));
        Ok(Self(TempDir { path, levels }))
    }
}

/// Digits of the number of a temporary file, which name its subdirectories.
const DIGITS: u64 = 10;

/// `*_store`.
#[derive(Clone, Debug)]
pub struct Stored(pub Option<Store>);

impl FromArgs for Stored {
    const SYNTAX: &'static str = "on | off | string";

    fn parse(cx: &mut dyn ConfigContext, d: &Directive) -> Result<Self, ConfError> {
        Ok(Self(match d.arg(0) {
            b"off" => None,
            b"" => return Err(ConfError::word(d, d.word(0), "empty path")),
            b"on" => Some(Store::Mapped),
            _ => Some(Store::Path(Value::compile(cx, d, d.word(0))?)),
        }))
    }
}

/// Values, of which all or any must hold.
#[derive(Clone, Debug, Default)]
pub struct Conditions(pub Vec<Value>);

impl FromArgs for Conditions {
    const ARITY: Arity = Arity::ONE_MORE;
    const SYNTAX: &'static str = "string ...";

    fn parse(cx: &mut dyn ConfigContext, d: &Directive) -> Result<Self, ConfError> {
        let values = d.args.iter().map(|word| Value::compile(cx, d, word));
        Ok(Self(values.collect::<Result<_, _>>()?))
    }
}

/// Conditions of a cache, which mean nothing without one; as in nginx they may be written several times.
#[derive(Clone, Debug, Default)]
pub struct CacheConditions;

impl FromArgs for CacheConditions {
    const ARITY: Arity = Arity::ONE_MORE;
    const SYNTAX: &'static str = "string ...";

    fn parse(cx: &mut dyn ConfigContext, d: &Directive) -> Result<Self, ConfError> {
        // The variables in them are noted, so that one that does not exist is an error.
        Conditions::parse(cx, d).map(|_| Self)
    }

    fn parse_again(self, cx: &mut dyn ConfigContext, d: &Directive) -> Result<Self, ConfError> {
        Self::parse(cx, d)
    }
}

/// `*_cache`, which can only be `off`.
#[derive(Clone, Copy, Debug)]
pub struct NoCache;

impl FromArgs for NoCache {
    const SYNTAX: &'static str = "off";

    fn parse(_: &mut dyn ConfigContext, d: &Directive) -> Result<Self, ConfError> {
        if d.arg(0) == b"off" {
            return Ok(Self);
        }
        let modules = conf::known_to_nginx(d.name()).unwrap_or_default();
        let name = d.name();
        let text = format!(
            "directive \"{name}\" is not built yet but for \"off\": it belongs to {modules}"
        );
        Err(ConfError::at(d, text))
    }
}

/// Names of fields, in lower case.
#[derive(Clone, Debug, Default)]
pub struct FieldNames(pub Vec<Box<[u8]>>);

impl FromArgs for FieldNames {
    const SYNTAX: &'static str = "field";

    fn parse(cx: &mut dyn ConfigContext, d: &Directive) -> Result<Self, ConfError> {
        Self::default().parse_again(cx, d)
    }

    fn parse_again(mut self, _: &mut dyn ConfigContext, d: &Directive) -> Result<Self, ConfError> {
        self.0.push(d.arg(0).to_ascii_lowercase().into());
        Ok(self)
    }
}

/// A size of a buffer of a socket, bytes.
#[derive(Clone, Copy, Debug)]
pub struct SocketBuffer(pub u32);

impl FromArgs for SocketBuffer {
    const SYNTAX: &'static str = "size";

    fn parse(cx: &mut dyn ConfigContext, d: &Directive) -> Result<Self, ConfError> {
        let size = Size::parse(cx, d)?.0;
        let size = u32::try_from(size).ok().filter(|n| *n <= i32::MAX as u32);
        size.map(Self)
            .ok_or_else(|| server_base::from_args::invalid(d))
    }
}

/// `*_send_lowat`: Linux has no such limit that could be set.
#[derive(Clone, Copy, Debug)]
pub struct SendLowat;

impl FromArgs for SendLowat {
    const SYNTAX: &'static str = "size";

    fn parse(cx: &mut dyn ConfigContext, d: &Directive) -> Result<Self, ConfError> {
        Size::parse(cx, d)?;
        let text = format!("\"{}\" is not supported, ignored", d.name());
        cx.warn(ConfError::at(d, text));
        Ok(Self)
    }
}
