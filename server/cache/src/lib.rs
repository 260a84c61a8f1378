//! Stored responses of upstream servers.
//!
//! [`disk`] is nginx's format of a file, as pure functions over bytes, and [`response_head`] that of the response head in it.
//! [`names`] has the paths of files, [`vary`] the choice among variants, [`similar`] variants of
//! one meaning, [`tags`] the tags of a response. [`index`] has the
//! entries of a cache in memory, shared by all threads; a [`fill`] is an entry that is being received. A
//! [`stored_head`] is the parsed begin of a file. [`directory`] is the
//! only file with input and output. [`loader`], [`manager`] and [`purger`] are periodic work over directory and index, in
//! bounded steps; [`loading`] is the thread of the loader.
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
