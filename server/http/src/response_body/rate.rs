//! `limit_rate`: how many bytes of a response may leave now, and when the next may.
//!
//! The first second's bytes may leave at once, as in nginx. The head counts as well.
//!
//! Source: nginx documentation, `limit_rate`, `limit_rate_after`, `$limit_rate`.

use std::rc::Rc;

use server_base::errlog::{Level, Printable};

use crate::exchange::{Ctx, Exchange, Pulled, Wait};

impl Exchange {
    /// The limit in bytes per second, 0 for none, and how many bytes come before it applies.
    pub fn limit_rate(&mut self, cx: &mut Ctx<'_>) -> (u64, u64) {
        let http = Rc::clone(&self.route.http);
        let loc = self.core_loc(&http);
        let limit = match self.response.rate.limit {
            Some(limit) => limit,
            None => self.size(cx, loc.limit_rate.0.as_ref()),
        };
        self.response.rate.limit = Some(limit);
        if limit == 0 {
            return (0, 0);
        }
        let after = match self.response.rate.after {
            Some(after) => after,
            None => self.size(cx, loc.limit_rate_after.0.as_ref()),
        };
        self.response.rate.after = Some(after);
        (limit, after)
    }

    /// Sets the limit from the text of `set $limit_rate`; text that is no size is logged and leaves it as it is.
    pub fn set_limit_rate(&mut self, text: &[u8]) {
        match conf::parse_size(text) {
            Some(limit) => self.response.rate.set(limit as u64),
            None => {
                let text = Printable(text);
                self.log(Level::Error, format_args!("invalid $limit_rate \"{text}\""));
            }
        }
    }

    /// Whether [`Exchange::pull_within`] must be used instead of [`Exchange::pull`].
    pub fn has_rate(&self) -> bool {
        match self.response.rate.limit {
            Some(limit) => limit != 0,
            None => self.route.core_loc().limit_rate.0.is_some(),
        }
    }

    /// Pulls the next piece of the body like [`Exchange::pull`], but only as much as the rate allows after `sent` bytes of the
    /// response.
    pub fn pull_within(&mut self, cx: &mut Ctx<'_>, sent: u64) -> Pulled {
        let (limit, after) = self.limit_rate(cx);
        if limit == 0 {
            return self.pull(cx);
        }
        let now_ms = cx.clock.mono_ms;
        if now_ms < self.response.rate.until_ms {
            return self.limited();
        }
        let elapsed_ms = now_ms.saturating_sub(self.started_ms);
        let earned = u128::from(limit) * u128::from(elapsed_ms + 1000) / 1000;
        let allowed = (earned + u128::from(after)).saturating_sub(u128::from(sent));
        if allowed == 0 {
            let over = u128::from(sent) - u128::from(after) - earned + 1;
            self.response.rate.until_ms = now_ms + wait_ms(over, limit);
            return self.limited();
        }
        let most = u64::try_from(allowed).unwrap_or(u64::MAX);
        self.progress.pull_wait = None;
        let mut chunk = match self.pull(cx) {
            Pulled::Chunk(chunk) => chunk,
            other => {
                self.response.rate.until_ms = 0;
                return other;
            }
        };
        if let Some(rest) = chunk.split_off(most) {
            self.put_back(rest);
        }
        // Bytes within `limit_rate_after` cost no time.
        let limited = (sent + chunk.len()).saturating_sub(sent.max(after));
        let wait = wait_ms(u128::from(limited), limit).saturating_sub(1);
        self.response.rate.until_ms = if wait > 0 { now_ms + wait } else { 0 };
        Pulled::Chunk(chunk)
    }

    /// Nothing more may leave before the rate's time.
    fn limited(&mut self) -> Pulled {
        self.progress.pull_wait = Some(Wait::until(self.response.rate.until_ms));
        Pulled::Pending
    }
}

/// The time for `bytes`, rounded up, at least 1 ms.
fn wait_ms(bytes: u128, limit: u64) -> u64 {
    let ms = bytes * 1000 / u128::from(limit) + 1;
    u64::try_from(ms).unwrap_or(u64::MAX)
}

#[cfg(test)]
#[path = "rate_tests.rs"]
mod tests;
