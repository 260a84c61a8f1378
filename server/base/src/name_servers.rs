//! Name servers of the directive `resolver`, which answer lookups at run time.
//!
//! Absent: the resolver itself, which is part of the driver.
//!
//! Source: nginx documentation, directive `resolver`.

use std::net::SocketAddr;

use conf::{ConfError, Directive};

use crate::address::parse_endpoint;
use crate::config::ConfigContext;
use crate::resolver_status::ResolverStatus;

/// One `resolver`. Locations that inherit it share it, so its pointer identifies the cache of its names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NameServers {
    /// The servers, in the order in which they take turns; at least one.
    pub servers: Vec<SocketAddr>,
    /// `valid`: how long answers are kept, milliseconds; `None` for the time to live of each answer.
    pub valid_ms: Option<u64>,
    /// Whether names are resolved to IPv4 addresses.
    pub ipv4: bool,
    /// Whether names are resolved to IPv6 addresses.
    pub ipv6: bool,
    /// `status_zone`.
    pub status: Option<ResolverStatus>,
}

/// Parses the words of `resolver`.
///
/// # Errors
/// nginx's, for each parameter.
pub fn name_servers(cx: &mut dyn ConfigContext, d: &Directive) -> Result<NameServers, ConfError> {
    let mut read = NameServers {
        servers: Vec::new(),
        valid_ms: None,
        ipv4: true,
        ipv6: true,
        status: None,
    };
    for word in &d.args {
        let text = word.as_str();
        let invalid = || ConfError::word(d, word, format!("invalid parameter: {text}"));
        let on_or_off = |value: &str| match value {
            "on" => Ok(true),
            "off" => Ok(false),
            _ => Err(invalid()),
        };
        match text.split_once('=') {
            Some(("valid", value)) => {
                let seconds = conf::parse_time_s(value.as_bytes()).ok_or_else(invalid)?;
                // As in nginx, a time of 0 does not override the TTL.
                read.valid_ms = (seconds > 0).then(|| seconds.saturating_mul(1000));
            }
            Some(("ipv4", value)) => read.ipv4 = on_or_off(value)?,
            Some(("ipv6", value)) => read.ipv6 = on_or_off(value)?,
            Some(("status_zone", "")) => return Err(invalid()),
            Some(("status_zone", name)) => read.status = Some(ResolverStatus::attach(name)),
            _ => {
                let found = parse_endpoint(text, DNS_PORT, &mut |host| cx.look_up(host));
                let refused =
                    |error| ConfError::word(d, word, format!("{error} in resolver \"{text}\""));
                read.servers.extend(found.map_err(refused)?);
            }
        }
    }
    if !read.ipv4 && !read.ipv6 {
        let text = "\"ipv4\" and \"ipv6\" cannot both be \"off\"";
        return Err(ConfError::at(d, text));
    }
    if read.servers.is_empty() {
        return Err(ConfError::at(d, "no name servers defined"));
    }
    Ok(read)
}

/// The port of DNS.
const DNS_PORT: u16 = 53;
