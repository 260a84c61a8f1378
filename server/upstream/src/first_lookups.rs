//! The first addresses of a shared group's hosts, for requests that come before the main thread has them.
//!
//! Such a request looks up the hosts itself, and waits until an answer makes a server usable. Answers are addresses of the
//! group from then on.
//! Absent: hosts with `service`, for which requests do not wait; later lookups, which the main thread makes.

use std::sync::Arc;

use server_base::name_servers::NameServers;

use crate::connector::{Resolve, Resolved};
use crate::found::FoundAddress;
use crate::members::MemberId;
use crate::resolved_hosts::PendingLookups;
use crate::shared::SharedPeers;

/// How requests look up hosts of a shared group.
#[derive(Debug)]
pub(crate) struct FirstLookups {
    resolver: Option<Arc<NameServers>>,
    timeout_ms: u64,
}

impl FirstLookups {
    /// `timeout_ms` limits a lookup; 0: no limit.
    pub(crate) fn new(resolver: Option<&Arc<NameServers>>, timeout_ms: u64) -> Self {
        Self {
            resolver: resolver.cloned(),
            timeout_ms,
        }
    }

    /// Looks up hosts without an answer so far, and applies the answers that have arrived. `asked` has the lookups of the
    /// request, by the numbers of their hosts. Returns whether there was a host to be looked up.
    pub(crate) fn look_up(
        &self,
        peers: &SharedPeers,
        asked: &mut PendingLookups,
        resolve: Resolve<'_>,
    ) -> bool {
        if peers.has_unanswered() {
            for host in peers.unanswered_hosts() {
                let number = host.id.0 as usize;
                if !asked.has(number) {
                    let lookup = resolve(self.resolver.as_ref(), &host.name, self.timeout_ms);
                    asked.insert(number, lookup);
                }
            }
        }
        for (number, answer) in asked.take_answers() {
            let id = MemberId(number as u32);
            match answer {
                // The main thread looks the host up too, and logs addresses that are left out.
                Ok(resolved) => peers.set_first_found(id, found(&resolved)),
                Err(_) => peers.set_failed(id),
            }
        }
        !asked.is_empty()
    }
}

fn found(resolved: &Resolved) -> Vec<FoundAddress> {
    let found = |ip: &_| FoundAddress {
        ip: *ip,
        record: None,
    };
    resolved.addresses.iter().map(found).collect()
}
