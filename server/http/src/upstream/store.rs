//! Responses that are kept as files: `proxy_store`.
//!
//! A response is written to a temporary file while it is received, even if the client reads slowly, and gets its
//! name when it is complete. A failure is logged; the client notices nothing.
//!
//! Source: nginx documentation, `proxy_store`, `proxy_store_access`.

use std::rc::Rc;

use engines::http::{Chunk, FieldId, Method, parse_http_date};
use server_base::errlog::{Level, Printable};
use server_base::files::{Change, ENOENT, EXDEV, FileError, Keep, TempError, TempFile};

use super::arrival::reason;
use super::conf::StorePath;
use super::run::{Run, record};
use super::wording::Action;
use crate::exchange::{Ctx, Exchange};
use crate::paths::map_uri;

/// A response that is being stored.
pub(super) struct Storing {
    file: TempFile,
    /// Its final length, if it is known.
    length: Option<u64>,
}

/// Begins to store the response, if the location stores it; its head is in the reply.
pub(super) fn begin(run: &Run, x: &Exchange, cx: &mut Ctx<'_>) -> Option<Storing> {
    let conf = run.conf(x, &x.route.http);
    if conf.store.path.is_none() || x.reply.status != 200 || x.head.method == Method::Head {
        return None;
    }
    let dir = conf.buffering.temp_path.as_ref()?;
    match cx.files.create_temp(dir, 0o600, Keep::WhileUsed) {
        Ok(file) => Some(Storing {
            file,
            length: x.reply.content_length,
        }),
        Err(TempError { error, path }) => {
            log(x, error, &path);
            None
        }
    }
}

impl Storing {
    /// Adds a piece; false if that failed, which has been logged.
    pub(super) fn add(&mut self, x: &Exchange, chunk: &Chunk) -> bool {
        match self.file.append(chunk.bytes()) {
            Ok(()) => true,
            Err(error) => {
                log(x, error, &self.file.path);
                false
            }
        }
    }

    /// The response is complete: renames the file to its name.
    pub(super) fn finish(mut self, run: &Run, x: &mut Exchange, cx: &mut Ctx<'_>) {
        if self.length.is_some_and(|length| length != self.file.len) {
            return;
        }
        let http = Rc::clone(&x.route.http);
        let conf = run.conf(x, &http);
        let path = match &conf.store.path {
            Some(StorePath::Mapped) => map_uri(x, cx).unwrap_or_default(),
            Some(StorePath::Value(value)) => value.to_vec(x, cx),
            None => return,
        };
        if path.is_empty() {
            return;
        }
        let head = record(x).head.as_deref();
        let modified = head.and_then(|head| head.get(FieldId::LastModified));
        let modified_s = modified.and_then(parse_http_date);
        match self.place(cx, &path, conf.store.access, modified_s) {
            Ok(()) => {}
            Err((error, name)) => log(x, error, &name),
        }
    }

    /// Renames the file, and sets its mode and time.
    fn place(
        &mut self,
        cx: &mut Ctx<'_>,
        path: &[u8],
        access: u32,
        modified_s: Option<i64>,
    ) -> Result<(), (FileError, Vec<u8>)> {
        let temp = self.file.path.clone();
        let of_temp = |error| (error, temp.clone());
        let mode = Change::Mode {
            path: &temp,
            mode: access,
        };
        cx.files.change(&mode).map_err(of_temp)?;
        if let Some(time_s) = modified_s {
            let modified = Change::Modified {
                path: &temp,
                time_s,
            };
            cx.files.change(&modified).map_err(of_temp)?;
        }
        let rename = Change::Rename {
            from: &temp,
            to: path,
        };
        let mut renamed = cx.files.change(&rename);
        if matches!(renamed, Err(error) if error.errno == ENOENT) {
            make_dirs(cx, path, access)?;
            renamed = cx.files.change(&rename);
        }
        match renamed {
            Ok(()) => self.file.renamed(),
            // The temporary file is on another file system, and is removed after the copy.
            Err(error) if error.errno == EXDEV => {
                let copy = Change::Copy {
                    from: &temp,
                    to: path,
                    mode: access,
                    modified_s: modified_s.unwrap_or(cx.clock.unix_ms as i64 / 1000),
                };
                cx.files.change(&copy).map_err(of_temp)?;
            }
            Err(error) => return Err(of_temp(error)),
        }
        Ok(())
    }
}

/// Makes the directories on the way to a file; read permission implies search permission.
fn make_dirs(cx: &mut Ctx<'_>, path: &[u8], access: u32) -> Result<(), (FileError, Vec<u8>)> {
    let mode = access | (access & 0o444) >> 2;
    for (at, _) in path
        .iter()
        .enumerate()
        .filter(|(at, b)| **b == b'/' && *at > 0)
    {
        let path = &path[..at];
        match cx.files.change(&Change::MakeDir { path, mode }) {
            Err(error) if error.errno != server_base::files::EEXIST => {
                return Err((error, path.to_vec()));
            }
            _ => {}
        }
    }
    Ok(())
}

fn log(x: &Exchange, error: FileError, name: &[u8]) {
    let (call, reason, name) = (error.call, reason(error), Printable(name));
    x.log_while(
        Level::Crit,
        Action::Reading.text(),
        format_args!("{call} \"{name}\" failed ({reason})"),
    );
}
