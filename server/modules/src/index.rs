//! `index`: the file served for a URI that ends in a slash.
//!
//! Source: nginx documentation, `ngx_http_index_module`.

use std::rc::Rc;

use conf::{Arity, ConfError, Contexts, Directive, Row};
use engines::http::Method;
use server_core::build::Build;
use server_core::errlog::Level;
use server_core::exchange::{Ctx, Exchange};
use server_core::module::{Content, Handler, Module};
use server_core::value::Value;
use server_core::{paths, phases, settings};

/// The module.
pub(crate) const MODULE: Module = Module {
    name: "index",
    directives: &[PLAIN, ROWS],
    units: &[<IndexLoc as server_core::confs::Conf>::unit],
    handlers: &[Handler::Content(handle)],
    ..Module::EMPTY
};

settings! {
    /// Settings of the module.
    pub(crate) struct IndexLoc: Location / PLAIN {}
    extra {
        /// The names to try, in order.
        names: Vec<Value>
    }
    merge inherit_names;
}

fn inherit_names(own: &mut IndexLoc, parent: Option<&IndexLoc>) {
    if own.names.is_empty() {
        own.names = match parent {
            Some(parent) => parent.names.clone(),
            None => vec![Value::text(b"index.html")],
        };
    }
}

const ROWS: &[Row<Build>] = &[Row {
    name: "index",
    contexts: Contexts::HTTP_SERVER_LOCATION,
    arity: Arity::ONE_MORE,
    block: false,
    default: "index.html",
    doc: "Files used as an index, tried in order.",
    syntax: "file ...",
    apply: index,
}];

fn index(b: &mut Build, d: &Directive) -> Result<(), ConfError> {
    for (n, word) in d.args.iter().enumerate() {
        if word.text.starts_with(b"/") && n != d.args.len() - 1 {
            let text = "only the last index in \"index\" directive should be absolute";
            b.warn(ConfError::word(d, word, text));
        }
        if word.text.is_empty() {
            return Err(ConfError::word(d, word, format!("index \"{}\" in \"index\" directive is invalid", word.as_str())));
        }
        let value = Value::compile(b, d, word)?;
        b.conf_mut::<IndexLoc>().names.push(value);
    }
    Ok(())
}

fn handle(x: &mut Exchange, cx: &mut Ctx<'_>) -> Content {
    if !x.uri.ends_with(b"/") || !matches!(x.method, Method::Get | Method::Head | Method::Post) {
        return Content::Declined;
    }
    let http = Rc::clone(&x.http);
    let conf: &IndexLoc = x.loc(&http);
    let policy = paths::policy(x, cx);
    let mut directory_checked = false;
    for name in &conf.names {
        let name = name.to_vec(x, cx);
        if name.is_empty() {
            continue;
        }
        let uri = if name.starts_with(b"/") { name.clone() } else { [x.uri.as_slice(), &name].concat() };
        if !name.starts_with(b"/") {
            let Some(path) = paths::map(x, cx, &uri) else { return Content::Status(404) };
            match cx.files.stat(&path, &policy) {
                Ok(meta) if meta.is_dir => continue,
                Ok(_) => {}
                Err(error) if error.is_forbidden() => {
                    return Content::Status(crate::static_files::open_failed(x, &path, error));
                }
                Err(error) if error.is_missing() => {
                    if !directory_checked {
                        directory_checked = true;
                        if let Some(status) = missing_directory(x, cx) {
                            return Content::Status(status);
                        }
                    }
                    continue;
                }
                Err(error) => return Content::Status(crate::static_files::open_failed(x, &path, error)),
            }
        }
        let args = x.args.clone();
        phases::redirect(x, cx, &uri, &args);
        return Content::Restart;
    }
    Content::Declined
}

/// A directory that does not exist answers 404, not 403.
fn missing_directory(x: &mut Exchange, cx: &mut Ctx<'_>) -> Option<u16> {
    let path = paths::map_uri(x, cx)?;
    let policy = paths::policy(x, cx);
    match cx.files.stat(&path, &policy) {
        Ok(meta) if meta.is_dir => None,
        Ok(_) => {
            let text = String::from_utf8_lossy(&path);
            x.log(Level::Error, format_args!("\"{text}\" is not a directory"));
            Some(404)
        }
        Err(error) => Some(crate::static_files::open_failed(x, &path, error)),
    }
}
