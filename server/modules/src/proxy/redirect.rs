//! `proxy_redirect`: rewrites `Location` and `Refresh` of responses, so that URLs of upstream servers become our own.
//!
//! Source: nginx documentation, directive `proxy_redirect`.

use std::rc::Rc;
use std::sync::Arc;

use conf::{ConfError, Directive, Word};
use engines::http::FieldId;
use server_base::config::ConfigContext;
use server_base::regex::Regex;
use server_http::assemble::ConfigBuilder;
use server_http::exchange::{Ctx, Exchange};
use server_http::value::Value;

use super::conf::ProxyLoc;
use super::pass::{Fixed, Pass};

/// `proxy_redirect` of a level.
#[derive(Default)]
pub(crate) struct Redirects {
    /// Whether redirects are rewritten, if configured.
    on: Option<bool>,
    list: Option<Arc<Vec<Rewrite>>>,
}

/// The part of a value that is replaced, and its replacement.
#[derive(Clone, Debug)]
pub(super) struct Rewrite {
    pattern: Pattern,
    replacement: Value,
}

/// The part of a value that is replaced.
#[derive(Clone, Debug)]
enum Pattern {
    /// This prefix.
    Prefix(Value),
    /// This domain with an optional leading dot, case-insensitively.
    Domain(Value),
    /// The whole value, if it matches.
    Regex(Arc<Regex>),
}

pub(super) fn proxy_redirect(b: &mut ConfigBuilder, d: &Directive) -> Result<(), ConfError> {
    let own = &mut b.conf_mut::<ProxyLoc>().redirects;
    let off = d.args.len() == 1 && d.arg(0) == b"off";
    conf::once(d, own.on == Some(false) || (off && own.list.is_some()))?;
    own.on = Some(!off);
    if off {
        return Ok(());
    }
    let rewrite = match d.args.len() {
        1 if d.arg(0) == b"default" => usual(b, d)?,
        1 => return Err(ConfError::parameter(d, d.word(0))),
        _ => Rewrite::of_prefix(b, d)?,
    };
    let own = &mut b.conf_mut::<ProxyLoc>().redirects;
    Arc::make_mut(own.list.get_or_insert_default()).push(rewrite);
    Ok(())
}

/// `proxy_redirect default`.
fn usual(b: &mut ConfigBuilder, d: &Directive) -> Result<Rewrite, ConfError> {
    let text = match b.conf_mut::<ProxyLoc>().pass.as_deref() {
        Some(Pass::Fixed(fixed)) => return Ok(Rewrite::default_for(fixed)),
        Some(Pass::Computed(_)) => {
            "\"proxy_redirect default\" cannot be used with \"proxy_pass\" directive with variables"
        }
        None => "\"proxy_redirect default\" should be placed after the \"proxy_pass\" directive",
    };
    Err(ConfError::at(d, text))
}

impl Redirects {
    /// Inherits unset values from `parent`, or uses the default for a `proxy_pass` at this level.
    pub(super) fn inherit(&mut self, parent: Option<&Self>, pass: Option<&Pass>) {
        self.on = self.on.or(parent.and_then(|parent| parent.on));
        if self.on == Some(false) {
            return;
        }
        // As in nginx, a nested location inherits the default made for the outer one.
        if self.list.is_none() {
            self.list = parent.and_then(|parent| parent.list.clone());
        }
        if let (None, Some(Pass::Fixed(fixed))) = (&self.list, pass) {
            self.list = Some(Arc::new(vec![Rewrite::default_for(fixed)]));
        }
    }
}

impl Rewrite {
    /// The default rewrites the URL of `proxy_pass` to the name of the location. Without a URI in it, the host becomes
    /// the root.
    fn default_for(fixed: &Fixed) -> Self {
        let (from, to) = match &fixed.parts.uri[..] {
            b"" => ([&fixed.url[..], b"/"].concat(), &b"/"[..]),
            _ => (fixed.url.to_vec(), &fixed.location[..]),
        };
        Self {
            pattern: Pattern::Prefix(Value::text(&from)),
            replacement: Value::text(to),
        }
    }

    /// Compiles the words of `proxy_redirect` and `proxy_cookie_path`: a prefix, or `~` or `~*` and an expression.
    ///
    /// # Errors
    /// An invalid expression or variable.
    pub(super) fn of_prefix(cx: &mut dyn ConfigContext, d: &Directive) -> Result<Self, ConfError> {
        let pattern = match d.arg(0) {
            [b'~', b'*', rest @ ..] => Pattern::regex(cx, d, rest, true)?,
            [b'~', rest @ ..] => Pattern::regex(cx, d, rest, false)?,
            _ => Pattern::Prefix(Value::compile(cx, d, d.word(0))?),
        };
        let replacement = Value::compile(cx, d, d.word(1))?;
        Ok(Self {
            pattern,
            replacement,
        })
    }

    /// Compiles the words of `proxy_cookie_domain`: a domain, or `~` and a case-insensitive expression.
    ///
    /// # Errors
    /// See [`Rewrite::of_prefix`].
    pub(super) fn of_domain(cx: &mut dyn ConfigContext, d: &Directive) -> Result<Self, ConfError> {
        let bare = |word: &Word| {
            let text = word.text.as_slice();
            text.strip_prefix(b".").unwrap_or(text).to_vec()
        };
        let (pattern, to) = match d.arg(0) {
            [b'~', rest @ ..] => (Pattern::regex(cx, d, rest, true)?, d.arg(1).to_vec()),
            _ => {
                let domain = Value::compile_bytes(cx, d, d.word(0), &bare(d.word(0)))?;
                (Pattern::Domain(domain), bare(d.word(1)))
            }
        };
        let replacement = Value::compile_bytes(cx, d, d.word(1), &to)?;
        Ok(Self {
            pattern,
            replacement,
        })
    }

    /// Rewrites a value from an offset on; returns whether it matches.
    pub(super) fn apply(
        &self,
        x: &mut Exchange,
        cx: &mut Ctx<'_>,
        value: &mut Vec<u8>,
        from: usize,
    ) -> bool {
        let (from, len) = match &self.pattern {
            Pattern::Prefix(pattern) => {
                let pattern = pattern.to_vec(x, cx);
                if !value[from..].starts_with(&pattern) {
                    return false;
                }
                (from, pattern.len())
            }
            Pattern::Domain(pattern) => {
                let pattern = pattern.to_vec(x, cx);
                let from = from + usize::from(value[from..].starts_with(b"."));
                if !value[from..].eq_ignore_ascii_case(&pattern) {
                    return false;
                }
                (from, pattern.len())
            }
            Pattern::Regex(regex) => {
                return x.match_for_value(|x| {
                    let hit = regex.exec(x, &value[from..]).is_ok_and(|hit| hit);
                    if hit {
                        value.truncate(from);
                        self.replacement.eval(x, cx, value);
                    }
                    hit
                });
            }
        };
        let replacement = self.replacement.to_vec(x, cx);
        value.splice(from..from + len, replacement);
        true
    }
}

impl Pattern {
    fn regex(
        cx: &mut dyn ConfigContext,
        d: &Directive,
        text: &[u8],
        caseless: bool,
    ) -> Result<Self, ConfError> {
        Regex::compile(cx, d, d.word(0), text, caseless).map(|regex| Self::Regex(Arc::new(regex)))
    }
}

/// Changes `Location` and `Refresh` of the response.
pub(super) fn rewrite(x: &mut Exchange, cx: &mut Ctx<'_>) {
    let http = Rc::clone(&x.route.http);
    let Some(list) = &x.loc::<ProxyLoc>(&http).redirects.list else {
        return;
    };
    for index in 0..x.reply.fields.fields.len() {
        let field = x.reply.fields.fields[index];
        let is_refresh = x
            .reply
            .fields
            .bytes(field.name)
            .eq_ignore_ascii_case(b"Refresh");
        if field.id != FieldId::Location && !is_refresh {
            continue;
        }
        let mut value = x.reply.fields.bytes(field.value).to_vec();
        let from = match is_refresh {
            true => url_of_refresh(&value),
            false => Some(0),
        };
        let Some(from) = from else { continue };
        if !list.iter().any(|rule| rule.apply(x, cx, &mut value, from)) {
            continue;
        }
        if is_refresh {
            x.reply.fields.replace_value(index, &value);
        } else {
            // The reply's own `Location`: `absolute_redirect` can make it a URL of this server.
            x.reply.location = value;
        }
    }
    if !x.reply.location.is_empty() {
        x.reply.fields.remove(FieldId::Location);
    }
}

/// Returns the offset of the URL in `Refresh`: behind `url=`.
fn url_of_refresh(value: &[u8]) -> Option<usize> {
    let at = value
        .windows(URL.len())
        .position(|text| text.eq_ignore_ascii_case(URL))?;
    Some(at + URL.len())
}

const URL: &[u8] = b"url=";
