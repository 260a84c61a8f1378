//! Directives of nginx that have no meaning here: accepted, checked as nginx checks them, listed with the reason.
//!
//! The list is the source of the table in docs/differences.md.

use conf::{Arity, ConfError, Contexts, Directive, DirectiveDef};

use super::ConfigBuilder;

macro_rules! rows {
    ($( $name:literal, $contexts:expr, $arity:ident, $check:ident, $reason:literal; )*) => {
        /// The rows; the documentation is the reason.
        pub const IGNORED: &[DirectiveDef<ConfigBuilder>] = &[ $( DirectiveDef {
            name: $name,
            contexts: $contexts,
            arity: Arity::$arity,
            block: false,
            default: "",
            doc: $reason,
            syntax: "...",
            apply: $check,
        }, )* ];
    };
}

const H: Contexts = Contexts::HTTP;
const HS: Contexts = Contexts::HTTP_SERVER;
const SL: Contexts = Contexts::SERVER.or(Contexts::LOCATION);
const HSL: Contexts = Contexts::HTTP_SERVER_LOCATION;

rows! {
    "accept_mutex", Contexts::EVENTS, FLAG, flag, "Threads share listeners with EPOLLEXCLUSIVE and need no mutex.";
    "accept_mutex_delay", Contexts::EVENTS, TAKE1, time, "Threads share listeners with EPOLLEXCLUSIVE and need no mutex.";
    "lock_file", Contexts::MAIN, TAKE1, any, "There is no accept mutex.";
    "pcre_jit", Contexts::MAIN, FLAG, flag, "Regular expressions are always compiled just in time if PCRE2 supports it.";
    "timer_resolution", Contexts::MAIN, TAKE1, time, "The clock is read once per event loop iteration.";
    "worker_aio_requests", Contexts::EVENTS, TAKE1, number, "Asynchronous file reading is not used.";
    "epoll_events", Contexts::EVENTS, TAKE1, number, "A thread processes up to 512 events at a time.";
    "debug_points", Contexts::MAIN, TAKE1, debug_points, "There are no debug points.";
    "server_names_hash_max_size", H, TAKE1, number, "Hash tables are sized automatically.";
    "server_names_hash_bucket_size", H, TAKE1, number, "Hash tables are sized automatically.";
    "variables_hash_max_size", H, TAKE1, number, "Hash tables are sized automatically.";
    "variables_hash_bucket_size", H, TAKE1, number, "Hash tables are sized automatically.";
    "map_hash_max_size", H, TAKE1, number, "Hash tables are sized automatically.";
    "map_hash_bucket_size", H, TAKE1, number, "Hash tables are sized automatically.";
    "referer_hash_max_size", SL, TAKE1, number, "Hash tables are sized automatically.";
    "referer_hash_bucket_size", SL, TAKE1, number, "Hash tables are sized automatically.";
    "types_hash_max_size", HSL, TAKE1, number, "Hash tables are sized automatically.";
    "types_hash_bucket_size", HSL, TAKE1, number, "Hash tables are sized automatically.";
    "proxy_headers_hash_max_size", HSL, TAKE1, number, "Hash tables are sized automatically.";
    "proxy_headers_hash_bucket_size", HSL, TAKE1, number, "Hash tables are sized automatically.";
    "connection_pool_size", HS, TAKE1, size, "Connections have no memory pools of a fixed size.";
    "request_pool_size", HS, TAKE1, size, "Requests have no memory pools of a fixed size.";
    "output_buffers", HSL, TAKE2, buffers, "Bodies are sent from the page cache without copies through buffers.";
    "postpone_output", HSL, TAKE1, size, "Output of one event loop iteration is sent in one write and never held back.";
    "send_lowat", HSL, TAKE1, send_lowat, "No effect on Linux, with a warning as in nginx.";
    "read_ahead", HSL, TAKE1, size, "The read-ahead of the kernel is not changed.";
    "aio_write", HSL, FLAG, flag, "Temporary files are written by the thread of the connection.";
    "directio", HSL, TAKE1, offset_or_off, "Files are always read through the page cache.";
    "directio_alignment", HSL, TAKE1, offset, "Files are always read through the page cache.";
    "ssi_min_file_chunk", HSL, TAKE1, size, "Parsed text is already in memory and is sent from there.";
    "ssi_ignore_recycled_buffers", HSL, FLAG, flag, "There are no recycled buffers.";
    "open_file_cache_events", HSL, FLAG, flag, "nginx uses it with kqueue only; here `open_files_watch` watches files.";
    "postpone_gzipping", HSL, TAKE1, size, "Compression starts with the first bytes of a body.";
    "gzip_no_buffer", HSL, FLAG, flag, "Compressed output is sent as soon as it is produced.";
    "gzip_hash", HSL, TAKE1, gzip_hash, "The encoders have hash tables of a fixed size.";
    "client_body_in_single_buffer", HSL, FLAG, flag, "A body in memory is always a single buffer.";
}

fn any(_: &mut ConfigBuilder, _: &Directive) -> Result<(), ConfError> {
    Ok(())
}

fn flag(_: &mut ConfigBuilder, d: &Directive) -> Result<(), ConfError> {
    conf::flag(d).map(drop)
}

fn number(_: &mut ConfigBuilder, d: &Directive) -> Result<(), ConfError> {
    conf::number(d).map(drop)
}

fn size(_: &mut ConfigBuilder, d: &Directive) -> Result<(), ConfError> {
    conf::size(d).map(drop)
}

fn offset(_: &mut ConfigBuilder, d: &Directive) -> Result<(), ConfError> {
    conf::offset(d).map(drop)
}

fn offset_or_off(b: &mut ConfigBuilder, d: &Directive) -> Result<(), ConfError> {
    if d.arg(0) == b"off" {
        return Ok(());
    }
    offset(b, d)
}

fn time(_: &mut ConfigBuilder, d: &Directive) -> Result<(), ConfError> {
    conf::time_ms(d).map(drop)
}

fn buffers(_: &mut ConfigBuilder, d: &Directive) -> Result<(), ConfError> {
    conf::buffers(d).map(drop)
}

fn send_lowat(b: &mut ConfigBuilder, d: &Directive) -> Result<(), ConfError> {
    size(b, d)?;
    b.warn(ConfError::at(d, "\"send_lowat\" is not supported, ignored"));
    Ok(())
}

fn debug_points(_: &mut ConfigBuilder, d: &Directive) -> Result<(), ConfError> {
    conf::choice(d, &[("stop", ()), ("abort", ())])
}

/// A power of two from 512 to 128k.
fn gzip_hash(_: &mut ConfigBuilder, d: &Directive) -> Result<(), ConfError> {
    let size = conf::size(d)?;
    if size.is_power_of_two() && (512..=128 << 10).contains(&size) {
        return Ok(());
    }
    let text = "must be 512, 1k, 2k, 4k, 8k, 16k, 32k, 64k, or 128k";
    Err(ConfError::directive(d, text))
}
