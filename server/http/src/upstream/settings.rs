//! From directives to an [`UpstreamConf`]: the settings of one level, inheritance, and checks across directives.
//!
//! A module that passes requests on has an [`UpstreamSettings`] among its settings, and implements [`PassesOn`]. A level
//! without such directives shares the settings of the level around it.
//!
//! Source: nginx documentation, `ngx_http_proxy_module`; defaults and rules are nginx's.

use std::collections::{BTreeSet, HashMap};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::sync::Arc;

use conf::{ConfError, Directive, Setting};
use server_base::files::TempDir;
use server_base::from_args::{Access, Between, Millis, Number, Offset, Size};
use server_upstream::route::{SocketOptions, Timeouts};

use super::conf::{
    Buffering, Hidden, IgnoredHeaders, NextUpstream, PassedRequest, RequestBody, ResponseFields,
    Retry, Socket, Storing, UpstreamConf,
};
use super::directives::{
    Bind, Conditions, FieldNames, ResponseBuffers, SendLowat, SocketBuffer, Stored,
};
use super::retry_directives::{Budget, SameTimes};
use crate::assemble::ConfigBuilder;
use crate::cache::conf::{
    CacheConditions, CacheConf, CacheLock, CacheMethods, CacheRules, CacheValid, ZoneChoice,
};
use crate::cache::directives::{AnyOf, CacheChoice, CacheName, KeyText, MethodBits};
use crate::cache::zone::Caches;
use crate::settings_set::Conf;
use crate::value::SizeValue;

/// Settings of a module that passes requests on.
pub trait PassesOn: Conf {
    /// The defaults of the module.
    const DEFAULTS: Defaults;
    /// Whether responses are read ahead of the client: the module has the directives about buffers.
    const READS_AHEAD: bool = true;
    /// Whether servers speak HTTP: keys of the cache have a default, and HEAD may be sent as GET.
    const IS_HTTP: bool = false;

    /// Those that all such modules have in common.
    fn upstream(&mut self) -> &mut UpstreamSettings;

    /// Whether requests are passed on in this location.
    fn passes_on(&self) -> bool;

    /// Sets values that no directive of the module decides.
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

/// The settings of one level: as written, as merged, and as used.
#[derive(Default)]
pub struct UpstreamSettings {
    own: Option<Box<UpstreamDirectives>>,
    merged: Option<Arc<UpstreamDirectives>>,
    conf: Option<Arc<UpstreamConf>>,
}

impl UpstreamSettings {
    /// Takes unset values from `parent`, else the defaults.
    pub fn merge(&mut self, parent: Option<&Self>) {
        let parent = parent.and_then(|parent| parent.merged.as_ref());
        self.merged = match (self.own.take(), parent) {
            (None, Some(parent)) => Some(Arc::clone(parent)),
            (own, parent) => {
                let mut own = own.unwrap_or_default();
                own.exclude_cache_or_store();
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

    /// The directives of this level, to be set.
    pub(super) fn written(&mut self) -> &mut UpstreamDirectives {
        self.own.get_or_insert_default()
    }
}

/// Makes the final settings of the merged ones. If requests are passed on, also has the directories for temporary
/// files made. For modules' `finish`.
///
/// # Errors
/// Sizes that do not go together.
pub fn finish<C: PassesOn>(b: &mut ConfigBuilder) -> Result<(), ConfError> {
    let default = TempDir {
        path: b.full_path(C::DEFAULTS.temp_path.as_bytes()),
        levels: [1, 2, 0],
    };
    // By the address of the merged settings, which many levels share.
    let mut known: HashMap<*const UpstreamDirectives, Arc<UpstreamConf>> = HashMap::new();
    let mut dirs = BTreeSet::new();
    let caches = b.caches.of_module(C::DEFAULTS.prefix);
    let mut keyless = 0;
    let mut passes_on = false;
    let mut transparent = false;
    // Sizes of `http` itself need not fit together, as in nginx: only those of servers and locations count.
    for conf in b.location_confs_mut::<C>().skip(1) {
        let used = conf.passes_on();
        let settings = conf.upstream();
        let merged = settings.merged.as_ref();
        let merged = merged.expect("levels are merged before modules are finished");
        let key = Arc::as_ptr(merged);
        let resolved = match known.get(&key) {
            Some(resolved) => Arc::clone(resolved),
            None => {
                let mut resolved = merged.resolve::<C>(&default, &caches)?;
                C::fix(&mut resolved);
                let has_no_key = |cache: &Arc<CacheConf>| cache.key.is_none();
                keyless +=
                    usize::from(!C::IS_HTTP && resolved.cache.as_ref().is_some_and(has_no_key));
                let resolved = Arc::new(resolved);
                known.insert(key, Arc::clone(&resolved));
                resolved
            }
        };
        if used {
            passes_on = true;
            transparent |= resolved.socket.options.transparent;
            let dir = resolved.buffering.temp_path.as_ref();
            dirs.extend(dir.map(|dir| PathBuf::from(OsStr::from_bytes(&dir.path))));
        }
        settings.conf = Some(resolved);
    }
    for _ in 0..keyless {
        let prefix = C::DEFAULTS.prefix;
        let text = format!("no \"{prefix}cache_key\" for \"{prefix}cache\"");
        b.warn(ConfError::new(text));
    }
    if passes_on {
        b.read_bodies();
    }
    b.main.worker.binds_transparently |= transparent;
    b.main.temp_paths.append(&mut dirs);
    Ok(())
}

/// Declares the directives of a level, in parts. One without a default stays unset if no level has it.
macro_rules! directives {
    (@inherit $own:expr, $parent:expr, $default:expr) => {
        $own.inherit($parent, || $default)
    };
    (@inherit $own:expr, $parent:expr) => {
        if let Some(parent) = $parent {
            $own.merge_from(parent);
        }
    };
    ( $( $part:ident: $name:ident { $( $field:ident: $ty:ty $( = $default:expr )?; )* } )* ) => {
        /// Directives of a level, in parts.
        #[derive(Clone, Default)]
        pub struct UpstreamDirectives {
            $( #[doc = concat!("See [`", stringify!($name), "`].")] pub $part: $name, )*
            /// The last directive about sizes at this level, for errors about sizes of several directives.
            pub(super) sizes_at: Option<Directive>,
        }

        impl UpstreamDirectives {
            /// Inherits directives that are not set from `parent`, or sets their defaults.
            fn inherit(&mut self, parent: Option<&Self>) {
                $( $( directives!(@inherit self.$part.$field, parent.map(|p| &p.$part.$field) $(, $default)?); )* )*
            }
        }

        $(
            #[doc = concat!("Directives about ", stringify!($part), ".")]
            #[derive(Clone, Default)]
            pub struct $name {
                $( #[doc = concat!("`*_", stringify!($field), "`.")] pub $field: Setting<$ty>, )*
            }
        )*
    };
}

directives! {
    requests: RequestDirectives {
        request_buffering: bool = true;
        pass_request_headers: bool = true;
        pass_request_body: bool = true;
        ignore_client_abort: bool = false;
    }
    buffering: BufferingDirectives {
        buffering: bool = true;
        buffer_size: Size;
        buffers: ResponseBuffers;
        busy_buffers_size: Size;
        max_temp_file_size: Size;
        temp_file_write_size: Size;
        temp_path: TempDir;
        limit_rate: SizeValue = SizeValue(None);
    }
    timeouts: TimeoutDirectives {
        connect_timeout: Millis = Millis(60_000);
        send_timeout: Millis = Millis(60_000);
        read_timeout: Millis = Millis(60_000);
    }
    retry: RetryDirectives {
        next_upstream: NextUpstream = NextUpstream(NextUpstream::ERROR | NextUpstream::TIMEOUT);
        next_upstream_tries: Number = Number(0);
        next_upstream_timeout: Millis = Millis(0);
        next_upstream_delay: Millis = Millis(0);
        next_upstream_same: SameTimes = Between(0);
        next_upstream_attempt_timeout: Millis = Millis(0);
        retry_budget: Budget = Budget(None);
        request_dynamic: bool = false;
        allow_upstream: Conditions = Conditions::default();
    }
    socket: SocketDirectives {
        bind: Bind = Bind(None);
        bind_dynamic: bool = false;
        socket_keepalive: bool = false;
        socket_rcvbuf: SocketBuffer = SocketBuffer(0);
        socket_sndbuf: SocketBuffer = SocketBuffer(0);
        send_lowat: SendLowat = SendLowat;
    }
    responses: ResponseDirectives {
        hide_header: FieldNames;
        pass_header: FieldNames;
        ignore_headers: IgnoredHeaders = IgnoredHeaders::default();
        force_ranges: bool = false;
        pass_trailers: bool = false;
        intercept_errors: bool = false;
    }
    store: StoreDirectives {
        store: Stored = Stored(None);
        store_access: Access = Access(0o600);
    }
    cache: CacheDirectives {
        cache: CacheChoice = CacheChoice::Off;
        cache_key: KeyText;
        cache_valid: CacheValid = CacheValid::default();
        cache_min_uses: Number = Number(1);
        cache_max_range_offset: Offset;
        cache_use_stale: NextUpstream = NextUpstream::default();
        cache_methods: MethodBits = MethodBits::default();
        cache_lock: bool = false;
        cache_lock_timeout: Millis = Millis(5000);
        cache_lock_age: Millis = Millis(5000);
        cache_status: bool = false;
    }
    cache_rules: CacheRuleDirectives {
        cache_bypass: AnyOf = AnyOf::default();
        no_cache: AnyOf = AnyOf::default();
        cache_purge: AnyOf = AnyOf::default();
        cache_rfc: bool = true;
        cache_revalidate: bool = false;
        cache_background_update: bool = false;
        cache_convert_head: bool = true;
    }
}

impl UpstreamDirectives {
    /// A level with `*_store` does not inherit a cache, and a level with a cache does not inherit `*_store`, as in nginx.
    fn exclude_cache_or_store(&mut self) {
        let (store, cache) = (&mut self.store.store, &mut self.cache.cache);
        if store.get().is_some_and(|stored| stored.0.is_some()) {
            cache.replace(CacheChoice::Off);
        } else if cache.get().is_some_and(CacheChoice::is_on) {
            store.replace(Stored(None));
        }
    }

    /// Makes the settings that exchanges read.
    fn resolve<C: PassesOn>(
        &self,
        temp_path: &TempDir,
        caches: &Caches,
    ) -> Result<UpstreamConf, ConfError> {
        // Several directives count together, so an error is about the last of them.
        let at_sizes = |text| match &self.sizes_at {
            Some(directive) => ConfError::at(directive, text),
            None => ConfError::new(text),
        };
        let (requests, timeouts) = (&self.requests, &self.timeouts);
        Ok(UpstreamConf {
            request: PassedRequest {
                fields: *requests.pass_request_headers,
                body: match (*requests.pass_request_body, *requests.request_buffering) {
                    (false, _) => RequestBody::Dropped,
                    (true, true) => RequestBody::Whole,
                    (true, false) => RequestBody::Streamed,
                },
            },
            buffering: self.buffering.resolve::<C>(temp_path).map_err(at_sizes)?,
            timeouts: Timeouts {
                connect_ms: timeouts.connect_timeout.0,
                send_ms: timeouts.send_timeout.0,
                read_ms: timeouts.read_timeout.0,
            },
            retry: self.retry.resolve(),
            socket: self.socket.resolve(),
            fields: ResponseFields {
                hidden: self.responses.hidden(C::DEFAULTS.hidden),
                ignored: *self.responses.ignore_headers,
                force_ranges: *self.responses.force_ranges,
                pass_trailers: *self.responses.pass_trailers,
            },
            store: Storing {
                path: self.store.store.0.clone(),
                access: self.store.store_access.0,
            },
            cache: self.cache_conf::<C>(caches)?.map(Arc::new),
            ignore_client_abort: *requests.ignore_client_abort,
            intercept_errors: *self.responses.intercept_errors,
        })
    }

    /// Makes the settings of the cache, of the caches of the module.
    fn cache_conf<C: PassesOn>(&self, caches: &Caches) -> Result<Option<CacheConf>, ConfError> {
        let (own, rules) = (&self.cache, &self.cache_rules);
        let CacheChoice::On { name, at } = &*own.cache else {
            return Ok(None);
        };
        let zone = match name {
            CacheName::Computed(value) => ZoneChoice::Computed(value.clone(), caches.clone()),
            CacheName::Fixed(name) => {
                let zone = caches.find(name).ok_or_else(|| {
                    let (directive, name) = (at.name(), String::from_utf8_lossy(name));
                    ConfError::at(at, format!("\"{directive}\" zone \"{name}\" is unknown"))
                })?;
                ZoneChoice::Fixed(Arc::clone(zone))
            }
        };
        Ok(Some(CacheConf {
            zone,
            key: own.cache_key.get().map(|key| key.value.clone()),
            has_method_in_key: own.cache_key.get().is_some_and(|key| key.has_method),
            is_key_of_uri: own.cache_key.get().is_none_or(|key| key.is_of_uri),
            conditions: CacheConditions {
                bypass: rules.cache_bypass.0.clone(),
                no_cache: rules.no_cache.0.clone(),
                purge: rules.cache_purge.0.clone(),
            },
            valid: (*own.cache_valid).clone(),
            min_uses: u32::try_from(own.cache_min_uses.0).unwrap_or(u32::MAX),
            max_range_offset: own.cache_max_range_offset.get().map(|offset| offset.0),
            use_stale: own.cache_use_stale.for_stale(),
            methods: CacheMethods::with(own.cache_methods.0),
            lock: CacheLock {
                is_on: *own.cache_lock,
                timeout_ms: own.cache_lock_timeout.0,
                age_ms: own.cache_lock_age.0,
            },
            rules: CacheRules {
                rfc: *rules.cache_rfc,
                revalidate: *rules.cache_revalidate,
                background_update: *rules.cache_background_update,
                convert_head: C::IS_HTTP && *rules.cache_convert_head,
            },
            sends_status: *own.cache_status,
        }))
    }
}

impl RetryDirectives {
    fn resolve(&self) -> Retry {
        let on = *self.next_upstream;
        Retry {
            on: match on.has(NextUpstream::OFF) {
                true => NextUpstream(NextUpstream::OFF),
                false => on,
            },
            tries: u32::try_from(self.next_upstream_tries.0).unwrap_or(u32::MAX),
            timeout_ms: self.next_upstream_timeout.0,
            delay_ms: self.next_upstream_delay.0,
            same: u32::try_from(self.next_upstream_same.0).unwrap_or(u32::MAX),
            attempt_ms: self.next_upstream_attempt_timeout.0,
            budget: self.retry_budget.0,
            request: (*self.request_dynamic).into(),
            allow_upstream: self.allow_upstream.0.clone(),
        }
    }
}

impl SocketDirectives {
    fn resolve(&self) -> Socket {
        let set = |bytes: u32| (bytes != 0).then_some(bytes);
        let (bind, transparent) = self.bind.0.clone().unzip();
        Socket {
            options: SocketOptions {
                bind: None,
                transparent: transparent.unwrap_or_default(),
                keepalive: *self.socket_keepalive,
                receive_buffer: set(self.socket_rcvbuf.0),
                send_buffer: set(self.socket_sndbuf.0),
            },
            bind,
            bind_computed: (*self.bind_dynamic).into(),
        }
    }
}

impl BufferingDirectives {
    /// Makes the settings of buffering, or returns the text of the error about sizes that contradict each other.
    fn resolve<C: PassesOn>(&self, temp_path: &TempDir) -> Result<Buffering, String> {
        let head_bytes = self.buffer_size.get().map(|size| size.0);
        let limit_rate = (*self.limit_rate).clone();
        if !C::READS_AHEAD {
            // Without reading ahead there are no files, and no directory is made for them.
            return Ok(Buffering {
                head_bytes,
                limit_rate,
                ..Buffering::default()
            });
        }
        let prefix = C::DEFAULTS.prefix;
        let ResponseBuffers(number, size) = self.buffers.or(ResponseBuffers(8, PAGE_BYTES));
        if number < 2 {
            return Err(format!("there must be at least 2 \"{prefix}buffers\""));
        }
        let one = head_bytes.unwrap_or(PAGE_BYTES).max(size);
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
        Ok(Buffering {
            reads_ahead: *self.buffering,
            head_bytes,
            buffers: (number, size),
            max_temp_file_size: file,
            temp_file_write_size: write,
            temp_path: Some(self.temp_path.get().unwrap_or(temp_path).clone()),
            limit_rate,
        })
    }
}

impl ResponseDirectives {
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

/// nginx's buffers are pages.
const PAGE_BYTES: u64 = 4096;
/// The default of `*_max_temp_file_size`.
const TEMP_FILE_BYTES: u64 = 1 << 30;
