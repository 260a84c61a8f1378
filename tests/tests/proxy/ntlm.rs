//! `ntlm`: a connection to a server for each client that authenticates its connection.

use firstbyte_tests::backend::{Backend, Step, answer, ok};
use firstbyte_tests::{Builder, Client, Server, wait_until};

/// A server with two backends in a group; the backends answer with their names.
fn site(behind: &[Backend; 2]) -> Builder {
    let [a, b] = behind.each_ref().map(Backend::name);
    Server::http_with(
        "worker_processes 1;",
        &format!(
            "upstream behind {{ server {a}; server {b}; ntlm; }}
             server {{ listen 127.0.0.1:%%PORT%%;
                 location / {{ proxy_pass http://behind; }}
                 location /other/ {{ proxy_pass http://behind; }} }}"
        ),
    )
}

fn backends() -> [Backend; 2] {
    ["a", "b"].map(|name| Backend::answering(move |_| ok(name)))
}

fn accepted(behind: &[Backend; 2]) -> usize {
    behind.iter().map(Backend::accepted).sum()
}

fn open(behind: &[Backend; 2]) -> usize {
    behind.iter().map(Backend::open).sum()
}

/// Returns the name of the server that got a request with this field.
fn get(client: &mut Client, path: &str, field: &str) -> String {
    client.get_with(path, &[field]).text()
}

#[test]
fn a_client_that_authenticates_keeps_its_connection_to_a_server() {
    let behind = backends();
    let server = site(&behind).start();
    for scheme in ["NTLM TlRM", "Negotiate TlRM", "negotiate x"] {
        let before = accepted(&behind);
        let mut client = server.client();
        let name = get(&mut client, "/", &format!("Authorization: {scheme}"));
        for path in ["/", "/other/", "/", "/other/"] {
            assert_eq!(get(&mut client, path, "X: y"), name, "{scheme}");
        }
        assert_eq!(accepted(&behind), before + 1, "{scheme}: one connection");
        // Other clients never get it.
        let mut other = server.client();
        for _ in 0..4 {
            get(&mut other, "/", "Authorization: NTLM x");
        }
        assert_eq!(accepted(&behind), before + 2);
        assert_eq!(get(&mut client, "/", "X: y"), name);
        assert_eq!(accepted(&behind), before + 2);
        drop((client, other));
        wait_until("they end with their clients", || open(&behind) == 0);
    }
}

#[test]
fn other_clients_share_connections() {
    let behind = backends();
    let server = site(&behind).start();
    for field in ["X: y", "Authorization: Basic eDp5", "Authorization: NT"] {
        for _ in 0..4 {
            get(&mut server.client(), "/", field);
        }
    }
    assert_eq!(accepted(&behind), 2);
}

#[test]
fn a_client_keeps_its_server_if_the_connection_is_closed() {
    // Without the field, a request may meet an idle connection before its end comes, and go to the other server.
    let behind = ["a", "b"].map(|name| {
        let last = answer("200 OK", &["Connection: close"], name);
        Backend::answering(move |_| [last.clone(), vec![Step::Close]].concat())
    });
    let server = site(&behind).start();
    let mut client = server.client();
    let name = get(&mut client, "/", "Authorization: NTLM x");
    for n in 2..6 {
        assert_eq!(get(&mut client, "/", "X: y"), name);
        assert_eq!(accepted(&behind), n);
    }
}
