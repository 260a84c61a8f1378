//! Directives of the module that are no plain settings.

use std::sync::Arc;

use conf::{ConfError, Directive, Word};
use server_base::zone;
use server_http::assemble::ConfigBuilder;

use super::cache::Cache;
use super::fault::error;
use super::values::{BUILTIN_SESSIONS, CacheKind};
use super::{HS, MODULE, SslSrv};

conf::directives! {
    /// The directives.
    pub(super) const ROWS: ConfigBuilder;

    /// A file with a certificate and those between it and its root; once for each kind of key.
    directive "ssl_certificate": HS, TAKE1, "", "file" => |b, d| {
        let certificate = Arc::new(d.clone());
        b.conf_mut::<SslSrv>().certificates.push(certificate);
        Ok(())
    };

    /// A file with the secret key of a certificate.
    directive "ssl_certificate_key": HS, TAKE1, "", "file" => |b, d| {
        b.conf_mut::<SslSrv>().keys.push(Arc::new(d.clone()));
        Ok(())
    };

    /// Cache of sessions for resumption without tickets.
    directive "ssl_session_cache": HS, TAKE12, "none", "off | none | [builtin[:size]] [shared:name:size]"
        => session_cache;

    /// A key for tickets, 48 or 80 bytes; the first of several makes them.
    directive "ssl_session_ticket_key": HS, TAKE1, "", "file" => |b, d| {
        b.conf_mut::<SslSrv>().ticket_keys.push(Arc::new(d.clone()));
        Ok(())
    };

    /// A command of OpenSSL's configuration, of those that have a meaning here.
    directive "ssl_conf_command": HS, TAKE2, "", "name value" => |b, d| {
        b.conf_mut::<SslSrv>().commands.push(Arc::new(d.clone()));
        Ok(())
    };

    /// A cache of certificates and keys named by variables.
    directive "ssl_certificate_cache": HS, TAKE123, "off", "off | max=N [inactive=time] [valid=time]"
        => certificate_cache;

    /// Whether clients' certificates are checked by OCSP, which is not built: only "off" is accepted.
    directive "ssl_ocsp": HS, TAKE1, "off", "off" => |_, d| match d.arg(0) {
        b"off" => Ok(()),
        b"on" | b"leaf" => Err(no_client_ocsp(d)),
        _ => Err(ConfError::invalid(d, d.word(0))),
    };

    /// A cache of OCSP responses about clients' certificates: no effect without "ssl_ocsp".
    directive "ssl_ocsp_cache": HS, TAKE1, "off", "off | shared:name:size" => |b, d| match d.arg(0) {
        b"off" => Ok(()),
        _ => shared(b, d, d.word(0), "OCSP").map(drop),
    };

    /// URL for OCSP responses about clients' certificates, which is not built: only "off" is accepted.
    directive "ssl_ocsp_responder": HS, TAKE1, "", "off" => |_, d| match d.arg(0) {
        b"off" => Ok(()),
        _ => Err(no_client_ocsp(d)),
    };

    /// A key for encrypted ClientHellos, which rustls lacks for servers: only "off" is accepted.
    directive "ssl_ech_file": HS, TAKE1, "", "off" => |_, d| {
        if d.arg(0) == b"off" {
            return Ok(());
        }
        let text = "encrypted ClientHello is not supported: rustls has it for clients only";
        Err(error(d, text))
    };
}

fn no_client_ocsp(d: &Directive) -> ConfError {
    let text = "checking clients' certificates with OCSP is not built yet: use \"ssl_crl\"";
    error(d, text)
}

fn session_cache(b: &mut ConfigBuilder, d: &Directive) -> Result<(), ConfError> {
    let mut builtin = None;
    let mut named = None;
    for word in &d.args {
        match word.as_str() {
            "off" | "none" => builtin = Some(CacheKind::None),
            "builtin" => builtin = Some(CacheKind::Builtin(BUILTIN_SESSIONS)),
            text => match text.strip_prefix("builtin:") {
                Some(number) => {
                    let sessions =
                        conf::parse_digits(number).ok_or_else(|| invalid(d, word, "session"))?;
                    builtin = Some(CacheKind::Builtin(sessions));
                }
                None => named = Some(shared(b, d, word, "session")?),
            },
        }
    }
    // All threads share either, so one of them is enough.
    b.conf_mut::<SslSrv>().cache = named.or(builtin);
    Ok(())
}

/// `shared:name:size`.
fn shared(
    b: &mut ConfigBuilder,
    d: &Directive,
    word: &Word,
    what: &str,
) -> Result<CacheKind, ConfError> {
    let invalid = || invalid(d, word, what);
    let text = word.as_str().strip_prefix("shared:").ok_or_else(invalid)?;
    let (name, size) = text.split_once(':').ok_or_else(invalid)?;
    let size = conf::parse_size(size.as_bytes()).ok_or_else(invalid)? as u64;
    if name.is_empty() {
        return Err(invalid());
    }
    if size < CACHE_BYTES_MIN {
        let text = format!("{what} cache \"{}\" is too small", word.as_str());
        return Err(ConfError::word(d, word, text));
    }
    let module = if what == "session" {
        MODULE.name
    } else {
        "ssl_ocsp"
    };
    zone::refer(b, d, word, name.as_bytes(), size, module)?;
    Ok(CacheKind::Shared(name.as_bytes().to_vec(), size))
}

fn invalid(d: &Directive, word: &Word, what: &str) -> ConfError {
    ConfError::word(
        d,
        word,
        format!("invalid {what} cache \"{}\"", word.as_str()),
    )
}

fn certificate_cache(b: &mut ConfigBuilder, d: &Directive) -> Result<(), ConfError> {
    conf::once(d, b.conf_mut::<SslSrv>().certificate_cache.is_some())?;
    b.conf_mut::<SslSrv>().certificate_cache = Some(parse_certificate_cache(d)?);
    Ok(())
}

/// Makes the cache of a directive; `None` for "off".
///
/// # Errors
/// A parameter is wrong or missing.
pub(super) fn parse_certificate_cache(d: &Directive) -> Result<Option<Arc<Cache>>, ConfError> {
    let (mut off, mut max) = (false, None);
    let (mut inactive_s, mut valid_s) = (INACTIVE_S, VALID_S);
    for word in &d.args {
        let (name, value) = word.as_str().split_once('=').unwrap_or((word.as_str(), ""));
        let time = || conf::parse_time_s(value.as_bytes());
        let valid = match name {
            "off" => {
                off = true;
                word.as_str() == "off"
            }
            "max" => {
                max = conf::parse_digits(value).filter(|number| *number > 0);
                max.is_some()
            }
            "inactive" => time().map(|time| inactive_s = time).is_some(),
            "valid" => time().map(|time| valid_s = time).is_some(),
            _ => false,
        };
        if !valid {
            return Err(ConfError::parameter(d, word));
        }
    }
    match max {
        _ if off => Ok(None),
        Some(max) => Ok(Some(Arc::new(Cache::new(max, inactive_s, valid_s)))),
        None => {
            let text = format!("\"{}\" must have the \"max\" parameter", d.name());
            Err(ConfError::at(d, text))
        }
    }
}

/// Default time that an unused certificate stays in a cache, seconds.
const INACTIVE_S: u64 = 10;
/// Default time that an entry is used without a look at its file, seconds.
const VALID_S: u64 = 60;
/// The smallest cache with a name: nginx's eight pages of 4 KiB.
const CACHE_BYTES_MIN: u64 = 8 * 4096;
