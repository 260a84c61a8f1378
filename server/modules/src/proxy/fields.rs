//! Fields of requests to servers: those set by `proxy_set_header`, and those passed from the client.
//!
//! A configured field replaces the client's field with that name. Fields of the connection are dropped unless
//! configured, and framing fields are always our own.

use std::sync::Arc;

use conf::{Arity, ConfError, Directive};
use engines::http::{Escape, Field, FieldId, Fields, Span, escape, is_token};
use server_base::config::ConfigContext;
use server_base::from_args::FromArgs;
use server_http::value::Value;

/// The `proxy_set_header` directives of a level.
#[derive(Clone, Debug, Default)]
pub(crate) struct SetHeaders(Arc<Vec<SetHeader>>);

/// One of them.
#[derive(Clone, Debug)]
pub(super) struct SetHeader {
    name: Box<[u8]>,
    id: FieldId,
    value: Value,
}

impl FromArgs for SetHeaders {
    const ARITY: Arity = Arity::TAKE2;
    const SYNTAX: &'static str = "field value";

    fn parse(cx: &mut dyn ConfigContext, d: &Directive) -> Result<Self, ConfError> {
        Self::default().parse_again(cx, d)
    }

    fn parse_again(mut self, cx: &mut dyn ConfigContext, d: &Directive) -> Result<Self, ConfError> {
        let value = Value::compile(cx, d, d.word(1))?;
        let name = d.arg(0);
        if !is_token(name) {
            let text = format!("invalid header name \"{}\", ignored", d.arg_str(0));
            cx.warn(ConfError::word(d, d.word(0), text));
        }
        Arc::make_mut(&mut self.0).push(SetHeader {
            name: name.into(),
            id: FieldId::of(name),
            value,
        });
        Ok(self)
    }
}

impl SetHeaders {
    /// Whether both share one list by inheritance.
    pub(super) fn is_shared_with(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

/// The fields to set, and the client's fields that they replace.
#[derive(Debug, Default)]
pub(crate) struct SetFields {
    /// `Host`; the last of several.
    pub(super) host: Option<Value>,
    /// `Content-Length`, if configured.
    pub(super) length: Option<Value>,
    /// All others, in order.
    pub(super) set: Vec<SetHeader>,
    /// The replaced fields of the client, a bit for each `FieldId`.
    known: u64,
    /// The replaced fields without a `FieldId`, by name.
    others: Vec<Box<[u8]>>,
}

impl SetFields {
    /// Builds the set from the configured fields and the defaults.
    pub(super) fn new(written: &SetHeaders) -> Self {
        let mut all = Self::default();
        for id in ALWAYS_OURS {
            all.known |= bit(id);
        }
        all.others.push(b"Proxy-Connection".as_slice().into());
        for header in written.0.iter() {
            match header.id {
                FieldId::Other => all.others.push(header.name.clone()),
                id => all.known |= bit(id),
            }
            match header.id {
                FieldId::Host => all.host = Some(header.value.clone()),
                FieldId::ContentLength => all.length = Some(header.value.clone()),
                // The framing is known only when the request is sent.
                FieldId::TransferEncoding => {}
                _ if !is_token(&header.name) => {}
                // An empty value only removes the client's field.
                _ if header.value.parts.is_empty() => {}
                _ => all.set.push(header.clone()),
            }
        }
        all
    }

    /// Whether a field of the client is passed.
    #[inline]
    pub(super) fn passes(&self, id: FieldId, name: &[u8]) -> bool {
        match id {
            FieldId::Other => !self
                .others
                .iter()
                .any(|other| other.eq_ignore_ascii_case(name)),
            id => self.known & bit(id) == 0,
        }
    }
}

impl SetHeader {
    pub(super) fn name(&self) -> &[u8] {
        &self.name
    }

    pub(super) fn id(&self) -> FieldId {
        self.id
    }

    pub(super) fn value(&self) -> &Value {
        &self.value
    }
}

/// Appends a field; `write` appends its value. Returns false, without a field, if the value is empty. CR, LF and NUL
/// could end the field and become `%0D`, `%0A` and `%00`, as in responses.
pub(super) fn push_with(
    fields: &mut Fields,
    id: FieldId,
    name: &[u8],
    write: impl FnOnce(&mut Vec<u8>),
) -> bool {
    let start = fields.arena.len();
    fields.arena.extend_from_slice(name);
    let value = fields.arena.len();
    write(&mut fields.arena);
    if fields.arena.len() == value {
        fields.arena.truncate(start);
        return false;
    }
    if memchr::memchr3(b'\r', b'\n', 0, &fields.arena[value..]).is_some() {
        let raw = fields.arena.split_off(value);
        escape(&raw, Escape::LineEnds, &mut fields.arena);
    }
    fields.fields.push(Field {
        name: Span::new(start, name.len()),
        value: Span::new(value, fields.arena.len() - value),
        id,
    });
    true
}

fn bit(id: FieldId) -> u64 {
    1 << id as u8
}

/// Fields of the client that concern its connection or framing, and are dropped.
const ALWAYS_OURS: [FieldId; 8] = [
    FieldId::Host,
    FieldId::Connection,
    FieldId::ContentLength,
    FieldId::TransferEncoding,
    FieldId::Te,
    FieldId::KeepAlive,
    FieldId::Expect,
    FieldId::Upgrade,
];
