//! `first_byte_sampling`: draws the responses of which the kernel is asked when their first byte left and when it was
//! acknowledged.
//!
//! The module draws, the driver asks, `$first_byte_sent_time` and its kin show, `metrics` counts; docs/metrics.md
//! defines the figures. Absent: UNIX-domain sockets, which have no such times.
//!
//! Source: Linux, Documentation/networking/timestamping.rst.

use conf::{Arity, ConfError, Contexts, Directive};
use server_base::config::ConfigContext;
use server_base::from_args::FromArgs;
use server_http::build::ConfigBuilder;
use server_http::exchange::{Ctx, Exchange};
use server_http::module::{Handler, Module};
use server_http::settings;
use server_http::settings_set::Conf;
use server_http::timing::{ALL, Sampled, Sampling, is_drawn};

use crate::split_clients::share;

/// The module. Its log handler comes after those that write the times.
pub(crate) const MODULE: Module = Module {
    name: "first_byte_sampling",
    directives: &[PLAIN],
    settings: &[<SamplingLoc as Conf>::def],
    handlers: &[Handler::Log(forget)],
    header_stage: Some(stage),
    finish: Some(finish),
    on_demand: true,
    ..Module::EMPTY
};

settings! {
    /// Settings of a location.
    pub(crate) struct SamplingLoc: Location / PLAIN {
        /// Share of responses of which the kernel is asked when their first byte left and was acknowledged.
        share "first_byte_sampling": Share = Share(0), "off", Contexts::HTTP_SERVER_LOCATION;
    }
}

/// A share in hundredths of a percent; 0 for none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Share(u64);

impl FromArgs for Share {
    const ARITY: Arity = Arity::TAKE1;
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

/// The driver has something to do where any location samples.
fn finish(b: &mut ConfigBuilder) -> Result<(), ConfError> {
    let shares = b.location_confs_mut::<SamplingLoc>();
    let most = shares.map(|loc| loc.share.0).max();
    b.sample_responses(most.unwrap_or(0));
    Ok(())
}

/// Draws from those for which the driver has read the clock.
fn stage(x: &mut Exchange, _: &mut Ctx<'_>) -> Result<(), u16> {
    x.sampled = Sampled::default();
    if x.timings.head_read_us != 0 {
        let Share(share) = *x.route.loc::<SamplingLoc>().share;
        if share > 0 && is_drawn(share, x.route.http.timed_share) {
            x.sampled.state = Sampling::Drawn;
        }
    }
    Ok(())
}

/// Exchanges are used again, and are begun without a look at this.
fn forget(x: &mut Exchange, _: &mut Ctx<'_>) {
    x.sampled = Sampled::default();
}
