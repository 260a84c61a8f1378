//! Settings of one level: one for each upstream directive, and its default.

use conf::{Directive, Setting};
use server_base::from_args::{Access, Millis, Number, Size};

use super::conf::{IgnoredHeaders, NextUpstream};
use super::values::{
    Bind, CacheConditions, Conditions, FieldNames, NoCache, ResponseBuffers, SendLowat,
    SocketBuffer, Stored, TempPath,
};
use crate::value::SizeValue;

/// Declares the settings: those with a value everywhere, and those of which it counts whether they are written.
macro_rules! written {
    ( everywhere { $( $field:ident: $ty:ty = $default:expr; )* } where_written { $( $maybe:ident: $maybe_ty:ty; )* } ) => {
        /// Settings written at a level. Once merged, all settings but those about sizes, the temporary directory and
        /// hidden fields have a value.
        #[derive(Clone, Default)]
        pub struct UpstreamDirectives {
            $( #[doc = concat!("`*_", stringify!($field), "`.")] pub $field: Setting<$ty>, )*
            $( #[doc = concat!("`*_", stringify!($maybe), "`.")] pub $maybe: Setting<$maybe_ty>, )*
            /// The last directive about sizes at this level, to blame for sizes that do not go together.
            pub(super) sizes_at: Option<Directive>,
        }

        impl UpstreamDirectives {
            /// Takes from `parent` what is not set here, else the defaults.
            pub(super) fn inherit(&mut self, parent: Option<&Self>) {
                $( self.$field.inherit(parent.map(|parent| &parent.$field), || $default); )*
                let Some(parent) = parent else { return };
                $( self.$maybe.merge_from(&parent.$maybe); )*
            }
        }
    };
}

written! {
    everywhere {
        buffering: bool = true;
        request_buffering: bool = true;
        ignore_client_abort: bool = false;
        intercept_errors: bool = false;
        connect_timeout: Millis = Millis(60_000);
        send_timeout: Millis = Millis(60_000);
        read_timeout: Millis = Millis(60_000);
        next_upstream: NextUpstream = NextUpstream(NextUpstream::ERROR | NextUpstream::TIMEOUT);
        next_upstream_tries: Number = Number(0);
        next_upstream_timeout: Millis = Millis(0);
        limit_rate: SizeValue = SizeValue(None);
        force_ranges: bool = false;
        bind: Bind = Bind(None);
        bind_dynamic: bool = false;
        request_dynamic: bool = false;
        allow_upstream: Conditions = Conditions::default();
        socket_keepalive: bool = false;
        socket_rcvbuf: SocketBuffer = SocketBuffer(0);
        socket_sndbuf: SocketBuffer = SocketBuffer(0);
        send_lowat: SendLowat = SendLowat;
        ignore_headers: IgnoredHeaders = IgnoredHeaders::default();
        pass_request_headers: bool = true;
        pass_request_body: bool = true;
        pass_trailers: bool = false;
        store: Stored = Stored(None);
        store_access: Access = Access(0o600);
        cache: NoCache = NoCache;
        cache_bypass: CacheConditions = CacheConditions;
        no_cache: CacheConditions = CacheConditions;
    }
    where_written {
        buffer_size: Size;
        buffers: ResponseBuffers;
        busy_buffers_size: Size;
        max_temp_file_size: Size;
        temp_file_write_size: Size;
        temp_path: TempPath;
        hide_header: FieldNames;
        pass_header: FieldNames;
    }
}
