//! `access_log`, `log_format`, `open_log_file_cache`.
//!
//! Formats are compiled once: text, variables, and how values are escaped. Each thread writes through its
//! [`Logs`](server_base::logs::Logs).
//!
//! Source: nginx documentation, `ngx_http_log_module`.

mod format;
mod options;

use std::collections::HashMap;
use std::fs::File;
use std::path::PathBuf;
use std::rc::Rc;
use std::sync::{Arc, OnceLock};

use conf::{ConfError, Contexts, Directive};
use server_base::errlog::{Level, Printable};
use server_base::files::ENOTDIR;
use server_base::logs::{Buffering, LogCache};
use server_http::assemble::ConfigBuilder;
use server_http::exchange::{Ctx, Exchange};
use server_http::module::{Handler, Module};
use server_http::paths;
use server_http::settings;
use server_http::settings_set::inherited;
use server_http::value::Value;

use format::{Escaping, Format};
use options::Options;

/// The module.
pub(crate) const MODULE: Module = Module {
    name: "log",
    directives: &[MAIN_PLAIN, PLAIN, ROWS],
    settings: &[
        <LogMain as server_http::settings_set::Conf>::def,
        <LogLoc as server_http::settings_set::Conf>::def,
    ],
    handlers: &[Handler::Log(write)],
    finish: Some(default_log),
    ..Module::EMPTY
};

settings! {
    /// Settings that exist once.
    pub(crate) struct LogMain: Main / MAIN_PLAIN {}
    extra {
        /// The formats by name.
        formats: HashMap<Vec<u8>, Arc<Format>>,
        /// The buffers of files: one file has one.
        buffers: HashMap<PathBuf, Buffering>
    }
}

settings! {
    /// Settings of a location.
    pub(crate) struct LogLoc: Location / PLAIN {}
    extra {
        /// `access_log`; an empty list is "off".
        logs: Option<Arc<Vec<AccessLog>>> = inherited,
        /// `access_log off` is set at this level, which overrides all other logs.
        off: bool,
        /// `open_log_file_cache`; `Some(None)` is "off".
        cache: Option<Option<LogCache>> = inherited
    }
    merge switch_off;
}

fn switch_off(own: &mut LogLoc, _: Option<&LogLoc>) {
    if own.off {
        own.logs = Some(Arc::default());
    }
}

/// One `access_log`.
pub(crate) struct AccessLog {
    target: Target,
    format: Arc<Format>,
    how: Option<Buffering>,
    condition: Option<Value>,
}

enum Target {
    /// A path, and its file once a line has been written: looking it up by the path costs as much as half a line.
    File(PathBuf, OnceLock<Arc<File>>),
    Computed(Value),
    /// The place of the server in the configuration's list.
    Syslog(usize),
}

conf::directives! {
    const ROWS: ConfigBuilder;

    /// Names a format of access logs.
    directive "log_format": Contexts::HTTP, TWO_MORE, "combined \"...\"",
        "name [escape=default | json | none] string ..." => log_format;

    /// An access log.
    directive "access_log": Contexts::HTTP_TO_IF.or(Contexts::LIMIT_EXCEPT), ONE_MORE, "logs/access.log combined",
        "path | syslog:server=address[,parameter=value] [format [buffer=size] [gzip[=level]] [flush=time] [if=condition]] | off" => access_log;

    /// Cache of log files whose names hold variables.
    directive "open_log_file_cache": Contexts::HTTP_SERVER_LOCATION, TAKE1234, "off",
        "max=N [inactive=time] [min_uses=N] [valid=time] | off" => open_log_file_cache;
}

fn log_format(b: &mut ConfigBuilder, d: &Directive) -> Result<(), ConfError> {
    let name = d.arg(0).to_vec();
    let known = b.conf_mut::<LogMain>().formats.contains_key(&name);
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
    // A variable name ends at the end of the word, as in nginx.
    let mut value = Value::default();
    for word in words {
        value.append(Value::compile(b, d, word)?);
    }
    b.conf_mut::<LogMain>()
        .formats
        .insert(name, Arc::new(Format { value, escape }));
    Ok(())
}

/// The format `combined`.
fn combined(b: &mut ConfigBuilder, d: &Directive) -> Result<Arc<Format>, ConfError> {
    let text = b"$remote_addr - $remote_user [$time_local] \"$request\" $status $body_bytes_sent \"$http_referer\" \"$http_user_agent\"";
    let value = Value::compile_bytes(b, d, &d.name, text)?;
    Ok(Arc::new(Format {
        value,
        escape: Escaping::Default,
    }))
}

fn access_log(b: &mut ConfigBuilder, d: &Directive) -> Result<(), ConfError> {
    if d.arg(0) == b"off" {
        if d.args.len() > 1 {
            return Err(ConfError::parameter(d, d.word(1)));
        }
        b.conf_mut::<LogLoc>().off = true;
        return Ok(());
    }
    let target = target(b, d)?;
    let format = match d.args.get(1).filter(|w| w.text != b"combined") {
        None => combined(b, d)?,
        Some(word) => {
            let formats = &b.conf_mut::<LogMain>().formats;
            let found = formats.get(word.as_bytes()).map(Arc::clone);
            found.ok_or_else(|| {
                ConfError::word(d, word, format!("unknown log format \"{}\"", word.as_str()))
            })?
        }
    };
    let mut options = Options::default();
    for word in d.args.iter().skip(2) {
        options.parameter(b, d, word)?;
    }
    let how = options.buffering(d)?;
    // A buffer belongs to a file that stays open.
    if how.is_some() {
        let refused = match target {
            Target::File(..) => "",
            Target::Computed(_) => "buffered logs cannot have variables in name",
            Target::Syslog(_) => "logs to syslog cannot be buffered",
        };
        if !refused.is_empty() {
            return Err(ConfError::word(d, d.word(0), refused));
        }
    }
    // A file has one buffer, shared by all locations.
    if let (Some(how), Target::File(path, _)) = (how, &target) {
        let buffers = &mut b.conf_mut::<LogMain>().buffers;
        match buffers.get(path) {
            Some(other) if *other != how => {
                let text = format!(
                    "access_log \"{}\" already defined with conflicting parameters",
                    d.arg_str(0)
                );
                return Err(ConfError::at(d, text));
            }
            Some(_) => {}
            None => drop(buffers.insert(path.clone(), how)),
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

fn target(b: &mut ConfigBuilder, d: &Directive) -> Result<Target, ConfError> {
    if d.arg(0).starts_with(b"syslog:") {
        let server = server_http::assemble::syslog(b, d)?;
        return Ok(Target::Syslog(b.syslog(server)));
    }
    Ok(match Value::compile(b, d, d.word(0))? {
        value if value.constant().is_some() => Target::File(b.log_path(d.arg(0)), OnceLock::new()),
        value => Target::Computed(value),
    })
}

fn open_log_file_cache(b: &mut ConfigBuilder, d: &Directive) -> Result<(), ConfError> {
    conf::once(d, b.conf_mut::<LogLoc>().cache.is_some())?;
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
            Some(("max", v)) => {
                cache.max = conf::parse_digits(v).filter(|n| *n > 0).ok_or_else(bad)?
            }
            Some(("inactive", v)) => {
                cache.inactive_ms = conf::parse_time_ms(v.as_bytes()).ok_or_else(bad)?
            }
            Some(("valid", v)) => {
                cache.valid_ms = conf::parse_time_ms(v.as_bytes()).ok_or_else(bad)?
            }
            Some(("min_uses", v)) => {
                cache.min_uses = conf::parse_digits(v).filter(|n| *n > 0).ok_or_else(bad)?
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

/// Without `access_log` at `http` level, servers use the default log.
fn default_log(b: &mut ConfigBuilder) -> Result<(), ConfError> {
    let d = Directive::synthetic("access_log");
    let format = combined(b, &d)?;
    let needed = b.location_confs_mut::<LogLoc>().any(|l| l.logs.is_none());
    if !needed {
        return Ok(());
    }
    let path = b.default_access_log();
    let log = AccessLog {
        target: Target::File(path, OnceLock::new()),
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
    let http = Rc::clone(&x.route.http);
    let conf: &LogLoc = x.loc(&http);
    let Some(logs) = &conf.logs else { return };
    if logs.is_empty() {
        return;
    }
    let mut line = cx.logs.take_line();
    for log in logs.iter() {
        if let Some(condition) = &log.condition
            && !condition.is_true(x, cx)
        {
            continue;
        }
        line.clear();
        log.format.line(x, cx, &mut line);
        match &log.target {
            Target::File(path, file) => {
                let known = || http.logs.get().and_then(|logs| logs.files.get(path));
                let file = file.get().or_else(|| {
                    let found = Arc::clone(known()?);
                    Some(file.get_or_init(|| found))
                });
                if let Some(file) = file {
                    let now_ms = cx.clock.mono_ms;
                    cx.logs.write((path, file), &line, log.how, now_ms);
                }
            }
            Target::Computed(path) => write_computed(x, cx, path, &line, conf.cache.flatten()),
            Target::Syslog(at) => {
                let server = http.logs.get().and_then(|logs| logs.syslogs.get(*at));
                if let Some(server) = server {
                    server.access(line.strip_suffix(b"\n").unwrap_or(&line));
                }
            }
        }
    }
    cx.logs.return_line(line);
}

/// Returns whether the root of the location is a directory. As in nginx a log below another root is not written, so that
/// invented host names make no files.
fn root_exists(x: &mut Exchange, cx: &mut Ctx<'_>) -> bool {
    if paths::map_uri(x, cx).is_err() {
        return false;
    }
    let root = paths::document_root(x, cx);
    let policy = paths::policy(x, cx, &root);
    let errno = match cx.files.stat(&root, &policy) {
        Ok(meta) if meta.is_dir => return true,
        Ok(_) => ENOTDIR,
        Err(error) => error.errno,
    };
    let reason = conf::os_error(&std::io::Error::from_raw_os_error(errno));
    x.log(
        Level::Error,
        format_args!(
            "testing \"{}\" existence failed ({reason})",
            Printable(&root)
        ),
    );
    false
}

fn write_computed(
    x: &mut Exchange,
    cx: &mut Ctx<'_>,
    path: &Value,
    line: &[u8],
    cache: Option<LogCache>,
) {
    use std::os::unix::ffi::OsStringExt;
    let http = Rc::clone(&x.route.http);
    if !x.progress.root_tested && !root_exists(x, cx) {
        return;
    }
    // A path outside of its directory has been logged.
    let Ok(full) = paths::evaluate_path(x, cx, path, &http.prefix) else {
        return;
    };
    let full = PathBuf::from(std::ffi::OsString::from_vec(full));
    if full == http.prefix {
        return;
    }
    if let Err(error) = cx.logs.write_path(&full, line, cache, cx.clock.mono_ms) {
        x.log(
            Level::Crit,
            format_args!(
                "open() \"{}\" failed ({})",
                Printable::path(&full),
                conf::os_error(&error)
            ),
        );
    }
}
