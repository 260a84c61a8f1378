//! Reads logs without countries, and prints the number of lines a second: `map_lines THREADS LOG...`; `-` is standard input.

use std::time::Instant;

use lab::map::log::{Event, Field, Input, Job, read, warnings};

fn main() {
    let mut words = std::env::args().skip(1);
    let threads = words.next().and_then(|word| word.parse().ok());
    let input = |word: String| Input {
        path: (word != "-").then(|| word.into()),
        formats: None,
    };
    let job = Job {
        inputs: words.map(input).collect(),
        client: Field::default(),
        threads: threads.unwrap_or(1),
        follows: false,
        countries: &|_| None,
    };
    let began = Instant::now();
    match read(&job, &mut |event| matches!(event, Event::Progress(_))) {
        Err(why) => eprintln!("{why}"),
        Ok(report) => {
            let seconds = began.elapsed().as_secs_f64();
            let lines = report.counts.lines;
            println!(
                "{lines} lines, {} damaged, {} samples in {seconds:.2} s: {:.2} million a second",
                report.counts.damaged,
                report.map.unknown.rtt.count(),
                lines as f64 / seconds / 1e6
            );
            warnings(&report).iter().for_each(|one| println!("{one}"));
        }
    }
}
