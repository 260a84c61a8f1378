//! The text of a `state` file: the servers of a group as `server` directives.
//!
//! Absent: reading it, which the configuration does, and writing it to a disk, which the driver does.
//!
//! Source: nginx documentation, `ngx_http_upstream_module`, `state`.

use std::fmt::Write;

use crate::server::Server;

/// Returns the directive of a server, without parameters that have their defaults.
pub fn directive(server: &Server) -> String {
    let mut text = format!("server {}", quoted(&server.name));
    let default = Server::new();
    let mut parameter = |is_set: bool, name: &str, value: &dyn std::fmt::Display| {
        if is_set {
            // Writing to a string cannot fail.
            let _ = write!(text, " {name}{value}");
        }
    };
    let numbers = [
        ("max_conns=", server.max_conns, default.max_conns, ""),
        ("max_fails=", server.max_fails, default.max_fails, ""),
        (
            "fail_timeout=",
            server.fail_timeout_s,
            default.fail_timeout_s,
            "s",
        ),
    ];
    parameter(server.weight != default.weight, "weight=", &server.weight);
    for (name, value, default, unit) in numbers {
        parameter(value != default, name, &format_args!("{value}{unit}"));
    }
    parameter(server.is_backup, "backup", &"");
    parameter(server.is_down, "down", &"");
    if let Some(host) = &server.unresolved {
        parameter(host.has_resolve, "resolve", &"");
        if let Some(service) = &host.service {
            parameter(true, "", &quoted(format!("service={service}").as_bytes()));
        }
    }
    text.push(';');
    text
}

/// A word as in a configuration, in quotes if it needs them.
fn quoted(word: &[u8]) -> String {
    let word = String::from_utf8_lossy(word);
    let is_plain = |c: char| !c.is_whitespace() && !"\"'\\;{}#$".contains(c);
    match !word.is_empty() && word.chars().all(is_plain) {
        true => word.into_owned(),
        false => format!("\"{}\"", word.replace('\\', "\\\\").replace('"', "\\\"")),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::server::UnresolvedHost;

    fn named(name: &str) -> Server {
        Server {
            name: Arc::from(name.as_bytes()),
            ..Server::new()
        }
    }

    #[test]
    fn a_directive_has_the_parameters_that_differ_from_their_defaults() {
        assert_eq!(directive(&named("127.0.0.1:80")), "server 127.0.0.1:80;");
        let all = Server {
            weight: 2,
            max_conns: 3,
            max_fails: 0,
            fail_timeout_s: 60,
            is_backup: true,
            is_down: true,
            ..named("unix:/run/a b")
        };
        assert_eq!(
            directive(&all),
            "server \"unix:/run/a b\" weight=2 max_conns=3 max_fails=0 fail_timeout=60s backup down;"
        );
    }

    #[test]
    fn a_host_has_resolve_and_its_service() {
        let host = |service| Server {
            unresolved: Some(UnresolvedHost::followed("app.test", 80, service)),
            ..named("app.test")
        };
        assert_eq!(directive(&host(None)), "server app.test resolve;");
        let service = directive(&host(Some("_a;b")));
        assert_eq!(service, "server app.test resolve \"service=_a;b\";");
    }
}
