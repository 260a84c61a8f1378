//! An examination in progress: the plan, results of the first request, and data shared by checks.
//!
//! A check makes its requests by [`Examination::visit`] and returns findings.

use std::net::SocketAddr;
use std::time::Duration;

use serde_json::{Map, Value};

use super::code::Code;
use super::docroot::{Docroot, Type};
use super::failure::Failure;
use super::figures::in_ms;
use super::finding::Finding;
use super::network::{Network, NetworkPath};
use super::plan::{Plan, TRIAL_REQUESTS};
use super::visitor::{Budget, Visitor, Watch};
use crate::client::{Protocol, Url};
use crate::fetch::{ConnectionRecord, Lookup, Response};

/// An examination in progress.
pub struct Examination<'a> {
    /// The plan.
    pub plan: &'a Plan,
    /// How connections reach it.
    pub network: &'a dyn Network,
    /// The first look-up of the target's host; its first address is the one that is used.
    pub lookup: &'a Lookup,
    /// The first request's results.
    pub first: FirstLook,
    /// Measured figures by name.
    pub measured: Map<String, Value>,
    /// Remarks for the reader, in sentences.
    pub notes: Vec<String>,
    /// Names of checks without a verdict, in their order.
    pub(super) unjudged: Vec<&'static str>,
    /// Codes found so far with a severity above note.
    pub(super) found: Vec<Code>,
    /// Files of the doctor, if the plan has a directory for them.
    pub(super) docroot: Option<Docroot>,
    /// See [`Examination::site`].
    pub(super) known_bodies: Option<Vec<Body>>,
    pub(super) budget: Budget,
    watch: &'a dyn Watch,
}

/// The first request to the target, on its own connection and without a link.
#[derive(Debug)]
pub struct FirstLook {
    /// The protocol that the server chose.
    pub protocol: Protocol,
    /// The connection's record.
    pub record: ConnectionRecord,
    /// The response; the request accepted no coding.
    pub response: Response,
}

/// A body of the site.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Body {
    /// Its URL.
    pub url: Url,
    /// Its bytes without a content coding.
    pub bytes: u64,
    /// Whether it comes compressed when gzip is accepted.
    pub is_compressed: bool,
    /// Its bytes as they were sent to a client that accepts gzip.
    pub sent_bytes: u64,
    /// Fields of that response.
    pub fields: Vec<(String, String)>,
}

impl Body {
    /// The value of the first field with this name, whatever its case.
    #[must_use]
    pub fn field(&self, name: &str) -> Option<&str> {
        let mut fields = self.fields.iter();
        let found = fields.find(|(known, _)| known.eq_ignore_ascii_case(name));
        found.map(|(_, value)| value.as_str())
    }
}

impl<'a> Examination<'a> {
    /// Asks for the target once.
    ///
    /// # Errors
    /// It does not answer.
    pub(super) fn begin(
        plan: &'a Plan,
        lookup: &'a Lookup,
        network: &'a dyn Network,
        watch: &'a dyn Watch,
    ) -> Result<Self, Failure> {
        let budget = Budget::default();
        let docroot = plan.docroot.as_ref();
        let docroot = docroot.map(|directory| Docroot::new(directory, &plan.url));
        let docroot = docroot.transpose()?;
        let first = visit(
            (plan, network, watch, &budget),
            lookup.addresses[0],
            NetworkPath::Direct,
            |visitor| {
                let mut session = visitor.open(&visitor.dial())?;
                let response = session.exchange(&visitor.get(&plan.url, &[]))?;
                Ok::<_, Failure>(FirstLook {
                    protocol: session.protocol(),
                    record: session.record().clone(),
                    response,
                })
            },
        )??;
        Ok(Self {
            plan,
            network,
            lookup,
            first,
            measured: Map::new(),
            notes: Vec::new(),
            unjudged: Vec::new(),
            found: Vec::new(),
            docroot,
            known_bodies: None,
            budget,
            watch,
        })
    }

    /// Returns the URL of a file of this size in the plan's docroot, and writes the file if it is missing. Returns `None` without a
    /// docroot.
    ///
    /// # Errors
    /// The file cannot be written.
    pub(super) fn planted(&mut self, bytes: usize, kind: Type) -> Result<Option<Url>, Failure> {
        let docroot = self.docroot.as_mut();
        docroot.map(|docroot| docroot.file(bytes, kind)).transpose()
    }

    /// Runs a task on its own thread, with connections on a network path to the target.
    ///
    /// # Errors
    /// There is no such network path.
    pub fn visit<T: Send>(
        &self,
        network_path: NetworkPath,
        task: impl FnOnce(&Visitor<'_>) -> T + Send,
    ) -> Result<T, Failure> {
        let parts = (self.plan, self.network, self.watch, &self.budget);
        visit(parts, self.address(), network_path, task)
    }

    /// The target's address.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.lookup.addresses[0]
    }

    /// Requests left, without those reserved for trials.
    #[must_use]
    pub fn requests_left(&self) -> u32 {
        let kept = if self.plan.tries { TRIAL_REQUESTS } else { 0 };
        let left = self.plan.requests_max.saturating_sub(self.budget.sent());
        left.saturating_sub(kept)
    }

    /// Whether checks before have found this, above note.
    #[must_use]
    pub fn has(&self, code: Code) -> bool {
        self.found.contains(&code)
    }

    /// Counts a check without a verdict, or with a part of it; the note has the reason.
    pub(super) fn cannot_judge(&mut self, check: &'static str, note: String) {
        self.unjudged.push(check);
        self.notes.push(note);
    }

    /// Adds the command that examines the target again to each finding.
    pub(super) fn with_command(&self, found: impl IntoIterator<Item = Finding>) -> Vec<Finding> {
        let found = found.into_iter();
        found.map(|one| one.fix(self.plan.command())).collect()
    }

    /// Keeps a figure for the report.
    pub fn measure(&mut self, name: &str, value: impl Into<Value>) {
        self.measured.insert(name.to_owned(), value.into());
    }

    /// The round trip of [`NetworkPath::Delayed`]: the link's, else the kernel's least one.
    #[must_use]
    pub fn round_trip(&self) -> Option<Duration> {
        self.network.round_trip().or(self.first.record.min_rtt)
    }

    /// [`Examination::round_trip`] in ms; 0 if unknown.
    #[must_use]
    pub fn round_trip_ms(&self) -> f64 {
        self.round_trip().map_or(0.0, in_ms)
    }
}

fn visit<'a, T: Send>(
    (plan, network, watch, budget): (&'a Plan, &'a dyn Network, &'a dyn Watch, &'a Budget),
    address: SocketAddr,
    network_path: NetworkPath,
    task: impl FnOnce(&Visitor<'_>) -> T + Send,
) -> Result<T, Failure> {
    // The trait object could call its task repeatedly, so this `FnOnce` is taken from an option.
    let (mut task, mut result) = (Some(task), None);
    let is_emulated = network.round_trip().is_some() && network_path != NetworkPath::Direct;
    network.run(network_path, &mut |filter| {
        let visitor = Visitor {
            plan,
            budget,
            watch,
            filter,
            address,
            network_path,
            is_emulated,
        };
        result = task.take().map(|task| task(&visitor));
    })?;
    result.ok_or_else(|| Failure::other("the network ran no task"))
}
