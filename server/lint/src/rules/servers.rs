//! FB601 to FB603: which server answers.

use std::collections::HashMap;

use crate::Warn;
use crate::listens::{Transport, address, is_catch_all_name, servers_of_http, transport};
use crate::tree::{Id, Tree};

/// A server with its addresses and names.
struct Server {
    id: Id,
    /// Address and port, and whether it is the default there.
    listens: Vec<(String, bool)>,
    /// Names with their directive and argument; `None` for the empty name of a server without names.
    names: Vec<(String, Option<(Id, usize)>)>,
}

fn servers(tree: &Tree) -> Vec<Server> {
    let all = servers_of_http(tree);
    all.map(|id| {
        let mut listens: Vec<(String, bool)> = tree
            .within(id, "listen")
            .map(|listen| {
                let words = tree.args(listen);
                let default = words
                    .iter()
                    .any(|word| *word == "default_server" || *word == "default");
                (address(tree.arg(listen, 0)), default)
            })
            .collect();
        if listens.is_empty() {
            listens.push((address("80"), false));
        }
        let mut names = Vec::new();
        for directive in tree.within(id, "server_name") {
            for (index, word) in tree.args(directive).iter().enumerate() {
                let place = Some((directive, index));
                let name = word.as_str().to_ascii_lowercase();
                match name.strip_prefix('.') {
                    Some(rest) => {
                        names.push((rest.to_owned(), place));
                        names.push((format!("*.{rest}"), place));
                    }
                    None => names.push((name, place)),
                }
            }
        }
        if names.is_empty() {
            names.push((String::new(), None));
        }
        Server { id, listens, names }
    })
    .collect()
}

/// FB601: another server has the name already, on the same address and port.
pub(super) fn conflicting_names(tree: &Tree, warn: &mut Warn<'_>) {
    let mut owners: HashMap<(String, String), Id> = HashMap::new();
    for server in servers(tree) {
        for (name, place) in &server.names {
            let mut clash = None;
            for (listen, _) in &server.listens {
                let owner = *owners
                    .entry((listen.clone(), name.clone()))
                    .or_insert(server.id);
                if owner != server.id {
                    clash = clash.or(Some((owner, listen)));
                }
            }
            let Some((owner, listen)) = clash else {
                continue;
            };
            let lost = match name.as_str() {
                "" => "without a host name",
                _ => "for it",
            };
            let message = format!(
                "conflicting server name \"{name}\" on {listen}, used by the server in {}: this server gets \
                 no requests {lost}",
                tree.place(owner)
            );
            let hint =
                "the first server with a name gets its requests; use another name or port here";
            match place {
                Some((directive, index)) => warn.word(*directive, *index, message, hint),
                None => warn.name(server.id, message, hint),
            }
        }
    }
}

/// FB602: a request with an unknown host gets the server that happens to come first.
pub(super) fn no_default(tree: &Tree, warn: &mut Warn<'_>) {
    let mut on: Vec<(String, Vec<(&Server, bool)>)> = Vec::new();
    let servers = servers(tree);
    for server in &servers {
        for (listen, default) in &server.listens {
            match on.iter_mut().find(|(known, _)| known == listen) {
                Some((_, there)) => there.push((server, *default)),
                None => on.push((listen.clone(), vec![(server, *default)])),
            }
        }
    }
    let mut told = Vec::new();
    for (listen, there) in on {
        let names = |server: &Server| -> Vec<String> {
            server.names.iter().map(|(name, _)| name.clone()).collect()
        };
        let first = there[0].0;
        let differ = there
            .iter()
            .any(|(server, _)| names(server) != names(first));
        // Servers of the same names differ in nothing a name could choose.
        let chosen = there.iter().any(|(_, default)| *default);
        if !differ
            || chosen
            || first.names.iter().any(|(name, _)| is_catch_all_name(name))
            || told.contains(&first.id)
        {
            continue;
        }
        // A server on five ports gets one warning.
        told.push(first.id);
        let nobody = there
            .iter()
            .find(|(server, _)| server.names.iter().any(|(name, _)| is_catch_all_name(name)));
        let (id, message) = match nobody {
            Some((server, _)) => (
                server.id,
                format!(
                    "requests with unknown names on {listen} go to the first server, in {}, not to this one",
                    tree.place(first.id)
                ),
            ),
            None => (
                first.id,
                format!(
                    "no default server on {listen}: requests with unknown names go to this server, as the first"
                ),
            ),
        };
        let hint = "write \"default_server\" in the \"listen\" of the intended server";
        warn.name(id, message, hint);
    }
}

/// FB603: `listen 443` without `ssl`.
pub(super) fn no_tls(tree: &Tree, warn: &mut Warn<'_>) {
    for server in servers_of_http(tree) {
        if tree.inherited(server, "ssl_certificate").is_none() {
            continue;
        }
        for listen in tree.within(server, "listen") {
            let is_plain = transport(tree, listen) == Transport::Plain;
            if is_plain && address(tree.arg(listen, 0)).ends_with(":443") {
                let message = "the server has a certificate but speaks plain HTTP on port 443";
                warn.word(listen, 0, message, "write \"listen 443 ssl;\"");
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::testing::{in_http, warnings};

    #[test]
    fn names_are_taken_once() {
        let two = |a: &str, b: &str| {
            in_http(&format!(
                "server {{ listen 80 default_server; {a} }} server {{ listen *:80; {b} }}"
            ))
        };
        assert_eq!(two("server_name a;", "server_name b A;"), ["FB601"]);
        assert_eq!(two("server_name .a;", "server_name *.a;"), ["FB601"]);
        assert_eq!(two("server_name ~^a$;", "server_name ~^a$;"), ["FB601"]);
        assert_eq!(two("", ""), ["FB601"]);
        assert_eq!(two("server_name a;", "server_name b;"), [""; 0]);
        let ports = "server { listen 81; server_name a; } server { listen 82; server_name a; }";
        assert_eq!(in_http(ports), [""; 0]);
    }

    #[test]
    fn a_port_without_a_chosen_default_is_found() {
        let two = "server { listen 80; listen [::]:80; server_name a; }\nserver { listen 80; server_name b; }";
        assert_eq!(in_http(two), ["FB602"]);
        let second = format!("http {{ {two} }}").replace("server_name b", "server_name _");
        assert_eq!(warnings(&second), ["FB602 2:1"]);
        for sound in [
            two.replace("80; server_name b", "80 default_server; server_name b"),
            two.replace("server_name a", "server_name _"),
            two.replace("server_name b", "server_name a")
                .replace("80; s", "81; s"),
        ] {
            assert_eq!(in_http(&sound), [""; 0], "{sound}");
        }
    }

    #[test]
    fn a_certificate_without_tls_is_found() {
        assert_eq!(
            in_http("server { listen 443; ssl_certificate a; }"),
            ["FB603"]
        );
        assert_eq!(
            in_http("server { listen 80; listen 443 ssl; ssl_certificate a; }"),
            [""; 0]
        );
        assert_eq!(in_http("server { listen 443; }"), [""; 0]);
        assert_eq!(
            in_http("server { listen 443; ssl on; ssl_certificate a; }"),
            [""; 0]
        );
    }
}
