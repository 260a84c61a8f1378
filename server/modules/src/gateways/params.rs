//! `*_param`, and the parameters of a request: the configured ones, then the client's fields as `HTTP_*`.
//!
//! All parameters of a request are written to one buffer. A configured parameter `HTTP_*` replaces the client's field
//! with that name.
//!
//! Source: RFC 3875 section 4.1; nginx documentation, directives `fastcgi_param`, `fastcgi_pass_request_headers`.

use std::rc::Rc;
use std::sync::Arc;

use conf::{Arity, ConfError, Directive};
use engines::http::{Field, FieldId, Fields, Span};
use server_base::config::ConfigContext;
use server_base::errlog::Level;
use server_base::from_args::FromArgs;
use server_base::regex::FailedMatch;
use server_http::exchange::{Ctx, Exchange};
use server_http::upstream::Outgoing;
use server_http::value::Value;

use super::{Application, client_fields};

/// The `*_param` directives of a level.
#[derive(Clone, Debug, Default)]
pub(crate) struct Params(Arc<Vec<Param>>);

/// One of them.
#[derive(Clone, Debug)]
struct Param {
    name: Box<[u8]>,
    value: Value,
    /// `if_not_empty`.
    if_not_empty: bool,
}

impl FromArgs for Params {
    const ARITY: Arity = Arity::TAKE23;
    const SYNTAX: &'static str = "parameter value [if_not_empty]";

    fn parse(cx: &mut dyn ConfigContext, d: &Directive) -> Result<Self, ConfError> {
        Self::default().parse_again(cx, d)
    }

    fn parse_again(mut self, cx: &mut dyn ConfigContext, d: &Directive) -> Result<Self, ConfError> {
        if d.arg(0).is_empty() {
            let text = format!("\"{}\" needs a name", d.name());
            return Err(ConfError::word(d, d.word(0), text));
        }
        let value = Value::compile(cx, d, d.word(1))?;
        let if_not_empty = conf::has_option(d, 2, b"if_not_empty")?;
        Arc::make_mut(&mut self.0).push(Param {
            name: d.arg(0).into(),
            value,
            if_not_empty,
        });
        Ok(self)
    }
}

impl Params {
    /// Whether both share one list by inheritance.
    pub(super) fn is_shared_with(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

/// The parameters of a location, and the client's fields that they replace.
#[derive(Debug, Default)]
pub(super) struct ParamSet {
    /// In their order.
    params: Vec<Param>,
    /// Whether `HTTP_HOST` is among them.
    has_host: bool,
    /// The replaced fields of the client, a bit for each `FieldId`.
    known: u64,
    /// The replaced fields without a `FieldId`, by name.
    others: Vec<Box<[u8]>>,
}

impl ParamSet {
    /// Builds the set from the configured parameters and adds the implied ones.
    pub(super) fn new(written: &Params) -> Self {
        let mut set = Self::default();
        for param in written.0.iter() {
            set.has_host |= param.name.eq_ignore_ascii_case(b"HTTP_HOST");
            if let Some(name) = param.name.strip_prefix(b"HTTP_").filter(|n| !n.is_empty()) {
                set.leave_out(name);
                // An empty value only removes the client's field.
                if param.value.parts.is_empty() {
                    continue;
                }
            }
            set.params.push(param.clone());
        }
        if !set.has_host {
            set.known |= bit(FieldId::Host);
        }
        set
    }

    fn leave_out(&mut self, name: &[u8]) {
        match FieldId::of(&client_fields::dashed(name)) {
            FieldId::Other => self.others.push(name.into()),
            id => self.known |= bit(id),
        }
    }

    /// Whether a parameter replaces a field of the client.
    pub(super) fn replaces(&self, id: FieldId, name: &[u8]) -> bool {
        match id {
            FieldId::Other => (self.others.iter()).any(|own| client_fields::same_param(own, name)),
            id => self.known & bit(id) != 0,
        }
    }
}

/// The size of parameters as a protocol encodes them.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Encoding {
    /// Returns the overhead of a parameter, bytes, from the lengths of name and value.
    pub(crate) overhead: fn(usize, usize) -> usize,
    /// The subject of the log message about too large parameters.
    pub(crate) too_big: &'static str,
}

/// Appends the parameters of a request to `fields`; `more_bytes` of the request are sent besides them.
///
/// # Errors
/// 431 if they exceed [`PARAMS_BYTES`], which is logged; 500 if a value cannot be computed.
pub(crate) fn push<C: Application>(
    x: &mut Exchange,
    cx: &mut Ctx<'_>,
    outgoing: &Outgoing,
    fields: &mut Fields,
    more_bytes: usize,
) -> Result<(), u16> {
    let http = Rc::clone(&x.route.http);
    let common = x.loc::<C>(&http).common();
    let (Some(set), Some(pass)) = (&common.params, &common.pass) else {
        return Err(500);
    };
    fields.arena.reserve(x.head.arena.len() + ARENA_BYTES);
    fields
        .fields
        .reserve(x.head.fields.len() + set.params.len() + 2);
    for param in &set.params {
        push_one(fields, &param.name, param.if_not_empty, |out| {
            param.value.eval(x, cx, out);
        });
    }
    if !set.has_host {
        push_one(fields, b"HTTP_HOST", true, |out| pass.host.eval(x, cx, out));
    }
    if common.conf().request.fields {
        client_fields::push(x, set, outgoing, fields);
    }
    if x.vars.failed_match == FailedMatch::New {
        return Err(500);
    }
    let sizes = fields.fields.iter().map(|field| {
        let (name, value) = (field.name.len as usize, field.value.len as usize);
        name + value + (C::ENCODING.overhead)(name, value)
    });
    let bytes = sizes.sum::<usize>() + more_bytes;
    if bytes > PARAMS_BYTES {
        let what = C::ENCODING.too_big;
        x.log(Level::Error, format_args!("{what} is too big: {bytes}"));
        return Err(REQUEST_HEADER_FIELDS_TOO_LARGE);
    }
    Ok(())
}

/// Appends a parameter; `write` appends its value.
pub(crate) fn push_one(
    fields: &mut Fields,
    name: &[u8],
    if_not_empty: bool,
    write: impl FnOnce(&mut Vec<u8>),
) {
    let start = fields.arena.len();
    fields.arena.extend_from_slice(name);
    let value = fields.arena.len();
    write(&mut fields.arena);
    if if_not_empty && fields.arena.len() == value {
        return fields.arena.truncate(start);
    }
    fields.fields.push(Field {
        name: Span::new(start, name.len()),
        value: Span::new(value, fields.arena.len() - value),
        id: FieldId::Other,
    });
}

pub(super) fn bit(id: FieldId) -> u64 {
    1 << id as u8
}

/// Maximum size of the encoded parameters of a request, bytes: the maximum of a 16-bit length.
pub(crate) const PARAMS_BYTES: usize = (64 << 10) - 1;
/// RFC 6585 section 5.
const REQUEST_HEADER_FIELDS_TOO_LARGE: u16 = 431;
/// Estimated size of the configured parameters, bytes.
const ARENA_BYTES: usize = 1024;
