//! `server` in an `upstream` block: its address and parameters.
//!
//! Source: nginx documentation, `ngx_http_upstream_module`, `server`.

use std::sync::Arc;

use conf::{ConfError, Contexts, Directive, Word};
use server_base::listen::MAX_UNIX_PATH;
use server_http::assemble::ConfigBuilder;
use server_upstream::group::Server;
use server_upstream::route::UpstreamAddr;
use server_upstream::server::check_service;
use server_upstream::server_id::SERVER_ID_BYTES;

use super::Block;

conf::directives! {
    pub(super) const ROWS: ConfigBuilder;

    /// A server of the group; parameters are weight, max_conns, max_fails, fail_timeout, slow_start, route, backup, down, drain, resolve and
    /// service.
    directive "server": Contexts::UPSTREAM, ONE_MORE, "", "address [parameters]" => server;
}

/// One `server` of the block, or of its file.
fn server(b: &mut ConfigBuilder, d: &Directive) -> Result<(), ConfError> {
    if b.conf_mut::<Block>().state.is_some() {
        return Err(excluded_by_state(d));
    }
    let mut server = Server::new();
    let mut names = Names::default();
    let method = b.conf_mut::<Block>().method.as_ref();
    let allows_backup = method.is_none_or(|method| method.allows_backup());
    for word in &d.args[1..] {
        let is_refused = word.text == b"backup" || word.text.starts_with(b"slow_start=");
        if is_refused && !allows_backup {
            return Err(unsupported(d, word));
        }
        parameter(&mut server, &mut names, d, word)?;
    }
    let text = d.arg_str(0);
    let wrong = |why: &str| {
        let text = format!("{why} in upstream \"{text}\"");
        Err(ConfError::word(d, d.word(0), text))
    };
    if names.service.is_some() && !names.resolve {
        let text = format!("service upstream \"{text}\" requires \"resolve\" parameter");
        return Err(ConfError::word(d, d.word(0), text));
    }
    match d.arg(0).strip_prefix(b"unix:") {
        Some(b"") => return wrong("no path in the unix domain socket"),
        Some(path) if path.len() > MAX_UNIX_PATH => {
            return wrong("too long path in the unix domain socket");
        }
        Some(_) if names.service.is_some() => {
            let text = format!("service upstream \"{text}\" may not have port");
            return Err(ConfError::word(d, d.word(0), text));
        }
        Some(path) => {
            server.name = Arc::from(d.arg(0));
            server.addresses = vec![UpstreamAddr::Unix(Arc::from(path))];
        }
        None if names.resolve => server.read_followed_address(d, names.service.as_deref())?,
        None => server.read_address(b, d)?,
    }
    b.conf_mut::<Block>().servers.push(server);
    Ok(())
}

/// Parameters about names at run time.
#[derive(Default)]
struct Names {
    resolve: bool,
    service: Option<Box<str>>,
}

fn unsupported(d: &Directive, word: &Word) -> ConfError {
    let text = format!(
        "balancing method does not support parameter \"{}\"",
        word.as_str()
    );
    ConfError::word(d, word, text)
}

fn parameter(
    server: &mut Server,
    names: &mut Names,
    d: &Directive,
    word: &Word,
) -> Result<(), ConfError> {
    let text = word.text.as_slice();
    let at = text.iter().position(|byte| *byte == b'=');
    let (key, value) = match at {
        Some(at) => (&text[..at], Some(&text[at + 1..])),
        None => (text, None),
    };
    let read = match (key, value) {
        (b"weight", Some(value)) => conf::parse_number(value)
            .filter(|weight| *weight > 0)
            .map(|weight| server.weight = i64::try_from(weight).unwrap_or(i64::MAX)),
        (b"max_conns", Some(value)) => conf::parse_number(value).map(|n| server.max_conns = n),
        (b"max_fails", Some(value)) => conf::parse_number(value).map(|n| server.max_fails = n),
        (b"fail_timeout", Some(value)) => {
            conf::parse_time_s(value).map(|seconds| server.fail_timeout_s = seconds)
        }
        (b"backup", None) => {
            server.is_backup = true;
            Some(())
        }
        // Of `down` and `drain` the last one counts, as in nginx. A server that is `down` may be `drain` too, as after a
        // change at run time, since `down` alone has an effect.
        (b"drain", None) => {
            (server.is_down, server.is_draining) = (false, true);
            Some(())
        }
        (b"down", None) => {
            server.is_down = true;
            Some(())
        }
        (b"resolve", None) => {
            names.resolve = true;
            Some(())
        }
        (b"service", Some(b"")) => return Err(ConfError::word(d, word, "service is empty")),
        (b"service", Some(value)) => {
            let service = String::from_utf8_lossy(value);
            check_service(&service).map_err(|why| ConfError::word(d, word, why))?;
            names.service = Some(service.into());
            Some(())
        }
        (b"route", Some(value)) => {
            server.route = Some(route(d, word, value)?);
            Some(())
        }
        (b"slow_start", Some(value)) => {
            conf::parse_time_ms(value).map(|time_ms| server.slow_start_ms = time_ms)
        }
        _ => None,
    };
    read.ok_or_else(|| ConfError::parameter(d, word))
}

/// The error for a group with servers and a file of servers.
pub(super) fn excluded_by_state(d: &Directive) -> ConfError {
    ConfError::at(
        d,
        "\"state\" and \"server\" directives are mutually exclusive",
    )
}

/// Checks a route's name, which nginx keeps in the room of a hash.
fn route(d: &Directive, word: &Word, name: &[u8]) -> Result<Arc<[u8]>, ConfError> {
    if name.is_empty() {
        return Err(ConfError::word(d, word, "route is empty"));
    }
    if name.len() > SERVER_ID_BYTES {
        let text = format!("route is longer than {SERVER_ID_BYTES}");
        return Err(ConfError::word(d, word, text));
    }
    Ok(Arc::from(name))
}
