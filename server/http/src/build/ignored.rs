//! Directives of nginx that have no meaning here: accepted, checked for place and arity, listed with the reason.
//!
//! The list is the source of the table in docs/differences.md.

use conf::{Arity, Contexts, DirectiveDef};

use super::ConfigBuilder;

macro_rules! rows {
    ($( $name:literal, $contexts:expr, $arity:ident, $reason:literal; )*) => {
        /// The rows; the documentation is the reason.
        pub const IGNORED: &[DirectiveDef<ConfigBuilder>] = &[ $( DirectiveDef {
            name: $name,
            contexts: $contexts,
            arity: Arity::$arity,
            block: false,
            default: "",
            doc: $reason,
            syntax: "...",
            apply: |_, _| Ok(()),
        }, )* ];
    };
}

const H: Contexts = Contexts::HTTP;
const HS: Contexts = Contexts::HTTP_SERVER;
const SL: Contexts = Contexts::SERVER.or(Contexts::LOCATION);
const HSL: Contexts = Contexts::HTTP_SERVER_LOCATION;

rows! {
    "accept_mutex", Contexts::EVENTS, FLAG, "Threads share listeners by EPOLLEXCLUSIVE; there is no mutex to take.";
    "accept_mutex_delay", Contexts::EVENTS, TAKE1, "Threads share listeners by EPOLLEXCLUSIVE; there is no mutex to wait for.";
    "lock_file", Contexts::MAIN, TAKE1, "There is no accept mutex that would need a file.";
    "pcre_jit", Contexts::MAIN, FLAG, "Expressions are always compiled to machine code where PCRE2 can.";
    "timer_resolution", Contexts::MAIN, TAKE1, "The clock is read once a turn of the loop.";
    "worker_aio_requests", Contexts::EVENTS, TAKE1, "Asynchronous file reading is not used.";
    "debug_points", Contexts::MAIN, TAKE1, "There are no debug points.";
    "server_names_hash_max_size", H, TAKE1, "Tables size themselves.";
    "server_names_hash_bucket_size", H, TAKE1, "Tables size themselves.";
    "variables_hash_max_size", H, TAKE1, "Tables size themselves.";
    "variables_hash_bucket_size", H, TAKE1, "Tables size themselves.";
    "map_hash_max_size", H, TAKE1, "Tables size themselves.";
    "map_hash_bucket_size", H, TAKE1, "Tables size themselves.";
    "referer_hash_max_size", SL, TAKE1, "Tables size themselves.";
    "referer_hash_bucket_size", SL, TAKE1, "Tables size themselves.";
    "types_hash_max_size", HSL, TAKE1, "Tables size themselves.";
    "types_hash_bucket_size", HSL, TAKE1, "Tables size themselves.";
    "proxy_headers_hash_max_size", HSL, TAKE1, "Tables size themselves.";
    "proxy_headers_hash_bucket_size", HSL, TAKE1, "Tables size themselves.";
    "connection_pool_size", HS, TAKE1, "Connections do not allocate from pools of a set size.";
    "request_pool_size", HS, TAKE1, "Requests do not allocate from pools of a set size.";
    "output_buffers", HSL, TAKE2, "Bodies are sent from the page cache, not copied through buffers of a set size.";
    "postpone_output", HSL, TAKE1, "What is ready in one turn leaves in one write; nothing is held back.";
    "send_lowat", HSL, TAKE1, "Without effect on Linux.";
    "read_ahead", HSL, TAKE1, "The kernel's read-ahead is left as it is.";
    "aio_write", HSL, FLAG, "Temporary files are written by the thread that serves.";
    "directio", HSL, TAKE1, "Files are always read through the page cache.";
    "directio_alignment", HSL, TAKE1, "Files are always read through the page cache.";
    "ssi_min_file_chunk", HSL, TAKE1, "Text in which commands were looked for is sent from memory, where it is already.";
    "ssi_ignore_recycled_buffers", HSL, FLAG, "There are no recycled buffers.";
    "client_body_in_single_buffer", HSL, FLAG, "A body in memory is always one buffer.";
}
