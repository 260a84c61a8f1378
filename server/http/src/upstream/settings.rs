//! From what is written to an [`UpstreamConf`]: settings of one level, inheritance, and the rules that they keep together.
//!
//! A module that passes requests on has an [`UpstreamSettings`] among its settings and names itself by [`PassesOn`]. Levels
//! that say nothing share what the level around them has.
//!
//! Source: nginx documentation, `ngx_http_proxy_module`; defaults and rules are nginx's.

use std::collections::HashMap;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::sync::Arc;

use conf::{ConfError, Directive, Setting};
use server_base::config::ConfigContext;
use server_base::files::TempDir;
use server_base::from_args::{FromArgs, Size};

use super::conf::{Hidden, NextUpstream, UpstreamConf};
use super::directives::UpstreamDirectives;
use super::values::ResponseBuffers;
use crate::assemble::ConfigBuilder;
use crate::settings_set::Conf;

/// Settings of a module that passes requests on.
pub trait PassesOn: Conf {
    /// The defaults of the module.
    const DEFAULTS: Defaults;
    /// Whether responses are read ahead of the client: the module has the directives about buffers.
    const READS_AHEAD: bool = true;

    /// Those that all such modules have in common.
    fn upstream(&mut self) -> &mut UpstreamSettings;

    /// Whether requests are passed on in this location.
    fn passes_on(&self) -> bool;

    /// Sets what no directive of the module decides.
    fn fix(_: &mut UpstreamConf) {}
}

/// Defaults that differ between modules.
#[derive(Clone, Copy, Debug)]
pub struct Defaults {
    /// The prefix of its directives: `proxy_`.
    pub prefix: &'static str,
    /// `*_temp_path`, relative to the prefix of paths; its levels are 1 and 2.
    pub temp_path: &'static str,
    /// Fields of responses that are not passed on, in lower case.
    pub hidden: &'static [&'static str],
}

/// The settings of one level, and what became of them.
#[derive(Default)]
pub struct UpstreamSettings {
    own: Option<Box<UpstreamDirectives>>,
    merged: Option<Arc<UpstreamDirectives>>,
    conf: Option<Arc<UpstreamConf>>,
}

impl UpstreamSettings {
    /// Takes from `parent` what is not set here, else the defaults.
    pub fn merge(&mut self, parent: Option<&Self>) {
        let parent = parent.and_then(|parent| parent.merged.as_ref());
        self.merged = match (self.own.take(), parent) {
            (None, Some(parent)) => Some(Arc::clone(parent)),
            (own, parent) => {
                let mut own = own.unwrap_or_default();
                own.inherit(parent.map(Arc::as_ref));
                Some(Arc::new(*own))
            }
        };
    }

    /// The settings as they hold.
    pub fn conf(&self) -> &UpstreamConf {
        let conf = self.conf.as_deref();
        conf.expect("modules are finished before anything is served")
    }
}

/// Sets one value, by the directive that says it.
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
    let before = b.conf_mut::<C>().upstream().written().next_upstream.take();
    let before = before.unwrap_or_default().0;
    let all = conf::mask_more(b.conf_loader(), d, names, before)?;
    let written = b.conf_mut::<C>().upstream().written();
    written.next_upstream.replace(NextUpstream(all));
    Ok(())
}

impl UpstreamSettings {
    fn written(&mut self) -> &mut UpstreamDirectives {
        self.own.get_or_insert_default()
    }
}

/// Turns what was merged into settings that hold, and has the directories for temporary files made where requests are passed
/// on; for modules' `finish`.
///
/// # Errors
/// Sizes that do not go together.
pub fn finish<C: PassesOn>(b: &mut ConfigBuilder) -> Result<(), ConfError> {
    let default = TempDir {
        path: b.full_path(C::DEFAULTS.temp_path.as_bytes()),
        levels: [1, 2, 0],
    };
    // By the address of what was merged, which many levels share.
    let mut known: HashMap<*const UpstreamDirectives, Arc<UpstreamConf>> = HashMap::new();
    let mut dirs: Vec<Vec<u8>> = Vec::new();
    let mut passes_on = false;
    let mut transparent = false;
    // What `http` itself says need not go together, as in nginx: what counts is what servers and locations have.
    for conf in b.location_confs_mut::<C>().skip(1) {
        let used = conf.passes_on();
        let settings = conf.upstream();
        let merged = settings.merged.as_ref();
        let merged = merged.expect("levels are merged before modules are finished");
        let key = Arc::as_ptr(merged);
        let resolved = match known.get(&key) {
            Some(resolved) => Arc::clone(resolved),
            None => {
                let mut resolved = merged.resolve::<C>(&default)?;
                C::fix(&mut resolved);
                let resolved = Arc::new(resolved);
                known.insert(key, Arc::clone(&resolved));
                resolved
            }
        };
        if used {
            passes_on = true;
            transparent |= resolved.bind.as_ref().is_some_and(|(_, is)| *is);
            let dir = resolved.temp_path.as_ref().map(|dir| dir.path.clone());
            dirs.extend(dir);
        }
        settings.conf = Some(resolved);
    }
    if passes_on {
        b.read_bodies();
    }
    b.main.binds_transparently |= transparent;
    dirs.sort();
    dirs.dedup();
    for dir in dirs {
        let path = PathBuf::from(OsStr::from_bytes(&dir));
        if !b.main.temp_paths.contains(&path) {
            b.main.temp_paths.push(path);
        }
    }
    Ok(())
}

impl UpstreamDirectives {
    /// The settings as the upstream machine reads them.
    fn resolve<C: PassesOn>(&self, temp_path: &TempDir) -> Result<UpstreamConf, ConfError> {
        let sizes = match C::READS_AHEAD {
            true => self.sizes(C::DEFAULTS.prefix),
            false => Ok(Sizes::default()),
        };
        let sizes = sizes.map_err(|text| {
            let at = self.sizes_at.as_ref();
            at.map_or_else(
                || ConfError::new(text.clone()),
                |d| ConfError::at(d, text.clone()),
            )
        })?;
        let mut next_upstream = *self.next_upstream;
        if next_upstream.has(NextUpstream::OFF) {
            next_upstream = NextUpstream(NextUpstream::OFF);
        }
        let own_dir = self.temp_path.get().map(|path| path.0.clone());
        // What is not read ahead is kept in no file, and no directory is made for it.
        let temp_path = C::READS_AHEAD.then(|| own_dir.unwrap_or_else(|| temp_path.clone()));
        Ok(UpstreamConf {
            buffering: C::READS_AHEAD && *self.buffering,
            request_buffering: *self.request_buffering,
            buffer_size: self.buffer_size.get().map(|size| size.0),
            buffers: sizes.buffers,
            max_temp_file_size: sizes.max_temp_file_size,
            temp_file_write_size: sizes.temp_file_write_size,
            temp_path,
            ignore_client_abort: *self.ignore_client_abort,
            intercept_errors: *self.intercept_errors,
            connect_timeout_ms: self.connect_timeout.0,
            send_timeout_ms: self.send_timeout.0,
            read_timeout_ms: self.read_timeout.0,
            next_upstream,
            next_upstream_tries: u32::try_from(self.next_upstream_tries.0).unwrap_or(u32::MAX),
            next_upstream_timeout_ms: self.next_upstream_timeout.0,
            limit_rate: (*self.limit_rate).clone(),
            force_ranges: *self.force_ranges,
            bind: self.bind.0.clone(),
            bind_dynamic: *self.bind_dynamic,
            request_dynamic: *self.request_dynamic,
            allow_upstream: self.allow_upstream.0.clone(),
            socket_keepalive: *self.socket_keepalive,
            socket_rcvbuf: self.socket_rcvbuf.0,
            socket_sndbuf: self.socket_sndbuf.0,
            hidden: self.hidden(C::DEFAULTS.hidden),
            ignored: *self.ignore_headers,
            pass_request_headers: *self.pass_request_headers,
            pass_request_body: *self.pass_request_body,
            pass_trailers: *self.pass_trailers,
            store: self.store.0.clone(),
            store_access: self.store_access.0,
        })
    }

    /// The sizes with their defaults, or in what they do not go together.
    fn sizes(&self, prefix: &str) -> Result<Sizes, String> {
        let ResponseBuffers(number, size) = self.buffers.or(ResponseBuffers(8, PAGE_BYTES));
        if number < 2 {
            return Err(format!("there must be at least 2 \"{prefix}buffers\""));
        }
        let one = self.buffer_size.or(Size(PAGE_BYTES)).0.max(size);
        let largest = format!(
            "the maximum of the value of \"{prefix}buffer_size\" and one of the \"{prefix}buffers\""
        );
        let busy = self.busy_buffers_size.or(Size(one.saturating_mul(2))).0;
        if busy < one {
            return Err(format!(
                "\"{prefix}busy_buffers_size\" must be equal to or greater than {largest}"
            ));
        }
        if busy > (number - 1).saturating_mul(size) {
            return Err(format!(
                "\"{prefix}busy_buffers_size\" must be less than the size of all \"{prefix}buffers\" minus one buffer"
            ));
        }
        let write = self.temp_file_write_size.or(Size(one.saturating_mul(2))).0;
        if write < one {
            return Err(format!(
                "\"{prefix}temp_file_write_size\" must be equal to or greater than {largest}"
            ));
        }
        let file = self.max_temp_file_size.or(Size(TEMP_FILE_BYTES)).0;
        if file != 0 && file < one {
            return Err(format!(
                "\"{prefix}max_temp_file_size\" must be equal to zero to disable temporary files usage or must be equal to \
                 or greater than {largest}"
            ));
        }
        Ok(Sizes {
            buffers: (number, size),
            max_temp_file_size: file,
            temp_file_write_size: write,
        })
    }

    /// The module's own list with those of `*_hide_header`, without those of `*_pass_header`.
    fn hidden(&self, own: &[&str]) -> Hidden {
        let mut hidden: Vec<Box<[u8]>> = own.iter().map(|name| name.as_bytes().into()).collect();
        let more = self.hide_header.get().map_or(&[][..], |names| &names.0);
        for name in more {
            if !hidden.contains(name) {
                hidden.push(name.clone());
            }
        }
        let passed = self.pass_header.get().map_or(&[][..], |names| &names.0);
        hidden.retain(|name| !passed.contains(name));
        hidden.into()
    }
}

/// Sizes that go together.
#[derive(Default)]
struct Sizes {
    buffers: (u64, u64),
    max_temp_file_size: u64,
    temp_file_write_size: u64,
}

/// nginx's buffers are pages.
const PAGE_BYTES: u64 = 4096;
/// `*_max_temp_file_size` where it is not written.
const TEMP_FILE_BYTES: u64 = 1 << 30;
