//! Visits: a beacon joined with the assignment of its user.

use std::rc::Rc;

use engines::beacon::{Beacon, HostFiles};
use server_base::experiment::{Name, VISIT_METRICS, Visit, VisitMetric};
use server_http::exchange::{Ctx, Exchange};
use server_http::experiments::{Assigned, Experiment, Member, Part, Phase};
use server_http::http::Http;

use super::Receiver;
use super::reject_reason::RejectReason;
use crate::experiment::assigned;

/// Records the view in each experiment of its user. Returns false if the user is in none.
pub(super) fn record(
    x: &mut Exchange,
    cx: &mut Ctx<'_>,
    receiver: &Receiver,
    beacon: &Beacon,
) -> Result<bool, RejectReason> {
    let http = Rc::clone(&x.route.http);
    let now_ms = cx.clock.unix_ms;
    let users = assigned(x, cx);
    if users.cookies.iter().any(|cookie| cookie.is_forged) {
        return Err(RejectReason::ForgedUser);
    }
    let Some(first) = users.members.iter().find(|member| member.user != 0) else {
        return without_user(x, &http, &users, now_ms);
    };
    let limits = &receiver.limits;
    if !limits.admits_user(first.user, receiver.rate, cx.clock.mono_ms) {
        return Err(RejectReason::UserRate);
    }
    let Some(visits) = visits(x, &http, &users, beacon, now_ms)? else {
        return Ok(false);
    };
    if visits.is_empty() {
        return Err(RejectReason::NotLive);
    }
    if !limits.is_new(beacon.view) {
        return Err(RejectReason::Replay);
    }
    if let Some(sink) = &cx.env.samples {
        visits.iter().for_each(|visit| sink.visit(visit));
    }
    Ok(true)
}

/// Returns the visits of a user; `None` outside of all experiments. Views that began before an experiment was live, and views of
/// the page for users outside, are left out.
fn visits(
    x: &Exchange,
    http: &Http,
    users: &Assigned,
    beacon: &Beacon,
    now_ms: u64,
) -> Result<Option<Vec<Visit>>, RejectReason> {
    let began_ms = now_ms.saturating_sub(beacon.view_age_ms().into());
    let mut takes_part = false;
    let mut visits = Vec::new();
    for member in &users.members {
        let experiment = &http.experiments[usize::from(member.experiment)];
        let Some(place) = participation(experiment, member) else {
            continue;
        };
        takes_part = true;
        let page_host = &x.target.host;
        if place.has_foreign_files(beacon, page_host) {
            return Err(RejectReason::ForgedArm);
        }
        let is_live = place.arm.is_none() || began_ms >= experiment.live_since_ms();
        if is_live && !place.is_of_outside(beacon, page_host) {
            visits.push(place.visit(now_ms, member.user, beacon, page_host));
        }
    }
    Ok(takes_part.then_some(visits))
}

/// Returns the result of a beacon without a user. A user by a variable may have no value, and is in no experiment then.
fn without_user(
    x: &Exchange,
    http: &Http,
    users: &Assigned,
    now_ms: u64,
) -> Result<bool, RejectReason> {
    let is_of_server = |it: &Experiment| it.server.is_none_or(|server| server == x.route.server);
    let mut here = http.experiments.iter().filter(|it| is_of_server(it));
    if here.all(|it| it.phase(now_ms) == Phase::Off) {
        return Err(RejectReason::NotLive);
    }
    if users.cookies.is_empty() {
        return Ok(false);
    }
    Err(RejectReason::NoUser)
}

/// Returns whether the page has files from a host.
fn has_files(beacon: &Beacon, host: &[u8]) -> bool {
    let mut all = beacon.hosts.iter();
    all.any(|files| files.files > 0 && files.host.as_bytes() == host)
}

/// The part of a user in an experiment.
struct Participation<'h> {
    experiment: &'h Experiment,
    /// Index of the arm; `None` before the start.
    arm: Option<usize>,
    /// The host for the user's static files.
    host: Option<&'h [u8]>,
}

/// Returns the part of a user; `None` outside.
fn participation<'h>(experiment: &'h Experiment, member: &Member) -> Option<Participation<'h>> {
    let arm = match member.part {
        Part::Outside => return None,
        Part::Before => None,
        Part::Arm(arm) => Some(usize::from(arm)),
    };
    let of_arm = arm.and_then(|arm| experiment.arms.get(arm)?.host.as_ref());
    let host = match of_arm {
        Some(host) => Some(&*host.name),
        None => experiment.host.as_deref(),
    };
    Some(Participation {
        experiment,
        arm,
        host,
    })
}

impl Participation<'_> {
    /// Returns whether the page has files from the host of another arm. The host of the page may be that of an arm, and all users
    /// then load files from it.
    fn has_foreign_files(&self, beacon: &Beacon, page_host: &[u8]) -> bool {
        let is_user_served = self.host.is_some_and(|own| has_files(beacon, own));
        let arms = self.experiment.arms.iter().enumerate();
        let mut others = arms.filter(|(index, _)| Some(*index) != self.arm);
        others.any(|(_, arm)| {
            arm.host.as_ref().is_some_and(|other| {
                let is_of_page = *other.name == *page_host && is_user_served;
                !is_of_page && has_files(beacon, &other.name)
            })
        })
    }

    /// Returns whether the page is that of users outside: it was made before the user had an arm, for example before a reload or
    /// in a cache.
    fn is_of_outside(&self, beacon: &Beacon, page_host: &[u8]) -> bool {
        let (Some(_), Some(own), Some(outside)) = (self.arm, self.host, &self.experiment.host)
        else {
            return false;
        };
        let is_apart = **outside != *own && **outside != *page_host;
        is_apart && has_files(beacon, outside) && !has_files(beacon, own)
    }

    /// Returns the record of a view. Without a host of the experiment, static files are those of the page's host.
    fn visit(&self, at_ms: u64, user: u64, beacon: &Beacon, page_host: &[u8]) -> Visit {
        let host = self.host.unwrap_or(page_host);
        let mut all = beacon.hosts.iter();
        let files = all.find(|files| files.host.as_bytes() == host);
        let arm = self.arm.and_then(|arm| self.experiment.arms.get(arm));
        Visit {
            at_ms,
            user,
            view: beacon.view,
            experiment: self.experiment.name,
            arm: arm.map_or(Name::EMPTY, |arm| arm.name),
            values: values(beacon, files),
            files: files.map_or(0, |files| files.files),
            files_failed: files.map_or(0, |files| files.failed),
            files_truncated: files.map_or(0, |files| files.truncated),
            file_bytes: files.map_or(0, |files| files.bytes),
            is_failed: beacon.load_us().is_none(),
        }
    }
}

/// Returns the values of a view by the place in [`VisitMetric::ALL`]; `files` are those of the experiment's host.
fn values(beacon: &Beacon, files: Option<&HostFiles>) -> [Option<u32>; VISIT_METRICS] {
    VisitMetric::ALL.map(|metric| match metric {
        VisitMetric::Dns => beacon.lookup_us(),
        VisitMetric::Connect => beacon.connect_us(),
        VisitMetric::Tls => beacon.tls_us(),
        VisitMetric::FirstByte => beacon.first_byte_us(),
        VisitMetric::Response => beacon.response_end_us(),
        VisitMetric::DomContentLoaded => beacon.dom_content_loaded_us(),
        VisitMetric::Load => beacon.load_us(),
        VisitMetric::FirstContentfulPaint => beacon.first_paint_us(),
        VisitMetric::LargestContentfulPaint => beacon.largest_paint_us(),
        VisitMetric::InteractionToNextPaint => beacon.interaction_us,
        VisitMetric::LayoutShift => beacon.shift,
        VisitMetric::Files => files.and_then(|files| beacon.files_us(files)),
    })
}
