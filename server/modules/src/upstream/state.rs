//! `state`: the servers of a group are read from a file, and stored in it when they change at run time.
//!
//! A file that does not exist is a group without servers. Absent: writing the file, which the worker's main thread does
//! as the user of the worker.
//!
//! Source: nginx documentation, `ngx_http_upstream_module`, `state`.

use std::ffi::OsString;
use std::io::ErrorKind;
use std::os::unix::ffi::OsStringExt;
use std::path::PathBuf;

use conf::{ConfError, Contexts, Directive, Item};
use server_base::config::ConfigContext;
use server_http::assemble::ConfigBuilder;

use super::{Block, server};

conf::directives! {
    pub(super) const ROWS: ConfigBuilder;

    /// File with the servers of the group, in place of server; changes at run time are stored in it.
    directive "state": Contexts::UPSTREAM, TAKE1, "", "file" => state;
}

fn state(b: &mut ConfigBuilder, d: &Directive) -> Result<(), ConfError> {
    let block: &mut Block = b.conf_mut();
    conf::once(d, block.state.is_some())?;
    if !block.servers.is_empty() {
        return Err(server::excluded_by_state(d));
    }
    let path = PathBuf::from(OsString::from_vec(b.full_path(d.arg(0))));
    let loader = b.conf_loader();
    let is_absent = match loader.source().read_text(&path) {
        Ok(_) => false,
        Err(error) => error.kind() == ErrorKind::NotFound,
    };
    if !is_absent {
        let file = loader
            .load(&path)
            .map_err(|error| error.or_at(d, d.word(0)))?;
        file.each(|item| match item {
            Item::Directive(line) if line.name() != "server" => {
                let text = format!("\"{}\" directive is not allowed here", line.name());
                Err(ConfError::at(line, text))
            }
            _ => conf::walk(b, std::slice::from_ref(item), Contexts::UPSTREAM),
        })?;
    }
    b.conf_mut::<Block>().state = Some(path);
    Ok(())
}
