//! `index`: the file served for a URI that ends in a slash.
//!
//! Source: nginx documentation, `ngx_http_index_module`.

use std::rc::Rc;

use conf::{ConfError, Contexts, Directive};
use engines::http::Method;
use server_base::errlog::{Level, Printable, Shown};
use server_base::{
    files::{EACCES, ELOOP, EMLINK, ENAMETOOLONG, ENOENT, ENOTDIR, FileError},
    shared_list::SharedList,
};
use server_http::assemble::ConfigBuilder;
use server_http::debug_http;
use server_http::exchange::{Ctx, Exchange};
use server_http::module::{Content, Handler, Module};
use server_http::trace::{At, Event};
use server_http::value::Value;
use server_http::{paths, phases, settings};

/// The module.
pub(crate) const MODULE: Module = Module {
    name: "index",
    directives: &[PLAIN, ROWS],
    settings: &[<IndexLoc as server_http::settings_set::Conf>::def],
    handlers: &[Handler::Content(handle)],
    ..Module::EMPTY
};

settings! {
    /// Settings of the module.
    pub(crate) struct IndexLoc: Location / PLAIN {}
    extra {
        /// The names to try, in order.
        names: SharedList<Value>
    }
    merge inherit_names;
}

fn inherit_names(own: &mut IndexLoc, parent: Option<&IndexLoc>) {
    if own.names.is_empty() {
        own.names = match parent {
            Some(parent) => parent.names.clone(),
            None => vec![Value::text(b"index.html")].into(),
        };
    }
}

conf::directives! {
    const ROWS: ConfigBuilder;

    /// Files used as an index, tried in order.
    directive "index": Contexts::HTTP_SERVER_LOCATION, ONE_MORE, "index.html", "file ..." => index;
}

fn index(b: &mut ConfigBuilder, d: &Directive) -> Result<(), ConfError> {
    for (n, word) in d.args.iter().enumerate() {
        if word.text.starts_with(b"/") && n != d.args.len() - 1 {
            let text = "only the last index in \"index\" directive should be absolute";
            b.warn(ConfError::word(d, word, text));
        }
        if word.text.is_empty() {
            return Err(ConfError::word(
                d,
                word,
                format!(
                    "index \"{}\" in \"index\" directive is invalid",
                    word.as_str()
                ),
            ));
        }
        let value = Value::compile(b, d, word)?;
        b.conf_mut::<IndexLoc>().names.push(value);
    }
    Ok(())
}

fn handle(x: &mut Exchange, cx: &mut Ctx<'_>) -> Content {
    if !x.target.uri.ends_with(b"/")
        || !matches!(x.target.method, Method::Get | Method::Head | Method::Post)
    {
        return Content::Declined;
    }
    let http = Rc::clone(&x.route.http);
    let conf: &IndexLoc = x.loc(&http);
    let mut directory_checked = false;
    for (nth, name) in conf.names.iter().enumerate() {
        let name = name.to_vec(x, cx);
        if name.is_empty() {
            continue;
        }
        if name.starts_with(b"/") {
            return go(x, cx, nth, &name);
        }
        match look(x, cx, &name, &mut directory_checked) {
            Ok(true) => {
                let uri = [x.target.uri.as_slice(), &name].concat();
                return go(x, cx, nth, &uri);
            }
            Ok(false) => {}
            Err(status) => return Content::Status(status),
        }
    }
    Content::Declined
}

fn go(x: &mut Exchange, cx: &mut Ctx<'_>, nth: usize, uri: &[u8]) -> Content {
    x.record_event(|| {
        let text = format!("is \"{}\"", String::from_utf8_lossy(uri));
        Event::Ran(At::Argument("index", nth), text)
    });
    let args = x.target.args.clone();
    phases::redirect(x, cx, uri, &args);
    Content::Restart
}

/// Whether the directory of the URI has a file with this name.
fn look(
    x: &mut Exchange,
    cx: &mut Ctx<'_>,
    name: &[u8],
    directory_checked: &mut bool,
) -> Result<bool, u16> {
    let path = paths::map_with(x, cx, name)?;
    debug_http!(x, "open index \"{}\"", Shown(&path));
    let policy = paths::policy(x, cx, &path);
    let Err(error) = cx.files.stat(&path, &policy) else {
        return Ok(true);
    };
    match error.errno {
        ELOOP | EMLINK => return Err(403),
        ENOTDIR | ENAMETOOLONG | EACCES => return Err(refused(x, &path, error)),
        _ => {}
    }
    if !*directory_checked {
        check_directory(x, cx, &path)?;
        *directory_checked = true;
    }
    if error.errno == ENOENT {
        return Ok(false);
    }
    paths::log_failed(x, Level::Crit, &path, error);
    Err(500)
}

/// Returns 404 instead of 403 for a missing directory; `index` is the path that was not found.
fn check_directory(x: &mut Exchange, cx: &mut Ctx<'_>, index: &[u8]) -> Result<(), u16> {
    let path = paths::map_uri(x, cx)?;
    let policy = paths::policy(x, cx, &path);
    let error = match cx.files.stat(&path, &policy) {
        Ok(meta) if meta.is_dir => return Ok(()),
        Ok(_) => {
            let text = Printable(&path);
            x.log(Level::Alert, format_args!("\"{text}\" is not a directory"));
            return Err(500);
        }
        Err(error) => error,
    };
    match error.errno {
        // The directory is searchable: otherwise the index file would have failed with EACCES.
        EACCES => Ok(()),
        ELOOP | EMLINK => Err(403),
        ENOENT => Err(refused(x, index, error)),
        _ => {
            paths::log_failed(x, Level::Crit, &path, error);
            Err(500)
        }
    }
}

/// Logs why there is no index; returns the status.
fn refused(x: &Exchange, path: &[u8], error: FileError) -> u16 {
    let (path, reason) = (Printable(path), paths::reason(error));
    if error.errno == EACCES {
        let text = format_args!("\"{path}\" is forbidden ({reason})");
        x.log(Level::Error, text);
        return 403;
    }
    if *x.route.core_loc().log_not_found {
        let text = format_args!("\"{path}\" is not found ({reason})");
        x.log(Level::Error, text);
    }
    404
}
