//! Addresses that name servers returned for a host of a group, and the servers made of them.
//!
//! A host without `service` has addresses (A, AAAA records). A host with it has addresses with ports and weights (SRV
//! records). Addresses of the lowest priority number are primary servers, the others backup servers.
//!
//! Source: nginx documentation, `ngx_http_upstream_module`, `resolve` and `service`; RFC 2782.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use crate::route::UpstreamAddr;
use crate::server::Server;

/// One address of a host.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct FoundAddress {
    /// The address.
    pub ip: IpAddr,
    /// The data of its SRV record; `None` for a host without `service`.
    pub record: Option<FoundService>,
}

/// The SRV record of an address.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct FoundService {
    /// The priority; lower numbers are used first.
    pub priority: u16,
    /// The port.
    pub port: u16,
    /// The weight, at least 1.
    pub weight: u16,
    /// The name of the target.
    pub target: Arc<[u8]>,
}

/// Returns the servers of a host's addresses, each with one address. `template` has the parameters. If it is a backup
/// server, so are the addresses of the lowest priority number, and the others are left out.
pub(crate) fn servers_of(template: &Server, found: &[FoundAddress]) -> Vec<Server> {
    let port = template.unresolved.as_ref().map_or(0, |host| host.port);
    let records = found.iter().filter_map(|found| found.record.as_ref());
    let first = records.map(|record| record.priority).min();
    let server = |found: &FoundAddress| {
        let server = |port| Server {
            addresses: vec![UpstreamAddr::Inet(SocketAddr::new(found.ip, port))],
            unresolved: None,
            ..template.clone()
        };
        let Some(record) = &found.record else {
            return Some(server(port));
        };
        let is_backup = Some(record.priority) != first;
        if is_backup && template.is_backup {
            return None;
        }
        let own = server(record.port);
        Some(Server {
            name: Arc::clone(&record.target),
            // As in nginx, 1 is taken for a weight that is not set.
            weight: match own.weight {
                1 => i64::from(record.weight),
                weight => weight,
            },
            is_backup: is_backup || template.is_backup,
            ..own
        })
    };
    found.iter().filter_map(server).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::server::UnresolvedHost;

    fn template(weight: i64, is_backup: bool, service: Option<&str>) -> Server {
        Server {
            name: Arc::from(&b"app.test"[..]),
            unresolved: Some(UnresolvedHost::followed("app.test", 81, service)),
            weight,
            is_backup,
            max_conns: 3,
            ..Server::new()
        }
    }

    fn record(last: u8, priority: u16, port: u16, weight: u16) -> FoundAddress {
        FoundAddress {
            ip: [192, 0, 2, last].into(),
            record: Some(FoundService {
                priority,
                port,
                weight,
                target: Arc::from(format!("s{last}").as_bytes()),
            }),
        }
    }

    /// Name, address, weight and use of each server.
    fn text(servers: &[Server]) -> String {
        let all = servers.iter().map(|server| {
            assert_eq!((server.max_conns, server.unresolved.is_none()), (3, true));
            let (name, addr) = (String::from_utf8_lossy(&server.name), &server.addresses[0]);
            let backup = if server.is_backup { " backup" } else { "" };
            format!("{name} {addr} {}{backup}", server.weight)
        });
        all.collect::<Vec<_>>().join(", ")
    }

    #[test]
    fn addresses_have_the_name_port_and_parameters_of_their_server() {
        let found = [1, 2].map(|last| FoundAddress {
            ip: [192, 0, 2, last].into(),
            record: None,
        });
        assert_eq!(
            text(&servers_of(&template(7, true, None), &found)),
            "app.test 192.0.2.1:81 7 backup, app.test 192.0.2.2:81 7 backup"
        );
    }

    #[test]
    fn services_of_a_higher_priority_number_are_backups() {
        let found = [
            record(1, 5, 80, 10),
            record(2, 5, 81, 1),
            record(3, 9, 82, 4),
        ];
        assert_eq!(
            text(&servers_of(&template(1, false, Some("http")), &found)),
            "s1 192.0.2.1:80 10, s2 192.0.2.2:81 1, s3 192.0.2.3:82 4 backup"
        );
        // The weight of the server replaces those of the records.
        assert_eq!(
            text(&servers_of(&template(2, false, Some("http")), &found)),
            "s1 192.0.2.1:80 2, s2 192.0.2.2:81 2, s3 192.0.2.3:82 2 backup"
        );
    }

    #[test]
    fn a_backup_service_has_the_lowest_priority_number_alone() {
        let found = [record(1, 5, 80, 10), record(3, 9, 82, 4)];
        assert_eq!(
            text(&servers_of(&template(1, true, Some("http")), &found)),
            "s1 192.0.2.1:80 10 backup"
        );
    }
}
