//! `gzip`, `brotli`, `zstd` and their companions: compresses responses.
//!
//! One header stage selects the coding: the one that the client prefers among those enabled for the response. A
//! complete body is compressed at once and keeps a length; a stream gets a body stage. Compressed forms of files are
//! cached (`compress_cache`). Files compressed in advance are in `precompressed`, decompression is in `gunzip`.
//!
//! If a page contains secrets beside text chosen by an attacker, the length of its compressed form reveals them
//! (BREACH). Do not compress such pages; see docs/operations.md.
//!
//! Source: nginx documentation, `ngx_http_gzip_module`; RFC 9110, sections 8.4 and 12.5.3.

mod accept;
mod allowed;
mod cache;
mod coding;
mod encoder;
mod fit;
mod gunzip;
mod inflate;
mod precompressed;
mod ratio;
mod settings;
mod stage;
mod vary;
mod whole;

use std::rc::Rc;

use engines::http::{Chunk, FieldId, Method};
use server_base::memory;
use server_http::debug_http;
use server_http::exchange::{Ctx, DropGuard, Exchange};
use server_http::module::Module;
use server_http::variables;

use cache::CacheSlot;
use coding::{Coding, Params};
use ratio::Ratio;
use settings::{CompressLoc, CompressMain};
use stage::Stage;

pub(crate) use gunzip::MODULE as GUNZIP;
pub(crate) use precompressed::MODULE as GZIP_STATIC;

/// The module.
pub(crate) const MODULE: Module = Module {
    name: "gzip",
    replaces: &["brotli_filter", "zstd_filter"],
    directives: settings::DIRECTIVES,
    settings: &[
        <CompressMain as server_http::settings_set::Conf>::def,
        <CompressLoc as server_http::settings_set::Conf>::def,
    ],
    variables: variables! {
        "gzip_ratio": "compression ratio of gzip" => |x, _, _, out| ratio::show(x, Coding::Gzip, out);
        "brotli_ratio": "compression ratio of Brotli"
            => |x, _, _, out| ratio::show(x, Coding::Brotli, out);
        "zstd_ratio": "compression ratio of Zstandard"
            => |x, _, _, out| ratio::show(x, Coding::Zstd, out);
    },
    header_stage: Some(stage),
    on_demand: true,
    ..Module::EMPTY
};

fn stage(x: &mut Exchange, cx: &mut Ctx<'_>) -> Result<(), u16> {
    let http = Rc::clone(&x.route.http);
    let conf: &CompressLoc = x.loc(&http);
    if !conf.any {
        return Ok(());
    }
    if x.reply.status == 304 {
        // The coding it would have had is unknown by now; an unneeded `Vary` does no harm.
        if *conf.vary {
            vary::add(&mut x.reply.fields);
        }
        return Ok(());
    }
    let encoded = x.reply.fields.get(FieldId::ContentEncoding);
    if !matches!(x.reply.status, 200 | 403 | 404)
        || encoded.is_some_and(|coding| !coding.is_empty())
    {
        return Ok(());
    }
    let offered = offered(x, conf);
    if offered == [None; coding::CODINGS] {
        return Ok(());
    }
    if *conf.vary {
        vary::add(&mut x.reply.fields);
    }
    let wanted = |coding: &Coding| *coding != Coding::Gzip || allowed::not_excluded(x, cx, conf);
    let accepted = allowed::accepted(x);
    if let Some(coding) = accepted.best(offered.into_iter().flatten().filter(wanted)) {
        let main: &CompressMain = http.main();
        compress(x, cx, conf, main.cache.0, coding);
    }
    Ok(())
}

/// Returns the codings enabled for this response, in the configured order.
fn offered(x: &Exchange, conf: &CompressLoc) -> [Option<Coding>; coding::CODINGS] {
    let meant = |coding: Coding| {
        let long = || {
            x.reply
                .content_length
                .is_none_or(|length| length >= conf.min_bytes(coding))
        };
        let of_type = || {
            conf.types(coding)
                .matches(x.reply.content_type.media_type())
        };
        conf.is_on(coding) && long() && of_type()
    };
    conf.order
        .0
        .map(|coding| Some(coding).filter(|coding| meant(*coding)))
}

fn compress(
    x: &mut Exchange,
    cx: &mut Ctx<'_>,
    conf: &CompressLoc,
    cache_bytes: u64,
    coding: Coding,
) {
    debug_http!(x, "http compress filter: {}", coding.token());
    let params = conf.params(coding);
    if x.head.method == Method::Head {
        return announce(x, coding);
    }
    let length = x.reply.content_length;
    let at_hand = length.filter(|length| whole::is_at_hand(x, *length));
    let place = cache::place(x.reply.source.as_ref()).filter(|_| cache_bytes > 0);
    let slot = place.filter(|_| at_hand.is_some()).map(|place| CacheSlot {
        place: Rc::clone(place),
        params,
        limit_bytes: cache_bytes,
    });
    let made = at_hand.and_then(|length| whole_form(x, cx, params, length, slot.as_ref()));
    if made.is_none() && fit::stream(params, length).is_none() {
        // All memory for encoders is in use, for example by slow clients.
        return;
    }
    announce(x, coding);
    let ratio = Rc::new(Ratio::new(coding));
    x.extensions.set(Rc::clone(&ratio));
    match made {
        Some(made) => {
            ratio.count(length.unwrap_or_default() as usize, made.len() as usize);
            ratio.end();
            x.reply.content_length = Some(made.len());
            x.body.chunks.clear();
            x.body.chunks.push_back(made);
        }
        None => {
            let stage = Stage::new(x.client.connection, params, length, ratio)
                .in_pieces_of(conf.piece_bytes(coding))
                .cached_as(slot);
            x.push_outer_stage(Box::new(stage));
        }
    }
}

/// Memory for compressing a body in one step, in multiples of its length.
const ONE_STEP_COST: u64 = 4;

/// Sets the fields of the response head for a coding.
fn announce(x: &mut Exchange, coding: Coding) {
    x.reply.fields.remove(FieldId::ContentEncoding);
    x.reply.fields.push_id(
        FieldId::ContentEncoding,
        b"Content-Encoding",
        coding.token().as_bytes(),
    );
    vary::recoded(&mut x.reply);
}

/// Returns the compressed form of a complete body of `length` bytes: the cached one, or a new one. `None` if the body
/// is too long for one step, or memory is scarce.
fn whole_form(
    x: &mut Exchange,
    cx: &mut Ctx<'_>,
    params: Params,
    length: u64,
    slot: Option<&CacheSlot>,
) -> Option<Chunk> {
    if let Some(form) = slot.and_then(|slot| cache::find(&slot.place, params)) {
        return Some(Chunk::from(form));
    }
    if length > fit::one_step_bytes(params) {
        return None;
    }
    let mut claim = memory::claim(x.client.connection, length * ONE_STEP_COST)?;
    let made = whole::compress(x, cx, params)?;
    claim.shrink(made.len() as u64);
    let Some(slot) = slot else {
        x.extensions.push(DropGuard::new(claim));
        return Some(Chunk::Owned(made));
    };
    let form: Rc<[u8]> = made.into();
    if !slot.insert(&form) {
        x.extensions.push(DropGuard::new(claim));
    }
    Some(Chunk::from(form))
}
