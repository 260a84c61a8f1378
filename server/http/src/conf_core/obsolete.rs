//! Directives of nginx that have a successor, and sizes of memory that only nginx has: accepted with a warning.
//!
//! Source: nginx documentation, `ngx_http_v2_module`.

use conf::{Contexts, DirectiveDef};

use crate::settings_set::SettingsContext;

const H: Contexts = Contexts::HTTP;
const HS: Contexts = Contexts::HTTP_SERVER;

macro_rules! obsolete {
    ($name:literal, $contexts:expr, $doc:expr, $warning:expr) => {
        ::conf::DirectiveDef {
            name: $name,
            contexts: $contexts,
            arity: ::conf::Arity::TAKE1,
            block: false,
            default: "",
            doc: $doc,
            syntax: "...",
            apply: |b, d| {
                let b: &mut dyn ::server_base::config::ConfigContext = b;
                b.warn(::conf::ConfError::at(
                    d,
                    concat!("the \"", $name, "\" directive ", $warning),
                ));
                Ok(())
            },
        }
    };
    ($name:literal, $contexts:expr, $successor:literal) => {
        obsolete!(
            $name,
            $contexts,
            concat!("Obsolete: use ", $successor, "."),
            concat!(
                "is obsolete, use the \"",
                $successor,
                "\" directive instead"
            )
        )
    };
}

/// A row of a size of memory that only nginx has.
macro_rules! unneeded {
    ($name:literal, $contexts:expr) => {
        obsolete!(
            $name,
            $contexts,
            "Ignored: memory that only nginx has.",
            "is not needed, ignored"
        )
    };
}

pub(super) use {obsolete, unneeded};

/// Rows of HTTP/2.
pub(super) const fn http2_rows<B: SettingsContext>() -> &'static [DirectiveDef<B>] {
    const {
        &[
            unneeded!("http2_pool_size", HS),
            unneeded!("http2_recv_buffer_size", H),
            unneeded!("http2_streams_index_size", HS),
            obsolete!("http2_recv_timeout", HS, "client_header_timeout"),
            obsolete!("http2_idle_timeout", HS, "keepalive_timeout"),
            obsolete!("http2_max_requests", HS, "keepalive_requests"),
            obsolete!("http2_max_field_size", HS, "large_client_header_buffers"),
            obsolete!("http2_max_header_size", HS, "large_client_header_buffers"),
        ]
    }
}
