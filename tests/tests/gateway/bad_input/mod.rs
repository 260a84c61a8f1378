//! Applications behind FastCGI, SCGI and uwsgi and memcached servers that break their protocol: what becomes of the response,
//! and what the log says.
//!
//! Each row was asked of nginx 1.31.4, whose result it has unless it says that firstbyte is stricter.

mod heads;
mod records;
mod rows;
mod told;
mod values;
