//! Directives at location scope that need a parser of their own.

use std::sync::Arc;

use conf::{ConfError, Directive, Word};
use server_base::files::{SymlinkMode, TempDir};
use server_base::from_args::FromArgs;
use server_base::name_servers::name_servers;
use server_base::opened::LogTarget;
use server_base::thread_pool::Aio;

use crate::assemble::ConfigBuilder;
use crate::conf_core::{Alias, ErrorPage, KeepaliveDisable, ResolverLoc, Root};
use crate::location::LocationKind;
use crate::value::Value;

pub(super) fn root(b: &mut ConfigBuilder, d: &Directive) -> Result<(), ConfError> {
    set_root(b, d, false)
}

pub(super) fn alias(b: &mut ConfigBuilder, d: &Directive) -> Result<(), ConfError> {
    set_root(b, d, true)
}

fn set_root(b: &mut ConfigBuilder, d: &Directive, alias: bool) -> Result<(), ConfError> {
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
    let word = d.word(0);
    if let Some(name) = own_variable(word) {
        let text = format!(
            "the ${name} variable cannot be used in the \"{}\" directive",
            d.name()
        );
        return Err(ConfError::word(d, word, text));
    }
    let absolute = word.text.starts_with(b"/") || word.text.starts_with(b"$");
    let mut text = word.text.to_vec();
    // The URI begins with a slash; behind `alias` the rest of it does not.
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

/// The variable in a path that is made of this path: it would be computed without end.
fn own_variable(path: &Word) -> Option<&'static str> {
    // Most paths have no variable, and there may be one for each of many servers.
    memchr::memchr(b'$', &path.text)?;
    let text = path.as_str();
    ["document_root", "realpath_root"]
        .into_iter()
        .find(|name| text.contains(&format!("${name}")) || text.contains(&format!("${{{name}}}")))
}

pub(super) fn types(b: &mut ConfigBuilder, d: &Directive) -> Result<(), ConfError> {
    let mut map = b
        .core_loc()
        .types
        .take()
        .map(|t| (*t).clone())
        .unwrap_or_default();
    conf::each(b, d.items(), |b, line| {
        for word in &line.args {
            let old = map.insert(word.text.to_ascii_lowercase(), line.name.text.to_vec());
            if let Some(old) = old
                && old != line.name.as_bytes()
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

pub(super) fn error_page(b: &mut ConfigBuilder, d: &Directive) -> Result<(), ConfError> {
    let last = d.args.len() - 1;
    let mut codes = &d.args[..last];
    let mut overwrite = None;
    if let Some((word, rest)) = codes.split_last()
        && let Some(code) = word.text.strip_prefix(b"=")
    {
        overwrite = Some(match code {
            b"" => 0,
            _ => parse_status(code).ok_or_else(|| ConfError::invalid(d, word))?,
        });
        codes = rest;
        if codes.is_empty() {
            return Err(ConfError::invalid(d, word));
        }
    }
    let (uri, args) = error_uri(b, d, last)?;
    let mut pages = Vec::new();
    for word in codes {
        let status = parse_status(&word.text)
            .filter(|s| *s != 499)
            .ok_or_else(|| ConfError::invalid(d, word))?;
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
            at: d.pos,
        });
    }
    let list = b.core_loc().errors.pages.get_or_insert_default();
    Arc::make_mut(list).extend(pages);
    Ok(())
}

/// The URI of an error page; a constant one is split from its arguments.
fn error_uri(
    b: &mut ConfigBuilder,
    d: &Directive,
    last: usize,
) -> Result<(Value, Vec<u8>), ConfError> {
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

pub(super) fn error_log(b: &mut ConfigBuilder, d: &Directive) -> Result<(), ConfError> {
    let log = server_base::logging::error_log(b, d)?;
    if let LogTarget::File(path) = &log.target {
        b.log_paths.add(path);
    }
    b.core_loc().error_logs.get_or_insert_default().push(log);
    Ok(())
}

pub(super) fn keepalive_timeout(b: &mut ConfigBuilder, d: &Directive) -> Result<(), ConfError> {
    conf::once(d, b.core_loc().connection.keepalive_ms.is_some())?;
    let bad = |n: usize| {
        ConfError::word(
            d,
            d.word(n),
            "\"keepalive_timeout\" directive invalid value",
        )
    };
    b.core_loc().connection.keepalive_ms =
        Some(conf::parse_time_ms(d.arg(0)).ok_or_else(|| bad(0))?);
    if d.args.len() == 2 {
        b.core_loc().connection.keepalive_header =
            Some(conf::parse_time_s(d.arg(1)).ok_or_else(|| bad(1))?);
    }
    Ok(())
}

pub(super) fn keepalive_disable(b: &mut ConfigBuilder, d: &Directive) -> Result<(), ConfError> {
    conf::once(d, b.core_loc().connection.keepalive_disable.is_some())?;
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
                return Err(ConfError::invalid(d, word));
            }
        }
    }
    b.core_loc().connection.keepalive_disable = Some(value);
    Ok(())
}

pub(super) fn internal(b: &mut ConfigBuilder, d: &Directive) -> Result<(), ConfError> {
    conf::once(d, b.core_loc().internal)?;
    b.core_loc().internal = true;
    Ok(())
}

pub(super) fn aio(b: &mut ConfigBuilder, d: &Directive) -> Result<(), ConfError> {
    conf::once(d, b.core_loc().files.aio.is_some())?;
    let text = d.arg_str(0).to_owned();
    let pool = match text.as_str() {
        "off" => {
            b.core_loc().files.aio = Some(Aio::Off);
            return Ok(());
        }
        // Reads past the page cache, which nginx does with `on` and `directio`, are not done: a thread reads.
        "on" | "threads" => b.main.thread_pools.default_pool(),
        _ => match text.strip_prefix("threads=") {
            Some(name) if name.contains('$') => {
                let text = "variables are not supported in the name of a thread pool";
                return Err(ConfError::word(d, d.word(0), text));
            }
            Some(name) => b.main.thread_pools.find_or_expect(name, d),
            None => return Err(ConfError::directive(d, "invalid value")),
        },
    };
    b.core_loc().files.aio = Some(Aio::Threads(pool));
    Ok(())
}

pub(super) fn open_file_cache(b: &mut ConfigBuilder, d: &Directive) -> Result<(), ConfError> {
    conf::once(d, b.core_loc().files.file_cache.is_some())?;
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
            Some(("max", v)) => max = conf::parse_digits(v).filter(|n| *n > 0).ok_or_else(bad)?,
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
    b.core_loc().files.file_cache = Some((!off).then_some((max, inactive_ms)));
    Ok(())
}

pub(super) fn disable_symlinks(b: &mut ConfigBuilder, d: &Directive) -> Result<(), ConfError> {
    conf::once(d, b.core_loc().files.symlinks.is_some())?;
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
    b.core_loc().files.symlinks = Some((mode, from));
    Ok(())
}

pub(super) fn client_body_temp_path(b: &mut ConfigBuilder, d: &Directive) -> Result<(), ConfError> {
    conf::once(d, b.core_loc().bodies.body_temp_path.is_some())?;
    b.core_loc().bodies.body_temp_path = Some(TempDir::parse(b, d)?);
    Ok(())
}

pub(super) fn resolver(b: &mut ConfigBuilder, d: &Directive) -> Result<(), ConfError> {
    conf::once(d, b.conf_mut::<ResolverLoc>().servers.is_some())?;
    let servers = name_servers(b, d)?;
    b.conf_mut::<ResolverLoc>().servers = Some(Arc::new(servers));
    Ok(())
}
