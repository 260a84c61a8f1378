//! Prints 20 doc comments of shipped code drawn by lot, for a reviewer who has not written them. Arguments: the seed of the
//! draw, and a folder of the tree.

use firstbyte_tests::docs::{docs, sample};

/// The seed if the command line names none.
const SEED: u64 = 19;
/// Doc comments of one sample.
const COUNT: usize = 20;

fn main() {
    let mut args = std::env::args().skip(1);
    let seed = args.next().map_or(SEED, |arg| {
        arg.parse().expect("the first argument is a number")
    });
    let mut all = docs(&args.next().unwrap_or_default());
    all.retain(|doc| {
        let path = std::path::Path::new(&doc.file);
        !firstbyte_tests::source::is_test_file(&firstbyte_tests::source::root().join(path))
    });
    println!("seed {seed}, {COUNT} of {} doc comments", all.len());
    for doc in sample(&all, seed, COUNT) {
        println!(
            "\n{}:{}\n  {}\n  > {}",
            doc.file, doc.line, doc.text, doc.item
        );
    }
}
