//! What nginx's documentation and sources say that no test of a whole server shows at a glance: one site in memory for
//! each question.

mod charset;
mod errors;
mod fields;
mod mapping;
mod rewriting;
mod site;
mod variables;
