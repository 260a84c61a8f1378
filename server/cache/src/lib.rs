//! Stored responses of upstream servers.
//!
//! - [`disk`]: nginx's format of a file, as pure functions over bytes; [`response_head`]: the response head in it.
//! - [`names`]: paths of files. [`vary`]: the choice among variants. [`similar`]: variants of one meaning. [`tags`]: tags
//!   of a response.
//! - [`index`]: the entries of a cache in memory, shared by all threads. [`fill`]: an entry in reception.
//!   [`stored_head`]: the parsed begin of a file.
//! - [`directory`]: the only file with input and output.
//! - [`loader`], [`manager`], [`purger`]: work over directory and index, in bounded steps. [`loading`]: the thread of the
//!   loader.
//!
//! Absent: requests, their settings and the steps of a request, which are in server/http.
//!
//! Source: RFC 9111; nginx documentation, `ngx_http_proxy_module`.
#![forbid(unsafe_code)]

pub mod directory;
pub mod disk;
pub mod fill;
pub mod index;
pub mod key;
mod layout;
pub mod loader;
pub mod loading;
pub mod manager;
pub mod memory;
pub mod names;
pub mod pace;
pub mod purger;
pub mod response_head;
pub mod rfc9111;
pub mod similar;
pub mod stored_head;
pub mod tags;
pub mod vary;
