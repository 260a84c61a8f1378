//! Experiments of a configuration: arms, hosts of arms, and the arms of a request's user.
//!
//! Plain data. The module `experiment` reads the directives and assigns users; the driver counts connections to hosts of arms;
//! the beacon records page views. Indices of experiments are indices of [`Http::experiments`](crate::http::Http::experiments).
//!
//! Source: docs/experiments.md. nginx has no experiments.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use engines::http::Protocols;
use server_base::experiment::{Name, VisitMetric};

/// An `experiment` block.
#[derive(Debug)]
pub struct Experiment {
    /// Its name, unique in a configuration.
    pub name: Name,
    /// The arms, in the order of the configuration, 2 to [`ARMS_MAX`].
    pub arms: Vec<Arm>,
    /// The host for static files of users outside, in lower case.
    pub host: Option<Box<[u8]>>,
    /// Index of the only server with requests that take part; `None` for all.
    pub server: Option<usize>,
    /// Share of users, hundredths of a percent, 1 to 10,000.
    pub share: u32,
    /// Begin, milliseconds since 1970; 0 for always.
    pub start_ms: u64,
    /// End, milliseconds since 1970; `u64::MAX` for never.
    pub end_ms: u64,
    /// Time before the begin in which views without an arm are recorded, seconds; 0 for none.
    pub pre_period_s: u64,
    /// Time from a user's first view in which views count, seconds; 0 for the first view alone.
    pub window_s: u64,
    /// Its metrics; the first one is the primary metric.
    pub metrics: Vec<VisitMetric>,
    /// The kill switch, if there is one.
    pub kill_switch: Option<Arc<KillSwitch>>,
}

/// An `arm` of an experiment.
#[derive(Debug)]
pub struct Arm {
    /// Its name, unique in its experiment.
    pub name: Name,
    /// Its weight, 1 to [`WEIGHT_MAX`].
    pub weight: u32,
    /// Its host, if arms have hosts. All arms of an experiment have one, or none.
    pub host: Option<ArmHost>,
}

/// The host for static files of an arm.
#[derive(Debug)]
pub struct ArmHost {
    /// Its name, in lower case.
    pub name: Box<[u8]>,
    /// The server with this name, by its index.
    pub server: usize,
    /// Protocols that ALPN offers, HTTP/1 among them; `None` leaves those of the server.
    pub protocols: Option<Protocols>,
}

/// An arm by its indices.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ArmId {
    /// Index of the experiment.
    pub experiment: u16,
    /// Index of the arm in its experiment.
    pub arm: u16,
}

/// The state of an experiment at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// It has ended, its kill switch is on, or it begins later than after the pre-period.
    Off,
    /// The pre-period: views are recorded without an arm.
    Before,
    /// Users have arms.
    Live,
}

impl Experiment {
    /// Returns the state at a time of the wall clock, milliseconds since 1970.
    pub fn phase(&self, now_ms: u64) -> Phase {
        let is_killed = || self.kill_switch.as_ref().is_some_and(|it| !it.is_live());
        let before_ms = self.pre_period_s.saturating_mul(1000);
        if now_ms >= self.end_ms || is_killed() {
            return Phase::Off;
        }
        match self.start_ms {
            start_ms if now_ms >= start_ms => Phase::Live,
            start_ms if now_ms >= start_ms.saturating_sub(before_ms) => Phase::Before,
            _ => Phase::Off,
        }
    }

    /// Returns the time since when users have arms, milliseconds since 1970; 0 for always. Views that began earlier count
    /// for no arm.
    pub fn live_since_ms(&self) -> u64 {
        let switched = self.kill_switch.as_ref();
        switched
            .map_or(0, |it| it.live_since_ms())
            .max(self.start_ms)
    }
}

/// State of a kill switch. A task of the worker's main thread looks at the file once a second; requests read the result.
#[derive(Debug, Default)]
pub struct KillSwitch {
    /// The file was looked for, and is not there.
    is_live: AtomicBool,
    live_since_ms: AtomicU64,
}

impl KillSwitch {
    /// Returns whether the experiment may run. It may not before the first look.
    pub fn is_live(&self) -> bool {
        self.is_live.load(Ordering::Relaxed)
    }

    /// Returns whether the file was looked for.
    pub fn is_known(&self) -> bool {
        self.live_since_ms() != 0
    }

    /// Returns since when it may run, milliseconds since 1970.
    pub fn live_since_ms(&self) -> u64 {
        self.live_since_ms.load(Ordering::Relaxed)
    }

    /// Notes the result of a look at the time `now_ms`, milliseconds since 1970. Only one thread does.
    pub fn record(&self, is_live: bool, now_ms: u64) {
        // A clock that was set back must not move the time into the future: all views would be older.
        if !self.is_live() || now_ms < self.live_since_ms() {
            self.live_since_ms.store(now_ms, Ordering::Relaxed);
        }
        self.is_live.store(is_live, Ordering::Relaxed);
    }
}

/// The part of a request's user in an experiment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// The user takes no part.
    Outside,
    /// The pre-period: the user will take part, and has no arm yet.
    Before,
    /// The user's arm, by its index.
    Arm(u16),
}

/// The decision about a request's user and an experiment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Member {
    /// Index of the experiment.
    pub experiment: u16,
    /// The user, as in records: random, or a keyed hash. 0 if there is none.
    pub user: u64,
    /// The part.
    pub part: Part,
}

/// Decisions about a request's user, an extension of the exchange: each is made when it is needed first.
#[derive(Clone, Debug, Default)]
pub struct Assigned {
    /// The decisions so far.
    pub members: Vec<Member>,
    /// Cookies that were read or issued.
    pub cookies: Vec<UserCookie>,
}

/// A user's cookie of one name, see [`Assigned::cookies`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UserCookie {
    /// Index of the name among those of the configuration.
    pub name: u16,
    /// The user; `None` if the client sent no valid cookie, and none was issued.
    pub user: Option<u64>,
    /// The client sent a cookie of this name that is damaged, or that another key made.
    pub is_forged: bool,
    /// The response must set it.
    pub is_new: bool,
}

impl Assigned {
    /// Returns the arms in which the user is.
    pub fn arms(&self) -> impl Iterator<Item = ArmId> {
        let members = self.members.iter();
        members.filter_map(|member| match member.part {
            Part::Arm(arm) => Some(ArmId {
                experiment: member.experiment,
                arm,
            }),
            Part::Outside | Part::Before => None,
        })
    }
}

/// Maximum number of arms of an experiment.
pub const ARMS_MAX: usize = 1000;
/// Maximum weight of an arm.
pub const WEIGHT_MAX: u32 = 10_000;
/// All users, in hundredths of a percent.
pub const SHARE_ALL: u32 = 10_000;
/// Maximum number of experiments of a configuration.
pub const EXPERIMENTS_MAX: usize = 1000;

#[cfg(test)]
mod tests {
    use super::*;

    fn experiment(start_ms: u64, end_ms: u64, pre_period_s: u64) -> Experiment {
        Experiment {
            name: Name::new(b"a").expect("a name"),
            arms: Vec::new(),
            host: None,
            server: None,
            share: SHARE_ALL,
            start_ms,
            end_ms,
            pre_period_s,
            window_s: 0,
            metrics: Vec::new(),
            kill_switch: None,
        }
    }

    #[test]
    fn phases_follow_one_another() {
        let it = experiment(10_000, 20_000, 3);
        for (now_ms, phase) in [
            (0, Phase::Off),
            (6_999, Phase::Off),
            (7_000, Phase::Before),
            (9_999, Phase::Before),
            (10_000, Phase::Live),
            (19_999, Phase::Live),
            (20_000, Phase::Off),
        ] {
            assert_eq!(it.phase(now_ms), phase, "{now_ms}");
        }
        assert_eq!(experiment(10_000, 20_000, 0).phase(9_999), Phase::Off);
        assert_eq!(experiment(10_000, 20_000, 11).phase(0), Phase::Before);
        assert_eq!(experiment(0, u64::MAX, 0).phase(0), Phase::Live);
        assert_eq!(it.live_since_ms(), 10_000);
    }

    #[test]
    fn kill_switch_ends_and_resumes() {
        let switch = Arc::new(KillSwitch::default());
        let it = Experiment {
            kill_switch: Some(Arc::clone(&switch)),
            ..experiment(1_000, u64::MAX, 1)
        };
        assert_eq!(it.phase(500), Phase::Off, "nobody has looked");
        switch.record(true, 500);
        assert_eq!(it.phase(500), Phase::Before);
        assert_eq!(it.phase(1_000), Phase::Live);
        assert_eq!(it.live_since_ms(), 1_000, "the begin is later");
        switch.record(false, 2_000);
        assert_eq!(it.phase(2_000), Phase::Off);
        switch.record(true, 3_000);
        switch.record(true, 4_000);
        assert_eq!((it.phase(4_000), it.live_since_ms()), (Phase::Live, 3_000));
        switch.record(true, 2_500);
        assert_eq!(it.live_since_ms(), 2_500, "the clock was set back");
    }
}
