//! `error_log`, the parameters of `syslog:`, `debug_connection`.
//!
//! A log as data; it is opened by the supervisor, or by the worker if no rights are needed.
//!
//! Source: nginx documentation, `error_log`, "Logging to syslog", `debug_connection`.

use std::ffi::OsString;
use std::net::IpAddr;
use std::os::unix::ffi::OsStringExt;

use conf::{ConfError, Directive};

use crate::address::{Lookup, parse_endpoint};
use crate::config::ConfigContext;
use crate::errlog::{Level, MIN_RING_BYTES, MemoryBuffer, Topics};
use crate::listen::{ListenAddr, parse_address};
use crate::networks::Network;
use crate::opened::{ErrorLogConf, LogTarget};
use crate::syslog::{FACILITIES, SyslogTarget};

/// Parses `error_log` and records its target for opening.
///
/// # Errors An unknown level or parameter, or an invalid target.
pub fn error_log(cx: &mut dyn ConfigContext, d: &Directive) -> Result<ErrorLogConf, ConfError> {
    let target = match d.arg(0) {
        b"stderr" => LogTarget::Stderr,
        t if t.starts_with(b"memory:") => LogTarget::Memory(memory(d)?),
        t if t.starts_with(b"syslog:") => LogTarget::Syslog(syslog(cx, d)?),
        file => LogTarget::File(OsString::from_vec(cx.full_path(file)).into()),
    };
    cx.record_log(&target);
    let mut log = ErrorLogConf::plain(target);
    let (mut level, mut topics) = (None, Topics::NONE);
    for word in &d.args[1..] {
        let text = word.as_str();
        let bad = |what| ConfError::word(d, word, format!("{what} log level \"{text}\""));
        if text == "json" && !log.json {
            log.json = true;
        } else if let Some(named) = Level::parse(text) {
            if level.is_some() || topics != Topics::NONE {
                return Err(bad("duplicate"));
            }
            level = Some(named);
        } else if let Some(topic) = Topics::parse(text).filter(|_| level.is_none()) {
            topics = topics.and(topic);
        } else {
            return Err(bad("invalid"));
        }
    }
    if topics != Topics::NONE {
        (log.level, log.topics) = (Level::Debug, topics);
    } else if let Some(level) = level {
        log.level = level;
    }
    Ok(log)
}

fn memory(d: &Directive) -> Result<MemoryBuffer, ConfError> {
    let text = &d.arg(0)[b"memory:".len()..];
    let place = ConfError::at(d, "").to_string();
    let place = place.trim_start_matches(" in ").to_owned();
    let name = place.rsplit_once(':').map_or(0, |(name, _)| name.len());
    let size = conf::parse_size(text).filter(|size| *size >= MIN_RING_BYTES + name);
    let size = size.ok_or_else(|| {
        let shown = String::from_utf8_lossy(text);
        ConfError::word(d, d.word(0), format!("invalid buffer size \"{shown}\""))
    })?;
    Ok(MemoryBuffer { size, place })
}

/// Parses the first argument of an `error_log` or `access_log`, which begins with `syslog:`.
///
/// # Errors
/// nginx's, for each parameter.
pub fn syslog(cx: &mut dyn ConfigContext, d: &Directive) -> Result<SyslogTarget, ConfError> {
    let word = d.word(0);
    let fail = |text: String| ConfError::word(d, word, text);
    let text = word.as_str();
    let parameters = text.strip_prefix("syslog:").unwrap_or(text);
    let (mut server, mut facility, mut severity, mut tag) = (None, None, None, None);
    let mut nohostname = false;
    let once = |taken: bool, what: &str| match taken {
        true => Err(fail(format!("duplicate syslog \"{what}\""))),
        false => Ok(()),
    };
    for parameter in parameters.split(',') {
        match parameter.split_once('=') {
            Some(("server", v)) => {
                once(server.is_some(), "server")?;
                let found = server_address(v, &mut |host| cx.look_up(host));
                let bad = |e| fail(format!("{e} in syslog server \"{v}\""));
                server = Some(found.map_err(bad)?);
            }
            Some(("facility", v)) => {
                once(facility.is_some(), "facility")?;
                let at = FACILITIES.iter().position(|name| *name == v);
                let at = at.ok_or_else(|| fail(format!("unknown syslog facility \"{v}\"")))?;
                facility = Some(at as u8);
            }
            Some(("severity", v)) => {
                once(severity.is_some(), "severity")?;
                let level = Level::parse(v);
                let level =
                    level.ok_or_else(|| fail(format!("unknown syslog severity \"{v}\"")))?;
                severity = Some(level as u8);
            }
            Some(("tag", v)) => {
                once(tag.is_some(), "tag")?;
                tag = Some(checked_tag(v).map_err(|e| fail(e.to_owned()))?);
            }
            None if parameter == "nohostname" => nohostname = true,
            _ => return Err(fail(format!("unknown syslog parameter \"{parameter}\""))),
        }
    }
    let server = server.ok_or_else(|| fail("no syslog server specified".to_owned()))?;
    Ok(SyslogTarget {
        server,
        facility: facility.unwrap_or(DEFAULT_FACILITY),
        severity: severity.unwrap_or(Level::Info as u8),
        tag: tag.unwrap_or_else(|| "nginx".to_owned()),
        nohostname,
    })
}

/// `ADDRESS[:PORT]` or `unix:PATH`; of a name the first address counts.
fn server_address(text: &str, lookup: Lookup<'_>) -> Result<ListenAddr, &'static str> {
    let found = if text.starts_with("unix:") {
        parse_address(text, lookup)?
    } else {
        let found = parse_endpoint(text, SYSLOG_PORT, lookup)?;
        found.into_iter().map(ListenAddr::Inet).collect()
    };
    found.into_iter().next().ok_or("host not found")
}

/// A tag is at most 32 letters, digits and underscores (RFC 3164, 4.1.3, and the underscore).
fn checked_tag(text: &str) -> Result<String, &'static str> {
    if text.len() > MAX_TAG_BYTES {
        return Err("syslog tag length exceeds 32");
    }
    if !text.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_') {
        return Err("syslog \"tag\" only allows alphanumeric characters and underscore");
    }
    Ok(text.to_owned())
}

/// Parses `debug_connection`: the networks that it names.
///
/// # Errors
/// A name that is not found.
pub fn debug_connection(
    cx: &mut dyn ConfigContext,
    d: &Directive,
) -> Result<Vec<Network>, ConfError> {
    let word = d.word(0);
    if word.text == b"unix:" {
        return Ok(vec![Network::Unix]);
    }
    if let Some(network) = Network::take(cx, d, word) {
        return Ok(vec![network]);
    }
    let found = cx.look_up(word.as_str()).ok_or_else(|| {
        let text = format!("host not found in debug_connection \"{}\"", word.as_str());
        ConfError::word(d, word, text)
    })?;
    let network = |ip| match ip {
        IpAddr::V4(ip) => Network::V4(ip.to_bits(), 32),
        IpAddr::V6(ip) => Network::V6(ip.to_bits(), 128),
    };
    Ok(found.into_iter().map(network).collect())
}

/// `local7`.
const DEFAULT_FACILITY: u8 = 23;
/// The port of syslog.
const SYSLOG_PORT: u16 = 514;
/// Longest tag (RFC 3164, 4.1.3).
const MAX_TAG_BYTES: usize = 32;

#[cfg(test)]
mod tests {
    use super::*;

    fn address(text: &str) -> String {
        let mut lookup = |host: &str| (host == "log.test").then(|| vec![[192, 0, 2, 1].into()]);
        match server_address(text, &mut lookup) {
            Ok(found) => found.to_string(),
            Err(error) => error.to_owned(),
        }
    }

    #[test]
    fn servers_have_port_514_unless_they_name_another() {
        for (text, shown) in [
            ("127.0.0.1", "127.0.0.1:514"),
            ("127.0.0.1:5140", "127.0.0.1:5140"),
            ("[::1]", "[::1]:514"),
            ("[::1]:5140", "[::1]:5140"),
            ("unix:/dev/log", "unix:/dev/log"),
            ("unix:", "no path in the unix domain socket"),
            ("", "no host"),
            (":514", "no host"),
            ("*", "host not found"),
            ("127.0.0.1:0", "invalid port"),
            ("127.0.0.1:", "invalid port"),
            ("127.0.0.1:1-2", "invalid port"),
            ("127.0.0.1:65536", "invalid port"),
            ("[::1]x", "invalid host"),
            ("log.test", "192.0.2.1:514"),
            ("none.test:514", "host not found"),
        ] {
            assert_eq!(address(text), shown, "{text}");
        }
    }

    #[test]
    fn a_tag_is_bounded() {
        assert!(checked_tag(&"a".repeat(MAX_TAG_BYTES)).is_ok());
        assert!(checked_tag(&"a".repeat(MAX_TAG_BYTES + 1)).is_err());
        assert!(checked_tag("a-b").is_err());
        assert_eq!(checked_tag("A_9"), Ok("A_9".to_owned()));
    }
}
