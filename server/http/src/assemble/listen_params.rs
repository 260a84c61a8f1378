//! The parameters of `listen`: protocols, the default server, options of the socket.
//!
//! Source: nginx documentation, directive `listen`; nginx 1.31.4 for parameters that have no effect on Linux.

use conf::{ConfError, Directive};
use engines::http::{Protocol, Protocols};
use server_base::listen::{KeepAlive, SocketOptions};

/// The parameters of one `listen` directive.
#[derive(Default)]
pub(super) struct ListenParams {
    /// Options of the socket.
    pub(super) options: SocketOptions,
    /// An option of the socket was written, `bind` included: the address gets a socket of its own.
    pub(super) own_socket: bool,
    /// `default_server`.
    pub(super) default: bool,
    /// `proxy_protocol`.
    pub(super) proxy_protocol: bool,
    /// Protocols besides HTTP/1.
    pub(super) protocols: Protocols,
    /// `ssl`.
    pub(super) ssl: bool,
    /// Parameters that are ignored, or were replaced by a directive.
    pub(super) warnings: Vec<ConfError>,
}

impl ListenParams {
    /// Parses the arguments of `listen` behind the address; `inet`: the address has a port.
    ///
    /// # Errors
    /// An unknown parameter or a wrong value, in nginx's words.
    pub(super) fn parse(d: &Directive, inet: bool) -> Result<Self, ConfError> {
        let mut params = Self::default();
        for n in 1..d.args.len() {
            let error = |text: String| ConfError::word(d, d.word(n), text);
            let warning = params.parameter(d.arg_str(n), inet).map_err(error)?;
            params.warnings.extend(warning.map(error));
        }
        Ok(params)
    }

    /// Applies one parameter; returns the text of a warning.
    fn parameter(&mut self, text: &str, inet: bool) -> Result<Option<String>, String> {
        if let Some(protocol) = Protocol::from_listen(text) {
            self.protocols = self.protocols.with(protocol);
            return Ok((text == "http2").then(|| HTTP2_IS_A_DIRECTIVE.to_owned()));
        }
        match text {
            "default_server" | "default" => self.default = true,
            "proxy_protocol" => self.proxy_protocol = true,
            "ssl" => self.ssl = true,
            "quic" => return Err("the \"quic\" parameter is not built yet".to_owned()),
            // Filters of FreeBSD's kernel. Without one the address needs no socket of its own.
            _ if text.starts_with("accept_filter=") => {
                return Ok(Some(format!(
                    "accept filters \"{text}\" are not supported on this platform, ignored"
                )));
            }
            _ => {
                self.socket_option(text, inet)?;
                self.own_socket = true;
            }
        }
        Ok(None)
    }

    fn socket_option(&mut self, text: &str, inet: bool) -> Result<(), String> {
        let (key, value) = match text.split_once('=') {
            Some((key, value)) => (key, Some(value)),
            None => (text, None),
        };
        let invalid = || format!("invalid {key} \"{text}\"");
        let options = &mut self.options;
        match (key, value) {
            ("bind", None) => {}
            ("deferred", None) => options.deferred = true,
            ("reuseport", None) if !inet => {
                return Err("reuseport is not supported for UNIX sockets".to_owned());
            }
            ("reuseport", None) => options.reuseport = true,
            ("multipath", None) if !inet => {
                return Err("multipath is not supported for UNIX sockets".to_owned());
            }
            ("multipath", None) => options.multipath = true,
            ("backlog", Some(v)) => {
                options.backlog = number(v).filter(|n| *n > 0).ok_or_else(invalid)?;
            }
            ("rcvbuf", Some(v)) => options.rcvbuf = Some(size(v).ok_or_else(invalid)?),
            ("sndbuf", Some(v)) => options.sndbuf = Some(size(v).ok_or_else(invalid)?),
            ("fastopen", Some(v)) => options.fastopen = Some(number(v).ok_or_else(invalid)?),
            ("ipv6only", Some(v @ ("on" | "off"))) => options.ipv6only = v == "on",
            ("ipv6only", Some(v)) if v.starts_with('o') => {
                return Err(format!("invalid ipv6only flags \"{v}\""));
            }
            ("so_keepalive", Some(v)) => {
                let parsed = keepalive(v);
                let invalid = || format!("invalid so_keepalive value: \"{v}\"");
                options.keepalive = Some(parsed.ok_or_else(invalid)?);
            }
            _ => return Err(format!("invalid parameter \"{text}\"")),
        }
        Ok(())
    }
}

/// A number for the kernel, which takes an `int`; larger numbers become its maximum.
fn number(text: &str) -> Option<i32> {
    let number = conf::parse_number(text.as_bytes())?;
    Some(i32::try_from(number).unwrap_or(i32::MAX))
}

/// A size in bytes, `int` for the kernel as in [`number`].
fn size(text: &str) -> Option<u32> {
    let bytes = conf::parse_size(text.as_bytes())?;
    Some(
        u32::try_from(bytes)
            .unwrap_or(u32::MAX)
            .min(i32::MAX as u32),
    )
}

/// `on`, `off` or `[idle]:[interval]:[count]`, of which at least one is above 0; 0 leaves the system's value.
fn keepalive(text: &str) -> Option<KeepAlive> {
    let mut keepalive = KeepAlive {
        on: text != "off",
        idle_s: None,
        interval_s: None,
        count: None,
    };
    if matches!(text, "on" | "off") {
        return Some(keepalive);
    }
    let mut parts = text.splitn(3, ':').map(Some).chain([None, None]);
    let mut part = || parts.next().flatten().filter(|text| !text.is_empty());
    let seconds = |text: &str| {
        let seconds = conf::parse_time_s(text.as_bytes())?;
        Some(u32::try_from(seconds).unwrap_or(u32::MAX))
    };
    if let Some(text) = part() {
        keepalive.idle_s = Some(seconds(text)?).filter(|n| *n > 0);
    }
    if let Some(text) = part() {
        keepalive.interval_s = Some(seconds(text)?).filter(|n| *n > 0);
    }
    if let Some(text) = part() {
        keepalive.count = Some(number(text)?.unsigned_abs()).filter(|n| *n > 0);
    }
    let KeepAlive {
        idle_s,
        interval_s,
        count,
        ..
    } = keepalive;
    (idle_s.is_some() || interval_s.is_some() || count.is_some()).then_some(keepalive)
}

/// nginx's words for `listen ... http2`.
const HTTP2_IS_A_DIRECTIVE: &str =
    "the \"listen ... http2\" directive is deprecated, use the \"http2\" directive instead";
