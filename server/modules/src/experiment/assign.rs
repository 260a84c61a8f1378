//! Users and their arms.
//!
//! A user takes part if the hash of an experiment, or of its exclusion group, is below the share. Another hash, of the
//! experiment alone, selects the arm. So a growing share moves no user to another arm, and experiments are independent.
//! Each decision is made once for a request, subrequests included.

use std::net::IpAddr;
use std::ops::Range;
use std::rc::Rc;

use server_base::config::VarId;
use server_http::exchange::{Ctx, Exchange, Peer};
use server_http::experiments::{Assigned, Member, Part, Phase, SHARE_ALL};
use server_http::http::Http;
use server_http::vars;

use super::ExperimentMain;
use super::cookie;
use super::key::HashKey;

/// How the users of an experiment are assigned.
pub(crate) struct Assignment {
    pub(super) user: UserPlan,
    /// The hash that selects participants, and their range of it.
    pub(super) share: (HashKey, Range<u32>),
    /// The hash of arms, and their upper limits among sums of weights.
    pub(super) arms: (HashKey, Vec<u32>),
}

/// The source of a user's identity.
#[derive(Clone, Copy)]
pub(super) enum UserPlan {
    /// The cookie by this index.
    Cookie(u16),
    /// The hash of the client's address.
    Address(HashKey),
    /// The hash of a variable.
    Variable(VarId, HashKey),
}

/// The value of a variable.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Shown {
    /// Index of the experiment.
    pub(super) experiment: u16,
    /// The host, not the arm.
    pub(super) is_host: bool,
}

/// Whether a user without a cookie receives one.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Issue {
    /// The response sets a cookie.
    Yes,
    /// There is no user.
    No,
}

impl Assignment {
    /// Returns the part of a user in a phase of the experiment.
    pub(super) fn part(&self, user: u64, is_live: bool) -> Part {
        let (key, part) = &self.share;
        let user = user.to_le_bytes();
        match part.contains(&scaled(key.hash(&user), SHARE_ALL)) {
            false => Part::Outside,
            true if !is_live => Part::Before,
            true => {
                let (key, limits) = &self.arms;
                let all = limits.last().copied().unwrap_or(0);
                let place = scaled(key.hash(&user), all);
                // There are at most `ARMS_MAX` arms.
                Part::Arm(limits.partition_point(|limit| *limit <= place) as u16)
            }
        }
    }
}

/// Scales a hash to a number below `all`.
fn scaled(hash: u64, all: u32) -> u32 {
    ((u128::from(hash) * u128::from(all)) >> 64) as u32
}

/// Returns all experiments of the request's server that the user takes part in, for the beacon. No cookie is issued.
pub(crate) fn assigned(x: &mut Exchange, cx: &mut Ctx<'_>) -> Assigned {
    let http = Rc::clone(&x.route.http);
    for index in 0..http.experiments.len() {
        member(x, cx, &http, index as u16, Issue::No);
    }
    x.extensions.get::<Assigned>().cloned().unwrap_or_default()
}

/// Returns the part of the request's user in an experiment; `None` if it is over, not begun or of another server.
pub(super) fn member(
    x: &mut Exchange,
    cx: &mut Ctx<'_>,
    http: &Http,
    experiment: u16,
    issue: Issue,
) -> Option<Member> {
    let settings = &http.experiments[usize::from(experiment)];
    let known = x.extensions.get::<Assigned>();
    let known = known.and_then(|known| known.members.iter().find(|it| it.experiment == experiment));
    if let Some(member) = known {
        return Some(*member);
    }
    if settings
        .server
        .is_some_and(|server| server != x.route.server)
    {
        return None;
    }
    let phase = settings.phase(cx.clock.unix_ms);
    if phase == Phase::Off {
        return None;
    }
    let main: &ExperimentMain = http.main();
    let plan = &main.plans[usize::from(experiment)];
    let user = user(x, cx, main, plan.user, issue);
    let member = Member {
        experiment,
        user: user.unwrap_or(0),
        part: user.map_or(Part::Outside, |user| plan.part(user, phase == Phase::Live)),
    };
    // A later variable may issue the cookie that is missing now.
    if user.is_some() || issue == Issue::Yes {
        decisions(x).members.push(member);
    }
    Some(member)
}

/// Returns the decisions about a request.
fn decisions(x: &mut Exchange) -> &mut Assigned {
    if x.extensions.get::<Assigned>().is_none() {
        x.extensions.push(Assigned::default());
    }
    x.extensions.get_mut().expect("it was added above")
}

/// Returns the user of a request, if it has one. 0 is nobody.
fn user(
    x: &mut Exchange,
    cx: &mut Ctx<'_>,
    main: &ExperimentMain,
    plan: UserPlan,
    issue: Issue,
) -> Option<u64> {
    match plan {
        UserPlan::Cookie(name) => cookie_user(x, main, name, issue),
        UserPlan::Address(key) => match x.client.peer {
            Peer::Inet(address) => Some(match address.ip().to_canonical() {
                IpAddr::V4(ip) => key.hash(&ip.octets()),
                IpAddr::V6(ip) => key.hash(&ip.octets()),
            }),
            Peer::Unix => None,
        },
        UserPlan::Variable(id, key) => {
            let mut value = Vec::new();
            vars::append(id, x, cx, &mut value);
            (!value.is_empty()).then(|| key.hash(&value))
        }
    }
    .map(|user| user.max(1))
}

fn cookie_user(x: &mut Exchange, main: &ExperimentMain, name: u16, issue: Issue) -> Option<u64> {
    let known = x.extensions.get::<Assigned>();
    let known = known.and_then(|known| known.cookies.iter().position(|it| it.name == name));
    let at = match known {
        Some(at) => at,
        None => {
            let cookie = main.cookies[usize::from(name)].read(x, name);
            let cookies = &mut decisions(x).cookies;
            cookies.push(cookie);
            cookies.len() - 1
        }
    };
    if let Some(user) = decisions(x).cookies[at].user {
        return Some(user);
    }
    if issue == Issue::No {
        return None;
    }
    let user = cookie::issue(x)?;
    let cookie = &mut decisions(x).cookies[at];
    cookie.user = Some(user);
    cookie.is_new = true;
    Some(user)
}

/// Appends the value of the variable `experiment_` plus this name.
pub(super) fn show(x: &mut Exchange, cx: &mut Ctx<'_>, name: &[u8], out: &mut Vec<u8>) -> bool {
    let http = Rc::clone(&x.route.http);
    let Some(shown) = http.main::<ExperimentMain>().shown.get(name).copied() else {
        return false;
    };
    let member = member(x, cx, &http, shown.experiment, Issue::Yes);
    let experiment = &http.experiments[usize::from(shown.experiment)];
    let arm = match member.map(|member| member.part) {
        Some(Part::Arm(arm)) => experiment.arms.get(usize::from(arm)),
        _ => None,
    };
    let text = match (shown.is_host, arm) {
        (false, arm) => arm.map(|arm| arm.name.as_bytes()),
        (true, Some(arm)) if arm.host.is_some() => arm.host.as_ref().map(|host| &*host.name),
        (true, _) => experiment.host.as_deref(),
    };
    out.extend_from_slice(text.unwrap_or_default());
    text.is_some()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::key::{MasterKey, Purpose};

    fn plan(name: &str, share: u32, weights: &[u32]) -> Assignment {
        let master = MasterKey::of_text(b"a key of sixteen bytes");
        let mut sum = 0;
        let limits = weights.iter().map(|weight| {
            sum += weight;
            sum
        });
        Assignment {
            user: UserPlan::Cookie(0),
            share: (master.derive(Purpose::Share, name.as_bytes()), 0..share),
            arms: (
                master.derive(Purpose::Arm, name.as_bytes()),
                limits.collect(),
            ),
        }
    }

    /// Users by arm, those outside last.
    fn counts(plan: &Assignment, users: u64) -> Vec<u64> {
        let arms = plan.arms.1.len();
        let mut counts = vec![0; arms + 1];
        for user in 1..=users {
            counts[match plan.part(user, true) {
                Part::Arm(arm) => usize::from(arm),
                Part::Outside | Part::Before => arms,
            }] += 1;
        }
        counts
    }

    fn chi_square(counts: &[u64], shares: &[f64]) -> f64 {
        let users = counts.iter().sum::<u64>() as f64;
        let of = |(count, share): (&u64, &f64)| {
            let expected = share * users;
            (*count as f64 - expected).powi(2) / expected
        };
        counts.iter().zip(shares).map(of).sum()
    }

    /// The values are exceeded with probability 0.001. Keys and users are fixed, so nothing is left to chance.
    #[test]
    fn shares_and_weights_are_kept() {
        for (name, share, weights, limit) in [
            ("half", 10_000, &[1, 1][..], 10.83),
            ("tenth", 1_000, &[50, 50], 13.82),
            ("least", 1, &[1, 1], 13.82),
            ("many", 5_000, &[1, 2, 3, 4, 10], 20.52),
            ("far", 10_000, &[1, 10_000], 10.83),
        ] {
            let counts = counts(&plan(name, share, weights), 200_000);
            let all = f64::from(weights.iter().sum::<u32>());
            let part = f64::from(share) / 10_000.0;
            let mut shares: Vec<f64> = weights
                .iter()
                .map(|weight| part * f64::from(*weight) / all)
                .collect();
            shares.push(1.0 - part);
            if share == SHARE_ALL {
                assert_eq!(counts[weights.len()], 0, "{name}");
                shares.pop();
            }
            let found = chi_square(&counts[..shares.len()], &shares);
            assert!(found < limit, "{name}: {found} {counts:?}");
        }
    }

    #[test]
    fn experiments_are_independent() {
        let (x, y) = (plan("x", 10_000, &[1, 1]), plan("y", 10_000, &[1, 1]));
        let mut counts = [0; 4];
        for user in 1..=100_000 {
            let arm = |plan: &Assignment| match plan.part(user, true) {
                Part::Arm(arm) => usize::from(arm),
                _ => panic!("all users take part"),
            };
            counts[arm(&x) * 2 + arm(&y)] += 1;
        }
        let found = chi_square(&counts, &[0.25; 4]);
        assert!(found < 16.27, "{found} {counts:?}");
    }

    #[test]
    fn a_share_that_grows_keeps_users_in_their_arms() {
        let (small, large) = (plan("x", 1_000, &[1, 3]), plan("x", 1_001, &[1, 3]));
        let mut new = 0;
        for user in 1..=100_000 {
            match (small.part(user, true), large.part(user, true)) {
                (Part::Outside, Part::Arm(_)) => new += 1,
                (before, after) => assert_eq!(before, after, "{user}"),
            }
        }
        // A hundredth of a percent.
        assert!((1..40).contains(&new), "{new}");
    }

    #[test]
    fn users_of_the_pre_period_are_those_of_the_experiment() {
        let plan = plan("x", 2_000, &[1, 1]);
        for user in 1..=1_000 {
            let is_before = plan.part(user, false) == Part::Before;
            assert_eq!(is_before, plan.part(user, true) != Part::Outside);
        }
    }

    /// Servers of a fleet may have different versions: this never changes.
    #[test]
    fn assignment_is_the_one_of_all_versions() {
        let plan = plan("x", 5_000, &[1, 2, 1]);
        let of = |user| match plan.part(user, true) {
            Part::Arm(arm) => char::from(b'0' + arm as u8),
            _ => '-',
        };
        let shown: String = (1..=40).map(of).collect();
        assert_eq!(shown, "----2-11-1-11-22-0--0-11-0--20-2----011-");
    }

    #[test]
    fn hashes_are_scaled_to_the_whole_range() {
        for (hash, all, scaled_to) in [
            (0, 10, 0),
            (u64::MAX, 10, 9),
            (u64::MAX / 2, 10, 4),
            (u64::MAX / 2 + 1, 10, 5),
            (u64::MAX, u32::MAX, u32::MAX - 1),
        ] {
            assert_eq!(scaled(hash, all), scaled_to, "{hash} {all}");
        }
    }
}
