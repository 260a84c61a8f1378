//! Placeholder until the first version lands.
