//! One `server` of a group: its address or host, and its parameters.
//!
//! Absent: the state of a server, which its peers have ([`crate::peer`]).
//!
//! Source: nginx documentation, `ngx_http_upstream_module`, `server`; nginx's behaviour.

use std::net::IpAddr;
use std::sync::Arc;

use conf::{ConfError, Directive};
use server_base::address::parse_endpoint;
use server_base::config::ConfigContext;

use crate::route::UpstreamAddr;

/// One `server`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Server {
    /// The name as written.
    pub name: Arc<[u8]>,
    /// Its addresses; empty while its host is not found.
    pub addresses: Vec<UpstreamAddr>,
    /// A host that is resolved at run time: it was not found when the configuration was read, or has `resolve`.
    pub unresolved: Option<UnresolvedHost>,
    /// `weight`.
    pub weight: i64,
    /// `max_conns`; 0: no limit.
    pub max_conns: u64,
    /// `max_fails`; 0: failures do not count.
    pub max_fails: u64,
    /// `fail_timeout`, seconds.
    pub fail_timeout_s: u64,
    /// `backup`.
    pub is_backup: bool,
    /// `down`.
    pub is_down: bool,
    /// `drain`: only requests bound to the server are passed to it.
    pub is_draining: bool,
    /// `route`: its name for `sticky`; `None`: a hash of each address.
    pub route: Option<Arc<[u8]>>,
    /// `slow_start`, milliseconds; 0: off.
    pub slow_start_ms: u64,
}

/// A host that is resolved at run time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnresolvedHost {
    /// The name.
    pub name: String,
    /// The port of its addresses, unless it has a service.
    pub port: u16,
    /// `service`.
    pub service: Option<Box<str>>,
    /// `resolve`: its addresses are followed although it could be found.
    pub has_resolve: bool,
    /// The error with its place, if it was not found.
    pub(crate) error: Option<ConfError>,
}

impl UnresolvedHost {
    /// Makes the host of one request.
    pub(crate) fn new(name: &str, port: u16) -> Self {
        Self {
            name: name.to_owned(),
            port,
            service: None,
            has_resolve: false,
            error: None,
        }
    }

    /// Makes a host with `resolve`, and its service if it has one.
    pub fn followed(name: &str, port: u16, service: Option<&str>) -> Self {
        Self {
            service: service.map(Box::from),
            has_resolve: true,
            ..Self::new(name, port)
        }
    }

    /// Copies the host, without the place of its error.
    pub(crate) fn without_error(&self) -> Self {
        Self {
            service: self.service.clone(),
            has_resolve: self.has_resolve,
            ..Self::new(&self.name, self.port)
        }
    }
}

impl Server {
    /// Makes a server with the defaults of the `server` directive.
    pub fn new() -> Self {
        Self {
            weight: 1,
            max_fails: 1,
            fail_timeout_s: 10,
            ..Self::default()
        }
    }

    /// Reads the address of a `server` directive, and looks up its host.
    ///
    /// # Errors
    /// nginx's.
    pub fn read_address(
        &mut self,
        cx: &mut dyn ConfigContext,
        d: &Directive,
    ) -> Result<(), ConfError> {
        if let Some((host, error)) = self.endpoint(d, |host| cx.look_up(host))? {
            self.unresolved = Some(UnresolvedHost {
                error: Some(error),
                ..host
            });
        }
        Ok(())
    }

    /// Reads the address of a `server` directive with `resolve`: its host is looked up at run time, with `service` by SRV
    /// records.
    ///
    /// # Errors
    /// nginx's.
    pub fn read_followed_address(
        &mut self,
        d: &Directive,
        service: Option<&str>,
    ) -> Result<(), ConfError> {
        let host = self.endpoint(d, |_| None)?;
        let text = d.arg_str(0);
        let why = match (service, &host) {
            (Some(_), _) if has_port(text) => "may not have port",
            (Some(_), None) => "requires domain name",
            _ => {
                self.unresolved =
                    host.map(|(host, _)| UnresolvedHost::followed(&host.name, host.port, service));
                return Ok(());
            }
        };
        let text = format!("service upstream \"{text}\" {why}");
        Err(ConfError::word(d, d.word(0), text))
    }

    /// Reads the address of a `server` directive. Returns a host that was not found, and the error for it.
    fn endpoint(
        &mut self,
        d: &Directive,
        mut find: impl FnMut(&str) -> Option<Vec<IpAddr>>,
    ) -> Result<Option<(UnresolvedHost, ConfError)>, ConfError> {
        let text = d.arg_str(0);
        self.name = Arc::from(d.arg(0));
        let mut missing = None;
        let mut look_up = |host: &str| {
            let found = find(host);
            if found.is_none() {
                missing = Some(host.to_owned());
            }
            found
        };
        let found = check_endpoint(text);
        let found = found.and_then(|()| parse_endpoint(text, SERVER_PORT, &mut look_up));
        let why = match found {
            Ok(found) => {
                self.addresses = found.into_iter().map(UpstreamAddr::Inet).collect();
                return Ok(None);
            }
            Err(why) => why,
        };
        let error = ConfError::word(d, d.word(0), format!("{why} in upstream \"{text}\""));
        let Some(name) = missing else {
            return Err(error);
        };
        // The port was valid, since it is parsed before the lookup.
        let port = text.split_once(':').map(|(_, port)| port);
        let port = port.and_then(conf::parse_digits).unwrap_or(SERVER_PORT);
        Ok(Some((UnresolvedHost::new(&name, port), error)))
    }

    /// Makes the server of an undefined group.
    pub(crate) fn implicit(host: &str) -> Self {
        Self {
            name: Arc::from(host.as_bytes()),
            ..Self::new()
        }
    }
}

/// Checks the lengths of an address or host with an optional port, and of the labels of the host.
///
/// # Errors
/// The reason, without the text. Source: RFC 1035 section 2.3.4.
pub fn check_endpoint(text: &str) -> Result<(), &'static str> {
    if text.len() > ENDPOINT_BYTES {
        return Err("too long address");
    }
    let host = text.split_once(':').map_or(text, |(host, _)| host);
    let host = host.strip_suffix('.').unwrap_or(host);
    if host.len() > HOST_BYTES {
        return Err("too long host name");
    }
    match has_long_label(host) {
        true => Err("too long label in host name"),
        false => Ok(()),
    }
}

/// Checks the lengths of a `service` and of its labels.
///
/// # Errors
/// The reason, without the text. Source: RFC 1035 section 2.3.4.
pub fn check_service(service: &str) -> Result<(), &'static str> {
    match service.len() > SERVICE_BYTES || has_long_label(service) {
        true => Err("service is too long"),
        false => Ok(()),
    }
}

fn has_long_label(name: &str) -> bool {
    name.split('.').any(|label| label.len() > LABEL_BYTES)
}

/// Whether an address has a port.
fn has_port(address: &str) -> bool {
    let after_ip = address.split_once(']').map(|(_, rest)| rest);
    after_ip.unwrap_or(address).contains(':')
}

/// Maximum length of a host name without its final dot, bytes.
pub const HOST_BYTES: usize = 253;
/// Maximum length of a label of a host name or service, bytes.
pub const LABEL_BYTES: usize = 63;
/// Maximum length of a `service`, bytes: two labels with underscores, and a subdomain.
pub const SERVICE_BYTES: usize = 191;
/// Maximum length of a host with its final dot and port, bytes.
pub const ENDPOINT_BYTES: usize = HOST_BYTES + ".:65535".len();
/// Default port of a `server`.
const SERVER_PORT: u16 = 80;

#[cfg(test)]
mod tests {
    use super::*;

    /// A name with labels of 63 bytes at most, `bytes` long.
    fn name(bytes: usize) -> String {
        let byte = |n: usize| if n % 64 == 63 { '.' } else { 'a' };
        (0..bytes).map(byte).collect()
    }

    #[test]
    fn host_names_have_the_limits_of_dns() {
        for (bytes, is_fine) in [(252, true), (253, true), (254, false)] {
            let name = name(bytes);
            for text in [name.clone(), format!("{name}."), format!("{name}.:65535")] {
                assert_eq!(check_endpoint(&text).is_ok(), is_fine, "{text}");
            }
        }
        for (bytes, is_fine) in [(62, true), (63, true), (64, false)] {
            let label = "b".repeat(bytes);
            for text in [format!("{label}:1"), format!("a.{label}.c")] {
                assert_eq!(check_endpoint(&text).is_ok(), is_fine, "{text}");
            }
        }
        for (bytes, is_fine) in [(259, true), (260, true), (261, false)] {
            let text = format!("a:{:0>1$}", 80, bytes - 2);
            assert_eq!(check_endpoint(&text).is_ok(), is_fine, "{text}");
        }
    }

    #[test]
    fn services_have_a_limit() {
        for (bytes, is_fine) in [(190, true), (191, true), (192, false)] {
            assert_eq!(check_service(&name(bytes)).is_ok(), is_fine, "{bytes}");
        }
        for (bytes, is_fine) in [(62, true), (63, true), (64, false)] {
            let service = format!("_{}._tcp", "b".repeat(bytes - 1));
            assert_eq!(check_service(&service).is_ok(), is_fine, "{service}");
        }
    }
}
