//! `add_header`, `add_trailer`, `expires`.
//!
//! `add_header` and `add_trailer` of a level replace those of the enclosing level, as in nginx.
//!
//! Source: nginx documentation, `ngx_http_headers_module`.

use std::rc::Rc;

use conf::{ConfError, Contexts, Directive, Word};
use engines::http::{FieldId, http_date, parse_http_date};
use server_base::shared_list::SharedList;
use server_http::assemble::ConfigBuilder;
use server_http::exchange::{Ctx, Exchange};
use server_http::module::{self, Module};
use server_http::settings_set::inherited;
use server_http::value::Value;
use server_http::{reply, settings};

/// The module.
pub(crate) const MODULE: Module = Module {
    name: "headers",
    directives: &[PLAIN, ROWS],
    settings: &[<HeadersLoc as server_http::settings_set::Conf>::def],
    header_stage: Some(stage),
    inherits: &[
        ("add_header", module::Inherit::As("add_header_inherit")),
        ("add_trailer", module::Inherit::As("add_trailer_inherit")),
    ],
    on_demand: true,
    ..Module::EMPTY
};

server_base::keyword! {
    /// `add_header_inherit`.
    pub enum Inherit {
        /// Never.
        Off = "off",
        /// If a level has no directives of its own.
        On = "on",
        /// After a level's own.
        Merge = "merge",
    }
}

impl Inherit {
    fn take(self, own: &mut SharedList<Added>, parent: &SharedList<Added>) {
        if self == Self::Merge || (self == Self::On && own.is_empty()) {
            own.append(parent);
        }
    }
}

settings! {
    /// Settings of the module.
    pub(crate) struct HeadersLoc: Location / PLAIN {
        /// Whether fields of the outer level are inherited by a level without its own, never, or in addition.
        header_inherit "add_header_inherit": Inherit = Inherit::On, "on", Contexts::HTTP_TO_IF;
        /// How trailer fields of outer levels are inherited, like `add_header_inherit`.
        trailer_inherit "add_trailer_inherit": Inherit = Inherit::On, "on", Contexts::HTTP_TO_IF;
    }
    extra {
        /// `add_header`.
        headers: SharedList<Added>,
        /// `add_trailer`.
        trailers: SharedList<Added>,
        /// `expires`.
        expires: Option<Expires> = inherited
    }
    merge inherit;
}

fn inherit(own: &mut HeadersLoc, parent: Option<&HeadersLoc>) {
    let Some(parent) = parent else { return };
    let (headers, trailers) = (*own.header_inherit, *own.trailer_inherit);
    headers.take(&mut own.headers, &parent.headers);
    trailers.take(&mut own.trailers, &parent.trailers);
}

/// One field to add.
#[derive(Clone)]
pub(crate) struct Added {
    name: Vec<u8>,
    value: Value,
    always: bool,
}

/// `expires`.
#[derive(Clone)]
pub(crate) enum Expires {
    /// A fixed rule.
    Rule(Rule),
    /// A rule in variables; the flag is set if it is relative to the modification time.
    Computed(Value, bool),
}

/// When a response expires.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Rule {
    /// Nothing is added.
    Off,
    /// Long ago.
    Epoch,
    /// In ten years.
    Max,
    /// Seconds from now.
    Access(i64),
    /// Seconds from the modification time.
    Modified(i64),
    /// At this second of the day.
    Daily(i64),
}

conf::directives! {
    const ROWS: ConfigBuilder;

    /// Adds a field to responses.
    directive "add_header": Contexts::HTTP_TO_IF, TAKE23, "", "name value [always]" => |b, d| {
        let added = added(b, d)?;
        b.conf_mut::<HeadersLoc>().headers.push(added);
        Ok(())
    };

    /// Adds a trailer field to responses.
    directive "add_trailer": Contexts::HTTP_TO_IF, TAKE23, "", "name value [always]" => |b, d| {
        let added = added(b, d)?;
        b.conf_mut::<HeadersLoc>().trailers.push(added);
        Ok(())
    };

    /// Adds Expires and Cache-Control.
    directive "expires": Contexts::HTTP_TO_IF, TAKE12, "off", "[modified] time | epoch | max | off" => expires;
}

fn added(b: &mut ConfigBuilder, d: &Directive) -> Result<Added, ConfError> {
    let always = conf::has_option(d, 2, b"always")?;
    Ok(Added {
        name: d.arg(0).to_vec(),
        value: Value::compile(b, d, d.word(1))?,
        always,
    })
}

fn expires(b: &mut ConfigBuilder, d: &Directive) -> Result<(), ConfError> {
    conf::once(d, b.conf_mut::<HeadersLoc>().expires.is_some())?;
    let modified = d.args.len() == 2;
    if modified && d.arg(0) != b"modified" {
        return Err(bad_expires(d, d.word(0), "invalid value"));
    }
    let word = d.word(d.args.len() - 1);
    let value = Value::compile(b, d, word)?;
    let expires = match value.constant() {
        Some(text) => {
            let rule = parse_rule(text, modified).map_err(|e| bad_expires(d, word, e))?;
            Expires::Rule(rule)
        }
        None => Expires::Computed(value, modified),
    };
    b.conf_mut::<HeadersLoc>().expires = Some(expires);
    Ok(())
}

fn bad_expires(d: &Directive, word: &Word, what: &str) -> ConfError {
    ConfError::word(d, word, format!("\"expires\" directive {what}"))
}

fn parse_rule(text: &[u8], modified: bool) -> Result<Rule, &'static str> {
    if !modified {
        match text {
            b"epoch" => return Ok(Rule::Epoch),
            b"max" => return Ok(Rule::Max),
            b"off" => return Ok(Rule::Off),
            _ => {}
        }
    }
    let (daily, text) = match text.strip_prefix(b"@") {
        Some(_) if modified => return Err("daily time cannot be used with \"modified\" parameter"),
        Some(rest) => (true, rest),
        None => (false, text),
    };
    let (sign, text) = match text {
        [b'+', rest @ ..] if !daily => (1, rest),
        [b'-', rest @ ..] if !daily => (-1, rest),
        _ => (1, text),
    };
    let seconds = conf::parse_time_s(text)
        .and_then(|n| i64::try_from(n).ok())
        .ok_or("invalid value")?
        * sign;
    match (daily, modified) {
        (true, _) if seconds > 86_400 => Err("daily time value must be less than 24 hours"),
        (true, _) => Ok(Rule::Daily(seconds)),
        // An offset of 0 is from now, also with `modified`.
        (false, true) if seconds != 0 => Ok(Rule::Modified(seconds)),
        (false, _) => Ok(Rule::Access(seconds)),
    }
}

fn stage(x: &mut Exchange, cx: &mut Ctx<'_>) -> Result<(), u16> {
    if std::mem::replace(&mut x.reply.headers_added, true) {
        return Ok(());
    }
    let http = Rc::clone(&x.route.http);
    let conf: &HeadersLoc = x.loc(&http);
    let safe = matches!(
        x.reply.status,
        200 | 201 | 204 | 206 | 301..=304 | 307 | 308
    );
    if safe && let Some(expires) = &conf.expires {
        apply_expires(x, cx, expires);
    }
    for added in &conf.headers {
        if !safe && !added.always {
            continue;
        }
        let value = added.value.to_vec(x, cx);
        add(x, &added.name, &value);
    }
    let trailers = conf.trailers.iter().any(|t| safe || t.always);
    if trailers && reply::trailers_allowed(x) && !x.header_only() {
        x.response.on_end = Some(write_trailers);
    }
    Ok(())
}

/// Adds a field. Some names replace the existing field; an empty value adds nothing.
fn add(x: &mut Exchange, name: &[u8], value: &[u8]) {
    match FieldId::of(name) {
        FieldId::LastModified => {
            x.reply.last_modified = parse_http_date(value);
            x.reply.last_modified_text = None;
            x.reply.fields.remove(FieldId::LastModified);
            if !value.is_empty() {
                x.reply.fields.push_id(FieldId::LastModified, name, value);
            }
        }
        FieldId::Etag => x.reply.etag = (!value.is_empty()).then(|| value.into()),
        _ if value.is_empty() => {}
        FieldId::Location => {
            let value = reply::escape_location(value);
            x.reply.fields.push_id(FieldId::Location, name, &value);
        }
        id => x.reply.fields.push_id(id, name, value),
    }
}

/// Sets the trailers of `add_trailer`.
pub(crate) fn write_trailers(x: &mut Exchange, cx: &mut Ctx<'_>) {
    let http = Rc::clone(&x.route.http);
    let conf: &HeadersLoc = x.loc(&http);
    let safe = matches!(
        x.reply.status,
        200 | 201 | 204 | 206 | 301..=304 | 307 | 308
    );
    for added in conf.trailers.iter().filter(|t| safe || t.always) {
        let value = added.value.to_vec(x, cx);
        if !value.is_empty() {
            x.reply.trailers.push(&added.name, &value);
        }
    }
}

fn apply_expires(x: &mut Exchange, cx: &mut Ctx<'_>, expires: &Expires) {
    let rule = match expires {
        Expires::Rule(rule) => *rule,
        Expires::Computed(value, modified) => {
            let text = value.to_vec(x, cx);
            parse_rule(&text, *modified).unwrap_or(Rule::Off)
        }
    };
    let now = cx.clock.unix_s();
    let (date, cache): (&[u8], String) = match (rule, x.reply.modified_s()) {
        (Rule::Off, _) => return,
        (Rule::Epoch, _) => (b"Thu, 01 Jan 1970 00:00:01 GMT", "no-cache".to_owned()),
        (Rule::Max, _) => (
            b"Thu, 31 Dec 2037 23:55:55 GMT",
            "max-age=315360000".to_owned(),
        ),
        (Rule::Daily(second), _) => {
            let at = next_daily(now, i64::from(server_base::clock::utc_offset_s()), second);
            return set_expires(x, &http_date(at), max_age(at - now));
        }
        (Rule::Modified(seconds), Some(last)) => {
            let age = if seconds < 0 {
                seconds
            } else {
                last + seconds - now
            };
            return set_expires(x, &http_date(last + seconds), max_age(age));
        }
        (Rule::Modified(seconds) | Rule::Access(seconds), _) => {
            return set_expires(x, &http_date(now + seconds), max_age(seconds));
        }
    };
    set_expires(x, date, cache);
}

fn max_age(seconds: i64) -> String {
    if seconds < 0 {
        "no-cache".to_owned()
    } else {
        format!("max-age={seconds}")
    }
}

fn set_expires(x: &mut Exchange, date: &[u8], cache: String) {
    x.reply.fields.remove(FieldId::Expires);
    x.reply.fields.remove(FieldId::CacheControl);
    x.reply.fields.push_id(FieldId::Expires, b"Expires", date);
    x.reply
        .fields
        .push_id(FieldId::CacheControl, b"Cache-Control", cache.as_bytes());
}

/// The next time the local clock shows this second of the day.
fn next_daily(now: i64, offset: i64, second: i64) -> i64 {
    let midnight = (now + offset).div_euclid(86_400) * 86_400 - offset;
    let today = midnight + second;
    if today > now { today } else { today + 86_400 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn expires_rules_are_read() {
        assert_eq!(parse_rule(b"epoch", false), Ok(Rule::Epoch));
        assert_eq!(parse_rule(b"-1", false), Ok(Rule::Access(-1)));
        assert_eq!(parse_rule(b"@15h30m", false), Ok(Rule::Daily(55_800)));
        assert_eq!(parse_rule(b"+24h", true), Ok(Rule::Modified(86_400)));
        assert_eq!(parse_rule(b"0", true), Ok(Rule::Access(0)));
        assert!(parse_rule(b"@25h", false).is_err());
        assert!(parse_rule(b"@-1h", false).is_err());
        assert!(parse_rule(b"@1h", true).is_err());
        assert!(parse_rule(b"soon", false).is_err());
    }

    #[test]
    fn daily_time_is_the_next_one() {
        assert_eq!(next_daily(100, 0, 200), 200);
        assert_eq!(next_daily(300, 0, 200), 86_600);
        assert_eq!(next_daily(0, 3600, 3601), 1);
    }
}
