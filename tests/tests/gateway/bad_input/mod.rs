//! FastCGI, SCGI and uwsgi applications and memcached servers that break their protocol: the response to the client,
//! and the log.
//!
//! Each row was tried with nginx 1.31.4 and has its result, unless it is marked as stricter.

mod forged_parameters;
mod heads;
mod records;
mod rows;
mod values;
