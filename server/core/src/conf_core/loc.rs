//! Core settings at location scope: mapping to files, bodies, connections, errors.

use std::collections::HashMap;
use std::fs::File;
use std::sync::{Arc, OnceLock};

use conf::{Arity, ConfError, Contexts, Directive};

use crate::build::{Build, LogTarget};
use crate::errlog::{ErrorLog, Level};
use crate::files::{OpenFileCache, SymlinkMode};
use crate::keyword;
use crate::location::LocationKind;
use crate::settings;
use crate::typed::{Millis, Number, Offset, Size, Text, Typed};
use crate::value::Value;

const HSL: Contexts = Contexts::HTTP_SERVER_LOCATION;
const HSLI: Contexts = Contexts::HTTP_TO_IF;

keyword! {
    /// `satisfy`.
    pub enum Satisfy {
        /// Every access module must allow.
        All = "all",
        /// One access module must allow.
        Any = "any",
    }
}

keyword! {
    /// `if_modified_since`.
    pub enum IfModifiedSince {
        /// The header is ignored.
        Off = "off",
        /// The times must be equal.
        Exact = "exact",
        /// The content must not be newer.
        Before = "before",
    }
}

keyword! {
    /// `lingering_close`.
    pub enum Lingering {
        /// Close at once.
        Off = "off",
        /// Linger where the client may still be sending.
        On = "on",
        /// Linger always.
        Always = "always",
    }
}

/// `server_tokens`.
#[derive(Clone, Debug)]
pub enum ServerTokens {
    /// Name and version.
    On,
    /// Name alone.
    Off,
    /// Name, version and build.
    Build,
}

impl Typed for ServerTokens {
    const ARITY: Arity = Arity::TAKE1;
    const SYNTAX: &'static str = "on | off | build";

    fn parse(_: &mut Build, d: &Directive) -> Result<Self, ConfError> {
        match d.arg(0) {
            b"on" => Ok(Self::On),
            b"off" => Ok(Self::Off),
            b"build" => Ok(Self::Build),
            _ => Err(ConfError::word(
                d,
                d.word(0),
                format!("invalid value \"{}\"", d.arg_str(0)),
            )),
        }
    }
}

/// `keepalive_timeout`.
#[derive(Clone, Copy, Debug)]
pub struct KeepaliveTimeout {
    /// How long an idle connection is kept, milliseconds; 0 closes after each response.
    pub idle_ms: u64,
    /// What `Keep-Alive: timeout=` says, seconds, where the field is sent.
    pub header_s: Option<u64>,
}

/// `keepalive_disable`, a mask.
#[derive(Clone, Copy, Debug)]
pub struct KeepaliveDisable {
    /// Old Internet Explorer after a POST.
    pub msie6: bool,
    /// Safari on Mac OS.
    pub safari: bool,
}

/// One `error_page`.
#[derive(Clone, Debug)]
pub struct ErrorPage {
    /// Status it is for.
    pub status: u16,
    /// Status to answer with: `None` keeps it, `Some(0)` takes that of the page.
    pub overwrite: Option<u16>,
    /// Where to go.
    pub uri: Value,
    /// Arguments of a constant URI.
    pub args: Vec<u8>,
}

settings! {
    /// Settings of a location.
    pub struct CoreLoc: Location / PLAIN {
        /// Media type of files whose extension is not known.
        default_type "default_type": Text = Text(b"text/plain".to_vec()), "text/plain", HSL;
        /// Whether an error page may itself lead to an error page.
        recursive_error_pages "recursive_error_pages": bool = false, "off", HSL;
        /// Whether all access modules must allow a request or any of them.
        satisfy "satisfy": Satisfy = Satisfy::All, "all", HSL;
        /// Largest request body; 0 for no limit.
        client_max_body_size "client_max_body_size": Offset = Offset(1 << 20), "1m", HSL;
        /// Size of the buffer for a request body.
        client_body_buffer_size "client_body_buffer_size": Size = Size(16 << 10), "8k|16k", HSL;
        /// Longest time between two reads of a request body.
        client_body_timeout "client_body_timeout": Millis = Millis(60_000), "60s", HSL;
        /// Whether files are sent by the kernel; small ones are read and sent with the head.
        sendfile "sendfile": bool = false, "off", HSLI;
        /// Most bytes of one sendfile call; 0 for no limit.
        sendfile_max_chunk "sendfile_max_chunk": Size = Size(2 << 20), "2m", HSL;
        /// Whether head and file leave in full packets; they always do within one turn.
        tcp_nopush "tcp_nopush": bool = false, "off", HSL;
        /// Whether small segments are sent without waiting.
        tcp_nodelay "tcp_nodelay": bool = true, "on", HSL;
        /// Longest time between two writes of a response.
        send_timeout "send_timeout": Millis = Millis(60_000), "60s", HSL;
        /// Longest life of a connection before it is closed after a response.
        keepalive_time "keepalive_time": Millis = Millis(3_600_000), "1h", HSL;
        /// Most requests of one connection.
        keepalive_requests "keepalive_requests": Number = Number(1000), "1000", HSL;
        /// How long an idle connection is kept at least when it is closed by the server for other reasons.
        keepalive_min_timeout "keepalive_min_timeout": Millis = Millis(0), "0", HSL;
        /// Whether redirects name scheme and host.
        absolute_redirect "absolute_redirect": bool = true, "on", HSL;
        /// Whether absolute redirects use the server's first name rather than the request's host.
        server_name_in_redirect "server_name_in_redirect": bool = false, "off", HSL;
        /// Whether absolute redirects name the port.
        port_in_redirect "port_in_redirect": bool = true, "on", HSL;
        /// Whether missing files are logged.
        log_not_found "log_not_found": bool = true, "on", HSL;
        /// Whether subrequests are logged.
        log_subrequest "log_subrequest": bool = false, "off", HSL;
        /// When to keep reading before a close.
        lingering_close "lingering_close": Lingering = Lingering::On, "on", HSL;
        /// Longest time to keep reading before a close.
        lingering_time "lingering_time": Millis = Millis(30_000), "30s", HSL;
        /// Longest wait for more to read before a close.
        lingering_timeout "lingering_timeout": Millis = Millis(5_000), "5s", HSL;
        /// Most ranges of one request; 0 turns ranges off.
        max_ranges "max_ranges": Number = Number(engines::http::UNLIMITED_RANGES), "unlimited", HSL;
        /// Whether bodies of unknown length are chunked in HTTP/1.1.
        chunked_transfer_encoding "chunked_transfer_encoding": bool = true, "on", HSL;
        /// Whether static files have an ETag.
        etag "etag": bool = true, "on", HSL;
        /// How If-Modified-Since is compared.
        if_modified_since "if_modified_since": IfModifiedSince = IfModifiedSince::Exact, "exact", HSL;
        /// What the Server header and error pages tell.
        server_tokens "server_tokens": ServerTokens = ServerTokens::On, "on", HSL;
        /// How long an entry of open_file_cache is trusted.
        open_file_cache_valid "open_file_cache_valid": Millis = Millis(60_000), "60s", HSL;
        /// Uses after which open_file_cache keeps a descriptor open.
        open_file_cache_min_uses "open_file_cache_min_uses": Number = Number(1), "1", HSL;
        /// Whether open_file_cache keeps errors.
        open_file_cache_errors "open_file_cache_errors": bool = false, "off", HSL;
        /// Whether reading a variable before it was set is logged.
        uninitialized_variable_warn "uninitialized_variable_warn": bool = true, "on", Contexts::HTTP_TO_IF.or(Contexts::IF_IN_SERVER);
    }
    extra {
        /// `root` or `alias`; `None` until merged.
        root: Option<Root>,
        /// `types`.
        types: Option<Arc<HashMap<Vec<u8>, Vec<u8>>>>,
        /// `error_page`, if any here or around.
        error_pages: Option<Arc<Vec<ErrorPage>>>,
        /// `error_log` targets.
        error_logs: Option<Vec<(LogTarget, Level)>>,
        /// The opened error log.
        opened_log: OnceLock<ErrorLog>,
        /// `keepalive_timeout`: how long an idle connection is kept, milliseconds; 0 closes after each response.
        keepalive_ms: Option<u64>,
        /// What `Keep-Alive: timeout=` says, seconds; 0 for no such field. Inherited for itself.
        keepalive_header: Option<u64>,
        /// `keepalive_disable`.
        keepalive_disable: Option<KeepaliveDisable>,
        /// `internal`.
        internal: bool,
        /// `open_file_cache`: `Some(None)` is off.
        file_cache: Option<Option<(usize, u64)>>,
        /// `disable_symlinks` and its `from`.
        symlinks: Option<(SymlinkMode, Option<Value>)>,
        /// `client_body_temp_path`.
        body_temp_path: Option<Vec<u8>>
    }
    merge merge_extra;
}

/// How URIs become paths.
#[derive(Clone, Debug)]
pub struct Root {
    /// The directory.
    pub path: Value,
    /// Of `alias`: what of the URI the directory stands for.
    pub alias: Option<Alias>,
}

/// What of the URI an `alias` replaces, told by the location it was written in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Alias {
    /// So many bytes at its beginning: the location's name.
    Prefix(usize),
    /// All of it: the location is a regular expression.
    Whole,
}

fn merge_extra(own: &mut CoreLoc, parent: Option<&CoreLoc>) {
    fn take<T: Clone>(
        own: &mut Option<T>,
        parent: Option<&Option<T>>,
        default: impl FnOnce() -> Option<T>,
    ) {
        if own.is_none() {
            *own = match parent {
                Some(p) => p.clone(),
                None => default(),
            };
        }
    }
    take(&mut own.types, parent.map(|p| &p.types), || {
        Some(Arc::new(default_types()))
    });
    take(&mut own.error_pages, parent.map(|p| &p.error_pages), || {
        None
    });
    take(&mut own.error_logs, parent.map(|p| &p.error_logs), || None);
    take(
        &mut own.keepalive_ms,
        parent.map(|p| &p.keepalive_ms),
        || Some(DEFAULT_KEEPALIVE_MS),
    );
    take(
        &mut own.keepalive_header,
        parent.map(|p| &p.keepalive_header),
        || None,
    );
    own.internal |= parent.is_some_and(|p| p.internal);
    take(
        &mut own.keepalive_disable,
        parent.map(|p| &p.keepalive_disable),
        || {
            Some(KeepaliveDisable {
                msie6: true,
                safari: false,
            })
        },
    );
    take(&mut own.file_cache, parent.map(|p| &p.file_cache), || {
        Some(None)
    });
    take(&mut own.symlinks, parent.map(|p| &p.symlinks), || None);
    take(
        &mut own.body_temp_path,
        parent.map(|p| &p.body_temp_path),
        || None,
    );
    take(&mut own.root, parent.map(|p| &p.root), || None);
}

fn default_types() -> HashMap<Vec<u8>, Vec<u8>> {
    [
        ("html", "text/html"),
        ("gif", "image/gif"),
        ("jpg", "image/jpeg"),
    ]
    .map(|(ext, kind)| (ext.as_bytes().to_vec(), kind.as_bytes().to_vec()))
    .into()
}

impl CoreLoc {
    /// The location's error log.
    pub fn log(&self) -> &ErrorLog {
        self.opened_log.get_or_init(|| ErrorLog::new(Vec::new()))
    }

    /// Opens the location's error log, where it has its own; else uses the one given.
    pub fn open_log(
        &self,
        default: &ErrorLog,
        open: &mut dyn FnMut(&LogTarget) -> Option<Arc<File>>,
    ) {
        let log = match &self.error_logs {
            None => default.clone(),
            Some(list) => ErrorLog::new(
                list.iter()
                    .filter_map(|(t, level)| Some((open(t)?, *level)))
                    .collect(),
            ),
        };
        let _ = self.opened_log.set(log);
    }

    /// Whether a variable read before it was set is worth a line in the log.
    pub fn warn_uninitialized(&self) -> bool {
        *self.uninitialized_variable_warn
    }

    /// The settings of `open_file_cache`, if it is on.
    pub fn open_file_cache(&self) -> Option<OpenFileCache> {
        let (max, inactive_ms) = self.file_cache.flatten()?;
        Some(OpenFileCache {
            max,
            inactive_ms,
            valid_ms: self.open_file_cache_valid.0,
            min_uses: self.open_file_cache_min_uses.0 as u32,
            errors: *self.open_file_cache_errors,
        })
    }

    /// `keepalive_timeout`.
    pub fn keepalive(&self) -> KeepaliveTimeout {
        KeepaliveTimeout {
            idle_ms: self.keepalive_ms.unwrap_or(DEFAULT_KEEPALIVE_MS),
            header_s: self.keepalive_header.filter(|s| *s > 0),
        }
    }
}

fn duplicate<T>(slot: &Option<T>, d: &Directive) -> Result<(), ConfError> {
    if slot.is_some() {
        Err(ConfError::directive(d, "is duplicate"))
    } else {
        Ok(())
    }
}

pub(super) fn root(b: &mut Build, d: &Directive) -> Result<(), ConfError> {
    set_root(b, d, false)
}

pub(super) fn alias(b: &mut Build, d: &Directive) -> Result<(), ConfError> {
    set_root(b, d, true)
}

fn set_root(b: &mut Build, d: &Directive, alias: bool) -> Result<(), ConfError> {
    if let Some(old) = &b.core_loc().root {
        let text = match (old.alias.is_some(), alias) {
            (true, false) => {
                "\"root\" directive is duplicate, \"alias\" directive was specified earlier"
                    .to_owned()
            }
            (false, true) => {
                "\"alias\" directive is duplicate, \"root\" directive was specified earlier"
                    .to_owned()
            }
            _ => return Err(ConfError::directive(d, "is duplicate")),
        };
        return Err(ConfError::at(d, text));
    }
    let location = b.location();
    let draft = b.draft(location);
    let alias = match (&draft.kind, alias) {
        (_, false) => None,
        (LocationKind::Named, true) => {
            return Err(ConfError::at(
                d,
                "the \"alias\" directive cannot be used inside the named location",
            ));
        }
        (LocationKind::Regex(_), true) => Some(Alias::Whole),
        (_, true) => Some(Alias::Prefix(draft.name.len())),
    };
    if let Some(Alias::Prefix(_)) = alias
        && matches!(draft.kind, LocationKind::Prefix | LocationKind::PrefixOnly)
        && !draft.name.ends_with(b"/")
        && d.arg(0).ends_with(b"/")
    {
        let text = "the \"alias\" ends in a slash and its location does not: \"..\" after the location's name would \
                    lead to the parent directory; such requests are refused";
        b.warn(ConfError::word(d, d.word(0), text));
    }
    let word = d.word(0);
    for name in ["document_root", "realpath_root"] {
        if word.as_str().contains(&format!("${name}"))
            || word.as_str().contains(&format!("${{{name}}}"))
        {
            let text = format!(
                "the ${name} variable cannot be used in the \"{}\" directive",
                d.name()
            );
            return Err(ConfError::word(d, word, text));
        }
    }
    let absolute = word.text.starts_with(b"/") || word.text.starts_with(b"$");
    let mut text = word.text.clone();
    if alias.is_none() && text.ends_with(b"/") {
        text.pop();
    }
    if !absolute {
        text = b.full_path(&text);
    }
    let path = Value::compile_bytes(b, d, word, &text)?;
    b.core_loc().root = Some(Root { path, alias });
    Ok(())
}

pub(super) fn types(b: &mut Build, d: &Directive) -> Result<(), ConfError> {
    let mut map = b
        .core_loc()
        .types
        .take()
        .map(|t| (*t).clone())
        .unwrap_or_default();
    conf::each(b, d.items(), |b, line| {
        for word in &line.args {
            let old = map.insert(word.text.to_ascii_lowercase(), line.name.text.clone());
            if let Some(old) = old
                && old != line.name.text
            {
                let text = format!(
                    "duplicate extension \"{}\", content type: \"{}\", previous content type: \"{}\"",
                    word.as_str(),
                    line.name.as_str(),
                    String::from_utf8_lossy(&old)
                );
                b.warn(ConfError::word(line, word, text));
            }
        }
        Ok(())
    })?;
    b.core_loc().types = Some(Arc::new(map));
    Ok(())
}

pub(super) fn error_page(b: &mut Build, d: &Directive) -> Result<(), ConfError> {
    let last = d.args.len() - 1;
    let mut codes = &d.args[..last];
    let mut overwrite = None;
    if let Some((word, rest)) = codes.split_last()
        && let Some(code) = word.text.strip_prefix(b"=")
    {
        overwrite = Some(match code {
            b"" => 0,
            _ => parse_status(code).ok_or_else(|| {
                ConfError::word(d, word, format!("invalid value \"{}\"", word.as_str()))
            })?,
        });
        codes = rest;
        if codes.is_empty() {
            return Err(ConfError::word(
                d,
                word,
                format!("invalid value \"{}\"", word.as_str()),
            ));
        }
    }
    let (uri, args) = error_uri(b, d, last)?;
    let mut pages = Vec::new();
    for word in codes {
        let status = parse_status(&word.text)
            .filter(|s| *s != 499)
            .ok_or_else(|| {
                ConfError::word(d, word, format!("invalid value \"{}\"", word.as_str()))
            })?;
        if !(300..=599).contains(&status) {
            let text = format!("value \"{}\" must be between 300 and 599", word.as_str());
            return Err(ConfError::word(d, word, text));
        }
        // A request that is too large or came in plain to a TLS port shows its own status, not nginx's internal one.
        let shown = match status {
            494..=497 if overwrite.is_none() => Some(400),
            _ => overwrite,
        };
        pages.push(ErrorPage {
            status,
            overwrite: shown,
            uri: uri.clone(),
            args: args.clone(),
        });
    }
    let list = b.core_loc().error_pages.get_or_insert_default();
    Arc::make_mut(list).extend(pages);
    Ok(())
}

/// The URI of an error page; a constant one is split from its arguments.
fn error_uri(b: &mut Build, d: &Directive, last: usize) -> Result<(Value, Vec<u8>), ConfError> {
    let word = d.word(last);
    let value = Value::compile(b, d, word)?;
    if value.constant().is_some()
        && word.text.starts_with(b"/")
        && let Some(at) = word.text.iter().position(|c| *c == b'?')
    {
        return Ok((Value::text(&word.text[..at]), word.text[at + 1..].to_vec()));
    }
    Ok((value, Vec::new()))
}

fn parse_status(text: &[u8]) -> Option<u16> {
    conf::parse_number(text).and_then(|n| u16::try_from(n).ok())
}

pub(super) fn error_log(b: &mut Build, d: &Directive) -> Result<(), ConfError> {
    let log = crate::build::error_log(b, d)?;
    if let (LogTarget::File(path), _) = &log
        && !b.log_paths.contains(path)
    {
        b.log_paths.push(path.clone());
    }
    b.core_loc().error_logs.get_or_insert_default().push(log);
    Ok(())
}

pub(super) fn keepalive_timeout(b: &mut Build, d: &Directive) -> Result<(), ConfError> {
    duplicate(&b.core_loc().keepalive_ms, d)?;
    let bad = |n: usize| {
        ConfError::word(
            d,
            d.word(n),
            "\"keepalive_timeout\" directive invalid value",
        )
    };
    b.core_loc().keepalive_ms = Some(conf::parse_time_ms(d.arg(0)).ok_or_else(|| bad(0))?);
    if d.args.len() == 2 {
        b.core_loc().keepalive_header = Some(conf::parse_time_s(d.arg(1)).ok_or_else(|| bad(1))?);
    }
    Ok(())
}

pub(super) fn keepalive_disable(b: &mut Build, d: &Directive) -> Result<(), ConfError> {
    duplicate(&b.core_loc().keepalive_disable, d)?;
    let mut value = KeepaliveDisable {
        msie6: false,
        safari: false,
    };
    for word in &d.args {
        match word.text.as_slice() {
            b"none" => {}
            b"msie6" => value.msie6 = true,
            b"safari" => value.safari = true,
            _ => {
                return Err(ConfError::word(
                    d,
                    word,
                    format!("invalid value \"{}\"", word.as_str()),
                ));
            }
        }
    }
    b.core_loc().keepalive_disable = Some(value);
    Ok(())
}

pub(super) fn internal(b: &mut Build, d: &Directive) -> Result<(), ConfError> {
    if b.core_loc().internal {
        return Err(ConfError::directive(d, "is duplicate"));
    }
    b.core_loc().internal = true;
    Ok(())
}

pub(super) fn open_file_cache(b: &mut Build, d: &Directive) -> Result<(), ConfError> {
    duplicate(&b.core_loc().file_cache, d)?;
    let (mut max, mut inactive_ms, mut off) = (0, 60_000, false);
    for word in &d.args {
        let bad = || {
            ConfError::word(
                d,
                word,
                format!(
                    "invalid \"open_file_cache\" parameter \"{}\"",
                    word.as_str()
                ),
            )
        };
        match word.as_str().split_once('=') {
            Some(("max", v)) => max = v.parse().ok().filter(|n| *n > 0).ok_or_else(bad)?,
            Some(("inactive", v)) => {
                inactive_ms = conf::parse_time_ms(v.as_bytes()).ok_or_else(bad)?
            }
            None if word.text == b"off" => off = true,
            _ => return Err(bad()),
        }
    }
    if !off && max == 0 {
        return Err(ConfError::at(
            d,
            "\"open_file_cache\" must have the \"max\" parameter",
        ));
    }
    b.core_loc().file_cache = Some((!off).then_some((max, inactive_ms)));
    Ok(())
}

pub(super) fn disable_symlinks(b: &mut Build, d: &Directive) -> Result<(), ConfError> {
    duplicate(&b.core_loc().symlinks, d)?;
    let (mut mode, mut from) = (None, None);
    for word in &d.args {
        let bad = || ConfError::word(d, word, format!("invalid parameter \"{}\"", word.as_str()));
        match word.text.as_slice() {
            b"off" => mode = Some(SymlinkMode::Off),
            b"on" => mode = Some(SymlinkMode::On),
            b"if_not_owner" => mode = Some(SymlinkMode::IfNotOwner),
            text => {
                let part = text.strip_prefix(b"from=").ok_or_else(bad)?;
                from = Some(Value::compile_bytes(b, d, word, part)?);
            }
        }
    }
    let Some(mode) = mode else {
        return Err(ConfError::at(
            d,
            "\"disable_symlinks\" must have \"off\", \"on\" or \"if_not_owner\" parameter",
        ));
    };
    if d.args.len() == 2 && from.is_none() {
        let text = format!("duplicate parameters \"{} {}\"", d.arg_str(0), d.arg_str(1));
        return Err(ConfError::word(d, d.word(1), text));
    }
    if from.is_some() && mode == SymlinkMode::Off {
        return Err(ConfError::at(
            d,
            "\"from=\" cannot be used with \"off\" parameter",
        ));
    }
    b.core_loc().symlinks = Some((mode, from));
    Ok(())
}

pub(super) fn client_body_temp_path(b: &mut Build, d: &Directive) -> Result<(), ConfError> {
    duplicate(&b.core_loc().body_temp_path, d)?;
    for n in 1..d.args.len() {
        if !matches!(d.arg(n), b"1" | b"2" | b"3") {
            return Err(ConfError::word(
                d,
                d.word(n),
                format!("invalid value \"{}\"", d.arg_str(n)),
            ));
        }
    }
    let path = b.full_path(d.arg(0));
    b.core_loc().body_temp_path = Some(path);
    Ok(())
}

/// How long an idle connection is kept where nothing is said, milliseconds.
const DEFAULT_KEEPALIVE_MS: u64 = 75_000;
