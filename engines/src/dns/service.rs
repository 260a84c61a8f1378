//! The hosts of a service while their addresses are looked up, and the order of attempts.
//!
//! Source: RFC 2782; the choice among one priority is nginx's.

use fastrand::Rng;

use super::answer::Service;
use super::entry::below;
use super::event::{Failure, ServiceAddress};
use super::slab::Key;
use super::waiter::HostResult;

/// Hosts of a service, during the lookup of their addresses.
#[derive(Debug)]
pub(super) struct Hosts {
    hosts: Vec<Host>,
    pending: usize,
    /// Until when all that was found holds.
    pub(super) valid_until_ms: u64,
}

#[derive(Debug)]
struct Host {
    service: Service,
    /// Waiters that look it up.
    waiter: Option<Key>,
    result: HostResult,
}

impl Hosts {
    /// Hosts by priority.
    pub(super) fn new(services: &[Service], valid_until_ms: u64) -> Self {
        let host = |service: &Service| Host {
            service: service.clone(),
            waiter: None,
            result: Ok(Vec::new()),
        };
        Self {
            hosts: services.iter().map(host).collect(),
            pending: services.len(),
            valid_until_ms,
        }
    }

    /// Notes the waiter that looks up a host.
    pub(super) fn set_waiter(&mut self, index: usize, waiter: Key) {
        self.hosts[index].waiter = Some(waiter);
    }

    /// Waiters that still look up hosts.
    pub(super) fn waiters(&self) -> impl Iterator<Item = Key> + '_ {
        self.hosts.iter().filter_map(|host| host.waiter)
    }

    /// Takes the addresses of a host; true if all hosts are done.
    pub(super) fn found(&mut self, index: usize, result: HostResult, valid_until_ms: u64) -> bool {
        let host = &mut self.hosts[index];
        host.waiter = None;
        if result.is_ok() {
            self.valid_until_ms = self.valid_until_ms.min(valid_until_ms);
        }
        host.result = result;
        self.pending -= 1;
        self.pending == 0
    }

    /// Number of hosts still being looked up.
    pub(super) fn pending(&self) -> usize {
        self.pending
    }

    /// All addresses, those of a lower priority first; within one priority the first host is chosen by weight.
    ///
    /// # Errors
    /// No host has an address.
    pub(super) fn ordered(&self, random: &mut Rng) -> Result<Vec<ServiceAddress>, Failure> {
        let mut list = Vec::new();
        for group in self
            .hosts
            .chunk_by(|a, b| a.service.priority == b.service.priority)
        {
            let shares = group.iter().map(Host::share);
            let mut drawn = below(random, shares.clone().sum());
            let mut start = 0;
            for (index, share) in shares.enumerate() {
                start = index;
                if drawn < share {
                    break;
                }
                drawn -= share;
            }
            for host in group[start..].iter().chain(&group[..start]) {
                host.append(&mut list);
            }
        }
        if !list.is_empty() {
            return Ok(list);
        }
        let mut failures = self
            .hosts
            .iter()
            .filter_map(|host| host.result.as_ref().err());
        let first = failures.clone().next().copied();
        if failures.any(|failure| *failure == Failure::NotFound) {
            return Err(Failure::NotFound);
        }
        Err(first.unwrap_or(Failure::NotFound))
    }
}

impl Host {
    fn addresses(&self) -> &[core::net::IpAddr] {
        self.result.as_deref().unwrap_or_default()
    }

    fn share(&self) -> usize {
        self.addresses().len() * usize::from(self.service.weight)
    }

    fn append(&self, list: &mut Vec<ServiceAddress>) {
        list.extend(self.addresses().iter().map(|address| ServiceAddress {
            address: *address,
            port: self.service.port,
            priority: self.service.priority,
            weight: self.service.weight,
            host: self.service.host.clone(),
        }));
    }
}
