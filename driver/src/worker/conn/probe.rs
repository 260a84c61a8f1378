//! The probe of a connection: where its events are emitted, and where the kernel is asked about those that only it sees.

mod points;
mod sample;
mod sampling;

pub(crate) use points::accepted;
pub(super) use points::{fed, handshake, head, is_first_byte_wanted, read, written};
pub(super) use sample::{Sample, StampedByte};
pub use sampling::end;
pub(super) use sampling::{begin, deadline, expire, finish, nothing_read};
