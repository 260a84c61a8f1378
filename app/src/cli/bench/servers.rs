//! From options to servers: addresses, TLS, requests, and the rows of a table.

use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

use lab::client::trust;
use lab::client::{Protocol, Request, Url};
use lab::load::{Connect, Job, Plan, Server, exists, tell_apart, workload};
use sys::os_error;

use super::Options;
use crate::cli::carried::carried;
use crate::cli::values;

/// Task to run.
///
/// # Errors
/// A server has no address, or its requests cannot be read.
pub(super) fn job(options: &Options) -> Result<Job, String> {
    if let Some(pid) = options.pids.iter().find(|pid| !exists(**pid)) {
        return Err(format!("--pid {pid}: there is no such process"));
    }
    let mut servers = match options.table {
        true => table(options)?,
        false => compared(options)?,
    };
    // The same server twice shows differences that the method reports by chance.
    let names = servers.iter_mut().map(|server| &mut server.name);
    tell_apart(&mut names.collect::<Vec<_>>());
    let several = options.table || options.against.is_some();
    let time = SystemTime::now().duration_since(UNIX_EPOCH);
    Ok(Job {
        blocks: options
            .blocks
            .unwrap_or(if several { SEVERAL_BLOCKS } else { 1 }),
        warm_up_ns: ns(options.warm_up_s.unwrap_or(0.0)),
        seed: options
            .seed
            .unwrap_or_else(|| time.map_or(0, |time| time.as_secs())),
        insecure: options.insecure,
        servers,
    })
}

/// Returns all requested URLs.
///
/// # Errors
/// One of them is invalid.
pub(super) fn urls(options: &Options) -> Result<Vec<Url>, String> {
    let words = options.urls.iter();
    let urls = words.flat_map(|word| match options.table {
        true => row(word).1.split(',').collect(),
        false => vec![word.as_str()],
    });
    let urls = urls.map(Url::parse).collect::<Result<Vec<Url>, _>>()?;
    Ok(urls.into_iter().chain(options.against.clone()).collect())
}

/// Splits a row of a table into its name, which may be empty, and its URLs.
fn row(word: &str) -> (&str, &str) {
    match word.split_once('=') {
        Some((name, urls)) if !name.contains("://") => (name, urls),
        _ => ("", word),
    }
}

/// One server, or two.
fn compared(options: &Options) -> Result<Vec<Server>, String> {
    let urls = options.urls.iter().map(|url| Url::parse(url));
    let urls: Vec<Url> = urls.collect::<Result<_, _>>()?;
    let first = urls.first().ok_or("no URL is given")?;
    if let Some(other) = urls.iter().find(|url| !url.same_server(first)) {
        return Err(format!(
            "{other} and {first} are different servers: compare two with --against, or more with --table"
        ));
    }
    let mut servers = vec![server(
        options,
        &urls,
        &first.to_string(),
        options.protocol,
        0,
    )?];
    if let Some(against) = &options.against {
        let mut others = vec![against.clone()];
        // The other paths are requested from it, too.
        others.extend(urls.iter().skip(1).map(|url| Url {
            path: url.path.clone(),
            ..against.clone()
        }));
        servers.push(server(
            options,
            &others,
            &against.to_string(),
            options.protocol,
            1,
        )?);
    }
    Ok(servers)
}

/// Returns the rows of a table: one for each URL and protocol.
fn table(options: &Options) -> Result<Vec<Server>, String> {
    let mut rows = Vec::new();
    for (number, text) in options.urls.iter().enumerate() {
        let (name, urls) = row(text);
        for url in urls.split(',') {
            let url = Url::parse(url)?;
            let name = match name {
                "" => url.authority.clone(),
                name => name.to_owned(),
            };
            let protocols: &[(Protocol, &str)] = match url.tls {
                true => &[
                    (Protocol::H2, "HTTP/2 over TLS"),
                    (Protocol::H1, "HTTP/1.1 over TLS"),
                ],
                false => &[(Protocol::H1, "HTTP/1.1")],
            };
            for (protocol, title) in protocols {
                let name = format!("{name}, {title}");
                let urls = std::slice::from_ref(&url);
                rows.push(server(options, urls, &name, Some(*protocol), number)?);
            }
        }
    }
    Ok(rows)
}

fn server(
    options: &Options,
    urls: &[Url],
    name: &str,
    protocol: Option<Protocol>,
    number: usize,
) -> Result<Server, String> {
    let first = urls.first().ok_or("no URL is given")?;
    // A file that is missing is an error without TLS, too.
    let trust = values::trust(options.cacert.as_deref(), options.insecure)?;
    let tls = match first.tls {
        false => None,
        true => {
            // SPDY is measured only on request: no current client would choose it.
            let offered = match &protocol {
                Some(one) => std::slice::from_ref(one),
                None => &[Protocol::H2, Protocol::H1],
            };
            let resumption = options.connect == Connect::Resumed;
            let config = trust::config(&trust, offered, resumption)?;
            Some((config, trust::server_name(&first.host)?))
        }
    };
    // A table compares runs of one length, so it counts requests; a single run is as long as a person waits.
    let endless = options.requests.is_none() && options.duration_s.is_none();
    let total = match options.table && endless {
        true => Some(TABLE_REQUESTS),
        false => options.requests,
    };
    let duration = match endless && !options.table {
        true => Some(DEFAULT_DURATION_S),
        false => options.duration_s,
    };
    let (requests, passed_over) = requests(options, urls)?;
    Ok(Server {
        name: name.to_owned(),
        url: first.to_string(),
        plan: Plan {
            address: match options.via {
                Some(_) => carried(first)?[0],
                None => first.addresses()?[0],
            },
            tls,
            plain: protocol.unwrap_or(Protocol::H1),
            requests,
            passed_over,
            connections: options.connections,
            streams: options.streams,
            threads: options.threads,
            total,
            duration_ns: duration.map(ns),
            rate: options.rate,
            connect: options.connect,
            timeout_ns: ns(options.timeout_s),
            spdy_level: options.spdy_level,
            pid: options.pids.get(number).copied(),
        },
    })
}

/// Returns the requests, and the number of unusable lines in an access log.
fn requests(options: &Options, urls: &[Url]) -> Result<(Vec<Request>, Option<usize>), String> {
    let first = urls.first().ok_or("no URL is given")?;
    let fields = &options.fields;
    let body = match &options.body {
        Some(file) => read(file)?,
        None => Vec::new(),
    };
    if let Some(file) = &options.mix {
        return Ok((workload::of_file(file, first, fields, &body)?, None));
    }
    if let Some(file) = &options.access_log {
        let (requests, others) = workload::of_log(file, first, fields)?;
        return Ok((requests, Some(others)));
    }
    let request = |url: &Url| Request::new(url, options.method(), &url.path, fields, &body);
    Ok((urls.iter().map(request).collect(), None))
}

fn read(file: &Path) -> Result<Vec<u8>, String> {
    std::fs::read(file)
        .map_err(|error| format!("cannot read {}: {}", file.display(), os_error(&error)))
}

fn ns(seconds: f64) -> u64 {
    (seconds * 1e9) as u64
}

/// Runs of each server if several are compared.
const SEVERAL_BLOCKS: usize = 10;
/// Requests of a row of the table, as in the talk.
const TABLE_REQUESTS: u64 = 50_000;
const DEFAULT_DURATION_S: f64 = 10.0;
