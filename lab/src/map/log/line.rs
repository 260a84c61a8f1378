//! A line of a log as a record: the client, and a sample of its round-trip time.

use super::client::{Client, address, forwarded};
use super::format::Format;
use super::json_line::members;
use super::pattern::{Fields, Pattern, Slot};

/// The kind of a round-trip time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rtt {
    /// `$tcpinfo_min_rtt`, the minimum of late.
    Minimum,
    /// `$tcpinfo_rtt`, smoothed, which delayed acknowledgements raise.
    Smoothed,
}

/// A line that was read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Record {
    pub(super) client: Client,
    pub(super) sample: Sample,
    /// The line has the number of its request in the connection.
    pub(super) is_numbered: bool,
}

/// The round-trip time of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Sample {
    /// None: no field, no value, or not the first request of its connection.
    None,
    /// The connection is that of a proxy, so its time is not the client's.
    Proxied,
    /// A time in microseconds, from 1 on.
    Time(Rtt, u32),
}

/// Why a line is damaged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Fault {
    /// It does not have the format.
    Form,
    /// The client's field has neither an address nor a name.
    Client,
    /// It is longer than [`LINE_BYTES_MAX`](super::LINE_BYTES_MAX).
    Length,
    /// It has a NUL byte.
    Nul,
}

impl Fault {
    /// A sentence's end.
    #[must_use]
    pub fn reason(self) -> &'static str {
        match self {
            Self::Form => "it does not have the format",
            Self::Client => "the client is no address",
            Self::Length => "it is longer than 64 KiB",
            Self::Nul => "it has a NUL byte",
        }
    }
}

/// A reader of lines of one format.
#[derive(Debug)]
pub struct LineFormat {
    /// The name in messages.
    pub name: String,
    shape: Shape,
    client: Field,
    /// Round-trip times of the format; `None` for a format without them, or for JSON, since its lines may differ.
    pub rtt: Option<Rtt>,
}

#[derive(Debug)]
enum Shape {
    Pattern(Box<Pattern>),
    Json,
}

/// The field of the client's address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Field {
    /// The name of its variable, without `$`, in lower case.
    name: String,
    /// A field of the request, which proxies write.
    is_forwarded: bool,
    /// The connection is that of a proxy.
    is_proxied: bool,
    /// The variable with a value of the user, in lower case; `None` if no value is read.
    value: Option<String>,
}

impl Field {
    /// Parses a name, with or without `$` or braces.
    ///
    /// # Errors
    /// It is no name of a variable.
    pub fn of_name(text: &str) -> Result<Self, String> {
        let name = variable(text)
            .ok_or_else(|| "not a variable such as $http_x_forwarded_for".to_owned())?;
        let is_forwarded = name.starts_with("http_");
        Ok(Self {
            is_forwarded,
            is_proxied: is_forwarded || name == PROXY_PROTOCOL,
            name,
            value: None,
        })
    }

    /// Reads a value of each line as well, such as `$request_time`. The field may then be any name of a user.
    ///
    /// # Errors
    /// It is no name of a variable.
    pub fn with_value(self, text: &str) -> Result<Self, String> {
        let value = variable(text);
        let value = value.ok_or_else(|| "not a variable such as $request_time".to_owned())?;
        Ok(Self {
            value: Some(value),
            ..self
        })
    }

    /// Whether the connection is that of a proxy, so that its round-trip times are not the client's.
    #[must_use]
    pub fn is_proxied(&self) -> bool {
        self.is_proxied
    }

    /// The variable.
    #[must_use]
    pub fn variable(&self) -> String {
        format!("${}", self.name)
    }
}

impl Default for Field {
    fn default() -> Self {
        Self {
            name: "remote_addr".to_owned(),
            is_forwarded: false,
            is_proxied: false,
            value: None,
        }
    }
}

/// The name of a variable, with or without `$` or braces, in lower case.
fn variable(text: &str) -> Option<String> {
    let inner = text.strip_prefix('$').unwrap_or(text);
    let braced = inner
        .strip_prefix('{')
        .and_then(|own| own.strip_suffix('}'));
    let name = braced.unwrap_or(inner).to_ascii_lowercase();
    let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
    (!name.is_empty() && name.chars().all(is_name)).then_some(name)
}

impl LineFormat {
    /// Compiles a format.
    ///
    /// # Errors
    /// A sentence: it lacks the client's field, or fields that are read have no separator.
    pub fn compile(name: &str, format: &Format, client: &Field) -> Result<Self, String> {
        if !format.has(&client.name) {
            return Err(format!(
                "the format \"{name}\" has no {}; --client names the field of the client's address",
                client.variable()
            ));
        }
        if let Some(value) = client.value.as_ref().filter(|value| !format.has(value)) {
            return Err(format!("the format \"{name}\" has no ${value}"));
        }
        let rtt = [(Rtt::Minimum, MIN_RTT), (Rtt::Smoothed, SMOOTHED_RTT)];
        let rtt = rtt.into_iter().find(|(_, name)| format.has(name));
        let slot = |name: &str| match name {
            own if own == client.name => Some(Slot::Client),
            own if client.value.as_deref() == Some(own) => Some(Slot::Value),
            own if rtt.is_some_and(|(_, name)| own == name) => Some(Slot::Rtt),
            REQUESTS => Some(Slot::Requests),
            PEER => Some(Slot::Peer),
            PROXY_PROTOCOL => Some(Slot::ProxyProtocol),
            _ => None,
        };
        let pattern = Pattern::compile(format, slot).map_err(|why| format!("{name}: {why}"))?;
        Ok(Self {
            name: name.to_owned(),
            shape: Shape::Pattern(Box::new(pattern)),
            client: client.clone(),
            rtt: rtt.map(|(kind, _)| kind),
        })
    }

    /// Lines of JSON with members named like variables.
    #[must_use]
    pub fn json(client: &Field) -> Self {
        Self {
            name: JSON.to_owned(),
            shape: Shape::Json,
            client: client.clone(),
            rtt: None,
        }
    }

    /// Whether a line has the format, and a value if one is read.
    pub(super) fn fits(&self, line: &[u8]) -> bool {
        match self.client.value {
            Some(_) => self.user(line).is_some(),
            None => self.read(line).is_ok(),
        }
    }

    /// Reads the user and the value of a line without its end: a number of 0 or more.
    pub(super) fn user<'l>(&self, line: &'l [u8]) -> Option<(&'l [u8], f64)> {
        let (mut user, mut value): (Option<&[u8]>, Option<&[u8]>) = (None, None);
        match &self.shape {
            Shape::Pattern(pattern) => {
                let mut fields = Fields::default();
                if !pattern.find(line, &mut fields) {
                    return None;
                }
                let of = |slot: Slot| fields[slot as usize].clone().map(|place| &line[place]);
                (user, value) = (of(Slot::Client), of(Slot::Value));
            }
            Shape::Json => {
                let wanted = self.client.value.as_deref().unwrap_or_default();
                let is_object = members(line, |name, text| {
                    let name = name.strip_prefix(b"$").unwrap_or(name);
                    if name == self.client.name.as_bytes() {
                        user = Some(text);
                    } else if name == wanted.as_bytes() {
                        value = Some(text);
                    }
                });
                if !is_object {
                    return None;
                }
            }
        }
        let user = user.filter(|user| !is_absent(user))?;
        let number = std::str::from_utf8(value?).ok()?.parse::<f64>().ok()?;
        (number.is_finite() && number >= 0.0).then_some((user, number))
    }

    /// Reads a line without its end.
    pub(super) fn read(&self, line: &[u8]) -> Result<Record, Fault> {
        let values = match &self.shape {
            Shape::Pattern(pattern) => {
                let mut fields = Fields::default();
                if !pattern.find(line, &mut fields) {
                    return Err(Fault::Form);
                }
                let of = |slot: Slot| fields[slot as usize].clone().map(|place| &line[place]);
                Values {
                    client: of(Slot::Client),
                    rtt: self.rtt.zip(of(Slot::Rtt)),
                    requests: of(Slot::Requests),
                    peer: of(Slot::Peer),
                    proxy_protocol: of(Slot::ProxyProtocol),
                }
            }
            Shape::Json => Values::of_json(line, &self.client).ok_or(Fault::Form)?,
        };
        let client = values.client.ok_or(Fault::Form)?;
        let record = Record {
            client: match self.client.is_forwarded {
                true => forwarded(client),
                false => address(client).ok_or(Fault::Client)?,
            },
            sample: Sample::None,
            is_numbered: values.requests.is_some(),
        };
        let Some((kind, rtt)) = values.rtt else {
            return Ok(record);
        };
        let rtt = number(rtt).map_err(|()| Fault::Form)?;
        let is_first = match values.requests {
            Some(value) => number(value).map_err(|()| Fault::Form)? == Some(1),
            None => true,
        };
        // The system has no measurement yet at 0, and at the largest number.
        let time = rtt.filter(|us| is_first && (1..u32::MAX).contains(us));
        let sample = match time {
            None => Sample::None,
            Some(_) if self.client.is_proxied || values.is_proxied() => Sample::Proxied,
            Some(us) => Sample::Time(kind, us),
        };
        Ok(Record { sample, ..record })
    }
}

/// Values of the fields in a line.
#[derive(Default)]
struct Values<'l> {
    client: Option<&'l [u8]>,
    rtt: Option<(Rtt, &'l [u8])>,
    requests: Option<&'l [u8]>,
    peer: Option<&'l [u8]>,
    proxy_protocol: Option<&'l [u8]>,
}

impl<'l> Values<'l> {
    fn of_json(line: &'l [u8], client: &Field) -> Option<Self> {
        let mut values = Self::default();
        let is_object = members(line, |name, value| {
            let name = name.strip_prefix(b"$").unwrap_or(name);
            let is = |own: &str| name == own.as_bytes();
            if is(&client.name) {
                values.client = Some(value);
            } else if is(MIN_RTT) {
                values.rtt = Some((Rtt::Minimum, value));
            } else if is(SMOOTHED_RTT) {
                let is_better = |(kind, _)| kind == Rtt::Minimum;
                if !values.rtt.is_some_and(is_better) {
                    values.rtt = Some((Rtt::Smoothed, value));
                }
            } else if is(REQUESTS) {
                values.requests = Some(value);
            } else if is(PEER) {
                values.peer = Some(value);
            } else if is(PROXY_PROTOCOL) {
                values.proxy_protocol = Some(value);
            }
        });
        is_object.then_some(values)
    }

    /// Returns whether the line is of a proxy's connection: the peer has another address than the client, or sent a PROXY header.
    fn is_proxied(&self) -> bool {
        let is_other = |peer: &[u8]| !is_absent(peer) && Some(peer) != self.client;
        let has_header = |header: &[u8]| !is_absent(header);
        self.peer.is_some_and(is_other) || self.proxy_protocol.is_some_and(has_header)
    }
}

fn is_absent(value: &[u8]) -> bool {
    matches!(value, b"" | b"-")
}

/// A number; `None` if the value is absent. A number above the range is its end.
fn number(value: &[u8]) -> Result<Option<u32>, ()> {
    if is_absent(value) {
        return Ok(None);
    }
    let mut number = 0_u32;
    for byte in value {
        if !byte.is_ascii_digit() {
            return Err(());
        }
        let digit = u32::from(byte - b'0');
        number = number.saturating_mul(10).saturating_add(digit);
    }
    Ok(Some(number))
}

const MIN_RTT: &str = "tcpinfo_min_rtt";
const SMOOTHED_RTT: &str = "tcpinfo_rtt";
const REQUESTS: &str = "connection_requests";
const PEER: &str = "realip_remote_addr";
const PROXY_PROTOCOL: &str = "proxy_protocol_addr";
/// The name of lines of JSON, see [`LineFormat::json`].
pub(super) const JSON: &str = "json";

#[cfg(test)]
mod tests;
