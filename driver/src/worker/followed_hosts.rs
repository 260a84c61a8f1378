//! Groups with a zone, as the main thread takes care of them: hosts are looked up again and again, and changes at run time
//! are stored in the file of `state`. Hosts have `resolve`, maybe `service`, or were not found at the load.
//!
//! An answer is valid for its time to live (`valid` of `resolver`), and at least for [`PAUSE_MS_MIN`]. Then the host is
//! looked up again. An answer without addresses removes the servers of the host. Any other failure leaves them, and is
//! retried after `resolver_timeout`. At most [`LOOKUPS_MAX`] lookups are in progress at a time. A reload continues with
//! the hosts that it keeps. A file that could not be written is written at the next change.
//!
//! Absent: hosts of groups without a zone, which serving threads look up for their requests.
//!
//! Source: nginx documentation, `ngx_http_upstream_module`, `resolve`, `service`; nginx's behaviour.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;

use engines::dns::Failure;
use server_base::errlog::{ErrorLog, Level};
use server_base::name_servers::NameServers;
use server_upstream::group::{Group, Groups};
use server_upstream::shared::{FollowedHost, MemberId, SharedPeers};
use sys::poll::{Poller, Ready};

use super::names::{Found, Names};
use super::state_files;

/// The hosts of the configuration that is served.
pub(super) struct FollowedHosts {
    names: Names,
    groups: Vec<Followed>,
    /// Number of lookups in progress, including those of hosts that are gone.
    in_progress: usize,
    next_number: u64,
    began: Instant,
}

/// A group with a zone.
struct Followed {
    name: Box<[u8]>,
    peers: Arc<SharedPeers>,
    resolver: Option<Arc<NameServers>>,
    timeout_ms: u64,
    /// The file of `state`.
    state: Option<PathBuf>,
    hosts: Vec<Host>,
}

struct Host {
    host: FollowedHost,
    state: State,
}

#[derive(Clone, Copy)]
enum State {
    /// To be looked up at this time, milliseconds.
    Due(u64),
    /// Being looked up, by the question with this number.
    Asked(u64),
}

impl FollowedHosts {
    /// No hosts.
    pub(super) fn new() -> Self {
        Self {
            names: Names::default(),
            groups: Vec::new(),
            in_progress: 0,
            next_number: 0,
            began: Instant::now(),
        }
    }

    /// Follows the hosts of another configuration. Hosts that stay keep the times of their lookups.
    pub(super) fn set_groups(&mut self, groups: &Groups, log: &ErrorLog) {
        self.names.set_log(log.clone());
        let followed = groups.iter().filter_map(|group| self.followed(group));
        self.groups = followed.collect();
    }

    fn followed(&self, group: &Group) -> Option<Followed> {
        let peers = group.shared_peers()?;
        let before = (self.groups.iter()).find(|before| Arc::ptr_eq(&before.peers, peers));
        let mut followed = Followed {
            name: (*group.name).into(),
            peers: Arc::clone(peers),
            resolver: group.resolver.clone(),
            timeout_ms: group.resolver_timeout_ms.unwrap_or_default(),
            state: group.state.clone(),
            hosts: Vec::new(),
        };
        followed.update(before.map_or(&[], |before| &before.hosts));
        Some(followed)
    }

    /// Milliseconds until something is due, `most` at most; rounded up, so that it is due then.
    pub(super) fn wait_ms(&self, most: u64) -> u64 {
        let hosts = self.groups.iter().flat_map(|group| &group.hosts);
        let due = hosts.filter_map(|host| match host.state {
            // A lookup has to end first, and its end is an event.
            State::Due(_) if self.in_progress >= LOOKUPS_MAX => None,
            State::Due(at_ms) => Some(at_ms),
            State::Asked(_) => None,
        });
        let Some(next) = due.chain(self.names.deadline()).min() else {
            return most;
        };
        // The clock counts in whole milliseconds and may be just short of the next one.
        let left = next.saturating_sub(self.now_ms());
        (if left == 0 { 0 } else { left + 1 }).min(most)
    }

    /// Takes up changes at run time, and stores them.
    pub(super) fn take_changes(&mut self, log: &ErrorLog) {
        for group in &mut self.groups {
            if group.peers.take_changed() {
                group.changed(log);
            }
            group.peers.build();
        }
    }

    /// Takes up changes, looks up hosts that are due, and handles timeouts.
    pub(super) fn run_due(&mut self, poller: &Poller, log: &ErrorLog) {
        self.take_changes(log);
        let now_ms = self.now_ms();
        self.names.expire(poller, now_ms);
        self.take_answers(log);
        self.look_up_due(now_ms, log);
        self.names.transmit(poller, now_ms);
        self.take_answers(log);
    }

    /// A socket of a name server is ready.
    pub(super) fn ready(&mut self, ready: Ready, poller: &Poller, log: &ErrorLog) {
        self.names.ready(poller, self.now_ms(), ready);
        self.take_answers(log);
    }

    fn look_up_due(&mut self, now_ms: u64, log: &ErrorLog) {
        for group in &mut self.groups {
            let retry_ms = group.retry_ms();
            for host in &mut group.hosts {
                if self.in_progress >= LOOKUPS_MAX {
                    return;
                }
                let State::Due(at_ms) = host.state else {
                    continue;
                };
                if at_ms > now_ms {
                    continue;
                }
                let number = self.next_number;
                self.next_number += 1;
                let (name, service) = (&*host.host.name, host.host.service.as_deref());
                let by = group.resolver.as_ref();
                let asked =
                    (self.names).follow(now_ms, by, (name, service), group.timeout_ms, number);
                host.state = match asked {
                    Ok(()) => {
                        self.in_progress += 1;
                        State::Asked(number)
                    }
                    Err(error) => {
                        let why = sys::os_error(&error);
                        let text = format_args!("{} could not be resolved ({why})", host.host.name);
                        log.write(Level::Error, text);
                        State::Due(now_ms + retry_ms)
                    }
                };
            }
        }
    }

    fn take_answers(&mut self, log: &ErrorLog) {
        while let Some((number, found)) = self.names.found() {
            self.in_progress -= 1;
            let now_ms = self.now_ms();
            let is_it = |host: &Host| matches!(host.state, State::Asked(asked) if asked == number);
            // A reload may have removed the host.
            for group in &mut self.groups {
                if let Some(n) = group.hosts.iter().position(is_it) {
                    let due_ms = group.found(n, found, now_ms, log);
                    group.hosts[n].state = State::Due(due_ms);
                    break;
                }
            }
        }
    }

    fn now_ms(&self) -> u64 {
        self.began.elapsed().as_millis() as u64
    }
}

impl Followed {
    /// Takes the hosts of the group as they are now. Hosts that were among those before keep their states.
    fn update(&mut self, before: &[Host]) {
        let states: HashMap<MemberId, State> = before
            .iter()
            .map(|host| (host.host.id, host.state))
            .collect();
        let hosts = self.peers.followed_hosts().into_iter().map(|host| Host {
            state: states.get(&host.id).copied().unwrap_or(State::Due(0)),
            host,
        });
        self.hosts = hosts.collect();
    }

    /// Servers were changed at run time.
    fn changed(&mut self, log: &ErrorLog) {
        let before = std::mem::take(&mut self.hosts);
        self.update(&before);
        if let Some(path) = &self.state
            && let Err(error) = state_files::write(path, &self.peers.servers())
        {
            let (path, why) = (path.display(), sys::os_error(&error));
            let text = format_args!("servers could not be stored in \"{path}\" ({why})");
            log.write(Level::Error, text);
        }
    }

    /// Uses an answer. Returns the time of the next lookup.
    fn found(&self, n: usize, found: Found, now_ms: u64, log: &ErrorLog) -> u64 {
        let host = &self.hosts[n].host;
        let (addresses, valid_until_ms) = match found {
            Ok(found) => found,
            Err((why, valid_until_ms)) => {
                let shown = match &host.service {
                    Some(service) => format!("service {service} of {}", host.name),
                    None => host.name.to_string(),
                };
                let text = format_args!("{shown} could not be resolved ({}: {why})", why.code());
                log.write(Level::Error, text);
                if why != Failure::NotFound {
                    self.peers.set_failed(host.id);
                    return now_ms + self.retry_ms();
                }
                (Vec::new(), valid_until_ms)
            }
        };
        let left_out = self.peers.set_found(host.id, addresses).unwrap_or_default();
        let name = String::from_utf8_lossy(&self.name);
        if left_out.full > 0 {
            let text =
                format_args!("cannot add new server to upstream \"{name}\", it has too many");
            log.write(Level::Error, text);
        }
        if left_out.backup > 0 {
            let count = left_out.backup;
            let text = format_args!(
                "{count} addresses of {} are left out: upstream \"{name}\" has no backup servers",
                host.name
            );
            log.write(Level::Warn, text);
        }
        valid_until_ms.max(now_ms + PAUSE_MS_MIN)
    }

    fn retry_ms(&self) -> u64 {
        self.timeout_ms.max(PAUSE_MS_MIN)
    }
}

/// Lookups in progress at a time.
const LOOKUPS_MAX: usize = 256;
/// The shortest pause between two lookups of a host, milliseconds.
const PAUSE_MS_MIN: u64 = 1_000;

#[cfg(test)]
#[path = "followed_hosts_tests.rs"]
mod tests;
