//! The assignment of directives to the settings of one level.
//!
//! Absent: inheritance and final settings, which are in [`settings`](super::settings).

use conf::{ConfError, Directive, Setting};
use server_base::config::ConfigContext;
use server_base::from_args::FromArgs;
use server_base::zone;

use super::conf::NextUpstream;
use super::settings::{PassesOn, UpstreamDirectives};
use crate::assemble::ConfigBuilder;
use crate::cache::directives::{CacheChoice, CacheName};
use crate::cache::path::CachePath;

/// Sets the value of a field to the arguments of its directive.
///
/// # Errors
/// The error in the words; "is duplicate" for most directives that are written twice in a level.
pub fn assign<C: PassesOn, T: FromArgs>(
    b: &mut ConfigBuilder,
    d: &Directive,
    field: fn(&mut UpstreamDirectives) -> &mut Setting<T>,
) -> Result<(), ConfError> {
    let own = |b: &mut ConfigBuilder| field(b.conf_mut::<C>().upstream().written()).take();
    let value = match own(b) {
        None => T::parse(b, d)?,
        Some(before) => before.parse_again(b, d)?,
    };
    field(b.conf_mut::<C>().upstream().written()).replace(value);
    Ok(())
}

/// Assigns a size, see [`assign`], that must go together with others.
///
/// # Errors
/// See [`assign`].
pub fn assign_size<C: PassesOn, T: FromArgs>(
    b: &mut ConfigBuilder,
    d: &Directive,
    field: fn(&mut UpstreamDirectives) -> &mut Setting<T>,
) -> Result<(), ConfError> {
    assign::<C, T>(b, d, field)?;
    b.conf_mut::<C>().upstream().written().sizes_at = Some(d.owned_head());
    Ok(())
}

/// Sets `*_next_upstream`, by a directive with these words.
///
/// # Errors
/// A word that is none of them.
pub fn assign_next_upstream<C: PassesOn>(
    b: &mut ConfigBuilder,
    d: &Directive,
    names: &[(&str, u32)],
) -> Result<(), ConfError> {
    assign_failures::<C>(b, d, names, |own| &mut own.retry.next_upstream)
}

/// Sets `*_cache_use_stale`, by a directive with these words.
///
/// # Errors
/// A word that is none of them.
pub fn assign_use_stale<C: PassesOn>(
    b: &mut ConfigBuilder,
    d: &Directive,
    names: &[(&str, u32)],
) -> Result<(), ConfError> {
    assign_failures::<C>(b, d, names, |own| &mut own.cache.cache_use_stale)
}

fn assign_failures<C: PassesOn>(
    b: &mut ConfigBuilder,
    d: &Directive,
    names: &[(&str, u32)],
    field: fn(&mut UpstreamDirectives) -> &mut Setting<NextUpstream>,
) -> Result<(), ConfError> {
    let before = field(b.conf_mut::<C>().upstream().written()).take();
    let before = before.unwrap_or_default().0;
    let all = conf::mask_more(b.conf_loader(), d, names, before)?;
    field(b.conf_mut::<C>().upstream().written()).replace(NextUpstream(all));
    Ok(())
}

/// Assigns `*_cache` or `*_store`, see [`assign`]: a level has one of both. A zone with a fixed name is noted as used.
///
/// # Errors
/// See [`assign`]; the other directive; a zone for a different use.
pub fn assign_cache_or_store<C: PassesOn, T: FromArgs>(
    b: &mut ConfigBuilder,
    d: &Directive,
    field: fn(&mut UpstreamDirectives) -> &mut Setting<T>,
) -> Result<(), ConfError> {
    assign::<C, T>(b, d, field)?;
    let prefix = C::DEFAULTS.prefix;
    let own = b.conf_mut::<C>().upstream().written();
    let (store, cache) = (own.store.store.get(), own.cache.cache.get());
    let is_both =
        store.is_some_and(|stored| stored.0.is_some()) && cache.is_some_and(CacheChoice::is_on);
    let is_cache = d.name().ends_with("cache");
    if is_both {
        let other = if is_cache { "store" } else { "cache" };
        let text = format!("is incompatible with \"{prefix}{other}\"");
        return Err(ConfError::directive(d, text));
    }
    let name = match cache {
        Some(CacheChoice::On { name, .. }) if is_cache => name.clone(),
        _ => return Ok(()),
    };
    if let CacheName::Fixed(name) = name {
        zone::refer(b, d, d.word(0), &name, 0, prefix)?;
    }
    Ok(())
}

/// Declares a cache: `*_cache_path`.
///
/// # Errors
/// A parameter; another cache with the same path or name.
pub fn declare_cache<C: PassesOn>(b: &mut ConfigBuilder, d: &Directive) -> Result<(), ConfError> {
    let written = CachePath::parse(d, |path| b.full_path(path))?;
    let prefix = C::DEFAULTS.prefix;
    let mut caches = std::mem::take(&mut b.caches);
    let added = caches.add(d, prefix, written, |cache| {
        b.zone(&cache.name, cache.zone_bytes, prefix)
    });
    b.caches = caches;
    added
}
