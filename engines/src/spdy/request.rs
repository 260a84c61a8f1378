//! From the names and values of a header block to a request head.
//!
//! As in nginx, a violation of the protocol's form resets the stream without an answer; a fault of the request
//! itself is answered. Fields beyond the limits are not stored.
//!
//! Source: draft-mbelshe-httpbis-spdy-00 sections 2.6.10, 3.2.1.

use super::Settings;
use crate::http::{Fault, FieldId, Method, RequestHead, Span, Version};
use crate::mux::HeadBuilder;

/// A head in the making.
#[derive(Debug)]
pub(super) struct Builder<'a> {
    settings: &'a Settings,
    common: HeadBuilder,
    method: Option<Span>,
    scheme: Option<Span>,
    host: Option<Span>,
    path: Option<Span>,
    version: Option<Span>,
    broken: bool,
}

/// A finished head.
pub(super) struct Built {
    pub(super) head: Box<RequestHead>,
    /// The stream is to be reset instead of an answer.
    pub(super) broken: bool,
}

impl<'a> Builder<'a> {
    pub(super) fn new(settings: &'a Settings, head: Box<RequestHead>) -> Self {
        Self {
            settings,
            common: HeadBuilder::new(head),
            method: None,
            scheme: None,
            host: None,
            path: None,
            version: None,
            broken: false,
        }
    }

    /// The block ends before its last value, because it was `cut` at the limit, or because its lengths are wrong.
    pub(super) fn ends_early(&mut self, cut: bool) {
        if cut {
            self.fail(Fault::HeaderTooLarge);
        } else {
            self.break_off();
        }
    }

    fn fail(&mut self, fault: Fault) {
        if !self.broken {
            self.common.fault.get_or_insert(fault);
        }
    }

    /// Ends parsing: the first error decides, as in nginx, which reads no further.
    fn break_off(&mut self) {
        self.broken |= self.common.fault.is_none();
    }

    /// Checks and stores one name with its values; `note` classifies them.
    #[inline]
    pub(super) fn field(&mut self, name: &[u8], value: &[u8], note: Note) {
        let (most, longest) = (self.settings.header_bytes, self.settings.field_bytes);
        if !self.common.fits(name, value, most, longest) {
            return self.fail(Fault::HeaderTooLarge);
        }
        let Note { role, id } = note;
        match role {
            Role::Good | Role::Cookie => self.value(name, value.trim_ascii(), id, role),
            Role::Pseudo(pseudo) => self.pseudo(pseudo, value),
            Role::Dropped => {}
            Role::Several => {
                for value in value.split(|byte| *byte == 0) {
                    match Role::of_value(name, value) {
                        Role::Bad => self.fail(Fault::BadHeader),
                        Role::Dropped => {}
                        role => self.value(name, value.trim_ascii(), id, role),
                    }
                }
            }
            Role::Bad => self.fail(Fault::BadHeader),
            Role::Broken => self.break_off(),
        }
    }

    fn pseudo(&mut self, pseudo: Pseudo, value: &[u8]) {
        let place = match pseudo {
            Pseudo::Method => &mut self.method,
            Pseudo::Scheme => &mut self.scheme,
            Pseudo::Host => &mut self.host,
            Pseudo::Path => &mut self.path,
            Pseudo::Version => &mut self.version,
        };
        if place.is_some() {
            return self.fail(Fault::BadHeader);
        }
        *place = Some(self.common.head.store(value));
    }

    /// Takes one of the values of a name.
    #[inline]
    fn value(&mut self, name: &[u8], value: &[u8], id: FieldId, role: Role) {
        if role == Role::Cookie {
            return self.common.cookie(value);
        }
        let most = self.settings.max_headers;
        if self.common.store(id, name, value, most).is_none() {
            self.fail(Fault::TooManyHeaders);
        }
    }

    /// The head, once the block has ended; `ended`: the request has no body.
    pub(super) fn finish(mut self, ended: bool) -> Built {
        self.common.end(Version::Spdy31);
        if self.common.fault.is_none()
            && let Err(fault) = self.request_line()
        {
            self.fail(fault);
        }
        if let Err(fault) = self.host() {
            self.fail(fault);
        }
        if let (Some(method), Some(path)) = (self.method, self.path) {
            self.common.head.set_line(method, path);
        }
        // Also a fault: a body is announced, and the stream has ended.
        let (fault, is_short) = self.common.length(ended);
        if let Some(fault) = fault.or(is_short.then_some(Fault::BadContentLength)) {
            self.fail(fault);
        }
        self.common.head.fault = self.common.fault;
        Built {
            head: self.common.head,
            broken: self.broken,
        }
    }

    /// Method, scheme, target and version (section 3.2.1).
    fn request_line(&mut self) -> Result<(), Fault> {
        let (Some(method), Some(path), Some(version)) = (self.method, self.path, self.version)
        else {
            return Err(Fault::BadHeader);
        };
        let scheme = self.scheme.ok_or(Fault::BadHeader)?;
        self.common.head.scheme = Some(scheme).into();
        self.common.head.method_name = method;
        self.common.head.target = path;
        self.common.head.method = Method::parse(self.common.head.bytes(method));
        let name = self.common.head.bytes(method);
        let good = |byte: &u8| byte.is_ascii_uppercase() || matches!(byte, b'_' | b'-');
        if name.is_empty() || !name.iter().all(good) {
            return Err(Fault::BadMethod);
        }
        if !is_version(self.common.head.bytes(version)) {
            return Err(Fault::BadVersion);
        }
        match self.common.head.method {
            Method::Connect => return Err(Fault::ConnectForbidden),
            Method::Trace => return Err(Fault::TraceForbidden),
            _ => {}
        }
        match self.common.head.bytes(path) {
            b"*" if self.common.head.method == Method::Options => Ok(()),
            target @ [b'/', ..] if target.iter().all(|b| *b > b' ' && *b != 0x7f) => Ok(()),
            _ => Err(Fault::BadUri),
        }
    }

    /// One host: `:host`; a `host` must be equal.
    fn host(&mut self) -> Result<(), Fault> {
        let others = self.common.has(FieldId::Host);
        if others && self.common.head.fields_by_id(FieldId::Host).count() > 1 {
            return Err(Fault::DuplicateHost);
        }
        let Some(span) = self.host else {
            return Err(Fault::MissingHost);
        };
        let host = self.common.head.bytes(span);
        let other = self.common.head.field(FieldId::Host).filter(|_| others);
        match other {
            _ if host.is_empty() => return Err(Fault::BadHost),
            Some(other) if !other.eq_ignore_ascii_case(host) => return Err(Fault::BadHost),
            Some(_) => {}
            None => self.common.head.push_span(FieldId::Host, b"host", span),
        }
        Ok(())
    }
}

/// Role of a name with its values in a request; equal for every request of a connection.
#[derive(Clone, Copy, Debug)]
pub(super) struct Note {
    role: Role,
    id: FieldId,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Role {
    Pseudo(Pseudo),
    /// A field with one value.
    Good,
    Cookie,
    /// Several values, each to be judged by itself.
    Several,
    /// To be dropped.
    Dropped,
    /// To be answered with 400.
    Bad,
    /// The stream is to be reset.
    Broken,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Pseudo {
    Method,
    Scheme,
    Host,
    Path,
    Version,
}

impl Note {
    pub(super) fn of(name: &[u8], value: &[u8], settings: &Settings) -> Self {
        let mut values = value.split(|byte| *byte == 0);
        let role = if name.is_empty() || (!value.is_empty() && values.any(<[u8]>::is_empty)) {
            Role::Broken
        } else if let Some(name) = name.strip_prefix(b":") {
            Role::of_pseudo(name, value)
        } else {
            match check(name, settings) {
                Role::Good if value.contains(&0) => Role::Several,
                Role::Good => Role::of_value(name, value),
                other => other,
            }
        };
        let id = FieldId::of(name);
        Self { role, id }
    }
}

impl Role {
    fn of_pseudo(name: &[u8], value: &[u8]) -> Self {
        if name.iter().any(u8::is_ascii_uppercase) {
            return Self::Broken;
        }
        if value.iter().any(|b| *b < b' ' || *b == 0x7f) {
            return Self::Bad;
        }
        Self::Pseudo(match name {
            b"method" => Pseudo::Method,
            b"scheme" => Pseudo::Scheme,
            b"host" => Pseudo::Host,
            b"path" => Pseudo::Path,
            b"version" => Pseudo::Version,
            _ => return Self::Bad,
        })
    }

    /// One of the values of a good name.
    fn of_value(name: &[u8], value: &[u8]) -> Self {
        let control = |byte: &u8| (*byte < b' ' && *byte != b'\t') || *byte == 0x7f;
        if value.iter().any(control) {
            return Self::Bad;
        }
        match name {
            b"cookie" => Self::Cookie,
            // They are fields of HTTP/1 connections, but some clients send them.
            b"connection" | b"keep-alive" | b"proxy-connection" | b"upgrade" => Self::Dropped,
            b"transfer-encoding" => Self::Bad,
            _ => Self::Good,
        }
    }
}

/// Checks the characters of a name.
fn check(name: &[u8], settings: &Settings) -> Role {
    let mut odd = false;
    for byte in name {
        match byte {
            b'a'..=b'z' | b'0'..=b'9' | b'-' => {}
            b'_' => odd |= !settings.underscores_in_headers,
            0 | b'\r' | b'\n' | b':' => return Role::Bad,
            b'A'..=b'Z' => return Role::Broken,
            _ => odd = true,
        }
    }
    match odd {
        true if settings.ignore_invalid_headers => Role::Dropped,
        true if !name.iter().all(u8::is_ascii_graphic) => Role::Bad,
        _ => Role::Good,
    }
}

/// "HTTP/" and two numbers.
fn is_version(text: &[u8]) -> bool {
    let digits = |text: &[u8]| !text.is_empty() && text.iter().all(u8::is_ascii_digit);
    let Some(numbers) = text.strip_prefix(b"HTTP/") else {
        return false;
    };
    let Some(dot) = numbers.iter().position(|byte| *byte == b'.') else {
        return false;
    };
    let (major, minor) = (&numbers[..dot], &numbers[dot + 1..]);
    digits(major) && major[0] != b'0' && digits(minor)
}
