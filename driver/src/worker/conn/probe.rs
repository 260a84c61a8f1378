//! The probe of a connection: it emits events, and requests timestamps for events that only the kernel sees.

mod arm_figures;
mod arms;
mod points;
mod record;
mod recording;
mod sample;
mod sampling;
mod state;

pub(super) use arm_figures::EndedBy;
pub use arms::{add_cpu, report_arms};
pub(super) use arms::{add_host_arm, file_became_shorter};
pub use points::{accepted, closed};
pub(super) use points::{
    fed, handshake, head, is_first_byte_wanted, is_first_response_wanted, read, written,
};
pub(super) use sample::StampedByte;
pub(super) use sampling::{abort, begin, deadline, end, expire, finish, nothing_read};
pub(super) use state::ProbeState;
