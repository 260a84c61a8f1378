//! From the fields of a header block to a request head.
//!
//! A request that breaks HTTP/2's rules for messages is `malformed`: it is answered with 400, and its stream is
//! reset after that. One that exceeds a limit, or has a fault that HTTP/1 knows as well, is only answered. Fields
//! beyond the limits are not stored, so a block that refers to one long entry again and again costs no memory.
//!
//! Source: RFC 9113 section 8.

use super::Settings;
use super::blame::{self, Pseudo};
use crate::http::{Fault, FieldId, Fields, Method, RequestHead, Span, Version};
use crate::mux::HeadBuilder;

/// A head in the making.
#[derive(Debug)]
pub(super) struct Builder<'a> {
    settings: &'a Settings,
    common: HeadBuilder,
    method: Option<Span>,
    scheme: Option<Span>,
    path: Option<Span>,
    authority: Option<Span>,
    protocol: Option<Span>,
    priority: Option<Span>,
    regular: bool,
    malformed: bool,
}

/// A finished head.
pub(super) struct Built {
    pub(super) head: Box<RequestHead>,
    /// The stream is to be reset after the answer.
    pub(super) malformed: bool,
    /// Value of the `priority` field, if there was one.
    pub(super) priority: Option<Span>,
}

impl<'a> Builder<'a> {
    pub(super) fn new(settings: &'a Settings, head: Box<RequestHead>) -> Self {
        Self {
            settings,
            common: HeadBuilder::new(head),
            method: None,
            scheme: None,
            path: None,
            authority: None,
            protocol: None,
            priority: None,
            regular: false,
            malformed: false,
        }
    }

    /// Checks and stores one field; findings about it go to `note`.
    #[inline]
    pub(super) fn field(&mut self, name: &[u8], value: &[u8], note: &mut Option<Note>) {
        let settings = self.settings;
        let (most, longest) = (settings.header_bytes, settings.field_bytes);
        if !self.common.fits(name, value, most, longest) {
            return self.fail(Fault::HeaderTooLarge);
        }
        let Note { role, id } = *note.get_or_insert_with(|| Note::of(name, value, settings));
        if let Role::Pseudo(pseudo) = role {
            return self.pseudo(pseudo, value);
        }
        let regular = self.regular;
        // A name with a colon in front, even malformed, does not end the pseudo-fields.
        self.regular |= !name.starts_with(b":");
        match role {
            Role::Pseudo(_) | Role::Malformed => {
                self.broken(&blame::malformed(name, value, regular));
            }
            Role::Bad => self.fail(Fault::BadHeader),
            Role::Odd => {
                let head = &mut self.common.head;
                let name = head.store(name);
                head.note_dropped(name);
            }
            // RFC 9113 section 8.2.3: pieces of one field.
            Role::Cookie => self.common.cookie(value),
            Role::Good | Role::Priority => self.store(name, value, id, role),
        }
    }

    fn pseudo(&mut self, pseudo: Pseudo, value: &[u8]) {
        let place = match pseudo {
            Pseudo::Method => &mut self.method,
            Pseudo::Scheme => &mut self.scheme,
            Pseudo::Path => &mut self.path,
            Pseudo::Authority => &mut self.authority,
            Pseudo::Protocol => &mut self.protocol,
        };
        if place.is_some() || self.regular {
            let text = blame::repeated(pseudo, self.regular);
            return self.broken(&text);
        }
        *place = Some(self.common.head.store(value));
    }

    fn fail(&mut self, fault: Fault) {
        self.common.fault.get_or_insert(fault);
    }

    /// Notes the first fault, with its message.
    #[cold]
    fn fail_as(&mut self, fault: Fault, message: &[u8]) {
        if self.common.fault.is_none() && !self.malformed {
            self.common.head.blame(&[message]);
        }
        self.fail(fault);
    }

    /// Records that the request is malformed, with the message about the first fault.
    #[cold]
    fn broken(&mut self, message: &[u8]) {
        if self.common.fault.is_none() {
            self.common.head.blame(&[message]);
        }
        self.malformed = true;
    }

    /// Fills in the known parts of a refused request, for the log.
    #[cold]
    fn known_parts(&mut self) {
        let head = &mut self.common.head;
        if let Some(method) = self.method {
            head.method_name = method;
            head.method = Method::parse(head.bytes(method));
        }
        if let Some(path) = self.path {
            head.target = path;
        }
        head.scheme = self.scheme.into();
        head.authority = self
            .authority
            .filter(|authority| !authority.is_empty())
            .into();
    }

    /// The received part of a head that remains incomplete: it has no request line, as in nginx.
    #[cold]
    pub(super) fn unfinished(mut self) -> Box<RequestHead> {
        self.common.end(Version::Http2);
        self.known_parts();
        self.common.head.fault = None;
        self.common.head
    }

    #[inline]
    fn store(&mut self, name: &[u8], value: &[u8], id: FieldId, role: Role) {
        let most = self.settings.max_headers;
        match self.common.store(id, name, value, most) {
            None => self.fail(Fault::TooManyHeaders),
            Some(value) if role == Role::Priority => _ = self.priority.get_or_insert(value),
            Some(_) => {}
        }
    }

    /// The head, once the block has ended; `ended`: the request has no body.
    pub(super) fn finish(mut self, ended: bool) -> Built {
        self.common.end(Version::Http2);
        if self.common.fault.is_none() && !self.malformed {
            self.control_data();
        } else {
            self.known_parts();
        }
        if let (Some(method), Some(path)) = (self.method, self.path) {
            self.common.head.set_line(method, path);
        }
        let (fault, is_short) = self.common.length(ended);
        if is_short {
            self.broken(b"client prematurely closed stream");
        }
        if let Some(fault) = fault {
            self.fail(fault);
        }
        if self.malformed {
            self.fail(Fault::BadHeader);
        }
        self.common.head.fault = self.common.fault;
        Built {
            head: self.common.head,
            malformed: self.malformed,
            priority: self.priority,
        }
    }

    /// Method, scheme, target and host (RFC 9113 section 8.3.1).
    fn control_data(&mut self) {
        let Some(method) = self.method else {
            self.broken(b"client sent no :method header");
            return self.known_parts();
        };
        self.common.head.method_name = method;
        self.common.head.method = Method::parse(self.common.head.bytes(method));
        if !is_method(self.common.head.bytes(method)) {
            let text = blame::invalid(Pseudo::Method, self.common.head.bytes(method));
            return self.fail_as(Fault::BadMethod, &text);
        }
        match self.common.head.method {
            Method::Connect if self.protocol.is_none() => {
                self.malformed |= self.scheme.is_some() || self.path.is_some();
                self.malformed |= self.authority.is_none();
                self.common.fault = Some(Fault::ConnectForbidden);
                return;
            }
            Method::Trace => self.common.fault = Some(Fault::TraceForbidden),
            _ => {}
        }
        let (Some(scheme), Some(path)) = (self.scheme, self.path) else {
            self.broken(match self.scheme {
                None => b"client sent no :scheme header",
                Some(_) => b"client sent no :path header",
            });
            return self.known_parts();
        };
        if !is_scheme(self.common.head.bytes(scheme)) {
            let text = blame::invalid(Pseudo::Scheme, self.common.head.bytes(scheme));
            self.broken(&text);
        }
        self.common.head.target = path;
        self.common.head.scheme = self.scheme.into();
        let target = self.common.head.bytes(path);
        if target.is_empty() {
            self.broken(b"client sent empty :path header");
        } else if target == b"*" && self.common.head.method == Method::Options {
        } else if target[0] != b'/' || target.iter().any(|b| *b <= b' ' || *b == 0x7f) {
            let text = blame::invalid(Pseudo::Path, target);
            self.fail_as(Fault::BadUri, &text);
        }
        self.host();
    }

    /// One host: `:authority`, else `host`; both must be equal.
    fn host(&mut self) {
        if !self.common.has(FieldId::Host)
            && let Some(authority) = self.authority
        {
            self.common
                .head
                .push_span(FieldId::Host, b"host", authority);
            if authority.is_empty() {
                self.fail_as(Fault::BadHost, b"client sent invalid \":authority\" header");
            }
            return;
        }
        let again = self.common.head.fields_by_id(FieldId::Host).nth(1);
        if let Some(again) = again.map(<[u8]>::to_vec) {
            self.common
                .head
                .blame_repeated(b"host header", b"host", &again);
            self.fail(Fault::DuplicateHost);
            return;
        }
        match (self.authority, self.common.head.field(FieldId::Host)) {
            (None, None) => {
                let text = b"client sent neither \":authority\" nor \"Host\" header";
                self.fail_as(Fault::MissingHost, text);
            }
            (Some(authority), Some(host)) => {
                if !self.common.head.bytes(authority).eq_ignore_ascii_case(host) {
                    let text =
                        b"client sent \":authority\" and \"Host\" headers with different values";
                    self.fail_as(Fault::BadHost, text);
                    self.common.head.authority = Some(authority).into();
                }
            }
            (Some(_), None) | (None, Some(_)) => {}
        }
        if self
            .common
            .head
            .field(FieldId::Host)
            .is_some_and(<[u8]>::is_empty)
        {
            self.fail(Fault::BadHost);
        }
    }
}

/// Role of a pair in a request; equal for every request of a connection.
#[derive(Clone, Copy, Debug)]
pub(super) struct Note {
    role: Role,
    id: FieldId,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Role {
    Pseudo(Pseudo),
    Good,
    Cookie,
    Priority,
    /// To be dropped.
    Odd,
    /// To be answered with 400.
    Bad,
    /// The request is answered with an error and its stream is reset.
    Malformed,
}

impl Note {
    fn of(name: &[u8], value: &[u8], settings: &Settings) -> Self {
        let role = match name {
            [b':', pseudo @ ..] => Role::of_pseudo(pseudo, value, settings),
            b"cookie" => check(name, value, settings, Role::Cookie),
            b"priority" => check(name, value, settings, Role::Priority),
            _ => check(name, value, settings, Role::Good),
        };
        let id = FieldId::of(name);
        Self { role, id }
    }
}

impl Role {
    fn of_pseudo(name: &[u8], value: &[u8], settings: &Settings) -> Self {
        if value.iter().any(|b| *b < b' ' || *b == 0x7f) {
            return Self::Malformed;
        }
        Self::Pseudo(match name {
            b"method" => Pseudo::Method,
            b"scheme" => Pseudo::Scheme,
            b"path" => Pseudo::Path,
            b"authority" => Pseudo::Authority,
            b"protocol" if settings.extended_connect => Pseudo::Protocol,
            _ => return Self::Malformed,
        })
    }
}

/// Fields of a trailer section.
///
/// # Errors
/// The section is malformed, or larger than the limits.
pub(super) struct Trailers<'a> {
    settings: &'a Settings,
    bytes: usize,
    pub(super) fields: Fields,
    pub(super) fault: Option<Fault>,
}

impl<'a> Trailers<'a> {
    pub(super) fn new(settings: &'a Settings) -> Self {
        Self {
            settings,
            bytes: 0,
            fields: Fields::default(),
            fault: None,
        }
    }

    pub(super) fn field(&mut self, name: &[u8], value: &[u8]) {
        self.bytes += name.len() + value.len();
        if self.bytes > self.settings.header_bytes {
            self.fault.get_or_insert(Fault::TrailerTooLarge);
            return;
        }
        match check(name, value, self.settings, Role::Good) {
            Role::Odd => {}
            Role::Good => self.fields.push(name, value),
            // Pseudo-fields have a name that no field has.
            _ => _ = self.fault.get_or_insert(Fault::BadTrailer),
        }
    }
}

/// Checks a name and value (RFC 9113 section 8.2); returns `good` if they are valid.
pub(super) fn check(name: &[u8], value: &[u8], settings: &Settings, good: Role) -> Role {
    let mut odd = false;
    for byte in name {
        match byte {
            b'a'..=b'z' | b'0'..=b'9' | b'-' => {}
            b'_' => odd |= !settings.underscores_in_headers,
            b'A'..=b'Z' | b':' | 0..=b' ' | 0x7f => return Role::Malformed,
            _ => odd = true,
        }
    }
    let control = |byte: &u8| (*byte < b' ' && *byte != b'\t') || *byte == 0x7f;
    if name.is_empty() || value.iter().any(control) {
        return Role::Malformed;
    }
    if let ([b' ' | b'\t', ..], _) | (_, [.., b' ' | b'\t']) = (value, value) {
        return Role::Malformed;
    }
    let specific = match name {
        b"connection" | b"keep-alive" | b"proxy-connection" | b"transfer-encoding" | b"upgrade" => {
            true
        }
        b"te" => !value.eq_ignore_ascii_case(b"trailers"),
        _ => false,
    };
    if specific {
        return Role::Malformed;
    }
    match odd {
        true if settings.ignore_invalid_headers => Role::Odd,
        true if !name.iter().all(|byte| byte.is_ascii_graphic()) => Role::Bad,
        _ => good,
    }
}

fn is_method(name: &[u8]) -> bool {
    !name.is_empty()
        && name
            .iter()
            .all(|byte| byte.is_ascii_uppercase() || matches!(byte, b'_' | b'-'))
}

/// RFC 3986 section 3.1.
fn is_scheme(name: &[u8]) -> bool {
    let rest = |byte: &u8| byte.is_ascii_alphanumeric() || b"+-.".contains(byte);
    name.first().is_some_and(u8::is_ascii_alphabetic) && name.iter().all(rest)
}
