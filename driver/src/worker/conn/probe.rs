//! The probe of a connection: where its events are emitted, and where the kernel is asked about those that only it sees.

mod arm_figures;
mod arms;
mod kept;
mod points;
mod record;
mod recording;
mod sample;
mod sampling;

pub(super) use arm_figures::EndedBy;
pub use arms::{add_cpu, look_at_arms};
pub(super) use arms::{add_host_arm, file_became_shorter};
pub(super) use kept::Kept;
pub use points::{accepted, closed};
pub(super) use points::{
    fed, handshake, head, is_first_byte_wanted, is_first_response_wanted, read, written,
};
pub(super) use sample::StampedByte;
pub(super) use sampling::{abort, begin, deadline, end, expire, finish, nothing_read};
