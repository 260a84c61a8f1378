//! Tests of FastCGI, SCGI, uwsgi and memcached.

mod applications;
mod bad_input;
mod faults;
mod memcached;
mod php;
mod request_bodies;
mod wordpress;
