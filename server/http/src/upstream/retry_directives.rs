//! Values of directives about retries that nginx does not have: `*_next_upstream_same`, `*_retry_budget`.

use conf::{Arity, ConfError, Directive};
use server_base::config::ConfigContext;
use server_base::from_args::{Between, FromArgs};
use server_upstream::retry_budget::RetryBudget;

/// `*_next_upstream_same`.
pub type SameTimes = Between<0, SAME_MAX>;

/// `*_retry_budget`; `None`: off.
#[derive(Clone, Copy, Debug)]
pub struct Budget(pub Option<RetryBudget>);

impl FromArgs for Budget {
    const ARITY: Arity = Arity::TAKE12;
    const SYNTAX: &'static str = "share% [min=number] | off";

    fn parse(_: &mut dyn ConfigContext, d: &Directive) -> Result<Self, ConfError> {
        if d.args.len() == 1 && d.arg(0) == b"off" {
            return Ok(Self(None));
        }
        let number = |text: &[u8]| conf::parse_number(text).and_then(|n| u32::try_from(n).ok());
        let percent = d.arg(0).strip_suffix(b"%").and_then(number);
        let Some(percent) = percent.filter(|percent| *percent <= 100) else {
            let error = ConfError::invalid(d, d.word(0));
            return Err(error.with_hint("a share is 0% to 100%"));
        };
        let least = match d.args.get(1) {
            None => LEAST_RETRIES,
            Some(word) => (word.text.strip_prefix(b"min=").and_then(number))
                .ok_or_else(|| ConfError::parameter(d, word))?,
        };
        Ok(Self(Some(RetryBudget { percent, least })))
    }
}

/// The largest value of `*_next_upstream_same`.
const SAME_MAX: u64 = 1000;
/// The default of `min` in `*_retry_budget`.
const LEAST_RETRIES: u32 = 3;
