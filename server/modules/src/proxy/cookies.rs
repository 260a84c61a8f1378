//! `proxy_cookie_domain`, `proxy_cookie_path`, `proxy_cookie_flags`: changed attributes of servers' cookies.
//!
//! Source: nginx documentation, `ngx_http_proxy_module`; RFC 6265 section 4.1.

use std::rc::Rc;
use std::sync::Arc;

use conf::{Arity, ConfError, Directive};
use engines::http::FieldId;
use server_base::config::ConfigContext;
use server_base::from_args::FromArgs;
use server_base::regex::Regex;
use server_http::debug_http;
use server_http::exchange::{Ctx, Exchange};
use server_http::value::Value;

use super::conf::ProxyLoc;
use super::redirect::Rewrite;

/// Rules of a level, or `off`.
#[derive(Debug)]
struct Rules<T>(Option<Arc<Vec<T>>>);

/// `proxy_cookie_domain`.
#[derive(Clone, Debug, Default)]
pub(crate) struct CookieDomains(Rules<Rewrite>);

/// `proxy_cookie_path`.
#[derive(Clone, Debug, Default)]
pub(crate) struct CookiePaths(Rules<Rewrite>);

/// `proxy_cookie_flags`.
#[derive(Clone, Debug, Default)]
pub(crate) struct CookieFlags(Rules<FlagRule>);

impl<T> Default for Rules<T> {
    fn default() -> Self {
        Self(None)
    }
}

impl<T> Clone for Rules<T> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

impl<T: Clone> Rules<T> {
    /// The first directive of a level.
    fn first(
        cx: &mut dyn ConfigContext,
        d: &Directive,
        read: fn(&mut dyn ConfigContext, &Directive) -> Result<T, ConfError>,
    ) -> Result<Self, ConfError> {
        match (d.args.len(), d.arg(0)) {
            (1, b"off") => Ok(Self(None)),
            (1, _) => Err(ConfError::parameter(d, d.word(0))),
            _ => Ok(Self(Some(Arc::new(vec![read(cx, d)?])))),
        }
    }

    /// Adds a rule of another directive; "off" cannot be combined.
    fn more(
        self,
        cx: &mut dyn ConfigContext,
        d: &Directive,
        read: fn(&mut dyn ConfigContext, &Directive) -> Result<T, ConfError>,
    ) -> Result<Self, ConfError> {
        let more = Self::first(cx, d, read)?;
        let (Some(mut all), Some(more)) = (self.0, more.0) else {
            return Err(ConfError::directive(d, "is duplicate"));
        };
        Arc::make_mut(&mut all).extend(more.iter().cloned());
        Ok(Self(Some(all)))
    }

    fn list(&self) -> &[T] {
        self.0.as_deref().map_or(&[], Vec::as_slice)
    }
}

macro_rules! typed {
    ($name:ident, $arity:ident, $syntax:literal, $read:expr) => {
        impl FromArgs for $name {
            const ARITY: Arity = Arity::$arity;
            const SYNTAX: &'static str = $syntax;

            fn parse(cx: &mut dyn ConfigContext, d: &Directive) -> Result<Self, ConfError> {
                Rules::first(cx, d, $read).map(Self)
            }

            fn parse_again(
                self,
                cx: &mut dyn ConfigContext,
                d: &Directive,
            ) -> Result<Self, ConfError> {
                self.0.more(cx, d, $read).map(Self)
            }
        }
    };
}

typed!(
    CookieDomains,
    TAKE12,
    "off | domain replacement",
    Rewrite::of_domain
);
typed!(
    CookiePaths,
    TAKE12,
    "off | path replacement",
    Rewrite::of_prefix
);
typed!(
    CookieFlags,
    TAKE1234,
    "off | cookie [flag ...]",
    FlagRule::read
);

/// Flags for cookies of a name.
#[derive(Clone, Debug)]
struct FlagRule {
    cookie: CookieName,
    flags: Vec<Value>,
}

#[derive(Clone, Debug)]
enum CookieName {
    /// In any case.
    Text(Value),
    Regex(Arc<Regex>),
}

impl FlagRule {
    fn read(cx: &mut dyn ConfigContext, d: &Directive) -> Result<Self, ConfError> {
        let cookie = match d.arg(0) {
            [b'~', rest @ ..] => {
                CookieName::Regex(Arc::new(Regex::compile(cx, d, d.word(0), rest, true)?))
            }
            _ => CookieName::Text(Value::compile(cx, d, d.word(0))?),
        };
        let flags = d.args[1..].iter().map(|word| Value::compile(cx, d, word));
        Ok(Self {
            cookie,
            flags: flags.collect::<Result<_, _>>()?,
        })
    }

    /// Returns the flags for a cookie; `None` if the rule does not match its name.
    fn flags_for(&self, x: &mut Exchange, cx: &mut Ctx<'_>, name: &[u8]) -> Option<Flags> {
        match &self.cookie {
            CookieName::Text(text) => {
                let hit = text.to_vec(x, cx).eq_ignore_ascii_case(name);
                hit.then(|| self.evaluate(x, cx))
            }
            CookieName::Regex(regex) => x.match_for_value(|x| {
                let hit = regex.exec(x, name).is_ok_and(|hit| hit);
                hit.then(|| self.evaluate(x, cx))
            }),
        }
    }

    fn evaluate(&self, x: &mut Exchange, cx: &mut Ctx<'_>) -> Flags {
        let mut flags = Flags::default();
        for value in &self.flags {
            let flag = value.to_vec(x, cx);
            if !flags.add(&flag) && !flag.is_empty() {
                let flag = String::from_utf8_lossy(&flag);
                debug_http!(x, "invalid proxy_cookie_flags flag \"{flag}\"");
            }
        }
        flags
    }
}

/// Changes the cookies that the response sets.
pub(super) fn rewrite(x: &mut Exchange, cx: &mut Ctx<'_>) {
    let http = Rc::clone(&x.route.http);
    let conf: &ProxyLoc = x.loc(&http);
    let (domains, paths) = (conf.cookie_domains.0.list(), conf.cookie_paths.0.list());
    let flags = conf.cookie_flags.0.list();
    if domains.is_empty() && paths.is_empty() && flags.is_empty() {
        return;
    }
    for index in 0..x.reply.fields.fields.len() {
        let field = x.reply.fields.fields[index];
        if field.id != FieldId::SetCookie {
            continue;
        }
        let Some(mut cookie) = Cookie::parse(x.reply.fields.bytes(field.value)) else {
            continue;
        };
        let mut changed = cookie.rewrite(x, cx, b"domain", domains);
        changed |= cookie.rewrite(x, cx, b"path", paths);
        changed |= cookie.set_flags(x, cx, flags);
        if changed {
            x.reply.fields.replace_value(index, &cookie.text());
        }
    }
}

/// A cookie and its attributes, each with its value if it has one.
#[derive(Debug, PartialEq, Eq)]
struct Cookie(Vec<(Vec<u8>, Option<Vec<u8>>)>);

impl Cookie {
    /// Parses a cookie; `None` without a name and a value.
    fn parse(text: &[u8]) -> Option<Self> {
        let attributes = text.split(|byte| *byte == b';').map(|text| {
            let blank = |text: &[u8]| trim_blanks(text).to_vec();
            match memchr::memchr(b'=', text) {
                Some(at) => (blank(&text[..at]), Some(blank(&text[at + 1..]))),
                None => (blank(text), None),
            }
        });
        let cookie = Self(attributes.collect());
        cookie.0[0].1.is_some().then_some(cookie)
    }

    /// Rewrites the values of an attribute, each by the first matching rule; returns whether any changed.
    fn rewrite(
        &mut self,
        x: &mut Exchange,
        cx: &mut Ctx<'_>,
        name: &[u8],
        rules: &[Rewrite],
    ) -> bool {
        let mut changed = false;
        for (key, value) in &mut self.0[1..] {
            if let Some(value) = value
                && key.eq_ignore_ascii_case(name)
            {
                changed |= rules.iter().any(|rule| rule.apply(x, cx, value, 0));
            }
        }
        changed
    }

    /// Changes flags by the first rule for the cookie; returns whether a rule has flags.
    fn set_flags(&mut self, x: &mut Exchange, cx: &mut Ctx<'_>, rules: &[FlagRule]) -> bool {
        let name = self.0[0].0.clone();
        let mut found = rules.iter().filter_map(|rule| rule.flags_for(x, cx, &name));
        let Some(flags) = found.next().filter(|flags| *flags != Flags::default()) else {
            return false;
        };
        set_flag(&mut self.0, b"Secure", flags.secure.map(|on| (on, None)));
        set_flag(
            &mut self.0,
            b"HttpOnly",
            flags.http_only.map(|on| (on, None)),
        );
        let same_site = flags.same_site;
        let same_site = same_site.map(|value| (value.is_some(), value));
        set_flag(&mut self.0, b"SameSite", same_site);
        true
    }

    fn text(&self) -> Vec<u8> {
        let mut out = Vec::new();
        for (n, (key, value)) in self.0.iter().enumerate() {
            if n > 0 {
                out.extend_from_slice(b"; ");
            }
            out.extend_from_slice(key);
            if let Some(value) = value {
                out.push(b'=');
                out.extend_from_slice(value);
            }
        }
        out
    }
}

/// The flags of a rule: set, removed, or unchanged.
#[derive(Debug, Default, PartialEq, Eq)]
struct Flags {
    secure: Option<bool>,
    http_only: Option<bool>,
    /// The value to set; `Some(None)` removes the attribute.
    same_site: Option<Option<&'static [u8]>>,
}

impl Flags {
    /// Adds a flag; false for an unknown word. In any order, setting a flag wins over removing it, and the stricter
    /// `SameSite` wins.
    fn add(&mut self, flag: &[u8]) -> bool {
        let rank =
            |value: Option<&'static [u8]>| SAME_SITE.iter().position(|known| Some(*known) == value);
        match flag.to_ascii_lowercase().as_slice() {
            b"secure" => self.secure = Some(true),
            b"nosecure" => self.secure = Some(self.secure.unwrap_or(false)),
            b"httponly" => self.http_only = Some(true),
            b"nohttponly" => self.http_only = Some(self.http_only.unwrap_or(false)),
            b"nosamesite" => self.same_site = Some(self.same_site.flatten()),
            name => {
                let known = SAME_SITE.iter().copied();
                let wanted = name.strip_prefix(b"samesite=");
                let Some(value) = wanted
                    .and_then(|wanted| known.clone().find(|v| v.eq_ignore_ascii_case(wanted)))
                else {
                    return false;
                };
                let before = self.same_site.flatten();
                let stricter = rank(before).is_none_or(|own| rank(Some(value)) < Some(own));
                self.same_site = Some(if stricter { Some(value) } else { before });
            }
        }
        true
    }
}

/// Sets or removes an attribute. An equal attribute keeps its spelling.
fn set_flag(
    attributes: &mut Vec<(Vec<u8>, Option<Vec<u8>>)>,
    name: &[u8],
    flag: Option<(bool, Option<&[u8]>)>,
) {
    let Some((on, value)) = flag else { return };
    let is_flag = |key: &[u8]| key.eq_ignore_ascii_case(name);
    if !on {
        let mut first = true;
        return attributes.retain(|(key, _)| std::mem::take(&mut first) || !is_flag(key));
    }
    match attributes[1..].iter_mut().find(|(key, _)| is_flag(key)) {
        Some((key, own)) => {
            let same = |own: &Vec<u8>| value.is_some_and(|v| v.eq_ignore_ascii_case(own));
            if value.is_some() && !own.as_ref().is_some_and(same) {
                *key = name.to_vec();
                *own = value.map(<[u8]>::to_vec);
            }
        }
        None => attributes.push((name.to_vec(), value.map(<[u8]>::to_vec))),
    }
}

/// Removes spaces at both ends, but no tabs.
fn trim_blanks(mut text: &[u8]) -> &[u8] {
    while let [b' ', rest @ ..] | [rest @ .., b' '] = text {
        text = rest;
    }
    text
}

/// Values of `SameSite`, the strictest first.
const SAME_SITE: [&[u8]; 3] = [b"Strict", b"Lax", b"None"];
