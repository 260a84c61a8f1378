//! The syntax of nginx.conf, without the meaning of its directives.
//!
//! Text goes in, a tree of directives comes out ([`parse`]); tables of rows define the directives ([`DirectiveDef`],
//! [`Table`]), and a walk applies them in the order of the text ([`walk`]) and follows `include`. Errors carry nginx's wording
//! and line, and show the place ([`ConfError`]). Files are read only through a [`Source`], so the same code reads a disk, a
//! test's memory, or the bundle of a worker.
//!
//! A small language of one block and one setting:
//!
//! ```
//! use conf::{Arity, Builder, ConfError, Contexts, Loader, Memory, DirectiveDef, Setting, Table, walk, walk_file};
//!
//! struct Config { table: &'static Table<Config>, loader: Loader, workers: Setting<u64> }
//!
//! impl Builder for Config {
//!     fn table(&self) -> &Table<Self> { self.table }
//!     fn loader(&mut self) -> &mut Loader { &mut self.loader }
//! }
//!
//! const ROWS: &[DirectiveDef<Config>] = &[
//!     DirectiveDef {
//!         name: "events", contexts: Contexts::MAIN, arity: Arity::NOARGS, block: true,
//!         default: "", syntax: "{ ... }", doc: "How connections are processed.",
//!         apply: |config, d| walk(config, d.items(), Contexts::EVENTS),
//!     },
//!     DirectiveDef {
//!         name: "worker_connections", contexts: Contexts::EVENTS, arity: Arity::TAKE1, block: false,
//!         default: "512", syntax: "number", doc: "How many connections a worker may have.",
//!         apply: |config, d| config.workers.set_with(d, conf::number),
//!     },
//! ];
//!
//! let source = Memory::default().with_file("/etc/nginx/nginx.conf", "events {\n    worker_conections 64;\n}\n");
//! let table = Box::leak(Box::new(Table::from(&[ROWS])));
//! let mut config = Config { table, loader: Loader::new(source, "/etc/nginx"), workers: Setting::UNSET };
//!
//! let file = config.loader.load("/etc/nginx/nginx.conf".as_ref()).expect("the file is there");
//! let error = walk_file(&mut config, &file, Contexts::MAIN).expect_err("the name is misspelt");
//! assert_eq!(error.to_string(), "unknown directive \"worker_conections\" in /etc/nginx/nginx.conf:2");
//! assert_eq!(error.hint(), Some("did you mean \"worker_connections\"?"));
//! ```

#![forbid(unsafe_code)]

mod arity;
mod context;
mod data;
mod directive_def;
mod directory_cache;
mod error;
mod escape;
mod files;
mod glob;
mod lex;
mod loader;
mod memory;
mod nginx_directives;
mod parse;
mod recorder;
mod regular;
mod setting;
mod shared_map;
mod source;
mod suggest;
mod text;
mod tree;
mod unbuilt;
mod value;

pub use arity::Arity;
pub use context::Contexts;
pub use data::{DATA_BYTES_MAX, DataFile, Stamp, now_s};
pub use directive_def::{Apply, Builder, DirectiveDef, Table, each, walk, walk_block, walk_file};
pub use error::{ConfError, WordSpan};
pub use escape::quote;
pub use files::{COMMAND_LINE, Files};
pub use glob::{is_pattern, matches};
pub use lex::WORD_MAX;
pub use loader::{FileText, INCLUDE_DEPTH_MAX, INCLUDES_MAX, Level, Loader};
pub use memory::Memory;
pub use nginx_directives::{NginxDirective, nginx_directives};
pub use parse::{BLOCK_DEPTH_MAX, parse};
pub use recorder::Recorder;
pub use regular::TEXT_BYTES_MAX;
pub use setting::Setting;
pub use source::{Disk, Lookup, Source};
pub use sys::identity::is_root;
pub use sys::os_error;
pub use sys::process::hostname;
pub use text::Text;
pub use tree::{Directive, Item, Origin, Pos, Word};
pub use unbuilt::{known_to_nginx, unknown};
pub use value::{
    at_least, between, buffers, choice, flag, has_option, mask, mask_more, number, offset, once,
    parse_digits, parse_enum, parse_flag, parse_mask, parse_number, parse_offset, parse_size,
    parse_time_ms, parse_time_s, size, text, time_ms, time_s,
};

#[cfg(test)]
mod testing {
    use std::sync::Arc;

    use crate::{Directive, Item, Origin, parse};

    /// The one directive of a text, in `/a.conf`.
    pub(crate) fn directive(text: &str) -> Directive {
        let items = parse(&Arc::new(text.into()), 0, &Origin::file("/a.conf"));
        let Some(Item::Directive(d)) = items.into_iter().next() else {
            panic!("no directive in {text:?}")
        };
        d
    }
}
