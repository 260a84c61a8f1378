//! FB607: `ip_hash` behind a load balancer that sends the PROXY protocol.
//!
//! The address of the connection is that of the load balancer, so all its clients get one server. With `set_real_ip_from`
//! the address is that of the client.
//!
//! Source: nginx documentation, `ip_hash`, `listen`, `set_real_ip_from`.

use crate::Warn;
use crate::listens::servers_of_http;
use crate::pass_address::{has_port, host};
use crate::tree::{Id, PASSES, Tree};

pub(super) fn check(tree: &Tree, warn: &mut Warn<'_>) {
    let groups = tree.http("ip_hash").collect::<Vec<_>>();
    if groups.is_empty() {
        return;
    }
    let servers: Vec<(Id, Id)> = servers_of_http(tree)
        .filter_map(|server| Some((server, proxied_listen(tree, server)?)))
        .collect();
    if servers.is_empty() {
        return;
    }
    let passes = tree.http_all(&PASSES);
    for id in groups {
        let Some(group) = tree.enclosing(id, "upstream") else {
            continue;
        };
        let name = tree.arg(group, 0);
        let listen = passes.iter().find_map(|pass| {
            let server = tree.enclosing(*pass, "server")?;
            let (_, listen) = servers.iter().find(|(known, _)| *known == server)?;
            let block = tree.parent(*pass)?;
            let is_real = tree.inherited(block, "set_real_ip_from").is_some();
            (passes_to(tree, *pass, name) && !is_real).then_some(*listen)
        });
        if let Some(listen) = listen {
            let message = format!(
                "\"ip_hash\" uses the address of the load balancer, as the \"listen\" at {} has \"proxy_protocol\"",
                tree.place(listen)
            );
            let hint = "write \"real_ip_header proxy_protocol;\" and \"set_real_ip_from\" with the load balancer's address";
            warn.name(id, message, hint);
        }
    }
}

/// The `listen` of a server with the PROXY protocol.
fn proxied_listen(tree: &Tree, server: Id) -> Option<Id> {
    let has_header = |listen: &Id| {
        let mut words = tree.args(*listen).iter();
        words.any(|word| word.as_str() == "proxy_protocol")
    };
    tree.within(server, "listen").find(has_header)
}

/// Whether requests are passed to the group of this name.
fn passes_to(tree: &Tree, pass: Id, group: &str) -> bool {
    let address = tree.arg(pass, 0);
    let named = host(address, "").is_some_and(|(host, _)| host.eq_ignore_ascii_case(group));
    named && !has_port(address)
}

#[cfg(test)]
mod tests {
    use crate::testing::in_http;

    const GROUP: &str = "upstream app { ip_hash; server 10.0.0.1; server 10.0.0.2; }";

    #[test]
    fn the_address_of_a_load_balancer_is_found() {
        let text =
            |server: &str| format!("{GROUP} server {{ listen 80 proxy_protocol; {server} }}");
        for server in [
            "location / { proxy_pass http://App/x; }",
            "location / { if ($arg_a) { proxy_pass http://app; } }",
            "real_ip_header proxy_protocol; location / { proxy_pass http://app; }",
            "location / { fastcgi_param A 1; fastcgi_pass app; }",
        ] {
            let codes = in_http(&text(server));
            assert!(codes.contains(&"FB607"), "{server}: {codes:?}");
        }
    }

    #[test]
    fn addresses_of_clients_are_not() {
        for text in [
            "server { listen 80; location / { proxy_pass http://app; } }",
            "server { listen 80 proxy_protocol; location / { proxy_pass http://app:81; } }",
            "server { listen 80 proxy_protocol; location / { proxy_pass http://other; } }",
            "set_real_ip_from 10.0.0.9; server { listen 80 proxy_protocol; location / { proxy_pass http://app; } }",
            "server { listen 80 proxy_protocol; location / { set_real_ip_from unix:; proxy_pass http://app; } }",
            "server { listen 80 proxy_protocol; } server { listen 81; location / { proxy_pass http://app; } }",
        ] {
            let codes = in_http(&format!("{GROUP} {text}"));
            assert!(!codes.contains(&"FB607"), "{text}: {codes:?}");
        }
        let balanced = "upstream app { server 10.0.0.1; }
            server { listen 80 proxy_protocol; location / { proxy_pass http://app; } }";
        assert_eq!(in_http(balanced), [""; 0]);
    }
}
