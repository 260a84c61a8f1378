//! Placeholder until the first version lands.
fn main() {}
