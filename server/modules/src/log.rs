//! `access_log`, `log_format`, `open_log_file_cache`.
//!
//! Formats are compiled once: text, variables, and how values are escaped. Each thread writes through its
//! [`Logs`](server_core::logs::Logs).
//!
//! Source: nginx documentation, `ngx_http_log_module`.

use std::path::PathBuf;
use std::rc::Rc;
use std::sync::Arc;

use conf::{Arity, ConfError, Contexts, Directive, Row, Word};
use server_core::build::Build;
use server_core::errlog::Level;
use server_core::exchange::{Ctx, Exchange};
use server_core::logs::{Buffering, LogCache};
use server_core::module::{Handler, Module};
use server_core::value::{Part, Value};
use server_core::{settings, vars};

/// The module.
pub(crate) const MODULE: Module = Module {
    name: "log",
    directives: &[MAIN_PLAIN, PLAIN, ROWS],
    units: &[
        <LogMain as server_core::confs::Conf>::unit,
        <LogLoc as server_core::confs::Conf>::unit,
    ],
    handlers: &[Handler::Log(write)],
    finish: Some(default_log),
    ..Module::EMPTY
};

settings! {
    /// What exists once.
    pub(crate) struct LogMain: Main / MAIN_PLAIN {}
    extra {
        /// The formats by name.
        formats: Vec<(Vec<u8>, Arc<Format>)>,
        /// The buffers of files: one file has one.
        buffers: Vec<(PathBuf, Buffering)>
    }
    merge keep_formats;
}

fn keep_formats(_: &mut LogMain, _: Option<&LogMain>) {}

settings! {
    /// Settings of a location.
    pub(crate) struct LogLoc: Location / PLAIN {}
    extra {
        /// `access_log`; an empty list is "off".
        logs: Option<Arc<Vec<AccessLog>>>,
        /// `access_log off` was written here: whatever else is, nothing is logged.
        off: bool,
        /// `open_log_file_cache`; `Some(None)` is "off".
        cache: Option<Option<LogCache>>
    }
    merge inherit;
}

fn inherit(own: &mut LogLoc, parent: Option<&LogLoc>) {
    if own.off {
        own.logs = Some(Arc::default());
    }
    if own.logs.is_none() {
        own.logs = parent.and_then(|p| p.logs.clone());
    }
    if own.cache.is_none() {
        own.cache = parent.and_then(|p| p.cache);
    }
}

/// A compiled format.
pub(crate) struct Format {
    value: Value,
    escape: Escaping,
}

/// How variables are written.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Escaping {
    /// Quotes, backslashes and bytes outside printable ASCII as `\xHH`.
    Default,
    /// As in a JSON string.
    Json,
    /// Not at all.
    None,
}

/// One `access_log`.
pub(crate) struct AccessLog {
    target: Target,
    format: Arc<Format>,
    how: Option<Buffering>,
    condition: Option<Value>,
}

enum Target {
    File(PathBuf),
    Computed(Value),
}

const ROWS: &[Row<Build>] = &[
    Row {
        name: "log_format",
        contexts: Contexts::HTTP,
        arity: Arity::TWO_MORE,
        block: false,
        default: "combined \"...\"",
        doc: "Names a format of access logs.",
        syntax: "name [escape=default | json | none] string ...",
        apply: log_format,
    },
    Row {
        name: "access_log",
        contexts: Contexts::HTTP_TO_IF.or(Contexts::LIMIT_EXCEPT),
        arity: Arity::ONE_MORE,
        block: false,
        default: "logs/access.log combined",
        doc: "An access log.",
        syntax: "path [format [buffer=size] [gzip[=level]] [flush=time] [if=condition]] | off",
        apply: access_log,
    },
    Row {
        name: "open_log_file_cache",
        contexts: Contexts::HTTP_SERVER_LOCATION,
        arity: Arity::TAKE1234,
        block: false,
        default: "off",
        doc: "Cache of log files whose names hold variables.",
        syntax: "max=N [inactive=time] [min_uses=N] [valid=time] | off",
        apply: open_log_file_cache,
    },
];

fn log_format(b: &mut Build, d: &Directive) -> Result<(), ConfError> {
    let name = d.arg(0).to_vec();
    let known = b
        .conf_mut::<LogMain>()
        .formats
        .iter()
        .any(|(n, _)| *n == name);
    if known || name == b"combined" {
        return Err(ConfError::word(
            d,
            d.word(0),
            format!("duplicate \"log_format\" name \"{}\"", d.arg_str(0)),
        ));
    }
    let mut words = &d.args[1..];
    let mut escape = Escaping::Default;
    if let Some(kind) = d.arg(1).strip_prefix(b"escape=") {
        escape = match kind {
            b"default" => Escaping::Default,
            b"json" => Escaping::Json,
            b"none" => Escaping::None,
            _ => {
                let shown = String::from_utf8_lossy(kind);
                return Err(ConfError::word(
                    d,
                    d.word(1),
                    format!("unknown log format escaping \"{shown}\""),
                ));
            }
        };
        words = &words[1..];
    }
    let text: Vec<u8> = words.iter().flat_map(|w| w.text.clone()).collect();
    let value = Value::compile_bytes(b, d, d.word(1), &text)?;
    b.conf_mut::<LogMain>()
        .formats
        .push((name, Arc::new(Format { value, escape })));
    Ok(())
}

/// The format `combined`.
fn combined(b: &mut Build, d: &Directive) -> Result<Arc<Format>, ConfError> {
    let text = b"$remote_addr - $remote_user [$time_local] \"$request\" $status $body_bytes_sent \"$http_referer\" \"$http_user_agent\"";
    let value = Value::compile_bytes(b, d, &d.name, text)?;
    Ok(Arc::new(Format {
        value,
        escape: Escaping::Default,
    }))
}

fn access_log(b: &mut Build, d: &Directive) -> Result<(), ConfError> {
    if d.arg(0) == b"off" {
        if d.args.len() > 1 {
            return Err(ConfError::word(
                d,
                d.word(1),
                format!("invalid parameter \"{}\"", d.arg_str(1)),
            ));
        }
        b.conf_mut::<LogLoc>().off = true;
        return Ok(());
    }
    if d.arg(0).starts_with(b"syslog:") {
        return Err(ConfError::word(
            d,
            d.word(0),
            "\"syslog:\" is not built yet",
        ));
    }
    let format = match d.args.get(1).filter(|w| w.text != b"combined") {
        None => combined(b, d)?,
        Some(word) => {
            let formats = &b.conf_mut::<LogMain>().formats;
            let found = formats
                .iter()
                .find(|(n, _)| *n == word.text)
                .map(|(_, f)| Arc::clone(f));
            found.ok_or_else(|| {
                ConfError::word(d, word, format!("unknown log format \"{}\"", word.as_str()))
            })?
        }
    };
    let mut options = Options::default();
    for word in d.args.iter().skip(2) {
        options.parameter(b, d, word)?;
    }
    let target = match Value::compile(b, d, d.word(0))? {
        value if value.constant().is_some() => Target::File(b.log_path(d.arg(0))),
        value => Target::Computed(value),
    };
    if options.buffer.is_some() && matches!(target, Target::Computed(_)) {
        return Err(ConfError::word(
            d,
            d.word(0),
            "buffered logs cannot have variables in name",
        ));
    }
    let how = options.buffering(d)?;
    if let (Some(how), Target::File(path)) = (how, &target) {
        let buffers = &mut b.conf_mut::<LogMain>().buffers;
        match buffers.iter().find(|(known, _)| known == path) {
            Some((_, other)) if *other != how => {
                let text = format!(
                    "access_log \"{}\" already defined with conflicting parameters",
                    d.arg_str(0)
                );
                return Err(ConfError::at(d, text));
            }
            Some(_) => {}
            None => buffers.push((path.clone(), how)),
        }
    }
    let log = AccessLog {
        target,
        format,
        how,
        condition: options.condition,
    };
    let logs = b.conf_mut::<LogLoc>().logs.get_or_insert_default();
    match Arc::get_mut(logs) {
        Some(list) => list.push(log),
        None => return Err(ConfError::at(d, "access_log is in use")),
    }
    Ok(())
}

#[derive(Default)]
struct Options {
    buffer: Option<usize>,
    flush_ms: Option<u64>,
    gzip: Option<u32>,
    condition: Option<Value>,
}

impl Options {
    fn parameter(&mut self, b: &mut Build, d: &Directive, word: &Word) -> Result<(), ConfError> {
        let bad = |what: &str, v: &str| ConfError::word(d, word, format!("invalid {what} \"{v}\""));
        let text = word.as_str();
        match text.split_once('=') {
            Some(("buffer", v)) => {
                self.buffer = Some(
                    conf::parse_size(v.as_bytes())
                        .filter(|n| *n > 0)
                        .ok_or_else(|| bad("buffer size", v))?,
                );
            }
            Some(("flush", v)) => {
                let ms = conf::parse_time_ms(v.as_bytes()).filter(|n| *n > 0);
                self.flush_ms = Some(ms.ok_or_else(|| bad("flush time", v))?);
            }
            Some(("gzip", v)) => {
                let level = v.parse().ok().filter(|n| (1..=9).contains(n));
                self.gzip = Some(level.ok_or_else(|| bad("compression level", v))?);
            }
            None if text == "gzip" => self.gzip = Some(1),
            Some(("if", _)) => {
                self.condition = Some(Value::compile_bytes(b, d, word, &word.text[3..])?)
            }
            _ => {
                return Err(ConfError::word(
                    d,
                    word,
                    format!("invalid parameter \"{text}\""),
                ));
            }
        }
        if self.gzip.is_some() && self.buffer.is_none() {
            self.buffer = Some(GZIP_BUFFER_BYTES);
        }
        Ok(())
    }

    fn buffering(&self, d: &Directive) -> Result<Option<Buffering>, ConfError> {
        match self.buffer {
            Some(size) => Ok(Some(Buffering {
                size,
                flush_ms: self.flush_ms,
                gzip: self.gzip,
            })),
            None if self.flush_ms.is_some() => Err(ConfError::at(
                d,
                format!("no buffer is defined for access_log \"{}\"", d.arg_str(0)),
            )),
            None => Ok(None),
        }
    }
}

fn open_log_file_cache(b: &mut Build, d: &Directive) -> Result<(), ConfError> {
    if b.conf_mut::<LogLoc>().cache.is_some() {
        return Err(ConfError::directive(d, "is duplicate"));
    }
    let mut cache = LogCache {
        max: 0,
        inactive_ms: 10_000,
        valid_ms: 60_000,
        min_uses: 1,
    };
    let mut off = false;
    for word in &d.args {
        let bad = || {
            ConfError::word(
                d,
                word,
                format!(
                    "invalid \"open_log_file_cache\" parameter \"{}\"",
                    word.as_str()
                ),
            )
        };
        match word.as_str().split_once('=') {
            Some(("max", v)) => cache.max = v.parse().ok().filter(|n| *n > 0).ok_or_else(bad)?,
            Some(("inactive", v)) => {
                cache.inactive_ms = conf::parse_time_ms(v.as_bytes()).ok_or_else(bad)?
            }
            Some(("valid", v)) => {
                cache.valid_ms = conf::parse_time_ms(v.as_bytes()).ok_or_else(bad)?
            }
            Some(("min_uses", v)) => {
                cache.min_uses = v.parse().ok().filter(|n| *n > 0).ok_or_else(bad)?
            }
            None if word.text == b"off" => off = true,
            _ => return Err(bad()),
        }
    }
    if !off && cache.max == 0 {
        return Err(ConfError::at(
            d,
            "\"open_log_file_cache\" must have \"max\" parameter",
        ));
    }
    b.conf_mut::<LogLoc>().cache = Some((!off).then_some(cache));
    Ok(())
}

/// Without `access_log` at `http` level, servers log to the standard place.
fn default_log(b: &mut Build) -> Result<(), ConfError> {
    let d = Directive::synthetic("access_log");
    let format = combined(b, &d)?;
    let needed = b.location_confs_mut::<LogLoc>().any(|l| l.logs.is_none());
    if !needed {
        return Ok(());
    }
    let path = b.default_access_log();
    let log = AccessLog {
        target: Target::File(path),
        format,
        how: None,
        condition: None,
    };
    let logs = Arc::new(vec![log]);
    for conf in b.location_confs_mut::<LogLoc>() {
        conf.logs.get_or_insert_with(|| Arc::clone(&logs));
    }
    Ok(())
}

fn write(x: &mut Exchange, cx: &mut Ctx<'_>) {
    let http = Rc::clone(&x.http);
    let conf: &LogLoc = x.loc(&http);
    let Some(logs) = &conf.logs else { return };
    for log in logs.iter() {
        if let Some(condition) = &log.condition
            && !condition.is_true(x, cx)
        {
            continue;
        }
        let line = log.format.line(x, cx);
        match &log.target {
            Target::File(path) => {
                let file = http.log_files.get().and_then(|files| files.get(path));
                if let Some(file) = file {
                    cx.logs.write(file, &line, log.how, cx.clock.mono_ms);
                }
            }
            Target::Computed(path) => write_computed(x, cx, path, &line, conf.cache.flatten()),
        }
    }
}

fn write_computed(
    x: &mut Exchange,
    cx: &mut Ctx<'_>,
    path: &Value,
    line: &[u8],
    cache: Option<LogCache>,
) {
    use std::os::unix::ffi::OsStringExt;
    let http = Rc::clone(&x.http);
    // As nginx: a log below a root that does not exist is not written, so that invented host names make no files.
    let root = server_core::paths::document_root(x, cx);
    let policy = server_core::paths::policy(x, cx, &root);
    if !cx.files.stat(&root, &policy).is_ok_and(|meta| meta.is_dir) {
        let root = String::from_utf8_lossy(&root);
        x.log(
            Level::Error,
            format_args!("testing \"{root}\" existence failed"),
        );
        return;
    }
    let name = path.to_vec(x, cx);
    if name.is_empty() || name.contains(&0) {
        return;
    }
    let full = server_core::build::full_path(&http.prefix, &name);
    let full = PathBuf::from(std::ffi::OsString::from_vec(full));
    if let Err(error) = cx.logs.write_path(&full, line, cache, cx.clock.mono_ms) {
        x.log(
            Level::Crit,
            format_args!(
                "open() \"{}\" failed ({})",
                full.display(),
                conf::os_error(&error)
            ),
        );
    }
}

impl Format {
    fn line(&self, x: &mut Exchange, cx: &mut Ctx<'_>) -> Vec<u8> {
        let mut line = Vec::with_capacity(256);
        let mut value = Vec::new();
        for part in &self.value.parts {
            match part {
                Part::Text(text) => line.extend_from_slice(text),
                Part::Var(id) => {
                    value.clear();
                    let found = vars::append(*id, x, cx, &mut value);
                    self.escape.write(found, &value, &mut line);
                }
                Part::Capture(n) => {
                    let n = usize::from(*n);
                    let text = x.captures.get(n).to_vec();
                    self.escape.write(true, &text, &mut line);
                }
            }
        }
        line.push(b'\n');
        line
    }
}

impl Escaping {
    fn write(self, found: bool, value: &[u8], out: &mut Vec<u8>) {
        match self {
            Self::Default if !found => out.push(b'-'),
            Self::Default => {
                for &b in value {
                    match b {
                        b'"' | b'\\' | 0..0x20 | 0x7f.. => {
                            out.extend_from_slice(format!("\\x{b:02X}").as_bytes())
                        }
                        _ => out.push(b),
                    }
                }
            }
            Self::Json => write_json(value, out),
            Self::None => out.extend_from_slice(value),
        }
    }
}

fn write_json(value: &[u8], out: &mut Vec<u8>) {
    for &b in value {
        match b {
            b'"' | b'\\' => out.extend_from_slice(&[b'\\', b]),
            b'\n' => out.extend_from_slice(b"\\n"),
            b'\r' => out.extend_from_slice(b"\\r"),
            b'\t' => out.extend_from_slice(b"\\t"),
            8 => out.extend_from_slice(b"\\b"),
            12 => out.extend_from_slice(b"\\f"),
            0..0x20 => out.extend_from_slice(format!("\\u{b:04X}").as_bytes()),
            _ => out.push(b),
        }
    }
}

/// Buffer of a compressed log where none is named.
const GZIP_BUFFER_BYTES: usize = 64 << 10;

#[cfg(test)]
mod tests {
    use super::*;

    fn written(how: Escaping, found: bool, value: &[u8]) -> String {
        let mut out = Vec::new();
        how.write(found, value, &mut out);
        String::from_utf8_lossy(&out).into_owned()
    }

    #[test]
    fn values_are_escaped_as_nginx_escapes_them() {
        assert_eq!(written(Escaping::Default, false, b""), "-");
        assert_eq!(written(Escaping::Default, true, b""), "");
        assert_eq!(
            written(Escaping::Default, true, b"a\"\\\x1b\xc3"),
            "a\\x22\\x5C\\x1B\\xC3"
        );
        assert_eq!(
            written(Escaping::Json, true, b"a\"\\\n\x01"),
            "a\\\"\\\\\\n\\u0001"
        );
        assert_eq!(written(Escaping::Json, false, b""), "");
        assert_eq!(written(Escaping::None, true, b"\"\n"), "\"\n");
    }
}
