//! FB103: the unchecked `$http_host` instead of the host of the request.

use crate::tree::{Id, Tree};
use crate::value::variables;
use crate::{Warn, rules::redirect};

/// The argument with the requested host.
fn names_host(tree: &Tree, id: Id) -> Option<usize> {
    let first = tree.arg(id, 0).to_ascii_lowercase();
    match tree.name(id) {
        "return" | "rewrite" => redirect::target(tree, id),
        "proxy_set_header" | "grpc_set_header" => HOSTS.contains(&first.as_str()).then_some(1),
        _ => (first == "server_name").then_some(1),
    }
}

pub(super) fn check(tree: &Tree, warn: &mut Warn<'_>) {
    let names = [
        "return",
        "rewrite",
        "proxy_set_header",
        "grpc_set_header",
        "fastcgi_param",
        "uwsgi_param",
        "scgi_param",
    ];
    for id in tree.http_all(&names) {
        let Some(argument) = names_host(tree, id) else {
            continue;
        };
        let redirects = matches!(tree.name(id), "return" | "rewrite");
        // An argument of the query may be part of an address, but it is no host.
        let forged =
            |name: &String| name == "http_host" || (!redirects && name.starts_with("arg_"));
        let Some(name) = variables(tree.arg(id, argument)).find(forged) else {
            continue;
        };
        let message = format!(
            "\"${name}\" is sent by the client and may differ from the host that selected this server"
        );
        let hint = "use \"$host\", or \"$host:$server_port\" to include the port";
        warn.word(id, argument, message, hint);
    }
}

/// Headers from which upstream servers read the host.
const HOSTS: [&str; 4] = ["host", "x-forwarded-host", "x-forwarded-server", "x-host"];

#[cfg(test)]
mod tests {
    use crate::testing::in_server;

    #[test]
    fn the_unchecked_host_is_found_where_it_names_one() {
        for text in [
            "proxy_set_header Host $http_host;",
            "proxy_set_header hOST $arg_host;",
            "proxy_set_header X-Forwarded-Host $http_host;",
            "fastcgi_param SERVER_NAME $http_host;",
            "return 301 https://$http_host$request_uri;",
        ] {
            assert_eq!(in_server(text), ["FB103"], "{text}");
        }
    }

    #[test]
    fn the_checked_host_is_not() {
        for text in [
            "proxy_set_header Host $host;",
            "proxy_set_header X-Original $http_host;",
            "return 301 https://a/?x=$arg_x;",
            "return 200 $http_host;",
        ] {
            assert_eq!(in_server(text), [""; 0], "{text}");
        }
    }
}
