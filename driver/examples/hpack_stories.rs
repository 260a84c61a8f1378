//! Decodes the stories of https://github.com/http2jp/hpack-test-case, and encodes them again.
//!
//! ```text
//! cargo run --release --package firstbyte-driver --example hpack_stories -- DIR
//! ```
//!
//! DIR is a checkout with a folder per encoder and a file per story. A story is a sequence of header blocks with one
//! dynamic table, and the expected fields. Each block is decoded and compared. Then it is encoded by our encoder, with
//! and without Huffman coding, and decoded again. The exit code is 0 if all results match. The example is in this crate
//! since the engines open no files.

use std::fs;
use std::path::Path;
use std::process::ExitCode;

use engines::hpack::{Decoder, Encoder, Indexing};
use serde_json::Value;

type Fields = Vec<(Vec<u8>, Vec<u8>)>;

fn main() -> ExitCode {
    let Some(dir) = std::env::args_os().nth(1) else {
        eprintln!("usage: hpack_stories DIR");
        return ExitCode::from(2);
    };
    let mut total = Total::default();
    let outcome = folders(Path::new(&dir)).and_then(|folders| {
        let mut checked = folders
            .iter()
            .map(|folder| check_folder(folder, &mut total));
        checked.try_for_each(|result| result)
    });
    match outcome {
        Ok(()) if total.blocks > 0 => {
            let Total {
                stories,
                blocks,
                wire,
                plain,
                ours,
            } = total;
            println!("{stories} stories, {blocks} blocks agree");
            println!(
                "fields: {plain} bytes; as they came: {wire}; by our encoder: {} with Huffman coding, {} without",
                ours[1], ours[0]
            );
            ExitCode::SUCCESS
        }
        Ok(()) => {
            eprintln!("no story below {}", Path::new(&dir).display());
            ExitCode::from(2)
        }
        Err(text) => {
            eprintln!("{text}");
            ExitCode::FAILURE
        }
    }
}

/// Counts of checked blocks.
#[derive(Default)]
struct Total {
    stories: usize,
    blocks: usize,
    /// Bytes of the original blocks, of their fields, and of our blocks.
    wire: usize,
    plain: usize,
    ours: [usize; 2],
}

/// Returns the folders with encoded stories.
fn folders(dir: &Path) -> Result<Vec<std::path::PathBuf>, String> {
    let entries = fs::read_dir(dir).map_err(|e| format!("{}: {e}", dir.display()))?;
    let mut folders: Vec<_> = entries
        .flatten()
        .map(|entry| entry.path())
        .filter(|path| path.join("story_00.json").is_file() && !path.ends_with("raw-data"))
        .collect();
    folders.sort();
    Ok(folders)
}

fn check_folder(folder: &Path, total: &mut Total) -> Result<(), String> {
    let entries = fs::read_dir(folder).map_err(|e| format!("{}: {e}", folder.display()))?;
    let mut files: Vec<_> = entries.flatten().map(|entry| entry.path()).collect();
    files.sort();
    for file in files
        .iter()
        .filter(|f| f.extension().is_some_and(|e| e == "json"))
    {
        let text = fs::read(file).map_err(|e| format!("{}: {e}", file.display()))?;
        let story: Value =
            serde_json::from_slice(&text).map_err(|e| format!("{}: {e}", file.display()))?;
        check_story(&story, total).map_err(|e| format!("{}: {e}", file.display()))?;
        total.stories += 1;
    }
    Ok(())
}

fn check_story(story: &Value, total: &mut Total) -> Result<(), String> {
    // A story may raise the table size by its settings. The encoder then announces it.
    let mut decoder = Decoder::new(4096);
    let mut own = [false, true].map(|huffman| (Encoder::new(4096, huffman), Decoder::new(4096)));
    let cases = story["cases"].as_array().ok_or("no cases")?;
    for (n, case) in cases.iter().enumerate() {
        if let Some(bytes) = case["header_table_size"].as_u64() {
            decoder.set_allowed_bytes(bytes as usize);
        }
        let wire = case["wire"].as_str().and_then(hex).ok_or("no wire")?;
        let expected = expected(case).ok_or("no headers")?;
        let decoded = decode(&mut decoder, &wire);
        if decoded != Ok(expected.clone()) {
            return Err(format!("block {n} gives {decoded:?}"));
        }
        for ((encoder, decoder), bytes) in own.iter_mut().zip(&mut total.ours) {
            let mut block = Vec::new();
            encoder.begin(&mut block);
            for (name, value) in &expected {
                encoder.field(name, value, Indexing::Yes, &mut block);
            }
            if decode(decoder, &block) != Ok(expected.clone()) {
                return Err(format!("block {n} is not what we encoded"));
            }
            *bytes += block.len();
        }
        total.blocks += 1;
        total.wire += wire.len();
        total.plain += expected
            .iter()
            .map(|(n, v)| n.len() + v.len())
            .sum::<usize>();
    }
    Ok(())
}

fn decode(decoder: &mut Decoder, block: &[u8]) -> Result<Fields, engines::hpack::Fault> {
    let mut fields = Fields::new();
    decoder.decode(block, |name, value| {
        fields.push((name.to_vec(), value.to_vec()));
    })?;
    Ok(fields)
}

/// Returns the expected fields of a block.
fn expected(case: &Value) -> Option<Fields> {
    let headers = case["headers"].as_array()?;
    let pairs = headers.iter().filter_map(Value::as_object).flatten();
    pairs
        .map(|(name, value)| {
            Some((
                name.as_bytes().to_vec(),
                value.as_str()?.as_bytes().to_vec(),
            ))
        })
        .collect()
}

fn hex(text: &str) -> Option<Vec<u8>> {
    let pairs = text.as_bytes().chunks(2);
    pairs
        .map(|pair| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok())
        .collect()
}
