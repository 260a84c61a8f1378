//! `sticky` in an `upstream` block: requests of a client that are passed to the same server.
//!
//! Requests are bound by [`server_http::upstream::sticky`]. `sync` is refused, since zones are not shared between machines.
//!
//! Source: nginx documentation, `ngx_http_upstream_module`, `sticky`; nginx's behaviour.

use conf::{ConfError, Contexts, Directive, Word};
use server_base::config::{ConfigContext, VarId};
use server_base::zone;
use server_http::assemble::ConfigBuilder;
use server_http::upstream::sticky::{
    CookieExpires, Learn, Sticky, StickyCookie, StickyGroups, StickyMethod, is_same_site,
};
use server_http::value::Value;
use server_upstream::sessions::Sessions;

use super::Block;

conf::directives! {
    pub(super) const ROWS: ConfigBuilder;

    /// Passes requests of a client to the same server of the group, by a cookie, a part of the request, or a session.
    directive "sticky": Contexts::UPSTREAM, TWO_MORE, "",
        "cookie name [expires=time|max] [domain=domain] [httponly] [samesite=strict|lax|none] [secure] [path=path] | \
         route $variable ... | learn create=$variable ... lookup=$variable ... zone=name:size [timeout=time] [header]" => sticky;
}

fn sticky(b: &mut ConfigBuilder, d: &Directive) -> Result<(), ConfError> {
    conf::once(d, b.conf_mut::<Block>().sticky.is_some())?;
    let sticky = match d.arg(0) {
        b"cookie" => cookie(b, d)?,
        b"route" => Sticky {
            lookup: (d.args[1..].iter())
                .map(|word| variable(b, d, word, &word.text))
                .collect::<Result<_, _>>()?,
            method: StickyMethod::Route,
        },
        b"learn" => learn(b, d)?,
        _ => return Err(unknown(d, d.word(0))),
    };
    b.conf_mut::<Block>().sticky = Some(sticky);
    Ok(())
}

fn unknown(d: &Directive, word: &Word) -> ConfError {
    let text = format!("unknown parameter \"{}\"", word.as_str());
    ConfError::word(d, word, text)
}

/// Reads `$name`, which is `text`, the word or its end.
fn variable(
    b: &mut ConfigBuilder,
    d: &Directive,
    word: &Word,
    text: &[u8],
) -> Result<VarId, ConfError> {
    match text.strip_prefix(b"$") {
        Some(name) if !name.is_empty() => Ok(b.variable(name, d, word)),
        _ => {
            let text = format!("invalid variable name \"{}\"", word.as_str());
            Err(ConfError::word(d, word, text))
        }
    }
}

/// Splits `name=value`.
fn parameter(word: &Word) -> (&[u8], Option<&[u8]>) {
    let text = word.text.as_slice();
    match text.iter().position(|byte| *byte == b'=') {
        Some(at) => (&text[..at], Some(&text[at + 1..])),
        None => (text, None),
    }
}

fn cookie(b: &mut ConfigBuilder, d: &Directive) -> Result<Sticky, ConfError> {
    let name = d.arg(1);
    if name.is_empty() {
        return Err(ConfError::directive(d, "empty cookie name"));
    }
    let mut cookie = StickyCookie {
        name: name.into(),
        ..StickyCookie::default()
    };
    for word in &d.args[2..] {
        attribute(&mut cookie, b, d, word)?;
    }
    let lookup = b.variable(&[b"cookie_", name].concat(), d, d.word(1));
    Ok(Sticky {
        lookup: vec![lookup],
        method: StickyMethod::Cookie(Box::new(cookie)),
    })
}

/// Reads one attribute of the cookie.
fn attribute(
    cookie: &mut StickyCookie,
    b: &mut ConfigBuilder,
    d: &Directive,
    word: &Word,
) -> Result<(), ConfError> {
    let (key, value) = parameter(word);
    let is_again = match (key, value) {
        (b"domain", Some(_)) => cookie.domain.is_some(),
        (b"path", Some(_)) => cookie.path.is_some(),
        (b"expires", Some(_)) => cookie.expires.is_some(),
        (b"samesite", Some(_)) => cookie.same_site.is_some(),
        (b"httponly", None) => cookie.http_only,
        (b"secure", None) => cookie.secure,
        _ => return Err(unknown(d, word)),
    };
    let shown = String::from_utf8_lossy(key);
    if is_again {
        let text = format!("parameter \"{shown}\" is duplicate");
        return Err(ConfError::directive(d, text));
    }
    let value = value.unwrap_or_default();
    match key {
        b"domain" | b"path" if value.is_empty() => {
            return Err(ConfError::directive(d, format!("no value for \"{shown}\"")));
        }
        b"domain" => cookie.domain = Some(Value::compile_bytes(b, d, word, value)?),
        b"path" => cookie.path = Some(value.into()),
        b"expires" => {
            let expires = match value {
                b"max" => Some(CookieExpires::Max),
                _ => conf::parse_time_s(value).map(CookieExpires::After),
            };
            let invalid = || ConfError::directive(d, "invalid \"expires\" parameter value");
            cookie.expires = Some(expires.ok_or_else(invalid)?);
        }
        b"samesite" => {
            let value = Value::compile_bytes(b, d, word, value)?;
            if value.constant().is_some_and(|text| !is_same_site(text)) {
                let text = "invalid \"samesite\" parameter value";
                return Err(ConfError::directive(d, text));
            }
            cookie.same_site = Some(value);
        }
        b"httponly" => cookie.http_only = true,
        _ => cookie.secure = true,
    }
    Ok(())
}

/// The parameters of `learn` that were read.
#[derive(Default)]
struct LearnParameters<'d> {
    lookup: Vec<VarId>,
    create: Vec<VarId>,
    /// The word, the name and the size in bytes.
    zone: Option<(&'d Word, &'d [u8], u64)>,
    timeout_ms: Option<u64>,
    after_head: bool,
}

fn learn(b: &mut ConfigBuilder, d: &Directive) -> Result<Sticky, ConfError> {
    let mut read = LearnParameters::default();
    for word in &d.args[1..] {
        learn_parameter(&mut read, b, d, word)?;
    }
    let missing = |name: &str| {
        let text = format!("\"{name}\" parameter is not specified");
        Err(ConfError::directive(d, text))
    };
    if read.lookup.is_empty() {
        return missing("lookup");
    }
    if read.create.is_empty() {
        return missing("create");
    }
    let Some((word, name, size_bytes)) = read.zone else {
        return missing("zone");
    };
    let id = zone::refer(b, d, word, name, size_bytes, ZONE_USE)?;
    let group = b.conf_mut::<Block>().name.clone();
    let (shown, shown_group) = (
        String::from_utf8_lossy(name),
        String::from_utf8_lossy(&group),
    );
    if let Some(other) = b.conf_mut::<StickyGroups>().use_zone(id, &group) {
        let other = String::from_utf8_lossy(&other);
        let text = format!("sticky zone \"{shown}\" is already used in upstream \"{other}\"");
        return Err(ConfError::word(d, word, text));
    }
    let timeout_ms = read.timeout_ms.unwrap_or(TIMEOUT_MS);
    let sessions = Sessions::attach(name, size_bytes, &group, timeout_ms).map_err(|before| {
        let before = String::from_utf8_lossy(&before);
        ConfError::new(format!(
            "sticky zone \"{shown}\" is used in upstream \"{shown_group}\" \
             while previously it was used in upstream \"{before}\""
        ))
    })?;
    Ok(Sticky {
        lookup: read.lookup,
        method: StickyMethod::Learn(Learn {
            create: read.create,
            sessions,
            after_head: read.after_head,
        }),
    })
}

fn learn_parameter<'d>(
    read: &mut LearnParameters<'d>,
    b: &mut ConfigBuilder,
    d: &Directive,
    word: &'d Word,
) -> Result<(), ConfError> {
    let wrong = |text: String| Err(ConfError::directive(d, text));
    match parameter(word) {
        (b"zone", Some(_)) if read.zone.is_some() => return wrong("duplicate zone".to_owned()),
        (b"zone", Some(text)) => {
            let (name, size_bytes) = zone_size(d, text)?;
            read.zone = Some((word, name, size_bytes));
        }
        (b"timeout", Some(_)) if read.timeout_ms.is_some() => {
            return wrong("duplicate timeout".to_owned());
        }
        (b"timeout", Some(time)) => match conf::parse_time_ms(time) {
            Some(time_ms @ 1..) => read.timeout_ms = Some(time_ms),
            _ => return wrong("invalid timeout".to_owned()),
        },
        (key @ (b"create" | b"lookup"), Some(name)) => {
            if !name.starts_with(b"$") {
                let key = String::from_utf8_lossy(key);
                return wrong(format!("missing variable in the \"{key}\" parameter"));
            }
            let id = variable(b, d, word, name)?;
            match key {
                b"create" => read.create.push(id),
                _ => read.lookup.push(id),
            }
        }
        (b"header", None) => read.after_head = true,
        (b"sync", None) => {
            let text = "the \"sync\" parameter is not built: zones are not synchronized between \
                        servers";
            return Err(ConfError::word(d, word, text));
        }
        _ => return Err(unknown(d, word)),
    }
    Ok(())
}

/// Reads `NAME:SIZE`, the size in bytes.
fn zone_size<'w>(d: &Directive, text: &'w [u8]) -> Result<(&'w [u8], u64), ConfError> {
    let wrong = |text| Err(ConfError::directive(d, text));
    let Some(colon) = text.iter().position(|byte| *byte == b':') else {
        return wrong("zone size is not specified");
    };
    let (name, size) = (&text[..colon], &text[colon + 1..]);
    if name.is_empty() {
        return wrong("zone name is not specified");
    }
    match conf::parse_size(size) {
        None => wrong("invalid zone size"),
        Some(bytes) if (bytes as u64) < zone::SIZE_MIN_BYTES => wrong("zone is too small"),
        Some(bytes) => Ok((name, bytes as u64)),
    }
}

/// The purpose of these zones.
const ZONE_USE: &str = "sticky";
/// Default of `timeout`.
const TIMEOUT_MS: u64 = 600_000;
