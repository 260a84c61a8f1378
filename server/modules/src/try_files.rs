//! `try_files`: the first file that exists, else a last URI, named location or status.
//!
//! Source: nginx documentation, directive `try_files`.

use std::rc::Rc;

use conf::{ConfError, Contexts, Directive};
use server_base::errlog::{Level, Shown};
use server_http::assemble::ConfigBuilder;
use server_http::conf_core::Alias;
use server_http::debug_http;
use server_http::exchange::{Ctx, Exchange};
use server_http::module::{Handler, Inherit, Module, Step};
use server_http::trace::{At, Event};
use server_http::value::Value;
use server_http::{paths, phases, reply, settings};

/// The module.
pub(crate) const MODULE: Module = Module {
    name: "try_files",
    directives: &[PLAIN, ROWS],
    settings: &[<TryLoc as server_http::settings_set::Conf>::def],
    handlers: &[Handler::PreContent(handle)],
    inherits: &[("try_files", Inherit::Never)],
    on_demand: true,
    ..Module::EMPTY
};

settings! {
    /// Settings of the module.
    pub(crate) struct TryLoc: Location / PLAIN {}
    extra {
        /// The candidates; not inherited into locations.
        list: Option<TryFiles>
    }
}

/// One `try_files`.
pub(crate) struct TryFiles {
    files: Vec<Candidate>,
    last: Last,
}

struct Candidate {
    name: Value,
    directory: bool,
}

enum Last {
    Uri(Value),
    Status(u16),
}

conf::directives! {
    const ROWS: ConfigBuilder;

    /// Files to try in order, then a URI or a status.
    directive "try_files": Contexts::SERVER.or(Contexts::LOCATION), TWO_MORE, "",
        "file ... uri | file ... =code" => try_files;
}

fn try_files(b: &mut ConfigBuilder, d: &Directive) -> Result<(), ConfError> {
    conf::once(d, b.conf_mut::<TryLoc>().list.is_some())?;
    let (last, names) = d
        .args
        .split_last()
        .ok_or_else(|| ConfError::at(d, "invalid number of arguments"))?;
    let mut files = Vec::new();
    for word in names {
        let (text, directory) = match word.text.strip_suffix(b"/") {
            Some(text) => (text, true),
            None => (word.text.as_slice(), false),
        };
        files.push(Candidate {
            name: Value::compile_bytes(b, d, word, text)?,
            directory,
        });
    }
    let last = match last.text.strip_prefix(b"=") {
        Some(code) => {
            let code = conf::parse_number(code)
                .and_then(|n| u16::try_from(n).ok())
                .filter(|n| *n <= 999);
            Last::Status(code.ok_or_else(|| {
                ConfError::word(d, last, format!("invalid code \"{}\"", last.as_str()))
            })?)
        }
        None => Last::Uri(Value::compile(b, d, last)?),
    };
    b.conf_mut::<TryLoc>().list = Some(TryFiles { files, last });
    Ok(())
}

fn handle(x: &mut Exchange, cx: &mut Ctx<'_>) -> Step {
    let http = Rc::clone(&x.route.http);
    let Some(list) = &x.loc::<TryLoc>(&http).list else {
        return Step::Next;
    };
    for candidate in &list.files {
        let name = candidate.name.to_vec(x, cx);
        let computed = candidate.name.constant().is_none();
        let path = match paths::map_candidate(x, cx, &name, computed) {
            Ok(path) => path,
            // A candidate outside of its directory is skipped.
            Err(404) => continue,
            Err(status) => return Step::Status(status),
        };
        let kind = if candidate.directory { "dir" } else { "file" };
        let (shown, found) = (Shown(&name), Shown(&path));
        debug_http!(x, "trying to use {kind}: \"{shown}\" \"{found}\"");
        let policy = paths::policy(x, cx, &path);
        match cx.files.stat(&path, &policy) {
            Ok(meta) if meta.is_dir == candidate.directory => {
                record(x, "takes", &name);
                take(x, &name, candidate.directory, computed);
                return Step::Next;
            }
            Ok(_) => {}
            Err(error) if error.is_missing() => {}
            Err(error) => paths::log_failed(x, Level::Crit, &path, error),
        }
    }
    match &list.last {
        Last::Status(status) => {
            record(x, "ends with", status.to_string().as_bytes());
            Step::Status(*status)
        }
        Last::Uri(value) => {
            let mut uri = value.to_vec(x, cx);
            if value.constant().is_none() {
                uri.drain(..paths::aliased_prefix(x, &uri));
            }
            record(x, "falls back to", &uri);
            if uri.starts_with(b"@") {
                phases::redirect_named(x, cx, &uri);
            } else {
                let (path, args) = reply::split_args(&uri);
                phases::redirect(x, cx, path, args);
            }
            Step::Restart
        }
    }
}

fn record(x: &Exchange, what: &str, which: &[u8]) {
    x.record_event(|| {
        let text = format!("{what} \"{}\"", String::from_utf8_lossy(which));
        Event::Ran(At::Argument("try_files", 0), text)
    });
}

/// Replaces the URI by the candidate, so that the location maps it to the path that was found.
fn take(x: &mut Exchange, name: &[u8], directory: bool, computed: bool) {
    let alias = x.route.core_loc().root.as_ref().and_then(|root| root.alias);
    match alias {
        None => x.target.set_uri(name),
        Some(Alias::Whole) if directory => {}
        Some(Alias::Whole) => {
            x.target.set_uri(name);
            x.target.uri_below_alias = true;
        }
        Some(Alias::Prefix(len)) => {
            let own = x.target.uri.get(..len).unwrap_or_default();
            let skip = if computed {
                paths::aliased_prefix(x, name)
            } else {
                0
            };
            let uri = [own, &name[skip..]].concat();
            x.target.set_uri(&uri);
        }
    }
}
