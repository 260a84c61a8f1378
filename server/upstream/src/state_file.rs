//! The text of a `state` file: the servers of a group as `server` directives.
//!
//! Absent: reading it, which the configuration does, and writing it to a disk, which the driver does.
//!
//! Source: nginx documentation, `ngx_http_upstream_module`, `state`.

use crate::server::Server;

/// Returns the directive of a server, without parameters that have their defaults.
pub fn directive(server: &Server) -> Vec<u8> {
    // Each field: a new one must not be forgotten here.
    let Server {
        name,
        addresses: _,
        unresolved,
        weight,
        max_conns,
        max_fails,
        fail_timeout_s,
        is_backup,
        is_down,
        is_draining,
        route,
        slow_start_ms,
    } = server;
    let default = Server::new();
    let host = unresolved.as_ref();
    let is_resolved = host.is_some_and(|host| host.has_resolve);
    let service = host.and_then(|host| host.service.as_deref());
    let mut words = vec![b"server".to_vec(), quoted(name)];
    for (is_set, word) in [
        (*weight != default.weight, format!("weight={weight}")),
        (
            *max_conns != default.max_conns,
            format!("max_conns={max_conns}"),
        ),
        (
            *max_fails != default.max_fails,
            format!("max_fails={max_fails}"),
        ),
        (
            *fail_timeout_s != default.fail_timeout_s,
            format!("fail_timeout={fail_timeout_s}s"),
        ),
        (
            *slow_start_ms != default.slow_start_ms,
            format!("slow_start={slow_start_ms}ms"),
        ),
        (*is_backup, "backup".to_owned()),
        // Of both, the last one counts.
        (*is_draining, "drain".to_owned()),
        (*is_down, "down".to_owned()),
        (is_resolved, "resolve".to_owned()),
    ] {
        if is_set {
            words.push(word.into_bytes());
        }
    }
    words.extend(service.map(|service| quoted(format!("service={service}").as_bytes())));
    words.extend((route.as_ref()).map(|route| quoted(&[b"route=", &**route].concat())));
    let mut text = words.join(&b' ');
    text.push(b';');
    text
}

/// A word as in a configuration, in quotes if it needs them.
fn quoted(word: &[u8]) -> Vec<u8> {
    let is_plain = |byte: &u8| !byte.is_ascii_whitespace() && !b"\"'\\;{}#$".contains(byte);
    if !word.is_empty() && word.iter().all(is_plain) {
        return word.to_vec();
    }
    let mut text = vec![b'"'];
    for byte in word {
        if matches!(byte, b'"' | b'\\') {
            text.push(b'\\');
        }
        text.push(*byte);
    }
    text.push(b'"');
    text
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

    fn text(server: &Server) -> String {
        String::from_utf8_lossy(&directive(server)).into_owned()
    }

    #[test]
    fn a_directive_has_the_parameters_that_differ_from_their_defaults() {
        assert_eq!(text(&named("127.0.0.1:80")), "server 127.0.0.1:80;");
        let all = Server {
            weight: 2,
            max_conns: 3,
            max_fails: 0,
            fail_timeout_s: 60,
            slow_start_ms: 1500,
            is_backup: true,
            is_down: true,
            is_draining: true,
            route: Some(Arc::from(*b"a\"b")),
            ..named("unix:/run/a b")
        };
        assert_eq!(
            text(&all),
            "server \"unix:/run/a b\" weight=2 max_conns=3 max_fails=0 fail_timeout=60s \
             slow_start=1500ms backup drain down \"route=a\\\"b\";"
        );
    }

    #[test]
    fn a_host_has_resolve_and_its_service() {
        let host = |service| Server {
            unresolved: Some(UnresolvedHost::followed("app.test", 80, service)),
            ..named("app.test")
        };
        assert_eq!(text(&host(None)), "server app.test resolve;");
        let service = text(&host(Some("_a;b")));
        assert_eq!(service, "server app.test resolve \"service=_a;b\";");
    }
}
