//! Counters of runs that can be added up.

/// Declares a struct of counters, each a `u64`, with a method `add` that adds those of another.
#[macro_export]
macro_rules! tally {
    ($(#[$about:meta])* $seen:vis struct $name:ident { $($counter_seen:vis $counter:ident,)* }) => {
        $(#[$about])*
        #[derive(Debug, Default)]
        $seen struct $name {
            $($counter_seen $counter: u64,)*
        }

        impl $name {
            $seen fn add(&mut self, other: &Self) {
                $(self.$counter += other.$counter;)*
            }
        }
    };
}
