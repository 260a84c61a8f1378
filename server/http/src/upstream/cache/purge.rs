//! Requests that purge: `*_cache_purge`.
//!
//! Source: nginx documentation, `proxy_cache_purge`.

use server_base::errlog::Level;
use server_cache::index::PurgeMode;
use server_cache::key::CacheKey;

use crate::cache::zone::CacheZone;
use crate::exchange::{Ctx, Exchange};
use crate::handler::Content;
use crate::reply;
use crate::upstream::run::Flow;

/// Purges the entries of a key, or of all keys with a prefix if the key ends with an asterisk. Nothing purged is served
/// after the answer.
pub(super) fn purge(x: &mut Exchange, cx: &mut Ctx<'_>, zone: &CacheZone, key: &CacheKey) -> Flow {
    let index = &zone.shared.index;
    let purged = match key.text().strip_suffix(b"*") {
        Some(prefix) => index.purge_prefix(prefix, PurgeMode::Hard).map(|_| None),
        None => (zone.shared)
            .purge_key(key, PurgeMode::Hard, cx.clock.unix_s())
            .map(Some),
    };
    match purged {
        Ok(entries) => {
            if let Some(entries) = entries {
                let entries = entries.to_string();
                x.reply.fields.push(COUNT, entries.as_bytes());
            }
            x.reply.status = 204;
            reply::send(x, cx, None);
            Flow::Done(Content::Sent)
        }
        Err(error) => {
            x.log(Level::Error, format_args!("{error}"));
            Flow::Done(Content::Status(503))
        }
    }
}

/// Field with the number of entries that were purged.
const COUNT: &[u8] = b"X-Purged-Entries";
