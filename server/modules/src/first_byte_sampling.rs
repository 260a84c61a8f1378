//! `first_byte_sampling`: draws the responses of which the kernel is asked when their first byte left and when it was
//! acknowledged.
//!
//! The module draws, the driver asks, `$first_byte_sent_time` and its kin tell, `metrics` counts; docs/metrics.md says what
//! the figures mean. Absent: UNIX-domain sockets, for which there is nothing to ask.
//!
//! Source: Linux, Documentation/networking/timestamping.rst.

use std::cell::Cell;
use std::collections::hash_map::RandomState;
use std::hash::BuildHasher;
use std::rc::Rc;

use conf::{Arity, ConfError, Contexts, Directive};
use server_core::build::Build;
use server_core::confs::Conf;
use server_core::exchange::{Ctx, Exchange};
use server_core::module::{Handler, Module};
use server_core::settings;
use server_core::timing::{Sampled, Sampling};
use server_core::typed::Typed;

use crate::split_clients::{ALL, share};

/// The module. Its log handler comes after those that tell what was found.
pub(crate) const MODULE: Module = Module {
    name: "first_byte_sampling",
    directives: &[PLAIN],
    units: &[<SamplingLoc as Conf>::unit],
    handlers: &[Handler::Log(forget)],
    header_stage: Some(stage),
    finish: Some(finish),
    dormant: true,
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

impl Typed for Share {
    const ARITY: Arity = Arity::TAKE1;
    const SYNTAX: &'static str = "percent% | off";

    fn parse(_: &mut Build, d: &Directive) -> Result<Self, ConfError> {
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
fn finish(b: &mut Build) -> Result<(), ConfError> {
    if b.location_confs_mut::<SamplingLoc>()
        .any(|loc| *loc.share != Share(0))
    {
        b.sample_responses();
    }
    Ok(())
}

fn stage(x: &mut Exchange, _: &mut Ctx<'_>) -> Result<(), u16> {
    let http = Rc::clone(&x.http);
    let Share(share) = *x.loc::<SamplingLoc>(&http).share;
    x.sampled = Sampled::default();
    if share > 0 && random() % ALL < share {
        x.sampled.state = Sampling::Drawn;
    }
    Ok(())
}

/// Exchanges are used again, and are begun without a look at this.
fn forget(x: &mut Exchange, _: &mut Ctx<'_>) {
    x.sampled = Sampled::default();
}

/// A number of a sequence that nobody outside can know (SplitMix64): a client must not choose which of its responses are
/// sampled.
fn random() -> u64 {
    thread_local! {
        static STATE: Cell<u64> = Cell::new(RandomState::new().hash_one(0));
    }
    STATE.with(|state| {
        let next = state.get().wrapping_add(0x9e37_79b9_7f4a_7c15);
        state.set(next);
        let mixed = (next ^ (next >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn draws_have_their_share() {
        let draws = 100_000;
        let drawn = (0..draws).filter(|_| random() % ALL < 100).count();
        // 1 % of them; ten standard deviations are 315.
        assert!((685..=1315).contains(&drawn), "{drawn}");
    }
}
