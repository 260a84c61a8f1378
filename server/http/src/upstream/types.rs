//! The types of upstream directives, for [`upstream_rows!`](crate::upstream_rows).

pub use server_base::from_args::{Access, Millis, Number, Size};

pub use super::conf::IgnoredHeaders;
pub use super::values::{
    Bind, CacheConditions, Conditions, FieldNames, NoCache, ResponseBuffers, SendLowat,
    SocketBuffer, Stored, TempPath,
};
pub use crate::value::SizeValue;
