//! `first_byte_sampling`: selects responses for which the kernel reports when their first byte left and when it was
//! acknowledged.
//!
//! The module selects, the driver queries the kernel and emits its times as events. The module stores them for its
//! variables and counts them. docs/metrics.md defines the figures. Absent: UNIX-domain sockets, which have no such
//! times.
//!
//! Source: Linux, Documentation/networking/timestamping.rst.

use conf::{ConfError, Contexts, Directive};
use engines::http::probe::{Point, ProbeEvent, Stall};
use server_base::config::ConfigContext;
use server_base::from_args::FromArgs;
use server_http::assemble::ConfigBuilder;
use server_http::exchange::{Ctx, Exchange};
use server_http::meters::{self, Event, Time};
use server_http::module::{Handler, Module};
use server_http::settings;
use server_http::settings_set::Conf;
use server_http::timing::{ALL, Sampled, Sampling, is_drawn, put_us};
use server_http::variables;
use server_http::vars::Variable;
use server_http::wants::Wants;

use crate::split_clients::share;

/// The module. Its log handler comes after those that write the times.
pub(crate) const MODULE: Module = Module {
    name: "first_byte_sampling",
    directives: &[PLAIN],
    settings: &[<SamplingLoc as Conf>::def],
    variables: VARIABLES,
    handlers: &[Handler::Log(forget), Handler::Event(record_times)],
    header_stage: Some(stage),
    wants: Some(wants),
    on_demand: true,
    ..Module::EMPTY
};

settings! {
    /// Settings of a location.
    pub(crate) struct SamplingLoc: Location / PLAIN {
        /// Share of responses for which the kernel reports when their first byte left and was acknowledged.
        share "first_byte_sampling": Share = Share(0), "off", Contexts::HTTP_SERVER_LOCATION;
    }
}

/// A share in hundredths of a percent; 0 for none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Share(u64);

impl FromArgs for Share {
    const SYNTAX: &'static str = "percent% | off";

    fn parse(_: &mut dyn ConfigContext, d: &Directive) -> Result<Self, ConfError> {
        let text = d.arg(0);
        if text == b"off" {
            return Ok(Self(0));
        }
        match share(text) {
            Some(Some(hundredths)) if hundredths <= ALL => Ok(Self(hundredths)),
            _ => {
                let text = format!("invalid percent value \"{}\"", d.arg_str(0));
                Err(ConfError::word(d, d.word(0), text))
            }
        }
    }
}

const VARIABLES: &[Variable] = variables! {
    "first_byte_sent_time":
        "time from the end of the request head until the first byte left the machine, of a sampled response, seconds"
        => |x, _, _, o| put_us(o, x.sampled.sent_us);
    "first_byte_acked_time":
        "time from the end of the request head until the first byte was acknowledged, of a sampled response, seconds"
        => |x, _, _, o| put_us(o, x.sampled.acked_us);
    "first_byte_stall": "why the first byte of a sampled response was acknowledged late, else empty"
        => |x, _, _, o| {
            let stall = x.sampled.stall;
            o.extend_from_slice(stall.flatten().map_or("", Stall::as_str).as_bytes());
            stall.is_some()
        };
};

/// Subscribes to the kernel's times if any location samples. Logs wait for them if a variable of this module is used.
fn wants(b: &mut ConfigBuilder, is_used: bool) -> Wants {
    let shares = b.location_confs_mut::<SamplingLoc>();
    let share = shares.map(|loc| loc.share.0).max().unwrap_or(0);
    Wants::samples(share, is_used)
}

/// Selects among responses with a time from the driver.
fn stage(x: &mut Exchange, _: &mut Ctx<'_>) -> Result<(), u16> {
    x.sampled = Sampled::default();
    if x.is_probed() {
        let Share(share) = *x.route.loc::<SamplingLoc>().share;
        if share > 0 && is_drawn(share, x.route.http.wants.share) {
            x.sampled.state = Sampling::Drawn;
        }
    }
    Ok(())
}

/// Counts a sampled response and stores the kernel's times. The exchange may have ended already.
fn record_times(event: &ProbeEvent, x: Option<&mut Exchange>) {
    let (us, mut ended) = (event.since_head_us(), Sampled::default());
    let sampled = x.map_or(&mut ended, |x| &mut x.sampled);
    let count = |time, us: Option<u64>| us.into_iter().for_each(|us| meters::time(time, us));
    match event.point {
        Point::FirstByte { idle: Some(true) } => meters::event(Event::SampledIdle),
        Point::FirstByte { idle: Some(false) } => meters::event(Event::SampledBusy),
        Point::Sent => {
            sampled.sent_us = us;
            count(Time::FirstByteSent, us);
        }
        Point::Acknowledged => {
            sampled.acked_us = us;
            count(Time::FirstByteAcked, us);
        }
        Point::Stall(stall) => {
            sampled.stall = Some(stall);
            match stall {
                Some(Stall::DelayedAck) => meters::event(Event::StallDelayedAck),
                Some(Stall::Retransmit) => meters::event(Event::StallRetransmit),
                Some(Stall::Window) => meters::event(Event::StallWindow),
                None => {}
            }
        }
        _ => {}
    }
}

/// Resets the times, since exchanges are reused and not reset at their start.
fn forget(x: &mut Exchange, _: &mut Ctx<'_>) {
    x.sampled = Sampled::default();
}
