//! Names of hosts in a configuration: looked up by the supervisor, once a configuration, for the worker too.
//!
//! Source: nginx documentation, `listen`, `set_real_ip_from`, `resolver`.

use firstbyte_tests::{Server, Signal, wait_until};

/// A worker resolves no host; it gets all addresses with its configuration.
#[test]
fn hosts_are_known_to_supervisor_and_worker() {
    let server = Server::http(
        "resolver localhost:%%PORT2%% valid=10s;
         server {
             listen localhost:%%PORT%%;
             set_real_ip_from localhost;
             return 200 \"one $remote_addr\";
         }",
    )
    .start();
    let ask = || {
        let fields = ["Host: localhost", "X-Real-IP: 192.0.2.1"];
        server.client().get_with("/", &fields).text()
    };
    assert_eq!(ask(), "one 192.0.2.1");
    server.rewrite_conf(|text| text.replace("one $", "two $"));
    server.signal(Signal::HUP);
    wait_until("the new configuration answers", || ask() == "two 192.0.2.1");
}
