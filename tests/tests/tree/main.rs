//! Rules of the source tree and of its documents.

mod circles;
mod documents;
mod prose;
mod structs;
mod structure;
mod structure_upstream;
mod tests_page;
mod tidy;
