//! Active health: results of checks decide whether a server is usable.
//!
//! A group may have several checks. Each of them has a state of its own for each peer. One failed check is enough to
//! exclude a peer. Absent: requests of checks, which belong to each kind of server.
//!
//! Source: nginx documentation, `ngx_http_upstream_hc_module`.

/// A check of a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CheckSpec {
    /// Identifies the check. It is equal after a reload that did not change the check.
    pub id: u64,
    /// `fails`: failures in a row that exclude a peer, at least 1.
    pub fails: u32,
    /// `passes`: successes in a row that admit an excluded peer, at least 1.
    pub passes: u32,
    /// State of a peer before its first result.
    pub initial: Initial,
}

/// State of a peer before the first result of a check.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Initial {
    /// Usable. After a reload the peer keeps its state.
    Up,
    /// `mandatory`: excluded, also after a reload.
    Checking,
    /// `mandatory persistent`: excluded. After a reload a peer stays usable if it was.
    CheckingUnlessUp,
}

/// Health of a peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Health {
    /// Usable, as far as checks know.
    Up,
    /// Excluded until the first result of a check.
    Checking,
    /// Excluded by failed checks.
    Unhealthy,
}

/// Results of all checks of a peer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CheckCounts {
    /// Number of results.
    pub checks: u64,
    /// Number of failures.
    pub fails: u64,
    /// Number of changes from usable to unhealthy.
    pub unhealthy: u64,
    /// Whether the last result was a success; `None` before the first one.
    pub last_passed: Option<bool>,
}

/// The checks of one peer.
#[derive(Debug, Default)]
pub struct Checks {
    /// A check excludes the peer.
    is_out: bool,
    /// Boxed, since most groups have no checks.
    results: Option<Box<Results>>,
}

#[derive(Debug, Default)]
struct Results {
    /// A state for each check of the group, in its order.
    states: Vec<CheckState>,
    counts: CheckCounts,
}

/// The state of one check for one peer.
#[derive(Clone, Copy, Debug)]
struct CheckState {
    spec: CheckSpec,
    health: Health,
    /// Number of results in a row that contradict `health`.
    against: u32,
}

impl Checks {
    /// Sets the checks of the group. The peer may be new, or it may have states of an older configuration.
    pub fn set(&mut self, specs: &[CheckSpec]) {
        if specs.is_empty() {
            *self = Self::default();
            return;
        }
        let results = self.results.get_or_insert_default();
        let before = (!results.states.is_empty()).then(|| results.health());
        let states = specs.iter().map(|spec| {
            let known = results.states.iter().find(|known| known.spec.id == spec.id);
            CheckState::new(*spec, known, before)
        });
        results.states = states.collect();
        self.is_out = results.health() != Health::Up;
    }

    /// Records a result of a check, by its id. Returns the new health by this check, if it has changed. The result of
    /// an unknown check changes nothing.
    pub fn record(&mut self, id: u64, passed: bool) -> Option<Health> {
        let results = self.results.as_mut()?;
        let was = results.health();
        let state = (results.states.iter_mut()).find(|state| state.spec.id == id)?;
        let change = state.add(passed);
        let now = results.health();
        self.is_out = now != Health::Up;
        let counts = &mut results.counts;
        counts.checks += 1;
        counts.fails += u64::from(!passed);
        counts.unhealthy += u64::from(was != Health::Unhealthy && now == Health::Unhealthy);
        counts.last_passed = Some(passed);
        change
    }

    /// Returns the health by all checks: the worst of them.
    pub fn health(&self) -> Health {
        (self.results.as_ref()).map_or(Health::Up, |results| results.health())
    }

    /// Whether a check excludes the peer.
    #[inline]
    pub fn is_out(&self) -> bool {
        self.is_out
    }

    /// Returns the numbers of results.
    pub fn counts(&self) -> CheckCounts {
        let results = self.results.as_ref();
        results.map(|results| results.counts).unwrap_or_default()
    }
}

impl Results {
    fn health(&self) -> Health {
        let all = self.states.iter().map(|state| state.health);
        all.max().unwrap_or(Health::Up)
    }
}

impl CheckState {
    /// Makes the state of a check from that before a reload, and from the health of the peer by all checks then.
    fn new(spec: CheckSpec, known: Option<&Self>, before: Option<Health>) -> Self {
        let (health, against) = match (spec.initial, known) {
            (Initial::Up, Some(known)) if known.health != Health::Checking => {
                (known.health, known.against)
            }
            (Initial::Up, _) => (Health::Up, 0),
            (Initial::CheckingUnlessUp, _) if before == Some(Health::Up) => {
                (Health::Up, known.map_or(0, |known| known.against))
            }
            (Initial::Checking | Initial::CheckingUnlessUp, _) => (Health::Checking, 0),
        };
        Self {
            spec,
            health,
            against,
        }
    }

    /// Adds a result. Returns the new health, if it has changed.
    fn add(&mut self, passed: bool) -> Option<Health> {
        let (target, limit) = match passed {
            true => (Health::Up, self.spec.passes),
            false => (Health::Unhealthy, self.spec.fails),
        };
        if self.health == target {
            self.against = 0;
            return None;
        }
        self.against += 1;
        // The first result decides about a peer that was not checked yet.
        if self.against < limit && self.health != Health::Checking {
            return None;
        }
        (self.health, self.against) = (target, 0);
        Some(target)
    }
}

#[cfg(test)]
#[path = "active_tests.rs"]
mod tests;
