//! The store in SQLite, as its users see it: answers, damaged files, killed processes, full disks.

mod answers;
mod documented;
mod kept;
mod kills;
mod model;
mod opening;
mod privacy;
mod processes;
mod rows;
mod writing;
