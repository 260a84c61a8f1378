//! The peers of a group: of one thread, or shared by all threads.
//!
//! A group with `zone` has shared peers, which outlive a reload ([`crate::zones`]). A lock is held for one choice or one
//! result: the order of a choice depends on the sums of all peers, so single atomic counters would not do. Work of a method
//! on a changed list is done without the lock, by the main thread ([`SharedPeers::build`]).
//!
//! Absent: peers shared between processes, since all threads serve in one.

use std::cell::RefCell;
use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use crate::balance::Method;
use crate::found::FoundAddress;
use crate::health::active::CheckSpec;
pub use crate::members::{Full, LeftOut, MemberId, PEERS_MAX};
use crate::members::{Member, Members, single_addresses};
use crate::peers::PeerList;
use crate::queue_counts::QueueCounts;
use crate::server::Server;

/// The peers of a group.
#[derive(Debug)]
#[allow(
    clippy::large_enum_variant,
    reason = "a box would be one more allocation for the peers of a request"
)]
pub enum Peers {
    /// Owned by one thread and one configuration.
    Local(RefCell<PeerList>),
    /// Shared by all threads. They outlive a reload.
    Shared(Arc<SharedPeers>),
}

/// `zone` of a group in a configuration.
#[derive(Debug)]
pub struct Zone {
    name: Box<[u8]>,
    /// Set by [`crate::zones::adopt`], or by the first use in a program without it, such as a test.
    peers: OnceLock<Arc<SharedPeers>>,
}

/// Settings of a group that its shared peers take over.
#[derive(Clone, Debug, Default)]
pub struct PeerSettings<'a> {
    /// The servers.
    pub servers: &'a [Server],
    /// The method of choosing; `None`: the servers take turns.
    pub method: Option<&'a dyn Method>,
    /// The health checks.
    pub checks: Arc<[CheckSpec]>,
}

/// A host of a group, which the main thread looks up again and again.
#[derive(Clone, Debug)]
pub struct FollowedHost {
    /// Its number in the group.
    pub id: MemberId,
    /// The name.
    pub name: Box<str>,
    /// `service`.
    pub service: Option<Box<str>>,
}

/// The peers of a group, shared by all threads. Its methods may be called by any thread.
pub struct SharedPeers {
    /// Locked before `list` if both are.
    members: Mutex<Members>,
    list: Mutex<PeerList>,
    /// A host without a service was not looked up so far.
    has_unanswered: AtomicBool,
    /// Servers were changed at run time since [`Self::take_changed`].
    is_changed: AtomicBool,
    /// A change has left work for [`Self::build`].
    has_builds: AtomicBool,
    /// Wakes the main thread.
    notify: OnceLock<Notify>,
    /// Counts of the queues of all threads.
    queue_counts: QueueCounts,
}

/// Wakes the main thread after a change of servers.
pub type Notify = Arc<NotifyFn>;
type NotifyFn = dyn Fn() + Send + Sync;

impl Zone {
    /// Makes a zone with this name, without peers so far.
    pub fn new(name: &[u8]) -> Self {
        Self {
            name: name.into(),
            peers: OnceLock::new(),
        }
    }

    /// Returns the name.
    pub fn name(&self) -> &[u8] {
        &self.name
    }

    /// Sets the peers of its group, unless they were made already.
    pub(crate) fn set_peers(&self, peers: Arc<SharedPeers>) {
        let _ = self.peers.set(peers);
    }

    /// Returns the peers of its group, with these settings if they are made now.
    pub fn peers(&self, settings: &PeerSettings<'_>) -> &Arc<SharedPeers> {
        (self.peers).get_or_init(|| Arc::new(SharedPeers::new(settings)))
    }
}

impl SharedPeers {
    /// Makes peers with these settings.
    pub fn new(settings: &PeerSettings<'_>) -> Self {
        let made = Self {
            members: Mutex::default(),
            list: Mutex::default(),
            has_unanswered: AtomicBool::new(false),
            is_changed: AtomicBool::new(false),
            has_builds: AtomicBool::new(false),
            notify: OnceLock::new(),
            queue_counts: QueueCounts::default(),
        };
        made.lock().share();
        made.commit(settings);
        made.lock().set_checks(&settings.checks);
        made
    }

    /// Sets the function that wakes the main thread. The first one counts.
    pub fn set_notify(&self, notify: &Notify) {
        self.notify.get_or_init(|| Arc::clone(notify));
    }

    /// Returns whether servers were changed at run time since the last call.
    pub fn take_changed(&self) -> bool {
        self.is_changed.swap(false, Ordering::AcqRel)
    }

    /// Returns the parameters of all servers in order, as for a `state` file.
    pub fn servers(&self) -> Vec<Server> {
        self.members().stored()
    }

    /// Records a change at run time, and wakes the main thread.
    pub(crate) fn changed(&self) {
        self.is_changed.store(true, Ordering::Release);
        if let Some(notify) = self.notify.get() {
            notify();
        }
    }

    /// Locks the list.
    pub fn lock(&self) -> MutexGuard<'_, PeerList> {
        self.list.lock().unwrap_or_else(|poisoned| {
            // A thread has panicked inside of a choice, so sums and marks may contradict each other.
            let mut list = poisoned.into_inner();
            list.recover();
            self.list.clear_poison();
            list
        })
    }

    /// Returns the counts of the queues of all threads.
    pub fn queue_counts(&self) -> &QueueCounts {
        &self.queue_counts
    }

    /// Locks the servers.
    pub(crate) fn members(&self) -> MutexGuard<'_, Members> {
        (self.members.lock()).unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes over the settings of a new configuration. Changes made at run time stay, except those of servers that the new
    /// configuration has changed.
    pub fn commit(&self, settings: &PeerSettings<'_>) {
        let mut members = self.members();
        let allows_backup = settings.method.is_none_or(|method| method.allows_backup());
        let servers = single_addresses(settings.servers);
        if !members.are_configured(&servers, allows_backup) {
            members.commit(servers, allows_backup, || self.lock());
        }
        let mut list = self.lock();
        let replaced = list.set_method(settings.method);
        // The thread of the checks sets those of the configuration when it takes it up.
        if settings.checks.is_empty() {
            list.set_checks(&settings.checks);
        }
        drop(list);
        drop(replaced);
        self.note_unanswered(&members);
        drop(members);
        self.begin_builds();
    }

    /// Does the work that changes have left to the method of the group. Choices go on meanwhile. Called by the main thread.
    pub fn build(&self) {
        if !self.has_builds.swap(false, Ordering::AcqRel) {
            return;
        }
        let builds = self.lock().builds();
        builds.iter().for_each(|build| build.run());
        self.lock().use_builds();
        // Here ends the memory of replaced states, without the lock.
        drop(builds);
    }

    /// Has the main thread do the work that a change has left. Without a main thread it is done at once.
    fn begin_builds(&self) {
        if self.lock().builds().is_empty() {
            return;
        }
        self.has_builds.store(true, Ordering::Release);
        match self.notify.get() {
            Some(notify) => notify(),
            None => self.build(),
        }
    }

    /// Changes the servers, at once for all threads.
    pub(crate) fn with_members<R>(
        &self,
        change: impl FnOnce(&mut Members, &mut PeerList) -> R,
    ) -> R {
        let mut members = self.members();
        let result = change(&mut members, &mut self.lock());
        self.note_unanswered(&members);
        drop(members);
        self.begin_builds();
        result
    }

    /// Returns the hosts of the group.
    pub fn followed_hosts(&self) -> Vec<FollowedHost> {
        let members = self.members();
        members.list().iter().filter_map(FollowedHost::of).collect()
    }

    /// Whether a host without a service was not looked up so far.
    pub(crate) fn has_unanswered(&self) -> bool {
        self.has_unanswered.load(Ordering::Acquire)
    }

    /// Returns the hosts without a service that were not looked up so far.
    pub(crate) fn unanswered_hosts(&self) -> Vec<FollowedHost> {
        let members = self.members();
        let hosts = members
            .list()
            .iter()
            .filter(|member| member.is_unanswered());
        hosts.filter_map(FollowedHost::of).collect()
    }

    /// Records that the lookup of a host has failed: no request waits for it again.
    pub fn set_failed(&self, id: MemberId) {
        let mut members = self.members();
        members.set_failed(id);
        self.note_unanswered(&members);
    }

    fn note_unanswered(&self, members: &Members) {
        let has_unanswered = members.list().iter().any(Member::is_unanswered);
        self.has_unanswered.store(has_unanswered, Ordering::Release);
    }

    /// Sets the addresses of a host. Peers with unchanged addresses keep their state. Returns the numbers of addresses
    /// without a peer; `None`: the group has no such host now.
    pub fn set_found(&self, id: MemberId, found: Vec<FoundAddress>) -> Option<LeftOut> {
        self.with_members(|members, list| members.set_found(id, found, list))
    }

    /// Sets the first addresses of a host. Later answers, which are those of the main thread, stay.
    pub(crate) fn set_first_found(&self, id: MemberId, found: Vec<FoundAddress>) {
        self.with_members(|members, list| {
            if members.is_unanswered(id) {
                members.set_found(id, found, list);
            }
        });
    }

    /// Adds a server with one address or a host. It stays over reloads.
    ///
    /// # Errors
    /// The group has [`PEERS_MAX`] peers.
    pub fn add(&self, server: Server) -> Result<MemberId, Full> {
        let added = self.with_members(|members, list| members.add(server, list))?;
        self.changed();
        Ok(added)
    }

    /// Removes a server until a configuration changes it. Returns whether there was one.
    pub fn remove(&self, id: MemberId) -> bool {
        let is_removed = self.with_members(|members, list| members.remove(id, list));
        if is_removed {
            self.changed();
        }
        is_removed
    }

    /// Changes the parameters of a server, until a configuration changes them; its address stays. Returns whether there
    /// is one.
    pub fn modify(&self, id: MemberId, change: impl FnOnce(&mut Server)) -> bool {
        let is_modified = self.with_members(|members, list| members.modify(id, list, change));
        if is_modified {
            self.changed();
        }
        is_modified
    }
}

impl FollowedHost {
    fn of(member: &Member) -> Option<Self> {
        let host = member.server.unresolved.as_ref()?;
        Some(Self {
            id: member.id,
            name: host.name.as_str().into(),
            service: host.service.clone(),
        })
    }
}

impl fmt::Debug for SharedPeers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SharedPeers")
            .field("list", &self.list)
            .finish_non_exhaustive()
    }
}

impl Peers {
    /// Makes peers of one thread.
    pub fn local(list: PeerList) -> Self {
        Self::Local(RefCell::new(list))
    }

    /// Counts an event of a queue, if the group shows the counts.
    #[inline]
    pub(crate) fn count_queue(&self, count: fn(&QueueCounts)) {
        if let Self::Shared(shared) = self {
            count(&shared.queue_counts);
        }
    }

    /// Calls `act` with the list.
    #[inline]
    pub fn with<R>(&self, act: impl FnOnce(&mut PeerList) -> R) -> R {
        match self {
            Self::Local(list) => act(&mut list.borrow_mut()),
            Self::Shared(shared) => act(&mut shared.lock()),
        }
    }
}

#[cfg(test)]
#[path = "shared_tests.rs"]
mod tests;
