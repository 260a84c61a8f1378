//! Settings that delay the first byte, found in the text of a configuration.
//!
//! [`delays`] analyzes each server of `http` with its locations, by nginx's rules of inheritance and defaults. Findings have
//! the codes of `firstbyte doctor`. Nothing is measured, and no certificate is read: its path is returned to the caller. Equal
//! findings of several servers are one with several places.
//!
//! Absent: values of variables, which are unknown before a request, and the behavior of upstream servers. Source: nginx
//! documentation, modules ngx_http_core, gzip, ssl, v2, proxy, headers.

mod connections;
mod contexts;
mod delay;
mod responses;
mod tls;

use std::path::Path;

use conf::Source;

pub use delay::{CertificateFile, Delay, Delays, Weight};

use crate::rules;
use crate::tree::Tree;
use contexts::Server;
use delay::Report;

/// Analyzes the configuration at `conf_path`, with `globals` from the command line. Returns `None` if the text is incomplete: a
/// file cannot be read or has an error of syntax, which the load reports.
pub fn delays(
    source: impl Source + 'static,
    conf_path: &Path,
    globals: Option<&str>,
) -> Option<Delays> {
    let tree = Tree::read(source, conf_path, globals, rules::find_code).ok()?;
    let servers = Server::all(&tree);
    let http2 = connections::http2_addresses(&tree);
    let mut report = Report::new(&tree);
    for server in &servers {
        connections::check(&tree, server, &http2, &mut report);
        responses::check(&tree, server, &mut report);
        tls::check(&tree, server, &mut report);
    }
    tls::check_redirects(&tree, &servers, &mut report);
    Some(report.finish(servers.len()))
}

#[cfg(test)]
mod tests;
