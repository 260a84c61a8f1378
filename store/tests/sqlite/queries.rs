//! Every query of a random set of rows, before and after they become roll-ups.

use firstbyte_tests::TempDir;
use store::{Retention, Sqlite};

use crate::common::{check, open_samples, rows};
use crate::rows::{file, maintain, open};

#[test]
fn results_are_those_of_a_list() {
    let seed = std::process::id().into();
    println!("seed {seed}");
    let (rows, samples) = (rows(seed), open_samples(seed));
    let dir = TempDir::new();
    let mut store = open(&file(&dir));
    check(&store, &[], &[]);
    let (first, second) = rows.split_at(rows.len() / 2);
    store.commit(first, &samples).expect("they are stored");
    check(&store, first, &samples);
    // At the time 0, nothing is old.
    maintain(&mut store, 0, &Retention::default());
    store.insert(second).expect("they are stored");
    check(&store, &rows, &samples);
    maintain(&mut store, 0, &Retention::default());
    let reader = Sqlite::open_to_read(&file(&dir)).expect("it opens");
    check(&reader, &rows, &samples);
}
