//! The operating system, in the fewest calls that a server needs; the only `unsafe` of the project.
//!
//! Every function here takes and returns owned or borrowed descriptors and `io::Result`. rustix makes the calls it
//! supports, libc the rest. Linux only. Nothing here knows a protocol, a configuration or another crate of the
//! workspace. `namespace`, `mount`, `tun` and `device` serve only emulated links (`link/`) and the lab: all
//! `unsafe` is kept in one crate, and unused functions are not linked into the server.

pub mod clock;
pub mod connect;
pub mod device;
mod error_text;
pub mod exec;
pub mod fdpass;
pub mod heap;
pub mod host;
pub mod huge_pages;
pub mod identity;
pub mod inherit;
pub mod interfaces;
pub mod mount;
pub mod namespace;
pub mod notify;
pub mod page_cache;
pub mod poll;
pub mod prefetch;
pub mod process;
pub mod random;
pub mod schedule;
pub mod signal;
pub mod socket;
pub mod tcp_info;
pub mod terminal;
pub mod timestamps;
pub mod title;
pub mod trusted;
pub mod tun;

use std::io;

pub use error_text::os_error;

/// Runs `call` until it is not interrupted by a signal.
///
/// # Errors
/// Those of `call` but EINTR.
pub fn retry<T>(
    mut call: impl FnMut() -> Result<T, rustix::io::Errno>,
) -> Result<T, rustix::io::Errno> {
    loop {
        match call() {
            Err(rustix::io::Errno::INTR) => {}
            result => return result,
        }
    }
}

/// Turns the -1 of a libc call into the error in `errno`.
pub(crate) fn check<T: PartialEq + From<i8>>(result: T) -> io::Result<T> {
    if result == T::from(-1) {
        return Err(io::Error::last_os_error());
    }
    Ok(result)
}
