//! `valid_referers` and `$invalid_referer`: detects requests from links on other sites.
//!
//! Names are read with the directive. `server_names` is resolved at the end of the block, since names of the server may
//! follow. As in nginx the variable keeps its first value for the rest of the request.
//!
//! Source: nginx documentation, `ngx_http_referer_module`.

use std::collections::HashMap;
use std::rc::Rc;
use std::sync::Arc;

use conf::{ConfError, Contexts, Directive, Word};
use engines::http::FieldId;
use server_base::regex::{ListedRegex, MatchLimit, Regex};
use server_http::assemble::ConfigBuilder;
use server_http::conf_core::CoreSrv;
use server_http::exchange::{Ctx, Exchange};
use server_http::module::{Inherit, Module};
use server_http::names::{NameKind, NameTable};
use server_http::settings;
use server_http::vars::Compute;

/// The module.
pub(crate) const MODULE: Module = Module {
    name: "referer",
    directives: &[PLAIN, ROWS],
    settings: &[<RefererLoc as server_http::settings_set::Conf>::def],
    finish: Some(finish),
    inherits: &[("valid_referers", Inherit::Around)],
    ..Module::EMPTY
};

settings! {
    /// Settings of the module.
    pub(crate) struct RefererLoc: Location / PLAIN {}
    extra {
        /// `valid_referers` as written.
        draft: Option<Arc<Draft>>,
        /// The referers together with the names of the server.
        valid: Option<Arc<Valid>>
    }
    merge inherit;
}

/// The directives of one level.
pub(crate) struct Draft {
    /// The first directive, for errors about all of them.
    at: Directive,
    none: bool,
    blocked: bool,
    server_names: bool,
    /// Whether expressions among the server names are used: `server_names` is set here or at an outer level.
    server_regexes: bool,
    names: Vec<Name>,
    regexes: Arc<Vec<ListedRegex>>,
}

/// A name, and the required prefix of the path.
struct Name {
    text: Vec<u8>,
    kind: NameKind,
    path: Vec<u8>,
}

/// The patterns that a referer is compared with.
pub(crate) struct Valid {
    none: bool,
    blocked: bool,
    server_regexes: bool,
    names: NameTable,
    /// By the index in `names`.
    paths: Vec<Vec<u8>>,
    regexes: Arc<Vec<ListedRegex>>,
}

conf::directives! {
    const ROWS: ConfigBuilder;

    /// Values of Referer for which $invalid_referer is empty.
    directive "valid_referers": Contexts::SERVER.or(Contexts::LOCATION), ONE_MORE, "",
        "none | blocked | server_names | string ..." => valid_referers;
}

fn inherit(own: &mut RefererLoc, parent: Option<&RefererLoc>) {
    let Some(outer) = parent.and_then(|p| p.draft.as_ref()) else {
        return;
    };
    match &mut own.draft {
        None => own.draft = Some(Arc::clone(outer)),
        Some(draft) => {
            let draft = unshared(draft);
            draft.server_regexes |= outer.server_regexes;
            // Only the expressions of the enclosing level are inherited, and only if this level has none, as in nginx.
            if draft.regexes.is_empty() {
                draft.regexes = Arc::clone(&outer.regexes);
            }
        }
    }
}

fn unshared(draft: &mut Arc<Draft>) -> &mut Draft {
    Arc::get_mut(draft).expect("a draft is shared only once its level has been merged")
}

fn valid_referers(b: &mut ConfigBuilder, d: &Directive) -> Result<(), ConfError> {
    let mut draft = b.conf_mut::<RefererLoc>().draft.take().unwrap_or_else(|| {
        Arc::new(Draft {
            at: d.owned_head(),
            none: false,
            blocked: false,
            server_names: false,
            server_regexes: false,
            names: Vec::new(),
            regexes: Arc::default(),
        })
    });
    let own = unshared(&mut draft);
    for word in &d.args {
        match word.text.as_slice() {
            b"" => return Err(ConfError::word(d, word, "invalid referer \"\"")),
            b"none" => own.none = true,
            b"blocked" => own.blocked = true,
            b"server_names" => (own.server_names, own.server_regexes) = (true, true),
            b"~" => return Err(ConfError::word(d, word, "empty regex in \"~\"")),
            [b'~', pattern @ ..] => {
                let regex = Regex::compile(b, d, word, pattern, true)?;
                Arc::get_mut(&mut own.regexes)
                    .expect("expressions are shared only once their level has been merged")
                    .push(ListedRegex::new(regex));
            }
            _ => own.names.push(name(d, word)?),
        }
    }
    b.conf_mut::<RefererLoc>().draft = Some(draft);
    Ok(())
}

fn name(d: &Directive, word: &Word) -> Result<Name, ConfError> {
    let slash = word.text.iter().position(|b| *b == b'/');
    let (host, path) = word.text.split_at(slash.unwrap_or(word.text.len()));
    let text = host.to_ascii_lowercase();
    let kind = NameKind::of(&text);
    if matches!(kind, NameKind::Invalid) {
        let shown = String::from_utf8_lossy(host);
        let text = format!("invalid hostname or wildcard \"{shown}\"");
        return Err(ConfError::word(d, word, text));
    }
    let path = path.to_vec();
    Ok(Name { text, kind, path })
}

/// Builds the tables for requests, once for all levels that share them.
fn finish(b: &mut ConfigBuilder) -> Result<(), ConfError> {
    let mut known: HashMap<*const Draft, Arc<Valid>> = HashMap::new();
    b.each_location_and_server::<RefererLoc, CoreSrv>(|conf, server| {
        let Some(draft) = &conf.draft else {
            return Ok(());
        };
        let valid = match known.get(&Arc::as_ptr(draft)) {
            Some(valid) => Arc::clone(valid),
            None => Arc::new(draft.finish(server)?),
        };
        known.insert(Arc::as_ptr(draft), Arc::clone(&valid));
        conf.valid = Some(valid);
        Ok(())
    })?;
    b.vars
        .define(VARIABLE, Arc::new(InvalidReferer))
        .map_err(ConfError::new)?;
    Ok(())
}

impl Draft {
    fn finish(&self, server: &CoreSrv) -> Result<Valid, ConfError> {
        let mut valid = Valid {
            none: self.none,
            blocked: self.blocked,
            server_regexes: self.server_regexes && server.has_regex_name(),
            names: NameTable::default(),
            paths: Vec::new(),
            regexes: Arc::clone(&self.regexes),
        };
        for name in &self.names {
            self.add(&mut valid, &name.kind, &name.text, &name.path)?;
        }
        if self.server_names {
            for name in &server.names {
                self.add(&mut valid, &name.kind, &name.text, b"")?;
            }
        }
        if (self.none || self.blocked) && valid.paths.is_empty() {
            let text = "the \"none\" or \"blocked\" referers are specified \
                        in the \"valid_referers\" directive without any valid referer";
            return Err(ConfError::at(&self.at, text));
        }
        Ok(valid)
    }

    fn add(
        &self,
        valid: &mut Valid,
        kind: &NameKind,
        text: &[u8],
        path: &[u8],
    ) -> Result<(), ConfError> {
        let shown = String::from_utf8_lossy(text);
        let wrong = match kind {
            NameKind::Regex(_) => return Ok(()),
            NameKind::Invalid => "invalid hostname or wildcard",
            _ if valid.names.add(kind, text, valid.paths.len()) => {
                valid.paths.push(path.to_vec());
                return Ok(());
            }
            _ => "conflicting parameter",
        };
        Err(ConfError::at(&self.at, format!("{wrong} \"{shown}\"")))
    }
}

/// `$invalid_referer`.
struct InvalidReferer;

impl Compute for InvalidReferer {
    fn compute(&self, x: &mut Exchange, _: &mut Ctx<'_>) -> Option<Vec<u8>> {
        let http = Rc::clone(&x.route.http);
        let valid = match &x.loc::<RefererLoc>(&http).valid {
            None => true,
            // If an expression exceeds its limits, the referer is invalid and the request gets 500.
            Some(valid) => valid.allows(x, x.srv(&http)).unwrap_or(false),
        };
        Some(if valid { Vec::new() } else { b"1".to_vec() })
    }
}

impl Valid {
    fn allows(&self, x: &mut Exchange, server: &CoreSrv) -> Result<bool, MatchLimit> {
        if self.paths.is_empty() && self.regexes.is_empty() && !self.server_regexes {
            return Ok(true);
        }
        let Some(referer) = x.head.field(FieldId::Referer).map(<[u8]>::to_vec) else {
            return Ok(self.none);
        };
        let Some(rest) = after_scheme(&referer) else {
            return Ok(self.blocked);
        };
        let end = rest.iter().position(|b| matches!(b, b'/' | b':'));
        let (host, port_and_path) = rest.split_at(end.unwrap_or(rest.len()));
        if host.len() > HOST_MAX {
            return Ok(false);
        }
        let host = host.to_ascii_lowercase();
        if let Some(found) = self.names.find(&host) {
            let path = port_and_path.iter().position(|b| *b == b'/');
            let path = &port_and_path[path.unwrap_or(port_and_path.len())..];
            return Ok(path.starts_with(&self.paths[found]));
        }
        if self.server_regexes && any(regexes(server), |regex| regex.test(x, &host))? {
            return Ok(true);
        }
        any(self.regexes.iter(), |regex| regex.test(x, rest))
    }
}

/// Whether one of the expressions matches. The search ends at the first match or failure.
fn any<R>(
    mut regexes: impl Iterator<Item = R>,
    mut test: impl FnMut(R) -> Result<bool, MatchLimit>,
) -> Result<bool, MatchLimit> {
    let found = regexes.find_map(|regex| match test(regex) {
        Ok(false) => None,
        found => Some(found),
    });
    found.unwrap_or(Ok(false))
}

fn regexes(server: &CoreSrv) -> impl Iterator<Item = &Regex> {
    server.names.iter().filter_map(|name| match &name.kind {
        NameKind::Regex(regex) => Some(regex),
        _ => None,
    })
}

/// The text after `http://` or `https://`; a shorter referer has neither.
fn after_scheme(referer: &[u8]) -> Option<&[u8]> {
    if referer.len() < SHORTEST.len() {
        return None;
    }
    [&b"http://"[..], b"https://"]
        .into_iter()
        .find_map(|scheme| {
            let (start, rest) = referer.split_at_checked(scheme.len())?;
            start.eq_ignore_ascii_case(scheme).then_some(rest)
        })
}

/// The variable.
const VARIABLE: &[u8] = b"invalid_referer";
/// A shorter referer counts as one without a scheme, as in nginx.
const SHORTEST: &[u8] = b"http://i.ru";
/// Longest host name that is compared, as in nginx.
const HOST_MAX: usize = 256;
