//! Tests of the servers of a shared group: configurations one after another, and changes at run time between them.

use super::*;
use crate::balance::PickKey;
use crate::found::FoundService;
use crate::peers::TriedPeers;

fn server(port: u16) -> Server {
    Server {
        name: Arc::from(format!("s{port}").as_bytes()),
        addresses: vec![UpstreamAddr::Inet(([192, 0, 2, 1], port).into())],
        ..Server::new()
    }
}

fn heavy(port: u16, weight: i64) -> Server {
    Server {
        weight,
        ..server(port)
    }
}

#[derive(Default)]
struct Group {
    members: Members,
    list: PeerList,
}

impl Group {
    fn commit(&mut self, servers: &[Server]) {
        self.commit_with(servers, true);
    }

    fn commit_with(&mut self, servers: &[Server], allows_backup: bool) {
        let servers = single_addresses(servers);
        if !self.members.are_configured(&servers, allows_backup) {
            self.members
                .commit(servers, allows_backup, || &mut self.list);
        }
    }

    fn add(&mut self, server: Server) -> MemberId {
        let added = self.members.add(server, &mut self.list);
        added.expect("there is room")
    }

    fn id(&self, name: &str) -> MemberId {
        let is_it = |member: &&Member| *member.server.name == *name.as_bytes();
        let member = self.members.list().iter().find(is_it);
        member.expect("there is one").id
    }

    fn remove(&mut self, name: &str) {
        assert!(self.members.remove(self.id(name), &mut self.list));
    }

    fn set_weight(&mut self, name: &str, weight: i64) {
        let set = |server: &mut Server| server.weight = weight;
        assert!(self.members.modify(self.id(name), &mut self.list, set));
    }

    /// Names and weights of the members, in order; each has one peer.
    fn text(&self) -> String {
        let text = |member: &Member| {
            let (server, peers) = (&member.server, &member.peers);
            assert_eq!(peers.len(), 1);
            let peer = self.list.get(peers[0].1).expect("it is a peer");
            assert_eq!(&**peer.server(), &*server.name);
            format!(
                "{}*{}",
                String::from_utf8_lossy(&server.name),
                server.weight
            )
        };
        let all: Vec<_> = self.members.list().iter().map(text).collect();
        assert_eq!(
            (self.members.peers, self.list.tries()),
            (all.len(), all.len())
        );
        all.join(" ")
    }
}

#[test]
fn changes_at_run_time_survive_a_configuration_that_does_not_touch_them() {
    let mut group = Group::default();
    let servers = [server(1), server(2), server(3)];
    group.commit(&servers);
    group.remove("s2");
    group.set_weight("s3", 7);
    group.add(server(9));
    assert_eq!(group.text(), "s1*1 s3*7 s9*1");
    group.commit(&servers);
    assert_eq!(group.text(), "s1*1 s3*7 s9*1");
    // Another server changes.
    group.commit(&[server(1), server(4), server(2), server(3)]);
    assert_eq!(group.text(), "s1*1 s4*1 s3*7 s9*1");
}

#[test]
fn a_configuration_decides_about_the_servers_that_it_changes() {
    let mut group = Group::default();
    group.commit(&[server(1), server(2), server(3)]);
    group.remove("s2");
    group.set_weight("s3", 7);
    group.add(server(9));
    group.add(server(8));
    // It has other weights for the removed and the modified one, and has one that was added.
    group.commit(&[heavy(2, 5), heavy(3, 5), heavy(9, 5)]);
    assert_eq!(group.text(), "s2*5 s3*5 s9*5 s8*1");
    group.commit(&[server(3)]);
    assert_eq!(group.text(), "s3*1 s8*1");
}

#[test]
fn a_server_written_twice_is_two_members() {
    let mut group = Group::default();
    group.commit(&[server(1), heavy(1, 2), server(2)]);
    assert_eq!(group.text(), "s1*1 s1*2 s2*1");
    group.remove("s1");
    assert_eq!(group.text(), "s1*2 s2*1");
    group.commit(&[server(1), heavy(1, 2), server(3)]);
    assert_eq!(group.text(), "s1*2 s3*1");
}

#[test]
fn a_peer_that_stays_keeps_its_counters() {
    let mut group = Group::default();
    group.commit(&[server(1), server(2)]);
    let picked = group
        .list
        .pick(&mut TriedPeers::default(), &PickKey::default(), 1_000_000);
    let id = picked.expect("one is usable");
    group.list.fail(id, 1000);
    group.set_weight("s1", 3);
    group.commit(&[server(2), heavy(1, 4)]);
    let peer = group.list.get(id).expect("it stays");
    assert_eq!(peer.failures().count(), 1);
}

#[test]
fn a_group_has_a_limit_of_peers() {
    let ports = |from: u16, to: u16| (from..=to).map(server);
    let mut servers: Vec<_> = ports(0, u16::MAX).collect();
    let last = servers.pop().expect("there are many");
    let mut group = Group::default();
    group.commit(&servers);
    assert_eq!(group.list.tries(), PEERS_MAX - 1);
    group.add(last);
    assert_eq!(group.list.tries(), PEERS_MAX);
    assert_eq!(group.members.add(server(7), &mut group.list), Err(Full));
    group.remove("s9");
    group.add(server(7));
    assert_eq!(group.list.tries(), PEERS_MAX);
    // A full group is replaced as a whole.
    let others = (0..=u16::MAX).map(|port| Server {
        name: Arc::from(*b"other"),
        ..server(port)
    });
    group.commit(&others.collect::<Vec<_>>());
    // Two were added at run time.
    let stays = 2;
    assert_eq!(group.list.tries(), PEERS_MAX);
    assert_eq!(group.members.list().len(), PEERS_MAX + stays);
}

/// A name with two addresses.
fn named() -> Server {
    let addresses = [1, 2].map(|last| UpstreamAddr::Inet(([192, 0, 2, last], 81).into()));
    Server {
        name: Arc::from(*b"app.test:81"),
        addresses: addresses.into(),
        ..Server::new()
    }
}

impl Group {
    /// Names and weights as in a `state` file.
    fn stored(&self) -> String {
        let all = self.members.stored().into_iter().map(|server| {
            let name = String::from_utf8_lossy(&server.name).into_owned();
            format!("{name}*{}", server.weight)
        });
        all.collect::<Vec<_>>().join(" ")
    }

    /// Sets the weight of the member with an address.
    fn set_weight_at(&mut self, last: u8, weight: i64) {
        let id = self.id_at(last);
        let set = |server: &mut Server| server.weight = weight;
        assert!(self.members.modify(id, &mut self.list, set));
    }

    fn id_at(&self, last: u8) -> MemberId {
        let addr = UpstreamAddr::Inet(([192, 0, 2, last], 81).into());
        let is_it = |member: &&Member| member.server.addresses.first() == Some(&addr);
        let member = self.members.list().iter().find(is_it);
        member.expect("there is one").id
    }
}

#[test]
fn a_name_with_several_addresses_is_stored_once_while_they_are_equal() {
    let mut group = Group::default();
    group.commit(&[server(1), named(), named(), server(2)]);
    assert_eq!(group.members.list().len(), 6);
    assert_eq!(group.stored(), "s1*1 app.test:81*1 app.test:81*1 s2*1");
    group.commit(&[named(), server(3)]);
    group.add(server(4));
    assert_eq!(group.stored(), "app.test:81*1 s3*1 s4*1");
    group.set_weight_at(1, 7);
    assert_eq!(group.stored(), "192.0.2.1:81*7 192.0.2.2:81*1 s3*1 s4*1");
    group.set_weight_at(2, 7);
    assert_eq!(group.stored(), "app.test:81*7 s3*1 s4*1");
    let id = group.id_at(1);
    assert!(group.members.remove(id, &mut group.list));
    assert_eq!(group.stored(), "192.0.2.2:81*7 s3*1 s4*1");
    // Another configuration that does not touch the name leaves the address removed.
    group.commit(&[named(), server(5)]);
    assert_eq!(group.stored(), "192.0.2.2:81*7 s5*1 s4*1");
}

fn host(port: u16, weight: i64) -> Server {
    Server {
        name: Arc::from(format!("app.test:{port}").as_bytes()),
        unresolved: Some(UnresolvedHost::followed("app.test", port, None)),
        weight,
        ..Server::new()
    }
}

impl Group {
    /// Sets the addresses of the first host, by their last bytes.
    fn find(&mut self, last: &[u8]) {
        let is_host = |member: &&Member| member.server.unresolved.is_some();
        let id = self
            .members
            .list()
            .iter()
            .find(is_host)
            .expect("there is one")
            .id;
        let found = last.iter().map(|last| FoundAddress {
            ip: [192, 0, 2, *last].into(),
            record: None,
        });
        let found = found.collect();
        let left_out = self.members.set_found(id, found, &mut self.list);
        assert_eq!(left_out, Some(LeftOut::default()));
    }

    /// Ids and addresses of all peers, in order.
    fn peers(&self) -> String {
        let peers = self.members.list().iter().flat_map(|member| &member.peers);
        let peers = peers.map(|(id, peer)| {
            let peer = self.list.get(*peer).expect("it is a peer");
            format!("{}={}", id.0, peer.addr())
        });
        peers.collect::<Vec<_>>().join(" ")
    }
}

#[test]
fn addresses_of_a_host_are_peers_at_its_place() {
    let mut group = Group::default();
    group.commit(&[server(1), host(81, 1), server(2)]);
    assert_eq!(group.peers(), "0=192.0.2.1:1 2=192.0.2.1:2");
    group.find(&[7, 8]);
    assert_eq!(
        group.peers(),
        "0=192.0.2.1:1 3=192.0.2.7:81 4=192.0.2.8:81 2=192.0.2.1:2"
    );
    // The order of an answer means nothing, and an address that stays is the same peer.
    group.find(&[9, 8]);
    assert_eq!(
        group.peers(),
        "0=192.0.2.1:1 4=192.0.2.8:81 5=192.0.2.9:81 2=192.0.2.1:2"
    );
    group.find(&[]);
    assert_eq!(group.peers(), "0=192.0.2.1:1 2=192.0.2.1:2");
}

#[test]
fn a_new_configuration_keeps_the_addresses_of_its_hosts() {
    let mut group = Group::default();
    group.commit(&[host(81, 1)]);
    group.find(&[7]);
    let picked = group
        .list
        .pick(&mut TriedPeers::default(), &PickKey::default(), 1_000_000);
    group.commit(&[host(81, 5), server(1)]);
    assert_eq!(group.peers(), "1=192.0.2.7:81 2=192.0.2.1:1");
    let id = picked.expect("one is usable");
    assert!(group.list.get(id).is_some());
    group.commit(&[host(82, 5)]);
    assert_eq!(group.peers(), "3=192.0.2.7:82");
    assert!(group.list.get(id).is_none());
}

#[test]
fn addresses_beyond_the_limit_are_left_out() {
    let mut group = Group::default();
    let many = (0..u16::MAX).map(server);
    group.commit(&many.chain([host(81, 1)]).collect::<Vec<_>>());
    group.find(&[7]);
    assert_eq!(group.list.tries(), PEERS_MAX);
    let id = group.members.list().last().expect("there are many").id;
    let found = [7, 8].map(|last| FoundAddress {
        ip: [192, 0, 2, last].into(),
        record: None,
    });
    let left_out = group.members.set_found(id, found.to_vec(), &mut group.list);
    let expected = LeftOut { full: 1, backup: 0 };
    assert_eq!(left_out, Some(expected));
    assert_eq!(group.list.tries(), PEERS_MAX);
}

fn backup(port: u16) -> Server {
    Server {
        is_backup: true,
        ..server(port)
    }
}

#[test]
fn no_written_backup_server_is_lost_with_a_method_without_backup_servers() {
    let mut group = Group::default();
    // Written before the directive of the method: accepted, as in nginx.
    group.commit_with(&[server(1), backup(2)], false);
    assert_eq!(group.peers(), "0=192.0.2.1:1 1=192.0.2.1:2");
    // Added while another method was used.
    group.commit_with(&[server(1)], true);
    group.add(backup(3));
    group.commit_with(&[server(1)], false);
    group.set_weight("s3", 7);
    assert_eq!(group.peers(), "0=192.0.2.1:1 2=192.0.2.1:3");
}

#[test]
fn records_of_a_higher_priority_number_need_a_group_with_backup_servers() {
    let service = || Server {
        name: Arc::from(&b"app.test"[..]),
        unresolved: Some(UnresolvedHost::followed("app.test", 0, Some("http"))),
        ..Server::new()
    };
    let found = [(1, 7), (2, 8)].map(|(priority, last)| FoundAddress {
        ip: [192, 0, 2, last].into(),
        record: Some(FoundService {
            priority,
            port: 81,
            weight: 1,
            target: Arc::from(&b"one.test"[..]),
        }),
    });
    let both = "192.0.2.7:81 192.0.2.8:81";
    for (servers, allows_backup, left_out, expected) in [
        (vec![service()], true, 0, both),
        // As in nginx, which has no list of backup servers then.
        (vec![service()], false, 1, "192.0.2.7:81"),
        (vec![service(), backup(2)], false, 0, both),
    ] {
        let mut group = Group::default();
        group.commit_with(&servers, allows_backup);
        let id = group.id("app.test");
        let found = found.to_vec();
        let counts = group.members.set_found(id, found, &mut group.list);
        let expected_counts = LeftOut {
            full: 0,
            backup: left_out,
        };
        assert_eq!(counts, Some(expected_counts));
        let peers = &group.members.list()[0].peers;
        let addrs = peers.iter().filter_map(|(_, id)| group.list.get(*id));
        let addrs: Vec<_> = addrs.map(|peer| peer.addr().to_string()).collect();
        assert_eq!(addrs.join(" "), expected);
    }
}
